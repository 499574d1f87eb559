"""TLS of the HTTP connectors, configured with the keys of the Java HTTP connectors."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from typing import Any, Final

from connect.config import LOW, Config, Password, option
from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connect.tls.client import TLS_NAMES, client_context, tls_option, unusable_stores

__all__ = ["TlsConfig", "tls_context"]

_PREFIX: Final = "https."
_OTHER_NAMES: Final = {
    "http.ssl.truststore.location": "ssl.truststore.location",
    "http.ssl.truststore.password": "ssl.truststore.password",
    "http.client.keystore": "ssl.keystore.location",
    "http.client.keystore.password": "ssl.keystore.password",
}
"""The keys of other connectors for the same."""


def _same(name: str) -> Any:
    return option(default=None, importance=LOW, doc=f"Alias of https.{name}.")


class TlsConfig(Config):
    """The TLS options."""

    https_ssl_truststore_location: str | None = tls_option("ssl.truststore.location")
    https_ssl_truststore_certificates: Password | None = tls_option("ssl.truststore.certificates")
    https_ssl_truststore_type: str | None = tls_option("ssl.truststore.type")
    https_ssl_truststore_password: Password | None = tls_option("ssl.truststore.password")
    https_ssl_keystore_location: str | None = tls_option("ssl.keystore.location")
    https_ssl_keystore_key: Password | None = tls_option("ssl.keystore.key")
    https_ssl_keystore_certificate_chain: Password | None = tls_option("ssl.keystore.certificate.chain")
    https_ssl_keystore_type: str | None = tls_option("ssl.keystore.type")
    https_ssl_keystore_password: Password | None = tls_option("ssl.keystore.password")
    https_ssl_key_password: Password | None = tls_option("ssl.key.password")
    https_ssl_endpoint_identification_algorithm: str | None = tls_option("ssl.endpoint.identification.algorithm")
    http_ssl_truststore_location: str | None = _same("ssl.truststore.location")
    http_ssl_truststore_password: Password | None = _same("ssl.truststore.password")
    http_client_keystore: str | None = _same("ssl.keystore.location")
    http_client_keystore_password: Password | None = _same("ssl.keystore.password")
    http_ssl_trust_all_certs: bool = option(
        default=False,
        importance=LOW,
        doc="Whether to accept any certificate, from any issuer and for any host. Anyone on the network path can then "
        "read and change everything: for tests only.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each store that cannot be read."""
        yield from super().check()
        props = self.tls_props()
        yield from unusable_stores(props, _PREFIX)
        if self.http_ssl_trust_all_certs and any(name.startswith(f"{_PREFIX}ssl.truststore.") for name in props):
            yield ConfigRuleError(
                "http.ssl.trust.all.certs accepts any certificate, and https.ssl.truststore says which to accept: "
                "remove one of them.",
                "http.ssl.trust.all.certs",
            )

    def tls_props(self) -> dict[str, str]:
        """Return the TLS options that are set, under ``https.ssl.*``."""
        return {_PREFIX + name: text for name, text in self._given()}

    def _given(self) -> Iterator[tuple[str, str]]:
        for key, name in (*_OTHER_NAMES.items(), *((_PREFIX + name, name) for name in TLS_NAMES)):
            found = getattr(self, key.replace(".", "_"))
            text = found.value if isinstance(found, Password) else found
            # Empty is what Java's connectors have as default; of one option alone it says something.
            if text or (text is not None and name.endswith(".algorithm")):
                yield name, text


def tls_context(config: TlsConfig) -> ssl.SSLContext:
    """Create the client's TLS context. Raises :class:`~connect.errors.ConfigError` for an unusable option."""
    return client_context(config.tls_props(), _PREFIX, trusts_all=config.http_ssl_trust_all_certs)
