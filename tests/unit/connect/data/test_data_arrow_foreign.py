"""Arrow types and arrays of other makers: taken when nothing is lost, otherwise it is said what to cast."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from connect.data import Schema, date_schema, decimal_schema, time_schema, timestamp_schema
from connect.data.arrow import (
    arrow_field,
    arrow_schema,
    arrow_type,
    conform,
    schema_from_arrow,
    schema_from_arrow_type,
    to_values,
)
from connect.data.arrow_tables import struct_array
from connect.errors import DataError, SchemaError

UTC_NOON = dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)
PRECISION = "connect.decimal.precision"

NEAREST = [
    (pa.array([255], pa.uint8()), Schema.int16(), 255),
    (pa.array([65535], pa.uint16()), Schema.int32(), 65535),
    (pa.array([2**32 - 1], pa.uint32()), Schema.int64(), 2**32 - 1),
    (pa.array([2**64 - 1], pa.uint64()), decimal_schema(0, parameters={PRECISION: "20"}), Decimal(2**64 - 1)),
    (pa.array([1.5], pa.float32()).cast(pa.float16()), Schema.float32(), 1.5),
    (pa.array(["a"], pa.large_string()), Schema.string(), "a"),
    (pa.array(["a"], pa.string_view()), Schema.string(), "a"),
    (pa.array([b"a"], pa.large_binary()), Schema.bytes(), b"a"),
    (pa.array([b"ab"], pa.binary(2)), Schema.bytes(), b"ab"),
    (pa.array(["a"]).dictionary_encode(), Schema.string(), "a"),
    (pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["a"])), Schema.string(), "a"),
    (pa.array([[1]], pa.large_list(pa.int8())), Schema.array(Schema.int8(optional=True)), [1]),
    (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), Schema.array(Schema.int8(optional=True)), [1, 2]),
    (pa.array([[1]], pa.list_view(pa.int8())), Schema.array(Schema.int8(optional=True)), [1]),
    (pa.array([dt.date(2020, 1, 1)], pa.date64()), date_schema(), dt.date(2020, 1, 1)),
    (pa.array([dt.time(1)], pa.time32("s")), time_schema(), dt.time(1)),
    (pa.array([dt.time(1, 0, 0, 5000)], pa.time64("ns")), time_schema(), dt.time(1, 0, 0, 5000)),
    (pa.array([UTC_NOON], pa.timestamp("s", "UTC")), timestamp_schema(), UTC_NOON),
    (pa.array([UTC_NOON], pa.timestamp("ns", "Europe/Rome")), timestamp_schema(), UTC_NOON),
    (
        pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
        decimal_schema(2, parameters={PRECISION: "10"}),
        Decimal("1.50"),
    ),
    (
        pa.array([Decimal("1.50")], pa.decimal256(60, 2)),
        decimal_schema(2, parameters={PRECISION: "60"}),
        Decimal("1.50"),
    ),
    (
        pa.array([[("a", 1)]], pa.map_(pa.large_string(), pa.uint8())),
        Schema.map(Schema.string(), Schema.int16(optional=True)),
        {"a": 1},
    ),
    (
        pa.array([{"a": {"b": 1}}], pa.struct({"a": pa.struct({"b": pa.uint8()})})),
        Schema.struct({"a": Schema.struct({"b": Schema.int16(optional=True)}, optional=True)}),
        {"a": {"b": 1}},
    ),
]


@pytest.mark.parametrize(("array", "schema", "value"), NEAREST, ids=lambda part: str(getattr(part, "type", "")))
def test_the_nearest_type_that_loses_nothing(array: Any, schema: Schema, value: Any) -> None:
    assert schema_from_arrow_type(array.type) is schema
    assert to_values(array, schema) == [value]
    assert to_values(array, None) == [value]
    with_null = pa.concat_arrays([array, pa.nulls(1, array.type)])
    assert to_values(with_null, schema.as_optional()) == [value, None]
    conformed = conform(array, schema)
    conformed.validate(full=True)
    assert conformed.type.equals(arrow_type(schema))


def test_nothing_but_nulls() -> None:
    assert schema_from_arrow_type(pa.null()) is Schema.string(optional=True)
    assert to_values(pa.nulls(2), Schema.int8(optional=True)) == [None, None]
    assert to_values(pa.nulls(2), None) == [None, None]


@pytest.mark.parametrize(
    ("data_type", "advice"),
    [
        (pa.timestamp("us"), "assume_timezone"),
        (pa.duration("s"), "cast it to int64"),
        (pa.month_day_nano_interval(), "cast it to a struct"),
        (pa.dense_union([pa.field("a", pa.int8())]), "cast it to a struct"),
        (pa.uuid(), r"use its storage type, fixed_size_binary\[16\]"),
    ],
)
def test_types_that_connect_lacks(data_type: pa.DataType, advice: str) -> None:
    with pytest.raises(SchemaError, match=advice):
        schema_from_arrow_type(data_type)
    with pytest.raises(SchemaError, match=r'"outer\.inner"'):
        schema_from_arrow(pa.schema({"outer": pa.struct({"inner": data_type})}))


def test_a_column_twice() -> None:
    fields = [pa.field("a", pa.int8()), pa.field("a", pa.int8())]
    with pytest.raises(SchemaError, match="duplication a"):
        schema_from_arrow(pa.schema(fields))


LOSES = [
    (pa.array([300], pa.int64()), Schema.int8(), "300"),
    (pa.array([2**53 + 1], pa.int64()), Schema.float64(), "9007199254740993"),
    (pa.array([UTC_NOON.replace(microsecond=1)], pa.timestamp("us", "UTC")), timestamp_schema(), "lose data"),
    (pa.array([dt.time(1, 0, 0, 1)], pa.time64("us")), time_schema(), "lose data"),
    (pa.array([Decimal("12345.00")], pa.decimal128(20, 2)), decimal_schema(2, parameters={PRECISION: "4"}), "value"),
]
DIFFERENT = [
    (pa.array([1]), Schema.string(), "cast it to string"),
    (pa.array(["1"]), Schema.int64(), "cast it to int64"),
    (pa.array([1.0]), Schema.int64(), "cast it to int64"),
    (pa.array([1.5]), Schema.float32(), "cast it to float"),
    (pa.array([True]), Schema.int8(), "cast it to int8"),
    (pa.array([b"a"]), Schema.string(), "cast it to string"),
    (pa.array(["a"]), Schema.bytes(), "cast it to binary"),
    (pa.array([dt.datetime(2020, 1, 1)]), timestamp_schema(), "assume_timezone"),  # noqa: DTZ001
    (pa.array([Decimal("1.5")]), decimal_schema(2), "cast it to decimal128"),
    (pa.array([1]), Schema.array(Schema.int64()), "cast it to list"),
    (pa.array([[1]]), Schema.map(Schema.string(), Schema.int64()), "cast it to map"),
    (pa.array([[1]]), Schema.struct({"a": Schema.int64()}), "cast it to struct"),
]


@pytest.mark.parametrize(("array", "schema", "message"), LOSES + DIFFERENT, ids=lambda part: str(part)[:40])
def test_nothing_is_cast_that_loses(array: Any, schema: Schema, message: str) -> None:
    with pytest.raises(DataError, match=message):
        conform(array, schema)


def test_wider_and_narrower_numbers_that_fit() -> None:
    assert conform(pa.array([5], pa.int64()), Schema.int8()).type == pa.int8()
    assert to_values(pa.array([5], pa.int8()), Schema.float64()) == [5.0]
    assert to_values(pa.array([1.5], pa.float32()), Schema.float64()) == [1.5]


ROW = Schema.struct(
    {
        "id": Schema.int64(),
        "state": Schema.string(default="new"),
        "note": Schema.string(optional=True),
    },
    optional=True,
)


def test_columns_that_are_missing() -> None:
    array = pa.array([{"id": 1}, None])
    assert to_values(array, ROW) == [{"id": 1, "state": "new", "note": None}, None]
    with pytest.raises(DataError, match='"id" is missing'):
        conform(pa.array([{"note": "x"}]), ROW)


def test_columns_that_nobody_asked_for() -> None:
    with pytest.raises(DataError, match="schema does not have: extra"):
        conform(pa.array([{"id": 1, "extra": 2}]), ROW)
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["id", "id"])
    with pytest.raises(DataError, match="a column twice"):
        conform(twice, ROW)


def test_nulls_where_a_value_is_wanted() -> None:
    assert to_values(pa.array([None, "b"]), Schema.string(default="a")) == ["a", "b"]
    with pytest.raises(DataError, match='null used for required field: "value"'):
        conform(pa.array([None, 1]), Schema.int64())
    with pytest.raises(DataError, match='"id"'):
        conform(pa.array([{"id": None}], pa.struct({"id": pa.int64()})), ROW)
    items = Schema.array(Schema.int64())
    with pytest.raises(DataError, match=r'"\[\]"'):
        conform(pa.array([[1], [None]]), items)
    assert to_values(pa.array([None, [1]]), items.as_optional()) == [None, [1]]


def test_a_promise_of_no_nulls_is_checked() -> None:
    field = pa.field("id", pa.int64(), nullable=False)
    array = pa.StructArray.from_arrays([pa.array([1, None])], fields=[field])
    with pytest.raises(DataError, match='"id"'):
        conform(array, Schema.struct({"id": Schema.int64()}))


def test_slices_and_nulls_of_nested_types() -> None:
    schema = Schema.struct(
        {
            "tags": Schema.array(Schema.int64(), optional=True),
            "stock": Schema.map(Schema.string(), Schema.int64(), optional=True),
            "part": Schema.struct({"n": Schema.int64()}, optional=True),
        },
        optional=True,
    )
    rows: list[Any] = [
        {"tags": [1, 2], "stock": {"a": 1}, "part": {"n": 1}},
        None,
        {"tags": None, "stock": None, "part": None},
        {"tags": [], "stock": {}, "part": {"n": 4}},
        {"tags": [5], "stock": {"b": 2, "c": 3}, "part": {"n": 5}},
    ]
    stock = pa.map_(pa.string(), pa.int32())
    foreign = pa.struct({"tags": pa.large_list(pa.int16()), "stock": stock, "part": pa.struct({"n": pa.uint8()})})
    array = pa.array(rows, foreign)
    for start in range(5):
        assert to_values(array.slice(start), schema) == rows[start:]
        assert to_values(array.slice(start, 2), schema) == rows[start : start + 2]


def test_maps_that_are_no_dicts() -> None:
    twice = pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int8()))
    with pytest.raises(DataError, match="'a' more than once"):
        to_values(twice, None)
    keys = pa.array([[({"x": 1}, 1)]], pa.map_(pa.struct({"x": pa.int8()}), pa.int8()))
    with pytest.raises(DataError, match="array of structs"):
        to_values(keys, None)
    arrays = pa.array([[([1, 2], 1)]], pa.map_(pa.list_(pa.int8()), pa.int8()))
    assert to_values(arrays, None) == [{(1, 2): 1}]


def test_dates_outside_of_the_calendar() -> None:
    for number, data_type in ((2**31 - 1, pa.date32()), (2**62, pa.timestamp("ms", "UTC"))):
        storage = pa.int32() if data_type == pa.date32() else pa.int64()
        array = pa.array([number], storage).view(data_type)
        with pytest.raises(DataError, match="years 1 to 9999"):
            to_values(array, None)


def test_tables() -> None:
    table = pa.concat_tables([pa.table({"a": [1]}), pa.table({"a": [2]})])
    assert struct_array(table).to_pylist() == [{"a": 1}, {"a": 2}]
    assert struct_array(table.slice(1)).to_pylist() == [{"a": 2}]
    assert struct_array(table.slice(2)).to_pylist() == []


def test_metadata_is_only_written_where_it_says_something() -> None:
    plain = Schema.struct({"a": Schema.int8(), "d": decimal_schema(2), "t": timestamp_schema(optional=True)})
    assert arrow_schema(plain).metadata is None
    assert all(field.metadata is None for field in arrow_schema(plain))
    assert arrow_field("a", Schema.int8(doc="x")).metadata == {b"connect.doc": b'"x"'}


def test_metadata_of_others_is_passed_over() -> None:
    schema = pa.schema([pa.field("a", pa.int8(), metadata={"PARQUET:field_id": "1"})], {"pandas": "{}"})
    assert schema_from_arrow(schema) is Schema.struct({"a": Schema.int8(optional=True)})


def test_metadata_that_cannot_be_read() -> None:
    schema = pa.schema([pa.field("a", pa.int8(), metadata={"connect.default": '"x"'})])
    with pytest.raises(SchemaError):
        schema_from_arrow(schema)
    broken = pa.schema([pa.field("a", pa.int8(), metadata={"connect.version": "{"})])
    with pytest.raises(SchemaError, match="Remove it to use the Arrow type alone"):
        schema_from_arrow(broken)


def test_a_table_needs_a_struct() -> None:
    with pytest.raises(SchemaError, match="HoistField"):
        arrow_schema(Schema.int8())


@pytest.mark.parametrize("precision", ["0", "77", "many"])
def test_precisions_that_arrow_lacks(precision: str) -> None:
    with pytest.raises(SchemaError, match="between 1 and 76"):
        arrow_type(decimal_schema(2, parameters={PRECISION: precision}))


def test_wide_decimals() -> None:
    assert arrow_type(decimal_schema(40)) == pa.decimal256(76, 40)
    assert arrow_type(decimal_schema(2, parameters={PRECISION: "50"})) == pa.decimal256(50, 2)
