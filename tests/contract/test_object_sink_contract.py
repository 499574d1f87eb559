"""The object sinks keep the contract, in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from connect.testing import SinkConnectorTests
from connectors.objects import FolderSinkConnector
from equipment.proofs import thorough

ROTATIONS: dict[str, dict[str, str]] = {
    "records": {"flush.size": "3"},
    "bytes": {"file.max.bytes": "30", "rotate.on.offset.commit": "true"},
    "clock": {"rotate.schedule.interval.ms": "1", "rotate.on.offset.commit": "true"},
    "commits": {"rotate.on.offset.commit": "true"},
}


class TestFolderSink(SinkConnectorTests):
    """Texts, whatever ends the files."""

    connector_class = FolderSinkConnector
    exactly_once = True

    @pytest.fixture(params=["bytes", *thorough("records", "clock", "commits")])
    def props(self, tmp_path: Path, request: pytest.FixtureRequest) -> Mapping[str, str]:
        return {
            "name": "files",
            "store.url": str(tmp_path),
            "format.class": "JsonFormat",
            "retry.backoff.ms": "1",
            **ROTATIONS[request.param],
        }

    @pytest.fixture
    def written(self, tmp_path: Path) -> Callable[[], Iterable[Any]]:
        def read() -> list[Any]:
            files = sorted((tmp_path / "topics").rglob("*.json"))
            return [json.loads(line) for file in files for line in file.read_text().splitlines()]

        return read
