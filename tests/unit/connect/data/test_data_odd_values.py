"""Whatever is asked of a value, the answer is a result or a ``DataError``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest

from connect.data import (
    NO_HEADERS,
    Schema,
    SinkRecord,
    Type,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
    validate,
)
from connect.data import values as v
from connect.data.projection import project
from connect.errors import DataError, SchemaError
from connect.internals.java.value_text import text_renderer, value_text
from connect.transforms.cast import CAST_TARGETS, Cast, cast_function
from connect.transforms.mask_field import MaskField
from connect.transforms.timestamp_converter import TimestampConverter
from converters.simple_header import SimpleHeaderConverter


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


EAST, WEST = dt.timezone(dt.timedelta(hours=5)), dt.timezone(dt.timedelta(hours=-5))
ODD: list[Any] = [
    *(None, True, 0, -1, 2**31, 2**63, 10**5000, -(10**5000), 0.1, -0.0, 1e300, float("inf"), float("nan"), 1j),
    *(Decimal("1.50"), Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"), Decimal("1e400"), Decimal("1e-400")),
    *(
        "",
        "a",
        "0x1p5000",
        "-0x1p5000",
        "1e400",
        "NaN",
        "true",
        "null",
        "\ud800",
        "9" * 5000,
        "[[1],[2]]",
        "2024-02-29",
    ),
    *(b"", b"\xff", bytearray(b"x"), object(), {1, 2}, [10**5000], {"a": 10**5000}, {10**5000: 1}, nested(3000)),
    *(dt.datetime.min.replace(tzinfo=EAST), dt.datetime.max.replace(tzinfo=WEST), dt.datetime(2024, 1, 1)),  # noqa: DTZ001
    *(dt.date.min, dt.date.max, dt.time.max, dt.time(1, tzinfo=dt.UTC)),
]
PLACES = range(len(ODD))
SCHEMAS: list[Schema] = [
    *(Schema(kind) for kind in Type if kind.is_primitive),
    *(date_schema(), time_schema(), timestamp_schema(), decimal_schema(2)),
    Schema.array(Schema.int64()),
    Schema.map(Schema.string(), Schema.float32()),
    Schema.struct({"a": Schema.int64(default=5)}),
]
CONVERSIONS: list[Callable[..., Any]] = [
    *(v.convert_to_boolean, v.convert_to_int8, v.convert_to_int64, v.convert_to_float32, v.convert_to_float64),
    *(v.convert_to_string, v.convert_to_list, v.convert_to_map, v.convert_to_struct),
    *(v.convert_to_date, v.convert_to_time, v.convert_to_timestamp),
    lambda schema, value: v.convert_to_decimal(schema, value, 2),
    lambda _, value: v.infer_schema(value),
    validate,
    value_text,
    lambda schema, value: text_renderer(schema, None)(value),
    lambda schema, value: SimpleHeaderConverter.configured({}).from_connect_header("t", "h", schema, value),
    *(lambda schema, value, target=target: cast_function(schema, target)(value) for target in CAST_TARGETS),
]


def record(value: Any, schema: Schema | None) -> SinkRecord:
    return SinkRecord("orders", value, schema, None, None, 0, 0, NO_HEADERS, 3)


def refused_with_a_data_error(ask: Callable[[], object]) -> None:
    with suppress(DataError):
        ask()


@pytest.mark.parametrize("place", PLACES)
def test_conversions(place: int) -> None:
    for schema in (None, *SCHEMAS):
        for convert in CONVERSIONS:
            refused_with_a_data_error(lambda convert=convert, schema=schema: convert(schema, ODD[place]))


@pytest.mark.parametrize("place", PLACES)
def test_projections(place: int) -> None:
    for source in SCHEMAS:
        for target in SCHEMAS:
            refused_with_a_data_error(lambda source=source, target=target: project(source, ODD[place], target))


@pytest.mark.parametrize("place", PLACES)
def test_defaults(place: int) -> None:
    for schema in SCHEMAS:
        with suppress(SchemaError):
            assert schema.replace(default=ODD[place]) is schema.replace(default=ODD[place])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "made",
    [
        Cast.Value.configured({"spec": "a:string"}),
        Cast.Value.configured({"spec": "a:int8"}),
        Cast.Value.configured({"spec": "float32"}),
        MaskField.Value.configured({"fields": "a"}),
        MaskField.Value.configured({"fields": "a", "replacement": "7"}),
        TimestampConverter.Value.configured({"field": "a", "target.type": "string", "format": "yyyy"}),
        TimestampConverter.Value.configured({"target.type": "Timestamp", "format": "yyyy"}),
    ],
    ids=lambda made: type(made).__qualname__,
)
def test_transformations(made: Any, place: int) -> None:
    for schema in (None, *SCHEMAS):
        held = None if schema is None else Schema.struct({"a": schema})
        refused_with_a_data_error(lambda held=held: made.apply(record({"a": ODD[place]}, held)))
        refused_with_a_data_error(lambda schema=schema: made.apply(record(ODD[place], schema)))


@pytest.mark.parametrize(
    ("text", "expected"), [("0x1p5000", float("inf")), ("-0x1p5000", -float("inf")), ("0x1p-5000", 0.0)]
)
def test_hexadecimal_floats_are_as_large_as_javas(text: str, expected: float) -> None:
    assert cast_function(None, Type.FLOAT64)(text) == expected


@pytest.mark.parametrize("value", [0.1, "0.1", 3.7, 1e10, 16777217])
def test_a_single_without_schema_has_the_digits_of_a_single(value: Any) -> None:
    found = cast_function(None, Type.FLOAT32)(value)
    assert v.convert_to_string(None, found) == v.convert_to_string(Schema.float32(), float(value))


def test_a_null_needs_an_optional_schema_or_a_field_with_a_default() -> None:
    with pytest.raises(DataError):
        validate(Schema.int32(default=5), None)
    with pytest.raises(DataError):
        validate(Schema.array(Schema.int32(default=5)), [None])
    validate(Schema.struct({"a": Schema.int32(default=5)}), {"a": None})
