"""TLS connections of the HTTP connectors, configured by the keys of Java's HTTP connectors."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from typing import Any, Final

from connect.config import LOW, MEDIUM, Config, Password, option
from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connect.tls.contexts import load_key, load_trusted
from connect.tls.key_stores import read_key_store, read_trust_store

__all__ = ["TlsConfig", "tls_context"]

_PREFIX: Final = "https."
_NAMES: Final = (
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.truststore.type",
    "ssl.truststore.password",
    "ssl.keystore.location",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.type",
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
)
_TYPE: Final = "JKS, PKCS12 or PEM; by default it is detected from the file's content."
_OTHER_NAMES: Final = {
    "http.ssl.truststore.location": "ssl.truststore.location",
    "http.ssl.truststore.password": "ssl.truststore.password",
    "http.client.keystore": "ssl.keystore.location",
    "http.client.keystore.password": "ssl.keystore.password",
}
"""The keys of other connectors for the same."""


def _text(doc: str) -> Any:
    return option(default=None, importance=LOW, doc=doc)


class TlsConfig(Config):
    """The TLS options."""

    https_ssl_truststore_location: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="A file with the certificates of the trusted authorities: PEM, JKS or PKCS12. By default those of the "
        "system are trusted.",
    )
    https_ssl_truststore_certificates: Password | None = _text("The trusted certificates as PEM text.")
    https_ssl_truststore_type: str | None = _text(_TYPE)
    https_ssl_truststore_password: Password | None = _text("The password of the truststore file; PEM has none.")
    https_ssl_keystore_location: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="A file with the client's private key and certificates: PEM, JKS or PKCS12.",
    )
    https_ssl_keystore_key: Password | None = _text("The client's private key as PEM text.")
    https_ssl_keystore_certificate_chain: Password | None = _text("The client's certificates as PEM text.")
    https_ssl_keystore_type: str | None = _text(_TYPE)
    https_ssl_keystore_password: Password | None = _text("The password of the keystore file; PEM has none.")
    https_ssl_key_password: Password | None = _text("The password of the private key.")
    https_ssl_endpoint_identification_algorithm: str | None = _text(
        "https (the default) checks that the certificate is the host's; an empty value does not."
    )
    http_ssl_truststore_location: str | None = _text("The same as https.ssl.truststore.location.")
    http_ssl_truststore_password: Password | None = _text("The same as https.ssl.truststore.password.")
    http_client_keystore: str | None = _text("The same as https.ssl.keystore.location.")
    http_client_keystore_password: Password | None = _text("The same as https.ssl.keystore.password.")
    http_ssl_trust_all_certs: bool = option(
        default=False,
        importance=LOW,
        doc="Whether any certificate is accepted, whoever has issued it and for whatever host. Whoever is between the "
        "worker and the server can then read and change everything: for tests only.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each store that cannot be read."""
        yield from super().check()
        props = self.tls_props()
        for read in (read_trust_store, read_key_store):
            try:
                read(props, _PREFIX)
            except ConfigError as error:
                yield error
        if self.http_ssl_trust_all_certs and any(name.startswith(f"{_PREFIX}ssl.truststore.") for name in props):
            yield ConfigRuleError(
                "http.ssl.trust.all.certs accepts any certificate, and https.ssl.truststore says which to accept: "
                "remove one of them.",
                "http.ssl.trust.all.certs",
            )

    def tls_props(self) -> dict[str, str]:
        """The TLS options that are set, under ``https.ssl.*``."""
        return {_PREFIX + name: text for name, text in self._given()}

    def _given(self) -> Iterator[tuple[str, str]]:
        for key, name in (*_OTHER_NAMES.items(), *((_PREFIX + name, name) for name in _NAMES)):
            found = getattr(self, key.replace(".", "_"))
            text = found.value if isinstance(found, Password) else found
            # Empty is what Java's connectors have as default; of one option alone it says something.
            if text or (text is not None and name.endswith(".algorithm")):
                yield name, text


def tls_context(config: TlsConfig) -> ssl.SSLContext:
    """The TLS context of a client; a :class:`~connect.errors.ConfigError` if an option is unusable."""
    props = config.tls_props()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if config.http_ssl_trust_all_certs:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        load_trusted(context, read_trust_store(props, _PREFIX), _PREFIX, ssl.Purpose.SERVER_AUTH)
        context.check_hostname = props.get(f"{_PREFIX}ssl.endpoint.identification.algorithm") != ""
    if (key := read_key_store(props, _PREFIX)) is not None:
        load_key(context, key, _PREFIX)
    return context
