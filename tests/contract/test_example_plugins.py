"""The plugins in ``plugins/``, which are those of the documentation, keep the contract."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from counter import CounterConnector
from table import TableConnector

from connect.plugins import PluginKind, PluginRegistry
from connect.testing import SinkConnectorTests, SourceConnectorTests

PLUGINS = Path(__file__).parent / "plugins"


class TestCounter(SourceConnectorTests):
    """The source that counts."""

    connector_class = CounterConnector
    record_count = 5

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        return {"topic": "numbers", "seconds": "0.001"}


class TestTable(SinkConnectorTests):
    """The sink that writes to SQLite."""

    connector_class = TableConnector
    exactly_once = True

    @pytest.fixture
    def props(self, tmp_path: Path) -> Mapping[str, str]:
        return {"database": str(tmp_path / "records.db")}

    @pytest.fixture
    def written(self, props: Mapping[str, str]) -> Callable[[], Iterable[Any]]:
        def read() -> list[str]:
            with closing(sqlite3.connect(props["database"])) as database:
                return [value for (value,) in database.execute("SELECT value FROM records")]

        return read

    @pytest.fixture
    def outage(self, props: Mapping[str, str]) -> AbstractContextManager[object]:
        return locked(props["database"])


@contextmanager
def locked(database: str) -> Iterator[None]:
    """Another program writes to the database and takes its time."""
    with closing(sqlite3.connect(database)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def test_plugin_path_finds_them() -> None:
    registry = PluginRegistry.discover([PLUGINS])
    assert registry.load(PluginKind.CONNECTOR, "Counter") is CounterConnector
    assert registry.load(PluginKind.CONNECTOR, "TableConnector") is TableConnector
