"""The directory sink keeps the contract."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from connect.testing import SinkConnectorTests
from connectors.directory import DirectorySinkConnector
from equipment.servers.file_servers import running_asyncssh


def lines_in(folder: Path) -> list[str]:
    """The lines of all files that are not hidden."""
    files = sorted(path for path in folder.rglob("*.txt*") if not path.name.startswith("."))
    return [line for path in files for line in _text(path).splitlines()]


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


class TestDirectorySink(SinkConnectorTests):
    """A local folder, with files that end where offsets are committed."""

    connector_class = DirectorySinkConnector
    exactly_once = True

    @pytest.fixture(params=["none", "gzip"])
    def props(self, tmp_path: Path, request: pytest.FixtureRequest) -> Mapping[str, str]:
        props = {"path": str(tmp_path / "out"), "format": "text", "flush.size": "2", "rotate.interval.ms": "0"}
        return {**props, "compression": request.param}

    @pytest.fixture
    def written(self, props: Mapping[str, str]) -> Callable[[], Iterable[Any]]:
        return lambda: lines_in(Path(props["path"]))


class TestSftpSink(SinkConnectorTests):
    """A folder on an SFTP server."""

    connector_class = DirectorySinkConnector
    exactly_once = True

    @pytest.fixture
    def props(self, tmp_path: Path) -> Iterator[Mapping[str, str]]:
        (tmp_path / "files").mkdir()
        with running_asyncssh(tmp_path / "files") as server:
            path = f"{server.server.url}out"
            yield {"path": path, "format": "text", "rotate.interval.ms": "0", **server.server.props}

    @pytest.fixture
    def written(self, tmp_path: Path) -> Callable[[], Iterable[Any]]:
        return lambda: lines_in(tmp_path / "files")
