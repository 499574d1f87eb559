"""TLS connections to a schema registry, configured by Java's keys."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any, Final

from connect.config import LOW, MEDIUM, Config, Password, option
from connect.errors import ConfigError
from connect.tls.contexts import load_key, load_trusted
from connect.tls.key_stores import read_key_store, read_trust_store

__all__ = ["TlsConfig", "has_trust_store", "tls_context"]

_PREFIX: Final = "schema.registry."
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


def _text(doc: str) -> Any:
    return option(default=None, importance=LOW, doc=doc)


def _same(name: str) -> Any:
    return option(default=None, importance=LOW, doc=f"The same as schema.registry.{name}, which takes precedence.")


class TlsConfig(Config):
    """The TLS options. Each key may also be written without ``schema.registry.``."""

    schema_registry_ssl_truststore_location: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="A file with the certificates of the trusted authorities: JKS, PKCS12 or PEM.",
    )
    schema_registry_ssl_truststore_certificates: Password | None = _text("The trusted certificates as PEM text.")
    schema_registry_ssl_truststore_type: str | None = _text(_TYPE)
    schema_registry_ssl_truststore_password: Password | None = _text(
        "The password of the truststore file; PEM has none."
    )
    schema_registry_ssl_keystore_location: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="A file with the client's private key and certificates: JKS, PKCS12 or PEM.",
    )
    schema_registry_ssl_keystore_key: Password | None = _text("The client's private key as PEM text.")
    schema_registry_ssl_keystore_certificate_chain: Password | None = _text("The client's certificates as PEM text.")
    schema_registry_ssl_keystore_type: str | None = _text(_TYPE)
    schema_registry_ssl_keystore_password: Password | None = _text("The password of the keystore file; PEM has none.")
    schema_registry_ssl_key_password: Password | None = _text("The password of the private key.")
    schema_registry_ssl_endpoint_identification_algorithm: str | None = _text(
        "https (the default) checks that the certificate is the host's; an empty value does not."
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
        props = self.tls_props()
        for read in (read_trust_store, read_key_store):
            try:
                read(props, _PREFIX)
            except ConfigError as error:
                yield error

    def tls_props(self) -> dict[str, str]:
        """The TLS options that are set, all under ``schema.registry.ssl.*``."""
        props: dict[str, str] = {}
        for name in _NAMES:
            attribute = name.replace(".", "_")
            for found in (getattr(self, attribute), getattr(self, f"schema_registry_{attribute}")):
                if found is not None:
                    props[_PREFIX + name] = found.value if isinstance(found, Password) else str(found)
        return props


def has_trust_store(config: TlsConfig) -> bool:
    """Whether the options say who is to be trusted."""
    props = config.tls_props()
    return any(props.get(f"{_PREFIX}ssl.truststore.{name}") for name in ("location", "certificates"))


def tls_context(config: TlsConfig) -> ssl.SSLContext:
    """The TLS context for the registry; a :class:`~connect.errors.ConfigError` if an option is unusable."""
    props = config.tls_props()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_trusted(context, read_trust_store(props, _PREFIX), _PREFIX, ssl.Purpose.SERVER_AUTH)
    context.check_hostname = props.get(f"{_PREFIX}ssl.endpoint.identification.algorithm") != ""
    if (key := read_key_store(props, _PREFIX)) is not None:
        load_key(context, key, _PREFIX)
    return context
