"""TLS connections to a schema registry, configured by Java's keys."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any, Final

from connect.config import LOW, Config, Password, option
from connect.errors import ConfigError
from connect.tls import client
from connect.tls.client import TLS_NAMES, client_context, tls_option, unusable_stores

__all__ = ["TlsConfig", "has_trust_store", "tls_context"]

_PREFIX: Final = "schema.registry."


def _same(name: str) -> Any:
    return option(default=None, importance=LOW, doc=f"The same as schema.registry.{name}, which takes precedence.")


class TlsConfig(Config):
    """The TLS options. Each key can also be written without ``schema.registry.``."""

    schema_registry_ssl_truststore_location: str | None = tls_option("ssl.truststore.location")
    schema_registry_ssl_truststore_certificates: Password | None = tls_option("ssl.truststore.certificates")
    schema_registry_ssl_truststore_type: str | None = tls_option("ssl.truststore.type")
    schema_registry_ssl_truststore_password: Password | None = tls_option("ssl.truststore.password")
    schema_registry_ssl_keystore_location: str | None = tls_option("ssl.keystore.location")
    schema_registry_ssl_keystore_key: Password | None = tls_option("ssl.keystore.key")
    schema_registry_ssl_keystore_certificate_chain: Password | None = tls_option("ssl.keystore.certificate.chain")
    schema_registry_ssl_keystore_type: str | None = tls_option("ssl.keystore.type")
    schema_registry_ssl_keystore_password: Password | None = tls_option("ssl.keystore.password")
    schema_registry_ssl_key_password: Password | None = tls_option("ssl.key.password")
    schema_registry_ssl_endpoint_identification_algorithm: str | None = tls_option(
        "ssl.endpoint.identification.algorithm"
    )
    ssl_truststore_location: str | None = _same("ssl.truststore.location")
    ssl_truststore_certificates: Password | None = _same("ssl.truststore.certificates")
    ssl_truststore_type: str | None = _same("ssl.truststore.type")
    ssl_truststore_password: Password | None = _same("ssl.truststore.password")
    ssl_keystore_location: str | None = _same("ssl.keystore.location")
    ssl_keystore_key: Password | None = _same("ssl.keystore.key")
    ssl_keystore_certificate_chain: Password | None = _same("ssl.keystore.certificate.chain")
    ssl_keystore_type: str | None = _same("ssl.keystore.type")
    ssl_keystore_password: Password | None = _same("ssl.keystore.password")
    ssl_key_password: Password | None = _same("ssl.key.password")
    ssl_endpoint_identification_algorithm: str | None = _same("ssl.endpoint.identification.algorithm")

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each store that cannot be read."""
        yield from super().check()
        yield from unusable_stores(self.tls_props(), _PREFIX)

    def tls_props(self) -> dict[str, str]:
        """Return the TLS options that are set, all under ``schema.registry.ssl.*``."""
        props: dict[str, str] = {}
        for name in TLS_NAMES:
            attribute = name.replace(".", "_")
            for found in (getattr(self, attribute), getattr(self, f"schema_registry_{attribute}")):
                if found is not None:
                    props[_PREFIX + name] = found.value if isinstance(found, Password) else str(found)
        return props


def has_trust_store(config: TlsConfig) -> bool:
    """Return whether the options configure a trust store."""
    return client.has_trust_store(config.tls_props(), _PREFIX)


def tls_context(config: TlsConfig) -> ssl.SSLContext:
    """Return the TLS context for the registry. Raises :class:`~connect.errors.ConfigError` if an option is unusable."""
    return client_context(config.tls_props(), _PREFIX)
