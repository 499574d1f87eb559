"""Casts as Java does them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest

from connect.data import Schema, Type, date_schema, decimal_schema, time_schema, timestamp_schema
from connect.errors import DataError
from connect.transforms.cast import Cast, cast_function


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (300, Type.INT8, 44),
        (2**40 + 1, Type.INT32, 1),
        (1e10, Type.INT8, -1),
        (1e10, Type.INT32, 2**31 - 1),
        (-1e30, Type.INT64, -(2**63)),
        (-3.9, Type.INT16, -3),
        (math.inf, Type.INT64, 2**63 - 1),
        (True, Type.FLOAT64, 1.0),
        (False, Type.STRING, "false"),
        (0.5, Type.BOOLEAN, False),
        (2, Type.BOOLEAN, True),
        ("+12", Type.INT8, 12),
        ("-0", Type.INT64, 0),
        (" 1.5f ", Type.FLOAT32, 1.5),
        ("0x1p3", Type.FLOAT64, 8.0),
        ("NaN", Type.STRING, "NaN"),
        ("1e400", Type.FLOAT64, math.inf),
        (1e300, Type.FLOAT32, math.inf),
        (16777217, Type.FLOAT32, 16777216.0),
        (1e7, Type.STRING, "1.0E7"),
        (0.001, Type.STRING, "0.001"),
        (b"\x01\x02", Type.STRING, "AQI="),
    ],
)
def test_without_schema(value: Any, target: Type, expected: Any) -> None:
    found = cast_function(None, target)(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("schema", "value", "target", "expected"),
    [
        (Schema.float32(), 0.1, Type.STRING, "0.1"),
        (Schema.float64(), 0.10000000149011612, Type.STRING, "0.10000000149011612"),
        (date_schema(), dt.date(1970, 1, 11), Type.INT32, 10),
        (date_schema(), dt.date(2020, 2, 29), Type.STRING, "2020-02-29"),
        (time_schema(), dt.time(1, 0, 0, 5000), Type.INT64, 3_600_005),
        (time_schema(), dt.time(1, 0, 0, 5000), Type.STRING, "01:00:00.005Z"),
        (timestamp_schema(), dt.datetime(1970, 1, 2, 1, tzinfo=dt.UTC), Type.STRING, "1970-01-02T01:00:00.000Z"),
        (timestamp_schema(), dt.datetime(1969, 12, 31, 1, tzinfo=dt.UTC), Type.STRING, "01:00:00.000Z"),
        (timestamp_schema(), dt.datetime(1970, 1, 1, tzinfo=dt.UTC), Type.BOOLEAN, False),
        (decimal_schema(2), Decimal("2147483648.99"), Type.INT32, -(2**31)),
        (decimal_schema(0), Decimal("1E+100"), Type.INT64, 0),
        (decimal_schema(2), Decimal("1.50"), Type.STRING, "1.50"),
        (decimal_schema(2), Decimal("0.50"), Type.BOOLEAN, False),
        (Schema.int64(), 2**40 + 5, Type.INT8, 5),
        (Schema.float64(), 3, Type.FLOAT32, 3.0),
    ],
)
def test_with_schema(schema: Schema, value: Any, target: Type, expected: Any) -> None:
    assert cast_function(schema, target)(value) == expected


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("1.5", Type.INT32),
        ("1_000", Type.INT32),
        ("128", Type.INT8),
        ("", Type.FLOAT64),
        ("inf", Type.FLOAT64),
        (b"x", Type.INT8),
        (b"x", Type.BOOLEAN),
        ([1], Type.STRING),
        ({}, Type.STRING),
        (Decimal(1), Type.STRING),
        (2**63, Type.STRING),
        (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), Type.INT64),
    ],
)
def test_what_cannot_be_cast(value: Any, target: Type) -> None:
    with pytest.raises(DataError):
        cast_function(None, target)(value)


def test_the_error_names_the_field(record: Any) -> None:
    cast = Cast.Value.configured({"spec": "order.price:int8", "field.syntax.version": "V2"})
    with pytest.raises(DataError, match=r"Value \(x\) was out of range .*\(field price\) \(field order\)"):
        cast.apply(record({"order": {"price": "x"}}))


def test_defaults_are_cast_with_their_field(record: Any) -> None:
    schema = Schema.struct({"a": Schema.string(default="5"), "b": Schema.int32()}, default={"a": "6", "b": 1})
    made = Cast.Value.configured({"spec": "a:int64"}).apply(record({"a": None, "b": 2}, schema))
    assert made.value == {"a": 5, "b": 2}
    assert made.value_schema.field("a").schema is Schema.int64(default=5)
    assert made.value_schema.default == {"a": 6, "b": 1}
