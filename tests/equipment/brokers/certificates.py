"""Certificates for tests: an authority, and the identities that it signs."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

__all__ = ["Authority", "Identity"]


@dataclass(frozen=True)
class Identity:
    """A key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        """The key as PKCS#8, encrypted if there is a password."""
        protection = (
            serialization.NoEncryption()
            if password is None
            else serialization.BestAvailableEncryption(password.encode())
        )
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection
        ).decode()

    def pkcs12(self, password: str) -> bytes:
        """A key store with key and certificate."""
        protection = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"worker", self.key, self.certificate, None, protection)


class Authority:
    """A certificate authority."""

    def __init__(self) -> None:
        self.identity = self._make("authority", None, None)

    @property
    def pem(self) -> str:
        return self.identity.certificate_pem

    def sign(self, host: str) -> Identity:
        """Create an identity for a host name or an address."""
        return self._make(host, host, self.identity)

    def _make(self, name: str, host: str | None, issuer: Identity | None) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer.certificate.subject if issuer else subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        )
        if host is not None:
            builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
        return Identity(key, builder.sign(issuer.key if issuer else key, hashes.SHA256()))


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
