"""Schemas made of documents, and documents as structs of them."""

from __future__ import annotations

from typing import Any

import pytest

from connect.data import Schema, validate
from connect.errors import DataError
from connectors.elasticsearch.document_schemas import DocumentSchemas
from equipment.growth import assert_grows_evenly

INT, FLOAT, TEXT = Schema.int64(optional=True), Schema.float64(optional=True), Schema.string(optional=True)


@pytest.mark.parametrize(
    ("value", "schema", "fitted"),
    [
        (7, INT, 7),
        (1.5, FLOAT, 1.5),
        (True, Schema.boolean(optional=True), True),
        ("x", TEXT, "x"),
        (None, TEXT, None),
        ([], Schema.array(TEXT, optional=True), []),
        ([1, None, 2.5], Schema.array(FLOAT, optional=True), [1.0, None, 2.5]),
        ([[1], [], [2.5]], Schema.array(Schema.array(FLOAT, optional=True), optional=True), [[1.0], [], [2.5]]),
        ({"b": 1}, Schema.struct({"b": INT}, optional=True), {"b": 1}),
        (
            [{"b": 1}, {"c": "x", "b": 0.5}],
            Schema.array(Schema.struct({"b": FLOAT, "c": TEXT}, optional=True), optional=True),
            [{"b": 1.0, "c": None}, {"b": 0.5, "c": "x"}],
        ),
    ],
)
def test_each_field_has_the_schema_of_its_value(value: Any, schema: Schema, fitted: Any) -> None:
    found, document = DocumentSchemas().fitted({"a": value})
    assert found == Schema.struct({"a": schema})
    assert document == {"a": fitted}
    validate(found, document, "value")


def test_documents_with_the_same_fields_have_one_schema() -> None:
    schemas = DocumentSchemas()
    assert schemas.fitted({"a": 1, "b": "x"})[0] is schemas.fitted({"a": 2, "b": "y"})[0]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([1, "x"], "The elements of a have different types: integer, text."),
        ({"b": [{"c": 1}, 2]}, "The elements of a.b have different types: integer, object."),
        (2**63, "a is 9223372036854775808, which needs more than 64 bits."),
        ([{f"f{n}": n} for n in range(1001)], "The elements of a have more than 1000 different fields."),
    ],
)
def test_what_has_no_schema_is_told(value: Any, problem: str) -> None:
    with pytest.raises(DataError) as raised:
        DocumentSchemas().fitted({"a": value})
    assert str(raised.value) == problem


def test_a_document_that_is_nested_too_deeply_is_told() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(DataError, match="nested too deeply"):
        DocumentSchemas().fitted({"a": value})


def test_objects_with_fields_of_their_own_grow_evenly() -> None:
    schemas = DocumentSchemas()
    assert_grows_evenly(schemas.fitted, lambda size: {"a": [{f"f{n % 100}": n} for n in range(size)]}, 2000)
