"""The plugins in ``plugins/``, which are those of the documentation, keep the contract."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from compressed import CompressedConverter
from counter import CounterConnector
from table import TableConnector
from trim import Trim

from connect.data import Record, Schema, SchemaAndValue
from connect.internals.plugins import PluginKind, PluginRegistry
from connect.testing import (
    ConverterTests,
    SinkConnectorTests,
    SourceConnectorTests,
    TransformationTests,
    sink_records,
)

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


class TestCompressed(ConverterTests):
    """The converter of compressed texts."""

    converter_class = CompressedConverter

    @pytest.fixture
    def refused(self) -> Sequence[bytes]:
        return (b"not compressed", b"")

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        return SchemaAndValue(Schema.string(optional=True), given.value)


class TestTrim(TransformationTests):
    """The transformation that trims."""

    transformation_class = Trim

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        return {"field": "name"}

    @pytest.fixture
    def records(self) -> Sequence[Record]:
        rows = [{"name": "  Zoë ", "id": 1}, {"name": None}, {"id": 2}, "text", None]
        # In the key as well as in the value, for both variants.
        return [record.replace(key=record.value) for record in sink_records(rows)]


def test_trims_a_field() -> None:
    (record,) = sink_records([{"name": "  Zoë ", "id": 1}])
    assert Trim.Value.configured({"field": "name"}).apply(record).value == {"name": "Zoë", "id": 1}


def test_plugin_path_finds_them() -> None:
    registry = PluginRegistry.discover([PLUGINS])
    assert registry.load(PluginKind.CONNECTOR, "Counter") is CounterConnector
    assert registry.load(PluginKind.CONNECTOR, "TableConnector") is TableConnector
    assert registry.load(PluginKind.CONVERTER, "Compressed") is CompressedConverter
    assert registry.load(PluginKind.TRANSFORMATION, "Trim$Value") is Trim.Value
