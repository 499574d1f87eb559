"""TLS of clients configured with Java's keys: their options and their SSL context."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final

from connect.config import LOW, MEDIUM, option
from connect.errors import ConfigError
from connect.internals.tls.contexts import load_key, load_trusted
from connect.internals.tls.key_stores import read_key_store, read_trust_store

__all__ = ["TLS_NAMES", "client_context", "has_trust_store", "tls_option", "unusable_stores"]

_TYPE: Final = "JKS, PKCS12 or PEM; by default it is detected from the file's content."
_DOCS: Final = {
    "ssl.truststore.location": "A file with the certificates of the trusted authorities: PEM, JKS or PKCS12. By "
    "default those of the system are trusted.",
    "ssl.truststore.certificates": "The trusted certificates as PEM text.",
    "ssl.truststore.type": _TYPE,
    "ssl.truststore.password": "The password of the truststore file; PEM has none.",
    "ssl.keystore.location": "A file with the client's private key and certificates: PEM, JKS or PKCS12.",
    "ssl.keystore.key": "The client's private key as PEM text.",
    "ssl.keystore.certificate.chain": "The client's certificates as PEM text.",
    "ssl.keystore.type": _TYPE,
    "ssl.keystore.password": "The password of the keystore file; PEM has none.",
    "ssl.key.password": "The password of the private key.",
    "ssl.endpoint.identification.algorithm": "https (the default) checks that the certificate is the host's; an empty "
    "value does not.",
}

TLS_NAMES: Final = tuple(_DOCS)
"""The names of the keys; each client has them under its own prefix."""


def tls_option(name: str) -> Any:
    """Declare the option for one of :data:`TLS_NAMES`, without a default."""
    importance = MEDIUM if name.endswith(".location") else LOW
    return option(default=None, importance=importance, doc=_DOCS[name])


def unusable_stores(props: Mapping[str, str], prefix: str) -> Iterator[ConfigError]:
    """Yield an error for each store in ``props`` that cannot be read; keys begin with ``prefix``."""
    for read in (read_trust_store, read_key_store):
        try:
            read(props, prefix)
        except ConfigError as error:
            yield error


def has_trust_store(props: Mapping[str, str], prefix: str) -> bool:
    """Return whether ``props`` configure a trust store."""
    return any(props.get(f"{prefix}ssl.truststore.{name}") for name in ("location", "certificates"))


def client_context(props: Mapping[str, str], prefix: str, *, trusts_all: bool = False) -> ssl.SSLContext:
    """Return the SSL context of a client. Raises :class:`~connect.errors.ConfigError` if one of ``props`` is unusable.

    With ``trusts_all`` the issuer and the host name of certificates are not checked.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if trusts_all:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        load_trusted(context, read_trust_store(props, prefix), prefix, ssl.Purpose.SERVER_AUTH)
        context.check_hostname = props.get(f"{prefix}ssl.endpoint.identification.algorithm") != ""
    if (key := read_key_store(props, prefix)) is not None:
        load_key(context, key, prefix)
    return context
