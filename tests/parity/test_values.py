"""Text is parsed and values are converted as by Kafka Connect's ``Values``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from data_vectors import schema_or_none

from connect.data import Schema, SchemaAndValue, validate
from connect.data import values as v
from connect.data.numerals import single
from connect.errors import DataError
from connect.testing.strict_equality import exact
from equipment.vectors import canonical, cases, encoded, value_of

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

RESULTS = {"convertToFloat": Schema.float32()}
DAY, TIME = dt.date(2019, 8, 23), dt.time(14, 34, 54, 346000)

WIDTHS = "Python's whole numbers have no width: one without a schema is an int64."
NESTED = "Kafka Connect forgets what a nested array holds, which leaves a schema that is not well formed."
INFERRED_OTHERWISE = {
    "infer list of int": (Schema.array(Schema.int64()), WIDTHS),
    "infer list nested": (Schema.array(Schema.array(Schema.int64())), NESTED),
}


def nested(element: Schema) -> Schema:
    return Schema.array(Schema.array(element))


def map_to(value: Schema) -> Schema:
    return Schema.map(Schema.string(), value)


def infer_cases() -> list[dict[str, Any]]:
    return [case for case in cases("values_convert") if case["method"] == "inferSchema"]


def convert_cases() -> list[dict[str, Any]]:
    return [case for case in cases("values_convert") if case["method"] != "inferSchema"]


UNTRUE = "The schema of Kafka Connect's is that of the last array or map, which does not describe the others."
DATES = "Kafka Connect makes a number a date, or a date a time, if it stands beside one."
PARSED_OTHERWISE: dict[str, tuple[SchemaAndValue, str]] = {
    text: (SchemaAndValue(schema, value), why)
    for text, schema, value, why in (
        ("[[300],[1]]", nested(Schema.int16()), [[300], [1]], UNTRUE),
        ("[[70000],[300],[1]]", nested(Schema.int32()), [[70000], [300], [1]], UNTRUE),
        ("[[1],[0.1]]", nested(Schema.float32()), [[1.0], [single(0.1)]], UNTRUE),
        ("[[0.1],[1]]", nested(Schema.float32()), [[single(0.1)], [1.0]], UNTRUE),
        ("[[0.1],[1e300]]", nested(Schema.float64()), [[single(0.1)], [1e300]], UNTRUE),
        ('[{"a":300},{"b":1}]', Schema.array(map_to(Schema.int16())), [{"a": 300}, {"b": 1}], UNTRUE),
        ('[[{"a":1}],[{"b":0.1}]]', nested(map_to(Schema.float32())), [[{"a": 1.0}], [{"b": single(0.1)}]], UNTRUE),
        ('[[1],["a"]]', None, [[1], ["a"]], UNTRUE),
        ('[["a"],[1]]', None, [["a"], [1]], UNTRUE),
        ('[[],["a"],[1]]', None, [[], ["a"], [1]], UNTRUE),
        ('[[1],["a"],[1]]', None, [[1], ["a"], [1]], UNTRUE),
        ('[[1,"a"],[1]]', None, [[1, "a"], [1]], UNTRUE),
        ("[[null],[1]]", None, [[None], [1]], UNTRUE),
        ("[[1],[[1]]]", None, [[1], [[1]]], UNTRUE),
        ("[[[[]]],[0.1]]", None, [[[[]]], [0.1]], UNTRUE),
        ("[[{},[]],[-5]]", None, [[{}, []], [-5]], UNTRUE),
        ("[[1e309],[1e310]]", None, [[Decimal("1E+309")], [Decimal("1E+310")]], UNTRUE),
        ("[[2019-08-23],[1]]", None, [[DAY], [1]], UNTRUE),
        ('[{"a":1},{"b":"x"}]', None, [{"a": 1}, {"b": "x"}], UNTRUE),
        ('[{"a":1},{1:1}]', None, [{"a": 1}, {1: 1}], UNTRUE),
        ('[{"a":null},{"b":1}]', None, [{"a": None}, {"b": 1}], UNTRUE),
        ("[{0.1:[]},{300:70000}]", None, [{0.1: []}, {300: 70000}], UNTRUE),
        ('{"a":[1],"b":["x"]}', None, {"a": [1], "b": ["x"]}, UNTRUE),
        ("[1,2019-08-23]", None, [1, DAY], DATES),
        ("[2019-08-23,1]", None, [DAY, 1], DATES),
        ("[2019-08-23,14:34:54.346Z]", None, [DAY, TIME], DATES),
        ("[14:34:54.346Z,-5]", None, [TIME, -5], DATES),
    )
}


@pytest.mark.parametrize("case", [*cases("values_parse"), *cases("values_parse_nested")], ids=lambda case: case["name"])
def test_parses(case: dict[str, Any]) -> None:
    parsed = v.parse_string(case["input"])
    expect = case["expect"] or {"schema": None, "value": None}
    if case["input"] in PARSED_OTHERWISE:
        expected, why = PARSED_OTHERWISE[case["input"]]
        assert (parsed.schema, exact(parsed.value)) == (expected.schema, exact(expected.value)), why
        return
    schema = schema_or_none(expect["schema"])
    assert parsed.schema is schema
    assert encoded(parsed.value, schema) == canonical(expect["value"], schema)


@pytest.mark.parametrize("text", PARSED_OTHERWISE)
def test_what_is_parsed_otherwise_has_a_schema_that_is_true_or_none(text: str) -> None:
    validate(*PARSED_OTHERWISE[text][0])


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
    assert encoded(converted) == canonical(expect["value"], RESULTS.get(case["method"]))


@pytest.mark.parametrize("case", infer_cases(), ids=lambda case: case["name"])
def test_infers(case: dict[str, Any]) -> None:
    expected, why = INFERRED_OTHERWISE.get(case["name"], (schema_or_none(case["expect"]["schema"]), ""))
    assert v.infer_schema(value_of(case["input"]["value"])) is expected, why


def test_keeps_a_text_that_begins_with_a_blank_and_is_no_map() -> None:
    assert v.parse_string(" {bad}") == SchemaAndValue(Schema.string(), " {bad}"), "Kafka Connect keeps the blank alone"


def test_huge_numbers_take_no_memory() -> None:
    assert v.parse_string("1e100000000").value == Decimal("1e100000000")
    assert v.convert_to_int64(None, "1e100000000") == 0
