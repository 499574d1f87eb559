"""The columns of a Delta table as a schema, and the changes of columns that Delta knows."""

from __future__ import annotations

import pytest

from connect.data import Schema
from connect.data.logical import decimal_schema, time_schema
from connect.errors import SchemaError
from connectors.spark.schema import table_schema

pytest.importorskip("pyspark")

from pyspark.sql import types as spark

from connectors.spark.delta.columns import (
    column_types,
    has_odd_names,
    is_widened,
    remembered_text,
    schema_of_columns,
)

WRITTEN = table_schema(
    Schema.struct(
        {
            "id": Schema.int32(),
            "at": time_schema(),
            "price": decimal_schema(2),
            "inner": Schema.struct({"at": time_schema(), "names": Schema.array(Schema.string())}),
            "counts": Schema.map(Schema.string(), Schema.int64()),
        }
    )
)


def columns(**types: spark.DataType) -> spark.StructType:
    return spark.StructType([spark.StructField(name, kind) for name, kind in types.items()])


def test_a_table_has_the_schema_that_it_was_written_with() -> None:
    there = column_types(WRITTEN)
    assert schema_of_columns(there, remembered_text(WRITTEN)) == WRITTEN
    forgotten = schema_of_columns(there, None)
    assert forgotten.field_names == WRITTEN.field_names
    at = forgotten.field("at")
    assert at is not None
    assert at.schema == Schema.int32(optional=True)


def test_columns_that_others_made_or_changed_have_their_types() -> None:
    there = column_types(WRITTEN)
    fields = [field for field in there.fields if field.name not in ("at", "counts")]
    added = [spark.StructField("at", spark.StringType()), spark.StructField("wall", spark.TimestampNTZType())]
    schema = schema_of_columns(spark.StructType([*fields, *added]), remembered_text(WRITTEN))
    assert schema.field_names == ("id", "price", "inner", "at")
    found = {field.name: field.schema for field in schema.fields}
    wanted = {field.name: field.schema for field in WRITTEN.fields}
    assert found == {**{name: wanted[name] for name in ("id", "price", "inner")}, "at": Schema.string(optional=True)}


@pytest.mark.parametrize(
    ("there", "wanted", "answer"),
    [
        (spark.IntegerType(), spark.IntegerType(), False),
        (spark.IntegerType(), spark.LongType(), True),
        (spark.ArrayType(spark.FloatType()), spark.ArrayType(spark.DoubleType()), True),
        (columns(b=spark.ByteType()), columns(b=spark.DoubleType(), c=spark.LongType()), True),
        (columns(b=spark.ByteType()), columns(b=spark.ByteType(), c=spark.LongType()), False),
    ],
)
def test_types_that_become_wider(there: spark.DataType, wanted: spark.DataType, answer: bool) -> None:
    assert is_widened(columns(a=there), columns(a=wanted)) is answer


def test_a_change_that_delta_does_not_know_is_refused_by_name() -> None:
    there = columns(a=columns(b=spark.ShortType()))
    with pytest.raises(SchemaError, match=r"Column a\.b of a Delta table is smallint, and Delta cannot make it float"):
        is_widened(there, columns(a=columns(b=spark.FloatType())))


def test_names_that_need_column_mapping() -> None:
    assert not has_odd_names(columns(a=spark.ArrayType(columns(b=spark.LongType()))))
    assert has_odd_names(columns(a=spark.ArrayType(columns(**{"b c": spark.LongType()}))))
