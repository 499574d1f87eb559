"""Fetching from a Maven repository that is a folder, or a server on this machine: no other network."""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from connect.errors import ConnectError
from connect.internals.jvm.jars import resolve_jars
from connect.internals.jvm.lock import Jar

RESOLVE = """
import sys
from pathlib import Path
from connect.internals.jvm.jars import read_lock, resolve_jars
resolve_jars(read_lock(Path(sys.argv[1])), home=Path(sys.argv[2]))
"""


JAR = Jar("org.example", "one", "1.0", None, "0" * 64)


class RepositoryServer(ThreadingHTTPServer):
    """A Maven repository over HTTP, which is ``ill`` so often for a path, and may ask for a user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ill: Counter[str] = Counter()
        self.user: str | None = None
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), Answer)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def environ(self, home: Path, user: str = "") -> dict[str, str]:
        return {"HOME": str(home), "SLUICE_MAVEN_REPOSITORY": self.url.replace("//", f"//{user}")}


class Answer(BaseHTTPRequestHandler):
    """Answers with the files of the repository."""

    server: RepositoryServer

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status, content = self.answer()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def answer(self) -> tuple[int, bytes]:
        known = base64.b64encode((self.server.user or "").encode()).decode()
        if self.server.user and self.headers.get("Authorization") != f"Basic {known}":
            return 401, b""
        if self.server.ill[self.path] > 0:
            self.server.ill[self.path] -= 1
            return 503, b""
        file = self.server.folder / self.path.lstrip("/")
        return (200, file.read_bytes()) if file.is_file() else (404, b"")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def repository_server(tmp_path: Path) -> Iterator[RepositoryServer]:
    with RepositoryServer(tmp_path / "repository") as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def publish(repository: Path, artifact: str, content: bytes, classifier: str | None = None) -> Jar:
    jar = Jar("org.example", artifact, "1.0", classifier, hashlib.sha256(content).hexdigest())
    path = repository / jar.maven_path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return jar


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "SLUICE_MAVEN_REPOSITORY": (tmp_path / "repository").as_uri()}


def test_fetches_once_and_finds_them_afterwards(tmp_path: Path, environ: dict[str, str]) -> None:
    repository = tmp_path / "repository"
    jars = [publish(repository, "one", b"first"), publish(repository, "two", b"second", "linux")]
    paths = resolve_jars(jars, home=tmp_path, environ=environ)
    assert [path.name for path in paths] == ["org.example_one-1.0.jar", "org.example_two-1.0-linux.jar"]
    assert [path.read_bytes() for path in paths] == [b"first", b"second"]
    (repository / jars[0].maven_path).unlink()
    assert resolve_jars(jars, home=tmp_path, environ=environ) == paths


def test_the_paths_are_the_same_through_a_link(tmp_path: Path, environ: dict[str, str]) -> None:
    """Java takes an archive of classes for another's otherwise, and makes its own."""
    jars = [publish(tmp_path / "repository", "one", b"first")]
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "jars").symlink_to(tmp_path / "jars")
    (tmp_path / "jars").mkdir()
    assert resolve_jars(jars, home=linked, environ=environ) == resolve_jars(jars, home=tmp_path, environ=environ)


def test_a_jar_cut_short_since_it_was_fetched_is_fetched_again(tmp_path: Path, environ: dict[str, str]) -> None:
    jar = publish(tmp_path / "repository", "one", b"content")
    (path,) = resolve_jars([jar], home=tmp_path, environ=environ)
    path.write_bytes(b"con")
    resolve_jars([jar], home=tmp_path, environ=environ)
    assert path.read_bytes() == b"content"


def test_another_content_is_refused_with_both_checksums(tmp_path: Path, environ: dict[str, str]) -> None:
    jar = publish(tmp_path / "repository", "one", b"pinned")
    found = publish(tmp_path / "repository", "one", b"something else")
    with pytest.raises(ConnectError) as caught:
        resolve_jars([jar], home=tmp_path, environ=environ)
    for part in ("org.example:one:1.0", jar.sha256, found.sha256, environ["SLUICE_MAVEN_REPOSITORY"]):
        assert part in str(caught.value)
    assert list((tmp_path / "jars").glob("*.jar")) == []


def test_a_jar_that_is_not_there_is_named_with_the_repository_and_the_remedy(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    there = publish(tmp_path / "repository", "one", b"content")
    missing = Jar("org.example", "missing", "9", None, "0" * 64)
    with pytest.raises(ConnectError) as caught:
        resolve_jars([there, missing], home=tmp_path, environ=environ)
    text = str(caught.value)
    assert "Cannot fetch org.example:missing:9 from file:" in text
    assert "org.example:one:1.0" not in text.splitlines()[0]
    assert "~/.m2/settings.xml" in text


def test_the_local_maven_repository_is_used_when_its_checksum_agrees(tmp_path: Path) -> None:
    jar = publish(tmp_path / ".m2" / "repository", "one", b"content")
    wrong = publish(tmp_path / "repository", "two", b"pinned")
    publish(tmp_path / ".m2" / "repository", "two", b"locally built")
    environ = {"HOME": str(tmp_path), "SLUICE_MAVEN_REPOSITORY": (tmp_path / "repository").as_uri()}
    paths = resolve_jars([jar, wrong], home=tmp_path, environ=environ)
    assert [path.read_bytes() for path in paths] == [b"content", b"pinned"]


def test_a_server_is_asked_again_when_it_is_ill_and_for_nothing_that_it_has_not(
    tmp_path: Path, repository_server: RepositoryServer
) -> None:
    jars = [publish(tmp_path / "repository", name, name.encode() * 100_000) for name in ("a", "b")]
    repository_server.ill[f"/{jars[0].maven_path}"] = 2
    paths = resolve_jars(jars, home=tmp_path, environ=repository_server.environ(tmp_path))
    assert [path.read_bytes() for path in paths] == [b"a" * 100_000, b"b" * 100_000]
    assert repository_server.asked.count(f"/{jars[0].maven_path}") == 3
    missing = Jar("org.example", "missing", "9", None, "0" * 64)
    with pytest.raises(ConnectError, match=r"Cannot fetch org\.example:missing:9 from http://.*: HTTP status 404\."):
        resolve_jars([missing], home=tmp_path, environ=repository_server.environ(tmp_path))
    assert repository_server.asked.count(f"/{missing.maven_path}") == 1


def test_a_repository_that_is_not_there_is_told_with_its_reason_and_without_its_password(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://ann:s3cret@127.0.0.1:{unused.getsockname()[1]}/"
        with pytest.raises(ConnectError, match="Connection refused") as caught:
            resolve_jars([JAR], home=tmp_path, environ={"HOME": str(tmp_path), "SLUICE_MAVEN_REPOSITORY": url})
    assert "SLUICE_MAVEN_REPOSITORY to its URL" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_repository_that_asks_for_a_user_is_given_the_one_of_its_url(
    tmp_path: Path, repository_server: RepositoryServer
) -> None:
    jar = publish(tmp_path / "repository", "one", b"content")
    repository_server.user = "ann:s3cret"
    with pytest.raises(ConnectError, match="HTTP status 401"):
        resolve_jars([jar], home=tmp_path, environ=repository_server.environ(tmp_path))
    (path,) = resolve_jars([jar], home=tmp_path, environ=repository_server.environ(tmp_path, "ann:s3cret@"))
    assert path.read_bytes() == b"content"


def test_the_log_says_what_is_fetched_and_that_it_is_done_once(
    tmp_path: Path, repository_server: RepositoryServer, caplog: pytest.LogCaptureFixture
) -> None:
    jars = [publish(tmp_path / "repository", name, name.encode()) for name in ("a", "b")]
    with caplog.at_level(logging.INFO):
        resolve_jars(jars, home=tmp_path, environ=repository_server.environ(tmp_path))
        resolve_jars(jars, home=tmp_path, environ=repository_server.environ(tmp_path))
    first, last = caplog.messages
    assert first == f"Fetching 2 jars from {repository_server.url}/ (SLUICE_MAVEN_REPOSITORY); this is done once."
    assert last.startswith("Fetched 2 jars, 0 MB, in ")


def test_processes_that_resolve_at_once_do_not_disturb_each_other(tmp_path: Path, environ: dict[str, str]) -> None:
    jars = [publish(tmp_path / "repository", name, name.encode() * 1000) for name in ("a", "b", "c")]
    lock = tmp_path / "some.jars"
    lock.write_text("".join(f"{jar.coordinates} {jar.sha256}\n" for jar in jars), encoding="utf-8")
    command = [sys.executable, "-c", RESOLVE, str(lock), str(tmp_path)]
    running = [subprocess.Popen(command, env={**os.environ, **environ}) for _ in range(3)]
    assert [process.wait(timeout=120) for process in running] == [0, 0, 0]
    paths = resolve_jars(jars, home=tmp_path, environ=environ)
    assert [path.read_bytes() for path in paths] == [b"a" * 1000, b"b" * 1000, b"c" * 1000]
    assert not list((tmp_path / "jars").glob(".fetch-*"))
