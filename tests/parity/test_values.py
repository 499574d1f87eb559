"""Text is parsed and values are converted as by Kafka Connect's ``Values``."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from data_vectors import schema_or_none
from vectors import canonical, cases, encoded, value_of

from connect.data import Schema, SchemaAndValue
from connect.data import values as v
from connect.errors import DataError

CONVERT: dict[str, Callable[..., Any]] = {
    "convertToBoolean": v.convert_to_boolean,
    "convertToByte": v.convert_to_int8,
    "convertToShort": v.convert_to_int16,
    "convertToInteger": v.convert_to_int32,
    "convertToLong": v.convert_to_int64,
    "convertToFloat": v.convert_to_float32,
    "convertToDouble": v.convert_to_float64,
    "convertToString": v.convert_to_string,
    "convertToList": v.convert_to_list,
    "convertToMap": v.convert_to_map,
    "convertToStruct": v.convert_to_struct,
    "convertToTime": v.convert_to_time,
    "convertToDate": v.convert_to_date,
    "convertToTimestamp": v.convert_to_timestamp,
    "convertToDecimal": v.convert_to_decimal,
    "escape": lambda _, text: v.escape(text),
}

WIDTHS = "Python's whole numbers have no width: one without a schema is an int64."
NESTED = "Kafka Connect forgets what a nested array holds, which leaves a schema that is not well formed."
INFERRED_OTHERWISE = {
    "infer list of int": (Schema.array(Schema.int64()), WIDTHS),
    "infer list nested": (Schema.array(Schema.array(Schema.int64())), NESTED),
}


def infer_cases() -> list[dict[str, Any]]:
    return [case for case in cases("values_convert") if case["method"] == "inferSchema"]


def convert_cases() -> list[dict[str, Any]]:
    return [case for case in cases("values_convert") if case["method"] != "inferSchema"]


@pytest.mark.parametrize("case", cases("values_parse"), ids=lambda case: case["name"])
def test_parses(case: dict[str, Any]) -> None:
    parsed = v.parse_string(case["input"])
    expect = case["expect"] or {"schema": None, "value": None}
    schema = schema_or_none(expect["schema"])
    assert parsed.schema is schema
    assert encoded(parsed.value, schema) == canonical(expect["value"])


@pytest.mark.parametrize("case", convert_cases(), ids=lambda case: case["name"])
def test_converts(case: dict[str, Any]) -> None:
    given, expect = case["input"], case["expect"]
    schema = schema_or_none(given["schema"])
    value = value_of(given["value"], schema)
    more = (case["scale"],) if "scale" in case else ()
    if "error" in expect:
        # Kafka Connect lets a NumberFormatException out of convertToDecimal; here all of them are one class.
        with pytest.raises(DataError):
            CONVERT[case["method"]](schema, value, *more)
        return
    converted = CONVERT[case["method"]](schema, value, *more)
    assert encoded(converted) == canonical(expect["value"])


@pytest.mark.parametrize("case", infer_cases(), ids=lambda case: case["name"])
def test_infers(case: dict[str, Any]) -> None:
    expected, why = INFERRED_OTHERWISE.get(case["name"], (schema_or_none(case["expect"]["schema"]), ""))
    assert v.infer_schema(value_of(case["input"]["value"])) is expected, why


@pytest.mark.parametrize(
    ("text", "schema", "value", "why"),
    [
        (" {bad}", Schema.string(), " {bad}", "Kafka Connect keeps the leading blank alone"),
        (
            "[[300],[1]]",
            Schema.array(Schema.array(Schema.int16())),
            [[300], [1]],
            "... says array(array(int8))",
        ),
        ("[1,2019-08-23]", None, None, "... makes the number a date"),
    ],
)
def test_parses_otherwise(text: str, schema: Schema | None, value: Any, why: str) -> None:
    parsed = v.parse_string(text)
    if schema is None:
        assert parsed.schema is None, why
        assert parsed.value[0] == 1
    else:
        assert parsed == SchemaAndValue(schema, value), why


def test_huge_numbers_take_no_memory() -> None:
    assert v.parse_string("1e100000000").value == Decimal("1e100000000")
    assert v.convert_to_int64(None, "1e100000000") == 0
