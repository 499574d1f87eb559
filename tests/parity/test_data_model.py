"""Schemas are built and values checked as by Kafka Connect's data model."""

from __future__ import annotations

from typing import Any

import pytest
from data_vectors import built

from connect.data import validate
from connect.errors import DataError, SchemaError
from equipment.vectors import UnrepresentableError, canonical, cases, encoded, value_of

WIDTHS = "Python's numbers have no width: the value fits the type, so it is one of it."
ACCEPTED = {
    "default int16 for int32": WIDTHS,
    "int8 given int": WIDTHS,
    "float given double": WIDTHS,
}
UNREPRESENTABLE = {
    "date default with time": "Kafka Connect takes a Date at one millisecond past midnight; Python's date has no time.",
}


def cases_of(op: str) -> list[dict[str, Any]]:
    return [case for case in cases("data_model") if case["op"] == op]


def is_refused(case: dict[str, Any]) -> bool:
    return "error" in case["expect"] and case["name"] not in ACCEPTED


@pytest.mark.parametrize("case", cases_of("schema_build"), ids=lambda case: case["name"])
def test_builds_schemas(case: dict[str, Any]) -> None:
    if case["name"] in UNREPRESENTABLE:
        with pytest.raises(UnrepresentableError):
            built(case["input"])
    elif is_refused(case):
        with pytest.raises(SchemaError):
            built(case["input"])
    else:
        schema = built(case["input"])
        assert encoded(schema.default, schema) == canonical(case["input"]["default"], schema)


@pytest.mark.parametrize("case", cases_of("validate_value"), ids=lambda case: case["name"])
def test_validates(case: dict[str, Any]) -> None:
    schema = built(case["schema"])
    value = value_of(case["value"], schema)
    if is_refused(case):
        with pytest.raises(DataError):
            validate(schema, value)
    else:
        validate(schema, value)


@pytest.mark.parametrize("case", cases_of("struct_build"), ids=lambda case: case["name"])
def test_builds_structs(case: dict[str, Any]) -> None:
    schema, expect = built(case["schema"]), case["expect"]
    value = value_of(case["value"], schema)
    if is_refused(case):
        with pytest.raises(DataError) as caught:
            validate(schema, value)
        assert '"a"' in str(caught.value)
    else:
        validate(schema, value)
        assert encoded(value, schema) == canonical(expect["value"], schema)
