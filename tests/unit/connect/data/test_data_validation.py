"""What a schema allows, and the path to what it does not."""

from __future__ import annotations

import datetime as dt
from collections import OrderedDict
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from connect.data import Schema, date_schema, decimal_schema, time_schema, timestamp_schema, validate
from connect.errors import DataError
from equipment.strategies.described import columns

LINE = Schema.struct({"price": Schema.float64(), "note": Schema.string(optional=True)})
ORDER = Schema.struct(
    {
        "id": Schema.int32(),
        "lines": Schema.array(LINE, optional=True),
        "stock": Schema.map(Schema.string(), Schema.int16(), optional=True),
        "state": Schema.string(default="new"),
    }
)
NAIVE = dt.datetime(2020, 1, 1)  # noqa: DTZ001


@given(columns())
def test_values_of_a_schema_are_allowed(column: tuple[Schema, list[Any]]) -> None:
    schema, values = column
    for value in values:
        validate(schema, value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (None, object()),
        (Schema.float64(), 1),
        (Schema.float32(), 2**24),
        (Schema.float32(), float("inf")),
        (Schema.bytes(), bytearray(b"a")),
        (Schema.bytes(), memoryview(b"a")),
        (Schema.array(Schema.int8()), (1, 2)),
        (ORDER, OrderedDict(id=1)),
        (ORDER, {"id": 1, "state": None}),
        (timestamp_schema(), dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=3)))),
    ],
)
def test_allowed(schema: Schema | None, value: object) -> None:
    validate(schema, value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (Schema.int8(), 128),
        (Schema.int64(), 2**63),
        (Schema.int32(), True),
        (Schema.int32(), 1.0),
        (Schema.float64(), True),
        (Schema.float64(), "1"),
        (Schema.float64(), 2**53 + 1),
        (Schema.float32(), 2**24 + 1),
        (Schema.float32(), 1e39),
        (Schema.boolean(), 1),
        (Schema.string(), b"a"),
        (Schema.bytes(), "a"),
        (Schema.array(Schema.string()), "ab"),
        (Schema.array(Schema.int8()), b"ab"),
        (Schema.array(Schema.int8()), {1: 2}),
        (Schema.map(Schema.string(), Schema.int8()), [("a", 1)]),
        (decimal_schema(2), Decimal("1.5")),
        (decimal_schema(2), Decimal("NaN")),
        (decimal_schema(2), 1.5),
        (date_schema(), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        (date_schema(), 1),
        (time_schema(), dt.time(1, tzinfo=dt.UTC)),
        (timestamp_schema(), NAIVE),
        (timestamp_schema(), dt.date(2020, 1, 1)),
        (Schema.string(), None),
    ],
)
def test_refused(schema: Schema, value: object) -> None:
    with pytest.raises(DataError, match='"value"'):
        validate(schema, value)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"id": "1"}, '"id"'),
        ({}, '"id", schema type: INT32'),
        ({"id": 1, "lines": [{"price": 1.0}, {"price": "x"}]}, '"lines[1].price"'),
        ({"id": 1, "lines": [None]}, '"lines[0]"'),
        ({"id": 1, "stock": {"a": 2**15}}, "\"stock['a']\""),
        ({"id": 1, "stock": {2: 2}}, '"stock{key 2}"'),
        ({"id": 1, "lines": [{"price": 1.0, "colour": "red"}]}, '"lines[0]".*colour is not a valid field name'),
    ],
)
def test_names_the_path(value: object, path: str) -> None:
    with pytest.raises(DataError) as caught:
        validate(ORDER, value)
    parts = path.split(".*")
    assert all(part in str(caught.value) for part in parts)


def test_says_what_to_do() -> None:
    with pytest.raises(DataError, match=r"such as datetime\.UTC"):
        validate(timestamp_schema(), NAIVE)
