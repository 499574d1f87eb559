"""Values as text and back, and as each other."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.data import Schema, date_schema, decimal_schema, time_schema, timestamp_schema, validate
from connect.data.numerals import single
from connect.data.values import (
    convert_to_date,
    convert_to_decimal,
    convert_to_float32,
    convert_to_float64,
    convert_to_int8,
    convert_to_int64,
    convert_to_list,
    convert_to_map,
    convert_to_string,
    convert_to_struct,
    convert_to_time,
    convert_to_timestamp,
    infer_schema,
    parse_string,
)
from connect.errors import DataError
from connect.internals.java.value_text import value_text
from equipment.strategies.values import DATES, TIMES, TIMESTAMPS, values_of

# What three words mean without quotes is no text.
WORDS = st.text(st.characters(categories=["Lu", "Ll"]), min_size=1, max_size=8).filter(
    lambda word: word not in {"null", "true", "false"}
)
INTEGERS = values_of(Schema.int64())
SCALARS = INTEGERS | st.booleans() | DATES | TIMES | WORDS


def text_of(value: Any, schema: Schema | None = None) -> str:
    text = convert_to_string(schema, value)
    assert text is not None
    return text


# -- what is written is read back --------------------------------------------------------------------------


@given(INTEGERS | st.booleans() | DATES | TIMES)
def test_scalars_come_back(value: Any) -> None:
    parsed = parse_string(text_of(value))
    assert parsed.value == value
    validate(parsed.schema, parsed.value)


@given(values_of(Schema.float32(), comparable=True))
def test_single_precision_comes_back(value: float) -> None:
    text = text_of(value, Schema.float32())
    read = parse_string(text).value
    # 3.918751E7 reads as a whole number, which has the same single precision.
    assert read == text if math.isinf(value) else single(read) == value


@given(TIMESTAMPS)
def test_instants_come_back(value: dt.datetime) -> None:
    read = parse_string(text_of(value)).value
    if isinstance(read, dt.datetime):
        assert read == value
    elif isinstance(read, dt.date):
        assert dt.datetime.combine(read, dt.time(), dt.UTC) == value
    else:
        assert dt.datetime.combine(dt.date(1970, 1, 1), read, dt.UTC) == value


@given(st.recursive(SCALARS, lambda parts: st.lists(parts) | st.dictionaries(WORDS | INTEGERS, parts), max_leaves=12))
def test_arrays_and_maps_come_back(value: Any) -> None:
    parsed = parse_string(text_of(value))
    assert parsed.value == value
    validate(parsed.schema, parsed.value)


@given(st.text())
def test_any_text_has_a_value(text: str) -> None:
    parsed = parse_string(text)
    validate(parsed.schema, parsed.value)


@given(st.text('[]{},:"\\ 1a-.T', max_size=30))
def test_any_punctuation_has_a_value(text: str) -> None:
    parsed = parse_string(text)
    validate(parsed.schema, parsed.value)


def test_deep_nesting_is_text() -> None:
    text = "[" * 100_000
    assert parse_string(text) == (Schema.string(), text)
    closed = "[" * 5000 + "]" * 5000
    assert parse_string(closed).value == closed


# -- text --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (None, 1e7, "1.0E7"),
        (None, 0.001, "0.001"),
        (None, 5e-324, "4.9E-324"),
        (None, float("nan"), "NaN"),
        (Schema.float32(), single(0.1), "0.1"),
        (Schema.float32(), 3.4028234663852886e38, "3.4028235E38"),
        (Schema.array(Schema.float32()), [single(1.1)], "[1.1]"),
        (decimal_schema(-3), Decimal("1E+3"), "1E+3"),
        (None, bytearray(b"\x00"), "AA=="),
        (date_schema(), dt.date(1960, 5, 5), "1960-05-05"),
        (timestamp_schema(), dt.datetime(1960, 5, 5, 1, tzinfo=dt.UTC), "1960-05-05T01:00:00.000Z"),
        (Schema.struct({"a": Schema.int8(default=5), "b": Schema.string()}), {"b": '"'}, '{"a":5,"b":"\\""}'),
        (None, {"a": None}, '{"a":null}'),
        (None, "", ""),
        (None, None, None),
    ],
)
def test_writes(schema: Schema | None, value: Any, text: str | None) -> None:
    assert convert_to_string(schema, value) == text


@pytest.mark.parametrize("value", [object(), dt.datetime(2020, 1, 1), [object()]])  # noqa: DTZ001
def test_what_has_no_text(value: Any) -> None:
    with pytest.raises(DataError):
        convert_to_string(None, value)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("2019-13-32", date_schema(), dt.date(2020, 2, 1)),
        ("99:00:00.000Z", Schema.int8(), 99),
        ("9999-12-99", Schema.string(), "9999-12-99"),
        ("1e99999999999", Schema.string(), "1e99999999999"),
        ("16777217.5", Schema.float32(), 16777218.0),
        ('["2019-08-23"]', Schema.array(date_schema()), [dt.date(2019, 8, 23)]),
        ("{1:[1,2.5]}", Schema.map(Schema.int8(), Schema.array(Schema.float32())), {1: [1.0, 2.5]}),
        ('[{"a":1},{"a":300}]', Schema.array(Schema.map(Schema.string(), Schema.int16())), [{"a": 1}, {"a": 300}]),
        ("{[1]:2}", Schema.string(), "{[1]:2}"),
        ("0E+100000000", Schema.int8(), 0),
        ("[1e400,1]", None, [Decimal("1e400"), 1]),
    ],
)
def test_reads(text: str, schema: Schema | None, value: Any) -> None:
    assert parse_string(text) == (schema, value)


# -- conversions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("convert", "schema", "value", "converted"),
    [
        (convert_to_int8, Schema.float64(), float("nan"), 0),
        (convert_to_int64, Schema.float64(), 1e300, 2**63 - 1),
        (convert_to_int64, Schema.float64(), -1e300, -(2**63)),
        (convert_to_int64, None, Decimal("1e64"), 0),
        (convert_to_int64, None, Decimal("-0.9"), 0),
        (convert_to_int64, None, 2**64 + 1, 1),
        (convert_to_int64, date_schema(), dt.date(1970, 1, 3), 2),
        (convert_to_int64, time_schema(), dt.time(0, 0, 1), 1000),
        (convert_to_int64, timestamp_schema(), dt.datetime(1970, 1, 2, tzinfo=dt.UTC), 86_400_000),
        (convert_to_float32, None, 0.1, single(0.1)),
        (convert_to_float64, None, -(10**400), float("-inf")),
        (convert_to_float64, date_schema(), dt.date(1970, 1, 3), 2.0),
        (convert_to_date, timestamp_schema(), dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC), dt.date(1969, 12, 31)),
        (convert_to_date, None, dt.date(2020, 1, 1), dt.date(2020, 1, 1)),
        (convert_to_date, None, "2020-01-01", dt.date(2020, 1, 1)),
        (convert_to_time, None, dt.time(1), dt.time(1)),
        (convert_to_timestamp, None, dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        (convert_to_timestamp, None, dt.time(1), dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC)),
        (convert_to_list, None, "[1,2]", [1, 2]),
        (convert_to_map, None, {"a": 1}, {"a": 1}),
        (convert_to_struct, Schema.struct({"a": Schema.int8()}), {"a": 1}, {"a": 1}),
    ],
)
def test_converts(convert: Callable[..., Any], schema: Schema | None, value: Any, converted: Any) -> None:
    made = convert(schema, value)
    assert made == converted
    assert type(made) is type(converted)


@pytest.mark.parametrize(
    ("convert", "schema", "value"),
    [
        (convert_to_int64, None, dt.date(1970, 1, 3)),
        (convert_to_int64, None, True),
        (convert_to_int64, None, b"1"),
        (convert_to_date, date_schema(), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        (convert_to_date, None, 2**31 - 1),
        (convert_to_time, None, 86_400_000),
        (convert_to_timestamp, timestamp_schema(), dt.datetime(2020, 1, 1)),  # noqa: DTZ001
        (convert_to_list, None, "a"),
        (convert_to_list, None, None),
        (convert_to_map, None, None),
        (convert_to_struct, Schema.struct({}), None),
        (convert_to_list, None, "null"),
        (convert_to_map, Schema.struct({"a": Schema.int8()}), {"a": 1}),
        (convert_to_struct, None, {"a": 1}),
    ],
)
def test_converts_nothing_else(convert: Callable[..., Any], schema: Schema | None, value: Any) -> None:
    with pytest.raises(DataError):
        convert(schema, value)


def test_decimals() -> None:
    assert str(convert_to_decimal(None, 5, 2)) == "5.0"
    assert str(convert_to_decimal(None, 0.1, 2)) == "0.1"
    assert str(convert_to_decimal(None, b"\x00\x96", 2)) == "1.50"
    for value in (True, "x", float("nan"), None):
        with pytest.raises(DataError):
            convert_to_decimal(None, value, 2)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (True, Schema.boolean()),
        (1, Schema.int64()),
        (2**63, None),
        (1.5, Schema.float64()),
        (memoryview(b""), Schema.bytes()),
        ([1, None], Schema.array(Schema.int64(optional=True))),
        ([None], None),
        ({"a": [1.5]}, Schema.map(Schema.string(), Schema.array(Schema.float64()))),
        (Decimal(1), None),
    ],
)
def test_infers(value: Any, schema: Schema | None) -> None:
    assert infer_schema(value) is schema


@pytest.mark.parametrize(
    ("text", "days", "written", "shown"),
    [
        # Printed by SimpleDateFormat and Date of a JVM.
        ("1500-01-01", -171_655, "1500-01-01", "Wed Jan 01 00:00:00 UTC 1500"),
        ("1582-10-04", -141_428, "1582-10-04", "Thu Oct 04 00:00:00 UTC 1582"),
        ("1582-10-05", -141_427, "1582-10-15", "Fri Oct 15 00:00:00 UTC 1582"),
        ("1582-10-14", -141_418, "1582-10-24", "Sun Oct 24 00:00:00 UTC 1582"),
        ("1581-12-35", -141_701, "1582-01-04", "Thu Jan 04 00:00:00 UTC 1582"),
        ("0001-01-03", -719_162, "0001-01-03", "Mon Jan 03 00:00:00 UTC 1"),
    ],
)
def test_days_before_1582_are_those_of_the_calendar_of_java(text: str, days: int, written: str, shown: str) -> None:
    read = parse_string(text)
    assert read.value == dt.date(1970, 1, 1) + dt.timedelta(days)
    assert convert_to_string(read.schema, read.value) == written
    assert value_text(read.schema, read.value) == shown
    moment = dt.datetime.combine(read.value, dt.time(1, 2, 3), dt.UTC)
    assert parse_string(f"{text}T01:02:03.000Z").value == moment
    assert convert_to_string(timestamp_schema(), moment) == f"{written}T01:02:03.000Z"
