"""TLS of the REST API from Java's ``ssl.*`` settings: for listeners and for requests to other workers."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connect.internals.kafka.auth.ssl import OPENSSL_CIPHERS
from connect.internals.tls.contexts import load_key, load_trusted
from connect.internals.tls.key_stores import read_key_store, read_trust_store

__all__ = ["CLIENT_CERTIFICATE", "TlsSettings"]

CLIENT_CERTIFICATE: Final = "sluice.client_certificate"
"""The member of a request's environment that holds the verified certificate of its TLS client, if it has shown one.
No header can set it."""

_CLIENT_AUTH: Final = {
    "required": ssl.CERT_REQUIRED,
    "requested": ssl.CERT_OPTIONAL,
    "none": ssl.CERT_NONE,
}
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class TlsSettings:
    """The TLS settings of a worker's configuration. Files are read each time a context is created.

    ``key`` is the key of the listeners. If any key begins with ``<key>.https.``, only those keys count; otherwise the
    worker's own ``ssl.*`` keys do, as in Kafka Connect.
    """

    def __init__(self, props: Mapping[str, str], key: str = "listeners") -> None:
        self._own_prefix = f"{key}.https."
        has_own = any(name.startswith(self._own_prefix) for name in props)
        self._prefix = self._own_prefix if has_own else ""
        self._props = dict(props)

    def server_context(self) -> ssl.SSLContext:
        """Create the context for listeners. Raises :class:`~connect.errors.ConfigError` for invalid settings."""
        key = read_key_store(self._props, self._prefix)
        if key is None:
            name = f"{self._own_prefix}ssl.keystore.location"
            raise ConfigRuleError(
                f"An https:// listener needs a certificate: set {name} and its .password, or "
                f"{self._own_prefix}ssl.keystore.key and {self._own_prefix}ssl.keystore.certificate.chain.",
                name,
            )
        context = self._context(ssl.PROTOCOL_TLS_SERVER, ssl.Purpose.CLIENT_AUTH, self._client_auth())
        load_key(context, key, self._prefix)
        return context

    def client_context(self) -> ssl.SSLContext:
        """Create the context for requests to other workers, whose certificates are verified."""
        context = self._context(ssl.PROTOCOL_TLS_CLIENT, ssl.Purpose.SERVER_AUTH, ssl.CERT_REQUIRED)
        context.check_hostname = self._checks_host()
        key = read_key_store(self._props, self._prefix)
        if key is not None:
            load_key(context, key, self._prefix)
        return context

    def _context(self, protocol: int, purpose: ssl.Purpose, verify: ssl.VerifyMode) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.check_hostname = False
        context.verify_mode = verify
        load_trusted(context, read_trust_store(self._props, self._prefix), self._prefix, purpose)
        self._restrict(context)
        return context

    def _client_auth(self) -> ssl.VerifyMode:
        given = self._get("ssl.client.auth", "none").lower()
        if given not in _CLIENT_AUTH:
            raise ConfigError(f"{self._prefix}ssl.client.auth", given, f"Use one of {', '.join(_CLIENT_AUTH)}")
        return _CLIENT_AUTH[given]

    def _checks_host(self) -> bool:
        given = self._get("ssl.endpoint.identification.algorithm", "https").lower()
        if given not in ("", "https"):
            raise ConfigError(
                f"{self._prefix}ssl.endpoint.identification.algorithm",
                given,
                "Set it to https, or leave it empty to accept any host name",
            )
        return given == "https"

    def _restrict(self, context: ssl.SSLContext) -> None:
        """Allow only the configured protocols and cipher suites."""
        versions = self._versions()
        suites = self._listed("ssl.cipher.suites")
        if suites:
            # TLS 1.3 suites are recognised by their names, and are always enabled together.
            older = [suite for suite in suites if not _is_of_tls13(suite)]
            versions &= ({"TLSv1.2"} if older else set()) | ({"TLSv1.3"} if len(older) < len(suites) else set())
            self._set_ciphers(context, older)
        if not versions:
            key = f"{self._prefix}ssl.cipher.suites"
            raise ConfigRuleError(
                f"No suite in {key} belongs to a protocol in ssl.enabled.protocols. Add one, or allow its protocol.",
                key,
            )
        context.minimum_version, context.maximum_version = _VERSIONS[min(versions)], _VERSIONS[max(versions)]

    def _versions(self) -> set[str]:
        key = f"{self._prefix}ssl.enabled.protocols"
        listed = self._listed("ssl.enabled.protocols") or list(_VERSIONS)
        for version in listed:
            if version not in _VERSIONS:
                raise ConfigError(key, version, f"Use {' and '.join(_VERSIONS)}: older protocols are insecure")
        return set(listed)

    def _set_ciphers(self, context: ssl.SSLContext, suites: list[str]) -> None:
        if not suites:
            return
        try:
            context.set_ciphers(":".join(OPENSSL_CIPHERS.get(suite, suite) for suite in suites))
        except ssl.SSLError:
            raise ConfigError(
                f"{self._prefix}ssl.cipher.suites",
                ",".join(suites),
                "OpenSSL knows none of these cipher suites; `openssl ciphers -stdname` lists the known ones",
            ) from None

    def _listed(self, key: str) -> list[str]:
        return [item.strip() for item in self._get(key, "").split(",") if item.strip()]

    def _get(self, key: str, default: str) -> str:
        return self._props.get(self._prefix + key, default).strip()


def _is_of_tls13(suite: str) -> bool:
    return suite.startswith("TLS_") and "_WITH_" not in suite
