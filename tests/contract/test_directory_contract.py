"""The directory source keeps the contract."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

import pytest

from connect.testing import SourceConnectorTests
from connectors.directory import DirectorySourceConnector
from connectors.directory.spool import SpoolDirCsvSourceConnector


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


class TestSpoolDirCsvSource(SourceConnectorTests):
    """CSV files that stay, since the kit reads them again."""

    connector_class = SpoolDirCsvSourceConnector

    @pytest.fixture
    def props(self, tmp_path: Path) -> Mapping[str, str]:
        for name in ("in", "bad"):
            (tmp_path / name).mkdir()
        for number in range(3):
            (tmp_path / "in" / f"{number}.csv").write_text(f"id,name\n{number}1,one\n{number}2,two\n{number}3,\n")
        return {
            "topic": "rows",
            "input.path": str(tmp_path / "in"),
            "error.path": str(tmp_path / "bad"),
            "input.file.pattern": r"\d\.csv",
            "cleanup.policy": "NONE",
            "schema.generation.enabled": "true",
            "schema.generation.key.fields": "id",
            "csv.first.row.as.header": "true",
            "empty.poll.wait.ms": "1",
            "batch.size": "2",
        }
