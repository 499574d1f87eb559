"""The JDBC sink keeps the contract."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from connect.data import Schema, SinkRecord
from connect.testing import SinkConnectorTests
from connect.testing.samples import sink_records
from connectors.jdbc import JdbcSinkConnector


class TestJdbcSink(SinkConnectorTests):
    """The JDBC sink, at least once."""

    connector_class = JdbcSinkConnector

    @pytest.fixture
    def props(self, tmp_path: Path) -> Mapping[str, str]:
        return {
            "name": "rows",
            "connection.url": f"jdbc:sqlite:{tmp_path}/target.db?busy_timeout=100",
            "table.name.format": "target",
            "auto.create": "true",
            "batch.size": "3",
            "retry.backoff.ms": "1",
        }

    @pytest.fixture
    def records(self) -> Sequence[SinkRecord]:
        texts = sink_records([f"record {number}" for number in range(12)], partitions=2)
        return [record.replace(value_schema=Schema.string()) for record in texts]

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return tmp_path / "target.db"

    @pytest.fixture
    def written(self, file: Path) -> Callable[[], Iterable[Any]]:
        def read() -> list[Any]:
            with closing(sqlite3.connect(file)) as database:
                found = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'target'").fetchone()
                return [value for (value,) in database.execute("SELECT record_value FROM target")] if found else []

        return read

    @pytest.fixture
    def outage(self, file: Path) -> AbstractContextManager[object]:
        @contextmanager
        def locked() -> Iterator[None]:
            with closing(sqlite3.connect(file, isolation_level=None)) as database:
                database.execute("BEGIN EXCLUSIVE")
                yield

        return locked()


class TestExactJdbcSink(TestJdbcSink):
    """The JDBC sink, exactly once."""

    exactly_once = True

    @pytest.fixture
    def props(self, tmp_path: Path) -> Mapping[str, str]:
        return {
            "name": "rows",
            "connection.url": f"jdbc:sqlite:{tmp_path}/target.db?busy_timeout=100",
            "table.name.format": "target",
            "auto.create": "true",
            "batch.size": "3",
            "retry.backoff.ms": "1",
            "delivery": "exactly-once",
        }
