"""The file connectors keep the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from connect.testing import SinkConnectorTests, SourceConnectorTests
from connectors.file import FileStreamSinkConnector, FileStreamSourceConnector

LINES = ["one", "two", "", "four é\N{SNOWMAN}", " five\t", "the same", "the same", "eight" * 1000, "nine"]


class TestFileStreamSource(SourceConnectorTests):
    """The file source."""

    connector_class = FileStreamSourceConnector

    @pytest.fixture(params=["\n", "\r\n"], ids=["unix", "dos"])
    def props(self, tmp_path: Path, request: pytest.FixtureRequest) -> Mapping[str, str]:
        file = tmp_path / "in.txt"
        file.write_bytes("".join(f"{line}{request.param}" for line in LINES).encode())
        return {"file": str(file), "topic": "lines", "batch.size": "4"}


class TestFileStreamSink(SinkConnectorTests):
    """The file sink."""

    connector_class = FileStreamSinkConnector

    @pytest.fixture
    def props(self, tmp_path: Path) -> Mapping[str, str]:
        return {"file": str(tmp_path / "out.txt")}

    @pytest.fixture
    def written(self, props: Mapping[str, str]) -> Callable[[], Iterable[Any]]:
        return lambda: Path(props["file"]).read_text().splitlines()
