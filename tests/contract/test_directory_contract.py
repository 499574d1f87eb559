"""The directory source keeps the contract."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

import pytest

from connect.testing import SourceConnectorTests
from connectors.directory import DirectorySourceConnector


class TestDirectorySource(SourceConnectorTests):
    """Files of several kinds in one folder."""

    connector_class = DirectorySourceConnector

    @pytest.fixture
    def props(self, tmp_path: Path) -> Mapping[str, str]:
        folder = tmp_path / "in"
        folder.mkdir()
        (folder / "a.csv").write_text('id,name\n1,one\n2,"two\nlines"\n3,thr\u00e9\u00e9\n')
        (folder / "b.tsv").write_text("id\tname\n4\tfour\n")
        (folder / "c.jsonl").write_text('{"id": 5, "name": null}\n{"id": 6, "name": "six"}\n')
        (folder / "d.txt").write_text("seven\n\neight without an end")
        (folder / "e.csv.gz").write_bytes(gzip.compress(b"id,name\n9,nine\n10,ten\n"))
        return {"path": str(folder), "topic": "rows", "settle.ms": "0", "scan.interval.ms": "1", "batch.size": "2"}
