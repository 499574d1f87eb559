"""Java key stores and trust stores, made with Java's own keytool."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from connect.internals.jvm.java import find_java
from equipment.brokers.certificates import Authority, Identity

__all__ = ["KEY_PASSWORD", "PASSWORD", "write_stores"]

PASSWORD: Final = "s3cret-of-the-store"
KEY_PASSWORD: Final = "of-key"
_TYPES: Final = {"jks": "JKS", "p12": "PKCS12"}


def write_stores(folder: Path, authority: Authority, identity: Identity) -> None:
    """Write ``trust.jks`` and ``trust.p12`` with the authority, ``key.jks`` and ``key.p12`` with the identity.

    The key in ``key.jks`` has its own password.
    """
    (folder / "authority.pem").write_text(authority.pem)
    (folder / "key.p12").write_bytes(identity.pkcs12(PASSWORD))
    for suffix, kind in _TYPES.items():
        store = ("-keystore", f"trust.{suffix}", "-storetype", kind, "-storepass", PASSWORD)
        _keytool(folder, "-importcert", "-noprompt", "-file", "authority.pem", "-alias", "a", *store)
    source = ("-srckeystore", "key.p12", "-srcstorepass", PASSWORD, "-srcalias", "worker")
    target = ("-destkeystore", "key.jks", "-deststoretype", "JKS", "-deststorepass", PASSWORD)
    _keytool(folder, "-importkeystore", *source, *target, "-destkeypass", KEY_PASSWORD)


def _keytool(folder: Path, *arguments: str) -> None:
    keytool = find_java().executable.with_name("keytool")
    subprocess.run([str(keytool), *arguments], cwd=folder, check=True, capture_output=True)
