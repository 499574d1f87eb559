"""Fetching from a Maven repository that is a folder, with the real Ivy: no network."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from connect.errors import ConnectError
from connect.jvm.ivy import find_ivy
from connect.jvm.jars import resolve_jars
from connect.jvm.java import Java, find_java
from connect.jvm.lock import Jar

RESOLVE = """
import sys
from pathlib import Path
from connect.jvm.jars import read_lock, resolve_jars
from connect.jvm.java import find_java
resolve_jars(read_lock(Path(sys.argv[1])), java=find_java(), home=Path(sys.argv[2]))
"""


@pytest.fixture(scope="session")
def java() -> Java:
    try:
        find_ivy()
        return find_java()
    except ConnectError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"jars cannot be fetched here: {error}")


def publish(repository: Path, artifact: str, content: bytes, classifier: str | None = None) -> Jar:
    jar = Jar("org.example", artifact, "1.0", classifier, hashlib.sha256(content).hexdigest())
    path = repository / jar.maven_path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return jar


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "SLUICE_MAVEN_REPOSITORY": (tmp_path / "repository").as_uri()}


def test_fetches_once_and_finds_them_afterwards(tmp_path: Path, java: Java, environ: dict[str, str]) -> None:
    repository = tmp_path / "repository"
    jars = [publish(repository, "one", b"first"), publish(repository, "two", b"second", "linux")]
    paths = resolve_jars(jars, java=java, home=tmp_path, environ=environ)
    assert [path.name for path in paths] == ["org.example_one-1.0.jar", "org.example_two-1.0-linux.jar"]
    assert [path.read_bytes() for path in paths] == [b"first", b"second"]
    (repository / jars[0].maven_path).unlink()
    assert resolve_jars(jars, java=java, home=tmp_path, environ=environ) == paths


def test_a_jar_cut_short_since_it_was_fetched_is_fetched_again(
    tmp_path: Path, java: Java, environ: dict[str, str]
) -> None:
    jar = publish(tmp_path / "repository", "one", b"content")
    (path,) = resolve_jars([jar], java=java, home=tmp_path, environ=environ)
    path.write_bytes(b"con")
    resolve_jars([jar], java=java, home=tmp_path, environ=environ)
    assert path.read_bytes() == b"content"


def test_another_content_is_refused_with_both_checksums(tmp_path: Path, java: Java, environ: dict[str, str]) -> None:
    jar = publish(tmp_path / "repository", "one", b"pinned")
    found = publish(tmp_path / "repository", "one", b"something else")
    with pytest.raises(ConnectError) as caught:
        resolve_jars([jar], java=java, home=tmp_path, environ=environ)
    for part in ("org.example:one:1.0", jar.sha256, found.sha256, environ["SLUICE_MAVEN_REPOSITORY"]):
        assert part in str(caught.value)
    assert list((tmp_path / "jars").glob("*.jar")) == []


def test_a_jar_that_is_not_there_is_named_with_the_repository_and_the_remedy(
    tmp_path: Path, java: Java, environ: dict[str, str]
) -> None:
    there = publish(tmp_path / "repository", "one", b"content")
    missing = Jar("org.example", "missing", "9", None, "0" * 64)
    with pytest.raises(ConnectError) as caught:
        resolve_jars([there, missing], java=java, home=tmp_path, environ=environ)
    text = str(caught.value)
    assert "Cannot fetch org.example:missing:9 from file:" in text
    assert "org.example:one:1.0" not in text.splitlines()[0]
    assert "~/.m2/settings.xml" in text


def test_the_local_maven_repository_is_used_when_its_checksum_agrees(tmp_path: Path, java: Java) -> None:
    jar = publish(tmp_path / ".m2" / "repository", "one", b"content")
    wrong = publish(tmp_path / "repository", "two", b"pinned")
    publish(tmp_path / ".m2" / "repository", "two", b"locally built")
    environ = {"HOME": str(tmp_path), "SLUICE_MAVEN_REPOSITORY": (tmp_path / "repository").as_uri()}
    paths = resolve_jars([jar, wrong], java=java, home=tmp_path, environ=environ)
    assert [path.read_bytes() for path in paths] == [b"content", b"pinned"]


def test_an_ivy_settings_file_is_used_as_it_is(tmp_path: Path, java: Java) -> None:
    jar = publish(tmp_path / "repository", "one", b"content")
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        f'<ivysettings><settings defaultResolver="r"/><caches defaultCacheDir="{tmp_path / "ivy"}"/>'
        f'<resolvers><ibiblio name="r" m2compatible="true" root="{(tmp_path / "repository").as_uri()}/"/>'
        "</resolvers></ivysettings>",
        encoding="utf-8",
    )
    environ = {"HOME": str(tmp_path), "SLUICE_IVY_SETTINGS": str(settings)}
    (path,) = resolve_jars([jar], java=java, home=tmp_path, environ=environ)
    assert path.read_bytes() == b"content"


def test_processes_that_resolve_at_once_do_not_disturb_each_other(
    tmp_path: Path, java: Java, environ: dict[str, str]
) -> None:
    jars = [publish(tmp_path / "repository", name, name.encode() * 1000) for name in ("a", "b", "c")]
    lock = tmp_path / "some.jars"
    lock.write_text("".join(f"{jar.coordinates} {jar.sha256}\n" for jar in jars), encoding="utf-8")
    command = [sys.executable, "-c", RESOLVE, str(lock), str(tmp_path)]
    running = [subprocess.Popen(command, env={**os.environ, **environ}) for _ in range(3)]
    assert [process.wait(timeout=120) for process in running] == [0, 0, 0]
    paths = resolve_jars(jars, java=java, home=tmp_path, environ=environ)
    assert [path.read_bytes() for path in paths] == [b"a" * 1000, b"b" * 1000, b"c" * 1000]
    assert not list((tmp_path / "jars").glob(".fetch-*"))
