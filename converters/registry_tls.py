"""TLS to a schema registry: Java's keys, with certificates and keys in PEM."""

from __future__ import annotations

import re
import ssl
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from connect.config import LOW, MEDIUM, Config, Password, option
from connect.errors import ConfigError

__all__ = ["TlsConfig", "tls_context"]

_PREFIX: Final = "schema.registry."
_PEM_TYPES: Final = ("PEM", "")
_CONVERT: Final = (
    "only PEM can be read; convert the store (keytool -importkeystore -deststoretype PKCS12, then openssl pkcs12 -out "
    "store.pem) and set {type}=PEM"
)
_BLOCK: Final = re.compile(r"-+BEGIN (?P<label>[A-Z0-9 ]+?)-+(?P<body>[A-Za-z0-9+/=\s]+)-+END (?P=label)-+")


def _text(doc: str) -> Any:
    return option(default=None, importance=LOW, doc=doc)


def _same(name: str) -> Any:
    return option(default=None, importance=LOW, doc=f"As schema.registry.{name}, which comes first.")


class TlsConfig(Config):
    """Whom to trust and how to identify oneself. Each key may also be written without ``schema.registry.``."""

    schema_registry_ssl_truststore_location: str | None = option(
        default=None, importance=MEDIUM, doc="A file with the certificates of the authorities to trust, in PEM."
    )
    schema_registry_ssl_truststore_certificates: Password | None = _text("The same certificates, as text.")
    schema_registry_ssl_truststore_type: str | None = _text("PEM; other types have to be converted.")
    schema_registry_ssl_truststore_password: Password | None = _text("Not needed for PEM.")
    schema_registry_ssl_keystore_location: str | None = option(
        default=None, importance=MEDIUM, doc="A file with the client's private key and certificates, in PEM."
    )
    schema_registry_ssl_keystore_key: Password | None = _text("The client's private key, as text in PEM.")
    schema_registry_ssl_keystore_certificate_chain: Password | None = _text("Its certificates, as text in PEM.")
    schema_registry_ssl_keystore_type: str | None = _text("PEM; other types have to be converted.")
    schema_registry_ssl_keystore_password: Password | None = _text("Not needed for PEM.")
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
        """Whether the stores can be read at all."""
        yield from super().check()
        for store in ("truststore", "keystore"):
            kind, key = self.tls(f"{store}.type"), f"{_PREFIX}ssl.{store}.type"
            location = self.tls(f"{store}.location")
            if kind is not None and kind.upper() not in _PEM_TYPES:
                yield ConfigError(key, kind, _CONVERT.format(type=key))
            elif location is not None and not Path(location).is_file():
                yield ConfigError(f"{_PREFIX}ssl.{store}.location", location, "there is no such file")

    def tls(self, name: str) -> str | None:
        """The value of an option of TLS, such as ``key.password``, whichever way it is written."""
        attribute = f"ssl_{name.replace('.', '_')}"
        for found in (getattr(self, f"schema_registry_{attribute}"), getattr(self, attribute)):
            if found is not None:
                return found.value if isinstance(found, Password) else str(found)
        return None


def tls_context(config: TlsConfig) -> ssl.SSLContext:
    """How TLS connections to the registry are made; what cannot be read is a :class:`~connect.errors.ConfigError`."""
    location, certificates = config.tls("truststore.location"), config.tls("truststore.certificates")
    key = f"{_PREFIX}ssl.truststore.{'certificates' if certificates else 'location'}"
    try:
        if certificates is not None:
            context = ssl.create_default_context(cadata=_written_out(certificates))
        else:
            context = ssl.create_default_context(cafile=location)
    except (OSError, ValueError) as error:
        # OpenSSL's reason says nothing of the content.
        raise ConfigError(key, "[hidden]" if certificates else location, f"no certificates in PEM: {error}") from error
    if config.tls("endpoint.identification.algorithm") == "":
        context.check_hostname = False
    _identify(context, config)
    return context


def _identify(context: ssl.SSLContext, config: TlsConfig) -> None:
    location, private_key = config.tls("keystore.location"), config.tls("keystore.key")
    if location is None and private_key is None:
        return
    # Without a password OpenSSL would ask at the terminal.
    password = config.tls("key.password") or config.tls("keystore.password") or ""
    try:
        if location is not None:
            context.load_cert_chain(location, password=password)
            return
        chain = config.tls("keystore.certificate.chain") or ""
        with _file(_written_out(private_key or "") + _written_out(chain)) as path:
            context.load_cert_chain(path, password=password)
    except (OSError, ValueError) as error:
        key = f"{_PREFIX}ssl.keystore.{'location' if location is not None else 'key'}"
        reason = f"no private key with its certificates in PEM, or not with this password: {error}"
        raise ConfigError(key, location if location is not None else "[hidden]", reason) from error


@contextmanager
def _file(content: str) -> Iterator[Path]:
    """A file that only this user can read, for as long as OpenSSL takes to read it."""
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        path = Path(folder) / "store.pem"
        path.touch(mode=0o600)
        path.write_text(content, encoding="ascii")
        yield path


def _written_out(text: str) -> str:
    """PEM with the line ends that OpenSSL wants: a properties file often has blanks for them, which Java reads."""
    blocks = [(match["label"], "".join(match["body"].split())) for match in _BLOCK.finditer(text)]
    if not blocks:
        raise ValueError("there is no block from -----BEGIN ...----- to -----END ...-----")
    return "".join(f"-----BEGIN {label}-----\n{_lines(body)}\n-----END {label}-----\n" for label, body in blocks)


def _lines(body: str) -> str:
    return "\n".join(body[start : start + 64] for start in range(0, len(body), 64))
