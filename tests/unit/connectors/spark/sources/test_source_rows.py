"""Rows of Arrow as batches of records, and the schemas that these have."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from connect.data import Schema
from connect.data.logical import timestamp_schema
from connect.errors import SchemaError
from connectors.spark.sources.record_schema import record_schema
from connectors.spark.sources.rows import RowPlan, rows_of

INSTANT = pa.timestamp("us", "UTC")
MOMENT = dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC)
FINE = MOMENT.replace(microsecond=1)
VALUE = pa.struct([("id", pa.int64()), ("at", INSTANT)])
SCHEMA = Schema.struct({"id": Schema.int64(optional=True), "at": timestamp_schema(optional=True)}, optional=True)
KEY = Schema.struct({"id": Schema.int64(optional=True)})


def batch(values: list[Any], kind: pa.DataType = VALUE) -> pa.RecordBatch:
    keys = pa.array([{"id": place} for place in range(len(values))], pa.struct([("id", pa.int64())]))
    times = pa.array([place if place % 2 else None for place in range(len(values))], pa.int64())
    return pa.RecordBatch.from_arrays([keys, pa.array(values, kind), times], ["key", "value", "timestamp"])


def test_rows_have_keys_values_and_timestamps() -> None:
    rows = rows_of(batch([{"id": n, "at": MOMENT} for n in range(3)]), RowPlan("t", SCHEMA, KEY))
    records = [record for each in rows.batches for record in each]
    assert [(record.key, record.timestamp) for record in records] == [
        ({"id": 0}, None),
        ({"id": 1}, 1),
        ({"id": 2}, None),
    ]
    assert records[2].value == {"id": 2, "at": MOMENT}
    assert records[0].value_schema is SCHEMA
    assert rows.bad == []


def test_a_row_without_a_value_deletes_its_key() -> None:
    rows = rows_of(batch([{"id": 0, "at": None}, None]), RowPlan("t", SCHEMA, KEY))
    records = [record for each in rows.batches for record in each]
    assert [(record.key, record.value, record.value_schema) for record in records] == [
        ({"id": 0}, {"id": 0, "at": None}, SCHEMA),
        ({"id": 1}, None, None),
    ]


def test_only_the_rows_are_bad_that_cannot_be_cast() -> None:
    values = [{"id": n, "at": FINE if n in (3, 4, 9) else MOMENT} for n in range(10)]
    rows = rows_of(batch(values), RowPlan("t", SCHEMA))
    assert [record.value["id"] for each in rows.batches for record in each] == [0, 1, 2, 5, 6, 7, 8]
    assert len(rows.bad) == 3
    assert all("finer than a millisecond" in bad.reason for bad in rows.bad)


def test_times_can_be_cut_off_at_any_depth() -> None:
    kind = pa.struct([("all", pa.list_(INSTANT))])
    schema = Schema.struct({"all": Schema.array(timestamp_schema(optional=True), optional=True)})
    rows = rows_of(batch([{"all": [FINE, None]}], kind), RowPlan("t", schema, truncates=True))
    assert next(iter(rows.batches[0])).value == {"all": [MOMENT, None]}


def test_what_python_cannot_hold_is_a_bad_row() -> None:
    far = pa.array([2**60], pa.int64()).cast(INSTANT)
    value = pa.StructArray.from_arrays([pa.array([1], pa.int64()), far], fields=list(VALUE))
    whole = pa.RecordBatch.from_arrays([pa.nulls(1), value, pa.nulls(1, pa.int64())], ["key", "value", "timestamp"])
    assert len(rows_of(whole, RowPlan("t", SCHEMA)).bad) == 1


def columns(**types: spark.DataType) -> spark.StructType:
    return spark.StructType([spark.StructField(name, kind) for name, kind in types.items()])


def test_columns_have_schemas_of_their_types() -> None:
    schema = record_schema(
        columns(
            small=spark.ByteType(),
            at=spark.TimestampNTZType(),
            nested=columns(many=spark.ArrayType(spark.StringType())),
            money=spark.DecimalType(10, 2),
        )
    )
    assert [field.name for field in schema.fields] == ["small", "at", "nested", "money"]
    assert schema.field("at").schema is timestamp_schema(optional=True)  # type: ignore[union-attr]
    numbers = record_schema(columns(at=spark.ArrayType(spark.TimestampType())), fine_as_numbers=True)
    assert numbers.fields[0].schema.value_schema is Schema.int64(optional=True)


def test_a_column_that_a_record_cannot_hold_is_named() -> None:
    with pytest.raises(SchemaError, match=r"Column a\.b is interval"):
        record_schema(columns(a=columns(b=spark.DayTimeIntervalType())))
