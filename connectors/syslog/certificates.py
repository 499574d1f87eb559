"""The listener's certificate, and the senders that are let in."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
from pathlib import Path
from typing import Final

from connect.config import ConfigRuleError
from connect.errors import ConfigError
from connect.internals.tls.contexts import load_key, load_trusted
from connect.internals.tls.key_stores import KeyEntry

__all__ = ["listener_context"]

_DAYS: Final = 365


def listener_context(
    chain: str | None, key: str | None, password: str | None, *, self_signed: bool, authorities: str | None
) -> ssl.SSLContext:
    """Return the TLS context of a listener; raise a :class:`~connect.errors.ConfigError` for a file that is unusable.

    With ``authorities`` only senders are let in that show a certificate of theirs.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A sender that closes without reading them would reset the connection, and with it all that was not received yet.
    context.num_tickets = 0
    if self_signed:
        entry = _self_signed()
    else:
        entry = KeyEntry(_text("syslog.ssl.key.path", key), _text("syslog.ssl.cert.chain.path", chain), password)
    try:
        load_key(context, entry, "syslog.")
    except ConfigError as error:
        raise _renamed(error) from None
    if authorities is not None:
        try:
            load_trusted(context, _text("syslog.ssl.ca.path", authorities), "syslog.", ssl.Purpose.CLIENT_AUTH)
        except ConfigError as error:
            raise ConfigRuleError(
                f"{authorities} has no certificates that can be used.", "syslog.ssl.ca.path"
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _renamed(error: ConfigError) -> ConfigError:
    """Return the error with the listener's keys in place of those of a key store."""
    if error.key.endswith("key.password"):
        return error
    return ConfigRuleError(
        "The private key of syslog.ssl.key.path does not fit the first certificate of syslog.ssl.cert.chain.path, or "
        "one of the files is no PEM file: check both with `openssl x509 -text` and `openssl pkey -text`.",
        "syslog.ssl.key.path",
    )


def _text(key: str, path: str | None) -> str:
    if not path:
        raise ConfigRuleError(
            f"{key} is missing: TLS needs a certificate and its key as PEM files, or "
            "syslog.ssl.self.signed.certificate.enable=true for tests.",
            key,
        )
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no PEM file"
        raise ConfigRuleError(f"{path} of {key} cannot be read: {reason}.", key) from error


def _self_signed() -> KeyEntry:
    """Return a new key with a certificate that nobody has signed."""
    # Imported here because it takes 8 MB, in every task.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    host = socket.gethostname()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host), x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyEntry(private.decode(), certificate.public_bytes(serialization.Encoding.PEM).decode(), None)
