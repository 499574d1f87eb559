"""What ``df.write.format("sluice")`` writes, without a Spark: the writers in one process."""

from __future__ import annotations

import datetime as dt
import pickle
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from connect.errors import ConfigError, ConnectError, DataError
from connectors.spark.datasource.source import SluiceDataSource
from connectors.spark.datasource.writer import Order, Written, write_rows

PLUGINS = Path(__file__).parent / "plugins"
MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, dt.UTC)


def write(options: Mapping[str, str], *batches: pa.RecordBatch, partition: int = 0, first: int = 0) -> Written:
    """Write batches of one partition as one of Spark's tasks does: what it is told went through pickle."""
    lower = {name.lower(): value for name, value in options.items()}
    order = pickle.loads(pickle.dumps(Order.of(lower, from_arrow_schema(batches[0].schema), overwrite=False)))
    return write_rows(order, iter(batches), partition, first)


def batch(rows: Sequence[Mapping[str, Any]], **types: Any) -> pa.RecordBatch:
    """Rows in the types that Spark has for them."""
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=pa.schema(list(types.items())))


@pytest.fixture
def lines(tmp_path: Path) -> dict[str, str]:
    return {"connector.class": "FileStreamSink", "file": str(tmp_path / "out.txt"), "topics": "lines"}


@pytest.fixture
def shop(tmp_path: Path) -> dict[str, str]:
    return {
        "connector.class": "JdbcSink",
        "connection.url": f"jdbc:sqlite:{tmp_path / 'shop.db'}",
        "topics": "orders",
        "auto.create": "true",
    }


def table(tmp_path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        return database.execute(query).fetchall()


class TestRows:
    """Rows become records."""

    def test_as_structs_with_exact_values(self, tmp_path: Path, shop: dict[str, str]) -> None:
        types = {
            "id": pa.int32(),
            "price": pa.decimal128(10, 2),
            "at": pa.timestamp("us", tz="UTC"),
            "day": pa.date32(),
        }
        rows = batch(
            [
                {"id": 1, "price": Decimal("9.20"), "at": MOMENT, "day": dt.date(2026, 1, 2)},
                {"id": 2, "price": None, "at": None, "day": None},
            ],
            **types,
        )
        assert write(shop, rows).rows == 2
        assert table(tmp_path, "SELECT id, price, at, day FROM orders ORDER BY id") == [
            (1, 9.2, "2026-01-02 03:04:05.678000", "2026-01-02"),
            (2, None, None, None),
        ]

    def test_nested_and_in_many_batches(self, lines: dict[str, str]) -> None:
        types = {"id": pa.int64(), "at": pa.struct([("tags", pa.list_(pa.string()))])}
        first, second = (batch([{"id": n, "at": {"tags": ["a", None]}}], **types) for n in (1, 2))
        assert write(lines, first, second).rows == 2
        assert Path(lines["file"]).read_text() == "Struct{id=1,at=Struct{tags=[a, null]}}\n" * 1 + (
            "Struct{id=2,at=Struct{tags=[a, null]}}\n"
        )

    def test_as_they_are_if_there_is_but_a_value(self, lines: dict[str, str]) -> None:
        write(lines, batch([{"value": "one"}, {"value": "two"}], value=pa.string()))
        assert Path(lines["file"]).read_text() == "one\ntwo\n"

    def test_with_keys(self, tmp_path: Path, shop: dict[str, str]) -> None:
        options = {**shop, "key.column": "sku", "pk.mode": "record_key", "pk.fields": "sku", "insert.mode": "upsert"}
        rows = batch([{"sku": "a", "n": 1}, {"sku": "b", "n": 2}, {"sku": "a", "n": 3}], sku=pa.string(), n=pa.int64())
        write(options, rows)
        write(options, rows)
        assert table(tmp_path, "SELECT sku, n FROM orders ORDER BY sku") == [("a", 3), ("b", 2)]

    def test_with_a_place_each_that_is_the_same_when_they_come_again(
        self, tmp_path: Path, shop: dict[str, str]
    ) -> None:
        options = {**shop, "pk.mode": "kafka", "insert.mode": "upsert"}
        rows = batch([{"n": 1}, {"n": 2}], n=pa.int64())
        for _ in range(2):
            write(options, rows, partition=3, first=2**32)
        query = "SELECT __connect_topic, __connect_partition, __connect_offset, n FROM orders ORDER BY n"
        assert table(tmp_path, query) == [("orders", 3, 2**32, 1), ("orders", 3, 2**32 + 1, 2)]

    def test_transformed(self, lines: dict[str, str]) -> None:
        options = {**lines, "transforms": "Only", "transforms.Only.type": "ExtractField$Value"}
        write({**options, "transforms.Only.field": "id"}, batch([{"id": 1}, {"id": 2}], id=pa.int64()))
        assert Path(lines["file"]).read_text() == "1\n2\n"

    def test_none_at_all(self, lines: dict[str, str]) -> None:
        assert write(lines, batch([], id=pa.int64())).rows == 0
        assert Path(lines["file"]).read_text() == ""

    def test_with_finer_times_than_connect_has_are_refused(self, shop: dict[str, str]) -> None:
        rows = batch([{"at": MOMENT.replace(microsecond=1)}], at=pa.timestamp("us", tz="UTC"))
        with pytest.raises(DataError, match=r'"at".*date_trunc'):
            write(shop, rows)


class TestRefusals:
    """What cannot be written is told before anything is."""

    SCHEMA = from_arrow_schema(pa.schema([("id", pa.int64())]))

    def refused(self, options: Mapping[str, str], *, overwrite: bool = False) -> str:
        with pytest.raises(ConfigError) as caught:
            SluiceDataSource(dict(options)).writer(self.SCHEMA, overwrite)
        return str(caught.value)

    def test_of_another_mode_than_append(self, lines: dict[str, str]) -> None:
        assert "use mode append" in self.refused(lines, overwrite=True)

    def test_of_a_source(self) -> None:
        options = {"connector.class": "FileStreamSource", "topic": "t", "file": "x"}
        assert "It is a source" in self.refused(options)

    def test_of_a_sink_that_spark_feeds_by_itself(self, tmp_path: Path) -> None:
        options = {"connector.class": "SparkSink", "topics": "t", "store.url": str(tmp_path)}
        assert "DataFrames are no topics" in self.refused(options)

    def test_of_several_topics(self, lines: dict[str, str]) -> None:
        assert "Name one topic" in self.refused({**lines, "topics": "a,b"})

    def test_of_columns_that_are_not_there(self, lines: dict[str, str]) -> None:
        assert "it has id" in self.refused({**lines, "key.column": "sku"})

    def test_of_a_row_without_a_value(self, lines: dict[str, str]) -> None:
        assert "No column is left" in self.refused({**lines, "key.column": "id"})


class TestTasks:
    """A sink task is served as a worker serves it."""

    def test_one_that_asks_to_be_tried_again_is(self, tmp_path: Path) -> None:
        options = {"connector.class": "Busy", "plugin.path": str(PLUGINS), "topics": "t", "refusals": "2"}
        rows = batch([{"value": "a"}, {"value": "b"}], value=pa.string())
        assert write({**options, "file": str(tmp_path / "out")}, rows).rows == 2
        assert (tmp_path / "out").read_text() == "put a b\nflush 2\nclose\nstop\n"

    def test_one_that_is_not_done_at_once_is_waited_for(self, tmp_path: Path) -> None:
        options = {"connector.class": "Busy", "plugin.path": str(PLUGINS), "topics": "t", "delays": "2"}
        rows = batch([{"value": "a"}], value=pa.string())
        assert write({**options, "file": str(tmp_path / "out")}, rows).rows == 1
        assert (tmp_path / "out").read_text() == "put a\nput\nput\nflush 1\nclose\nstop\n"

    def test_one_that_goes_by_its_own_offsets_is_refused(self, tmp_path: Path) -> None:
        options = {"connector.class": "Busy", "plugin.path": str(PLUGINS), "topics": "t", "rewind": "7"}
        with pytest.raises(ConnectError, match="rows of a DataFrame have none"):
            write({**options, "file": str(tmp_path / "out")}, batch([{"value": "a"}], value=pa.string()))
        assert (tmp_path / "out").read_text() == "stop\n"

    @pytest.mark.parametrize(("tolerance", "kept"), [("all", "put a b\nflush 3\nclose\nstop\n"), ("none", "stop\n")])
    def test_a_record_that_it_gives_up_is_left_out_if_that_is_tolerated(
        self, tmp_path: Path, tolerance: str, kept: str
    ) -> None:
        options = {"connector.class": "Busy", "plugin.path": str(PLUGINS), "topics": "t", "refused": "bad"}
        options |= {"errors.tolerance": tolerance, "file": str(tmp_path / "out")}
        rows = batch([{"value": "a"}, {"value": "bad"}, {"value": "b"}], value=pa.string())
        if tolerance == "all":
            assert write(options, rows).rows == 3
        else:
            with pytest.raises(DataError, match="bad is refused"):
                write(options, rows)
        assert (tmp_path / "out").read_text() == kept
