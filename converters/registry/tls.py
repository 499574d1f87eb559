"""TLS to a schema registry, by Java's keys."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any, Final

from connect.config import LOW, MEDIUM, Config, Password, option
from connect.errors import ConfigError
from connect.tls.contexts import load_key, load_trusted
from connect.tls.key_stores import read_key_store, read_trust_store

__all__ = ["TlsConfig", "tls_context"]

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
_TYPE: Final = "JKS, PKCS12 or PEM; known by the file's content if it is not given."


def _text(doc: str) -> Any:
    return option(default=None, importance=LOW, doc=doc)


def _same(name: str) -> Any:
    return option(default=None, importance=LOW, doc=f"As schema.registry.{name}, which comes first.")


class TlsConfig(Config):
    """Whom to trust and how to identify oneself. Each key may also be written without ``schema.registry.``."""

    schema_registry_ssl_truststore_location: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="A file with the certificates of the authorities to trust: JKS, PKCS12 or PEM.",
    )
    schema_registry_ssl_truststore_certificates: Password | None = _text("The certificates themselves, as text in PEM.")
    schema_registry_ssl_truststore_type: str | None = _text(_TYPE)
    schema_registry_ssl_truststore_password: Password | None = _text("The password of that file; PEM has none.")
    schema_registry_ssl_keystore_location: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="A file with the client's private key and certificates: JKS, PKCS12 or PEM.",
    )
    schema_registry_ssl_keystore_key: Password | None = _text("The client's private key, as text in PEM.")
    schema_registry_ssl_keystore_certificate_chain: Password | None = _text("Its certificates, as text in PEM.")
    schema_registry_ssl_keystore_type: str | None = _text(_TYPE)
    schema_registry_ssl_keystore_password: Password | None = _text("The password of that file; PEM has none.")
    schema_registry_ssl_key_password: Password | None = _text("The password of the private key.")
    schema_registry_ssl_endpoint_identification_algorithm: str | None = _text(
        "https (the default) to check that the certificate is the host's; empty not to."
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
        """Whether the stores can be read."""
        yield from super().check()
        props = self.tls_props()
        for read in (read_trust_store, read_key_store):
            try:
                read(props, _PREFIX)
            except ConfigError as error:
                yield error

    def tls_props(self) -> dict[str, str]:
        """What is given of TLS under ``schema.registry.ssl.*``, whichever way it is written."""
        props: dict[str, str] = {}
        for name in _NAMES:
            attribute = name.replace(".", "_")
            for found in (getattr(self, attribute), getattr(self, f"schema_registry_{attribute}")):
                if found is not None:
                    props[_PREFIX + name] = found.value if isinstance(found, Password) else str(found)
        return props


def tls_context(config: TlsConfig) -> ssl.SSLContext:
    """How TLS connections to the registry are made; what cannot be used is a :class:`~connect.errors.ConfigError`."""
    props = config.tls_props()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_trusted(context, read_trust_store(props, _PREFIX), _PREFIX, ssl.Purpose.SERVER_AUTH)
    context.check_hostname = props.get(f"{_PREFIX}ssl.endpoint.identification.algorithm") != ""
    if (key := read_key_store(props, _PREFIX)) is not None:
        load_key(context, key, _PREFIX)
    return context
