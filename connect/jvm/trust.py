"""The certificate authorities that Python trusts, as a trust store that Java reads.

The Java of a wheel trusts only the authorities that came with it. Behind a company's proxy that signs with its own
authority, or with ``SSL_CERT_FILE``, pip trusts a repository that such a Java would refuse.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from connect.jvm.java import Java

__all__ = ["jks_trust_store", "trust_flags"]

_MAGIC, _VERSION, _TRUSTED_CERTIFICATE = 0xFEEDFEED, 2, 2
_PASSWORD = "changeit"  # noqa: S105  Java's customary one: the store holds nothing secret
_PROPERTY = "javax.net.ssl.trustStore"


def trust_flags(java: Java, folder: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The flags that make a bundled ``java`` trust the authorities that Python does, by a store written to ``folder``.

    Empty for any other Java, which has a trust store of its own, and if the user chose a store.
    """
    chosen = any(_PROPERTY in environ.get(key, "") for key in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"))
    authorities = ssl.create_default_context().get_ca_certs(binary_form=True)
    if chosen or not java.bundled or not authorities:
        return ()
    store = folder / "trust.jks"
    store.write_bytes(jks_trust_store(authorities))
    return (f"-D{_PROPERTY}={store}", f"-D{_PROPERTY}Type=JKS", f"-D{_PROPERTY}Password={_PASSWORD}")


def jks_trust_store(certificates: Sequence[bytes]) -> bytes:
    """A Java key store (JKS) that trusts ``certificates``, each in DER."""
    content = struct.pack(">III", _MAGIC, _VERSION, len(certificates)) + b"".join(
        struct.pack(">I", _TRUSTED_CERTIFICATE)
        + _text(f"authority-{number}")
        + struct.pack(">Q", 0)
        + _text("X.509")
        + struct.pack(">I", len(certificate))
        + certificate
        for number, certificate in enumerate(certificates)
    )
    seal = hashlib.sha1(_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content, usedforsecurity=False)
    return content + seal.digest()


def _text(text: str) -> bytes:
    encoded = text.encode("ascii")
    return struct.pack(">H", len(encoded)) + encoded
