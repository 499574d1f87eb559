"""Certificates that nobody has signed, for listeners in tests."""

from __future__ import annotations

import datetime as dt
import socket
from typing import Final

from connect.internals.tls.key_stores import KeyEntry

__all__ = ["self_signed_key"]

_DAYS: Final = 365


def self_signed_key() -> KeyEntry:
    """Return a new key with a certificate for this machine that no client can verify."""
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
