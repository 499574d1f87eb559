"""Java's key stores and trust stores (JKS, PKCS12, PEM), converted to PEM. Keys are never written to a file.

The type of a store is detected from its first bytes: Java reads JKS and PKCS12 files under either name.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Final

from connect.config.errors import ConfigRuleError
from connect.config.password import HIDDEN
from connect.errors import ConfigError
from connect.internals.tls.pem import normalized_pem

__all__ = ["KeyEntry", "is_pem", "read_key_store", "read_trust_store"]

_JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
_PRIVATE_KEY: Final = 1
_DIGEST_SIZE: Final = 20
_WHITENING: Final = b"Mighty Aphrodite"
_TYPES: Final = ("JKS", "PKCS12", "PEM")


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key, still encrypted if it has a ``password``, and its certificate chain, starting with its own."""

    key: str = field(repr=False)
    certificates: str
    password: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Contents:
    """The contents of a store."""

    keys: tuple[KeyEntry, ...]
    trusted: str


def is_pem(props: Mapping[str, str], name: str) -> bool:
    """Return whether the store ``name`` (``ssl.keystore`` or ``ssl.truststore``) is a PEM file.

    Raises :class:`~connect.errors.ConfigError` if it cannot be read.
    """
    return _type(props, name, _content(props, name)) == "PEM"


def read_key_store(props: Mapping[str, str], prefix: str) -> KeyEntry | None:
    """Return the key configured by ``ssl.keystore.*`` below ``prefix``; ``None`` if there is none.

    Raises a :class:`~connect.errors.ConfigError` that names the key to correct and shows no password.
    """
    name = f"{prefix}ssl.keystore"
    key, location = props.get(f"{name}.key", ""), props.get(f"{name}.location", "").strip()
    if key.strip():
        _refuse_both(f"{name}.key", f"{name}.location", location)
        chain = props.get(f"{name}.certificate.chain", "")
        if not chain.strip():
            chain_key = f"{name}.certificate.chain"
            raise ConfigRuleError(f"Missing required configuration {chain_key}: set it beside {name}.key.", chain_key)
        return KeyEntry(
            normalized_pem(f"{name}.key", key),
            normalized_pem(f"{name}.certificate.chain", chain),
            props.get(f"{prefix}ssl.key.password"),
        )
    if not location:
        return None
    found = _read(props, name, props.get(f"{prefix}ssl.key.password")).keys
    if not found:
        raise ConfigError(f"{name}.location", location, "There is no private key in it")
    return found[0]


def read_trust_store(props: Mapping[str, str], prefix: str) -> str | None:
    """Return the PEM certificates configured by ``ssl.truststore.*`` below ``prefix``; ``None`` if there are none."""
    name = f"{prefix}ssl.truststore"
    inline, location = props.get(f"{name}.certificates", ""), props.get(f"{name}.location", "").strip()
    if inline.strip():
        _refuse_both(f"{name}.certificates", f"{name}.location", location)
        return normalized_pem(f"{name}.certificates", inline)
    if not location:
        return None
    trusted = _read(props, name, None).trusted
    if not trusted:
        raise ConfigError(
            f"{name}.location", location, f"There is no certificate in it that can be read; is {name}.password missing?"
        )
    return trusted


def _refuse_both(inline: str, location_key: str, location: str) -> None:
    if location:
        raise ConfigError(inline, HIDDEN, f"{location_key} is set too: remove one of them")


def _read(props: Mapping[str, str], name: str, key_password: str | None) -> _Contents:
    location, data = props[f"{name}.location"].strip(), _content(props, name)
    password = props.get(f"{name}.password")
    try:
        match _type(props, name, data):
            case "PEM":
                return _pem(f"{name}.location", data, key_password)
            case "JKS":
                return _jks(data, password, key_password)
            case _:
                return _pkcs12(data, password)
    except _WrongPasswordError as error:
        said = HIDDEN if password is not None else "null"
        raise ConfigError(
            error.key_of(name), said, f"It does not open {location}: {error}. Check the password and the file"
        ) from None
    except (struct.error, ValueError, EOFError, IndexError, UnicodeError):
        raise ConfigError(
            f"{name}.location",
            location,
            "It is neither JKS nor PKCS12 nor PEM, or it is damaged; `keytool -list -keystore FILE` shows what it is",
        ) from None


def _content(props: Mapping[str, str], name: str) -> bytes:
    location = props[f"{name}.location"].strip()
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{name}.location", location, f"It cannot be read: {error.strerror}. Name a file that the worker may read"
        ) from error


def _type(props: Mapping[str, str], name: str, data: bytes) -> str:
    given = props.get(f"{name}.type", "").strip().upper()
    if given and given not in _TYPES:
        raise ConfigError(
            f"{name}.type",
            given,
            f"Use one of {', '.join(_TYPES)}; `keytool -importkeystore -srcstoretype {given} -deststoretype PKCS12` "
            "converts others",
        )
    if given == "PEM" or (not given and b"-----BEGIN " in data):
        return "PEM"
    return "JKS" if data.startswith(_JKS_MAGIC) else "PKCS12"


class _WrongPasswordError(Exception):
    """The password of a store, or of a key in it, is wrong."""

    def __init__(self, reason: str, *, of_key: bool = False) -> None:
        super().__init__(reason)
        self._of_key = of_key

    def key_of(self, name: str) -> str:
        """Return the config key that has the password."""
        return f"{name.rpartition('.')[0]}.key.password" if self._of_key else f"{name}.password"


# -- PEM and PKCS12 -----------------------------------------------------------------------------------------------


def _pem(location_key: str, data: bytes, key_password: str | None) -> _Contents:
    text = normalized_pem(location_key, data.decode("ascii", "replace"))
    blocks = [f"-----BEGIN {block}" for block in text.split("-----BEGIN ")[1:]]
    certificates = "".join(block for block in blocks if block.startswith("-----BEGIN CERTIFICATE"))
    keys = [block for block in blocks if "PRIVATE KEY-----" in block.partition("\n")[0]]
    return _Contents(tuple(KeyEntry(key, certificates, key_password) for key in keys), certificates)


def _pkcs12(data: bytes, password: str | None) -> _Contents:
    # Imported here because it takes 8 MB in every worker and every task.
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
        pkcs12,
    )

    try:
        store = pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError as error:
        if "password" in str(error).lower():
            raise _WrongPasswordError("the password is wrong, or the file is no key store") from None
        raise
    own = [store.cert] if store.cert is not None else []
    certificates = [entry.certificate for entry in (*own, *store.additional_certs)]
    text = "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)
    if store.key is None:
        return _Contents((), text)
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return _Contents((KeyEntry(key.decode(), text, None),), text)


# -- JKS ----------------------------------------------------------------------------------------------------------


def _jks(data: bytes, password: str | None, key_password: str | None) -> _Contents:
    """Read a store in Sun's own format: a sequence of entries, and a digest over the password and all entries."""
    secret = None if password is None else password.encode("utf-16-be")
    body, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    if secret is not None and not hmac.compare_digest(_sha1(secret + _WHITENING + body), digest):
        raise _WrongPasswordError("the password is wrong, or the file is damaged")
    file = BytesIO(body[len(_JKS_MAGIC) :])
    version, count = struct.unpack(">II", _take(file, 8))
    keys, trusted = [], []
    for _ in range(count):
        (tag,) = struct.unpack(">I", _take(file, 4))
        _text(file)
        _take(file, 8)
        if tag == _PRIVATE_KEY:
            protected = _sized(file)
            (certificates,) = struct.unpack(">I", _take(file, 4))
            chain = "".join(_certificate(file, version) for _ in range(certificates))
            keys.append((protected, chain))
        else:
            trusted.append(_certificate(file, version))
    given = key_password if key_password is not None else password
    return _Contents(tuple(KeyEntry(_jks_key(key, given), chain, None) for key, chain in keys), "".join(trusted))


def _jks_key(protected: bytes, password: str | None) -> str:
    """Decrypt a private key in Sun's own encryption: the key is XORed with a stream of digests over the password."""
    if password is None:
        raise _WrongPasswordError("the private key needs one", of_key=True)
    secret = password.encode("utf-16-be")
    encrypted = _last_octets(protected)
    digest, mixed = encrypted[:_DIGEST_SIZE], encrypted[_DIGEST_SIZE:-_DIGEST_SIZE]
    stream = bytearray()
    while len(stream) < len(mixed):
        digest = _sha1(secret + digest)
        stream += digest
    key = bytes(a ^ b for a, b in zip(mixed, cycle(stream), strict=False))
    if not hmac.compare_digest(_sha1(secret + key), encrypted[-_DIGEST_SIZE:]):
        raise _WrongPasswordError("the password of the private key is wrong", of_key=True)
    return _as_pem("PRIVATE KEY", key)


def _last_octets(der: bytes) -> bytes:
    """Return the octets of an ``EncryptedPrivateKeyInfo``, which follow the name of the encryption."""
    inner = _der_content(der)[0]
    _, octets = _der_content(inner)
    return _der_content(octets)[0]


def _der_content(der: bytes) -> tuple[bytes, bytes]:
    """Return the content of the first value, and the bytes after it."""
    length, start = der[1], 2
    if length & 0x80:
        start = 2 + (length & 0x7F)
        length = int.from_bytes(der[2:start], "big")
    return der[start : start + length], der[start + length :]


def _certificate(file: BytesIO, version: int) -> str:
    if version > 1:
        _text(file)
    return _as_pem("CERTIFICATE", _sized(file))


def _text(file: BytesIO) -> bytes:
    return _take(file, struct.unpack(">H", _take(file, 2))[0])


def _sized(file: BytesIO) -> bytes:
    return _take(file, struct.unpack(">I", _take(file, 4))[0])


def _take(file: BytesIO, count: int) -> bytes:
    taken = file.read(count)
    if len(taken) < count:
        raise EOFError
    return taken


def _as_pem(label: str, der: bytes) -> str:
    lines = textwrap.wrap(base64.b64encode(der).decode(), 64)
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))


def _sha1(data: bytes) -> bytes:
    # The file format supports no other.
    return hashlib.sha1(data, usedforsecurity=False).digest()
