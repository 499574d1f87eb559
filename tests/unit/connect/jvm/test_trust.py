from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from connect.jvm.java import Java
from connect.jvm.trust import jks_trust_store, trust_flags

# keytool accepts what is sealed like this with the password "changeit", and refuses it with another.
SEAL = "f85c5ec9aa2f8e593d53808049be7f97563d29ff"

BUNDLED = Java(Path("java"), 25, Path(), bundled=True)
INSTALLED = Java(Path("java"), 17, Path(), bundled=False)


def test_a_bundled_java_is_given_what_python_trusts(tmp_path: Path) -> None:
    authorities = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not authorities:
        pytest.skip("Python trusts no authority here")
    flags = trust_flags(BUNDLED, tmp_path, {})
    assert flags[0] == f"-Djavax.net.ssl.trustStore={tmp_path}/trust.jks"
    assert (tmp_path / "trust.jks").read_bytes() == jks_trust_store(authorities)


def test_an_installed_java_keeps_its_own(tmp_path: Path) -> None:
    assert trust_flags(INSTALLED, tmp_path, {}) == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"])
def test_the_store_that_the_user_chose_is_kept(tmp_path: Path, key: str) -> None:
    assert trust_flags(BUNDLED, tmp_path, {key: "-Djavax.net.ssl.trustStore=/mine"}) == ()


def test_the_store_is_laid_out_as_java_reads_it() -> None:
    store = jks_trust_store([b"DER"])
    head = bytes.fromhex("feedfeed 00000002 00000001 00000002 000b") + b"authority-0" + bytes(8)
    assert store[:-20] == head + b"\0\x05X.509" + bytes.fromhex("00000003") + b"DER"
    assert store[-20:].hex() == SEAL
