"""Values, columns and growing tables of the Spark sink, as readers that are not ours see them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from connect.bulk import OffsetRange
from connect.data import Schema, TopicPartition
from connect.data.logical import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from connect.errors import ConnectError
from connectors.spark.sink import SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig
from converters.json import JsonConverter
from equipment.brokers.topics import create_topic, ordered_producer
from equipment.workers.bulk_context import BulkContext
from equipment.workers.small_spark import sink_props

SparkSession = pytest.importorskip("pyspark.sql").SparkSession

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ENVELOPED = {"value.converter.schemas.enable": "true"}
UTC = dt.UTC


@pytest.fixture(scope="module", autouse=True)
def session(shared_java: None) -> Iterator[None]:
    """Spark, started by the first task and kept for all tests of this file."""
    yield
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()


class Table:
    """A topic of one partition, and the table that it is loaded into."""

    def __init__(self, bootstrap: str, topic: str, store: Path) -> None:
        self.bootstrap, self.topic, self.store = bootstrap, topic, store
        self.folder = store / "topics" / topic
        self.producer = ordered_producer(bootstrap)
        self.end = 0
        create_topic(bootstrap, topic, 1)

    def load(self, values: Sequence[Any], **props: str) -> None:
        """Produce values, dicts as JSON, and load them with a new task."""
        for value in values:
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.producer.produce(self.topic, data, b"k%d" % self.end, timestamp=1_500, headers={"h": b"v"})
            self.end += 1
        assert self.producer.flush(30) == 0
        config = {
            **sink_props({"store.url": str(self.store)}),
            "name": "sink",
            **{key.replace("_", "."): item for key, item in props.items()},
        }
        task = SparkSinkTask(SparkSinkConfig.parse(config), BulkContext("sink", self.bootstrap, config))
        task.start()
        tp = TopicPartition(self.topic, 0)
        task.load([OffsetRange(*tp, task.committed().get(tp, 0), self.end)])

    def by_duckdb(self, columns: str, order: str = "id") -> list[tuple[Any, ...]]:
        query = f"SELECT {columns} FROM read_parquet('{self.folder}/**/*.parquet', union_by_name=true) ORDER BY {order}"
        with duckdb.connect() as database:
            database.execute("SET TimeZone='UTC'")
            return database.execute(query).fetchall()

    def by_spark(self, columns: str, order: str = "id") -> list[tuple[Any, ...]]:
        spark = SparkSession.getActiveSession()
        assert spark is not None
        frame = spark.read.option("mergeSchema", "true").parquet(str(self.folder))
        return [tuple(row) for row in frame.orderBy(order).selectExpr(*columns.split(", ")).collect()]

    def by_pyarrow(self) -> list[dict[str, Any]]:
        parts = [ds.dataset(path).to_table() for path in sorted(self.folder.rglob("*.parquet"))]
        rows = pa.concat_tables(parts, promote_options="permissive").to_pylist()
        return sorted(rows, key=lambda row: (row.get("id") is None, row.get("id")))


@pytest.fixture
def table(bootstrap: str, topic: str, tmp_path: Path) -> Table:
    return Table(bootstrap, topic, tmp_path)


# -- types -------------------------------------------------------------------------------------------------------


def logical(kind: Any, name: str) -> Schema:
    return kind(optional=True, name=name, version=1)


FIELDS: Mapping[str, tuple[Schema, list[Any]]] = {
    "tiny": (Schema.int8(optional=True), [-128, 127, None]),
    "long": (Schema.int64(optional=True), [-(2**63), 2**63 - 1, None]),
    "single": (Schema.float32(optional=True), [0.5, -(2.0**-149), None]),
    "double": (Schema.float64(optional=True), [5e-324, 1.7976931348623157e308, None]),
    "text": (Schema.string(optional=True), ["", "größe \U0001f600\n\x00", None]),
    "data": (Schema.bytes(optional=True), [b"", b"\x00\xff", None]),
    "wide": (
        Schema.bytes(optional=True, name=DECIMAL_NAME, version=1, parameters={"scale": "5"}),
        [Decimal("-999999999999999999999999999999999.99999"), Decimal("0.00001"), None],
    ),
    "day": (logical(Schema.int32, DATE_NAME), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "moment": (
        logical(Schema.int64, TIMESTAMP_NAME),
        [dt.datetime(1500, 2, 28, 1, 2, 3, 4000, UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999000, UTC), None],
    ),
    "time": (logical(Schema.int32, TIME_NAME), [dt.time(0), dt.time(23, 59, 59, 999000), None]),
    "numbers": (
        Schema.map(Schema.int32(), Schema.string(optional=True), optional=True),
        [{1: "a", -2: None}, {}, None],
    ),
    "deep": (
        Schema.array(
            Schema.struct({"x": Schema.array(Schema.array(Schema.int16(optional=True)))}, optional=True), optional=True
        ),
        [[{"x": [[1, None], []]}, None], [], None],
    ),
}


def read_back(name: str, value: Any) -> Any:
    """A value as readers have it."""
    if name == "time" and value is not None:
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    return value


def test_values_that_are_read_are_those_that_were_written(table: Table) -> None:
    schema = Schema.struct({"id": Schema.int32(), **{name: field for name, (field, _) in FIELDS.items()}})
    converter = JsonConverter.configured({})
    rows = [{"id": number, **{name: values[number] for name, (_, values) in FIELDS.items()}} for number in range(3)]
    table.load([converter.from_connect("t", schema, row) for row in rows], value_converter_schemas_enable="true")
    expected = [{name: read_back(name, value) for name, value in row.items()} for row in rows]
    found = table.by_pyarrow()
    for row in found:
        row["numbers"] = None if row["numbers"] is None else dict(row["numbers"])
    assert found == expected
    names = [name for name in FIELDS if name != "moment"]
    columns = ", ".join(names)
    assert table.by_duckdb(columns) == [tuple(row[name] for name in names) for row in expected]
    # What Python's clients make of times before 1970 and maps differs; as text they are the same.
    assert table.by_duckdb("epoch_ms(moment)") == [(epoch(row["moment"]),) for row in expected]
    assert table.by_spark("unix_millis(moment)") == [(epoch(row["moment"]),) for row in expected]
    plain = ["tiny", "long", "single", "double", "text", "wide", "day", "time"]
    by_spark = table.by_spark(", ".join(plain))
    assert by_spark == [tuple(row[name] for name in plain) for row in expected]


def epoch(at: dt.datetime | None) -> int | None:
    return None if at is None else (at - dt.datetime(1970, 1, 1, tzinfo=UTC)) // dt.timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("field", "told"),
    [
        (
            {"type": "struct", "fields": [{"field": "e", "type": "struct", "fields": []}]},
            r"x\.e is a struct without fields",
        ),
        (
            {
                "type": "bytes",
                "name": "org.apache.kafka.connect.data.Decimal",
                "version": 1,
                "parameters": {"scale": "2", "connect.decimal.precision": "39"},
            },
            "x is a decimal with more than 38 digits",
        ),
    ],
)
def test_what_a_table_cannot_hold_is_refused_by_name(table: Table, field: Mapping[str, Any], told: str) -> None:
    schema = {"type": "struct", "fields": [{"field": "id", "type": "int32"}, {**field, "field": "x", "optional": True}]}
    with pytest.raises(ConnectError, match=told):
        table.load([{"schema": schema, "payload": {"id": 1}}], value_converter_schemas_enable="true")


# -- columns -----------------------------------------------------------------------------------------------------


def test_columns_of_kafka_and_odd_names(table: Table) -> None:
    row = {"id": 1, "a.b": 2, "A b": {"x-y": [3]}, "größe": 4, "a,b;{}()=": 5, "1st": 6}
    table.load([row], store_kafka_keys="true", store_kafka_headers="true", store_kafka_metadata="true")
    (found,) = table.by_pyarrow()
    at = dt.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert found == {
        "key": b"k0",
        "headers": [{"key": "h", "value": b"v"}],
        "kafka": {"topic": table.topic, "partition": 0, "offset": 0, "timestamp": at},
        **row,
    }
    assert table.by_duckdb('kafka."offset", "a.b", "A b"."x-y"') == [(0, 2, [3])]
    assert table.by_spark("kafka.offset, `a.b`, `A b`.`x-y`") == [(0, 2, [3])]


def test_names_that_hive_can_hold(table: Table) -> None:
    table.load([{"id": 1, "a.b": 2, "A c": {"x-Y": [3]}, "1st": 6}], field_name_adjustment_mode="hive")
    assert table.by_pyarrow() == [{"id": 1, "a_b": 2, "a_c": {"x_y": [3]}, "_1st": 6}]
    assert table.by_spark("a_b, a_c.x_y, _1st") == [(2, [3], 6)]


# -- evolution ---------------------------------------------------------------------------------------------------


def test_a_conflict_gets_a_column_of_its_own(table: Table) -> None:
    table.load([{"id": 0, "price": 10}, {"id": 1, "price": 2**60}])
    table.load(
        [{"id": 2, "price": 10.5}, {"id": 3, "price": 11}, {"id": 4, "price": "free"}], schema_conflict="new-column"
    )
    table.load([{"id": 5, "price": 1.5, "more": True}], schema_conflict="new-column")
    expected = [
        (10, None, None, None),
        (2**60, None, None, None),
        (None, 10.5, None, None),
        (11, None, None, None),
        (None, None, "free", None),
        (None, 1.5, None, True),
    ]
    columns = "price, price_float64, price_string, more"
    assert table.by_duckdb(columns) == expected
    assert table.by_spark(columns) == expected
    assert [tuple(row.get(name) for name in columns.split(", ")) for row in table.by_pyarrow()] == expected


def test_a_table_is_rewritten_with_a_wider_column(table: Table) -> None:
    table.load([{"id": 0, "price": 10, "box": {"sizes": [1]}}, {"id": 1, "price": None}])
    table.load([{"id": 2, "price": 2**53, "more": "x"}])
    before = set(table.folder.rglob("*.parquet"))
    table.load([{"id": 3, "price": 10.5, "box": {"sizes": [2, 2.5]}}, {"id": 4}], schema_conflict="rewrite")
    assert before.isdisjoint(table.folder.rglob("*.parquet"))
    expected = [
        (10.0, [1.0], None),
        (None, None, None),
        (2.0**53, None, "x"),
        (10.5, [2.0, 2.5], None),
        (None, None, None),
    ]
    assert table.by_duckdb("price, box.sizes, more") == expected
    assert table.by_spark("price, box.sizes, more") == expected
    schemas = [pq.read_schema(path) for path in table.folder.rglob("*.parquet")]
    assert {schema.field("price").type for schema in schemas} == {pa.float64()}
    table.load([{"id": 5, "price": 3}], schema_conflict="rewrite")
    assert len(list(table.folder.rglob("*.parquet"))) == len(schemas) + 1


def test_a_table_is_not_rewritten_if_values_would_change(table: Table) -> None:
    table.load([{"id": 0, "price": 2**53 + 1}])
    with pytest.raises(ConnectError, match=r'cannot be rewritten with wider columns.*"price".*new-column'):
        table.load([{"id": 1, "price": 0.5}], schema_conflict="rewrite")
    assert table.by_pyarrow() == [{"id": 0, "price": 2**53 + 1}]
    table.load([], schema_conflict="new-column")
    assert table.by_duckdb("price, price_float64") == [(2**53 + 1, None), (None, 0.5)]


def test_fields_that_come_go_and_change_places(table: Table) -> None:
    table.load([{"id": 0, "a": 1, "b": "x"}])
    table.load([{"b": "y", "id": 1}])
    table.load([{"c": 1.5, "b": "z", "id": 2, "a": 3}])
    table.load([{"id": 3, "a": 4, "d": 1}], schema_compatibility="FORWARD")
    expected = [(1, "x", None), (None, "y", None), (3, "z", 1.5), (4, None, None)]
    assert table.by_duckdb("a, b, c") == expected
    assert table.by_spark("a, b, c") == expected
    assert "d" not in {name for row in table.by_pyarrow() for name in row}
