"""Fields by their paths: projections and new names."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from connectors.mongodb.sink.fields import (
    dotted,
    equality,
    projection,
    remove_nulls,
    rename_by_mapping,
    rename_by_regex,
    rename_fields,
)

DOCUMENT = {
    "_id": 1,
    "name": "Zoë",
    "address": {"city": "Bern", "street": {"name": "Weg", "number": 3}},
    "lines": [{"a": 1, "b": {"c": 2}}, 7],
    "number": 4,
}


def projected(kind: str, fields: str, *, keeps_id: bool = False) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    project = projection(kind, fields, keeps_id=keeps_id)
    assert project is not None
    project(document)
    return document


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("name", {"name": "Zoë"}),
        ("address.city", {"address": {"city": "Bern"}}),
        ("address.*", {"address": {"city": "Bern", "street": {}}}),
        ("address.**", {"address": DOCUMENT["address"]}),
        ("address.*.name", {"address": {"street": {"name": "Weg"}, "city": "Bern"}}),
        ("lines.a", {"lines": [{"a": 1}, 7]}),
        ("lines.**", {"lines": DOCUMENT["lines"]}),
        ("n*", {"name": "Zoë", "number": 4}),
        ("**", DOCUMENT),
        (" , ", {}),
    ],
)
def test_an_allow_list_keeps_fields_and_their_parents(fields: str, expected: dict[str, Any]) -> None:
    assert projected("allowlist", fields) == expected


def test_an_allow_list_keeps_the_id_where_it_is_needed() -> None:
    assert projected("allowlist", "name", keeps_id=True) == {"_id": 1, "name": "Zoë"}


@pytest.mark.parametrize(
    ("fields", "gone"),
    [
        ("name,number", {"name": None, "number": None}),
        ("address.street.number", {"address": {"city": "Bern", "street": {"name": "Weg"}}}),
        ("address.*", {"address": {"street": {"name": "Weg", "number": 3}}}),
        ("address.**", {"address": {}}),
        ("*.city", {"address": {"street": {"name": "Weg", "number": 3}}}),
        ("lines.b", {"lines": [{"a": 1}, 7]}),
        ("n*", {"name": None, "number": None}),
        ("missing.field", {}),
    ],
)
def test_a_block_list_removes_fields(fields: str, gone: dict[str, Any]) -> None:
    expected = {name: value for name, value in {**DOCUMENT, **gone}.items() if value is not None}
    assert projected("blocklist", fields) == expected


def test_no_projection() -> None:
    assert projection("none", "a") is None


def test_new_names_by_whole_paths() -> None:
    document = {"a": {"b": 1, "c": 2}, "d": [{"b": 3}], "taken": 4}
    rename_fields(
        document,
        "value",
        rename_by_mapping(
            [
                {"oldName": "value.a", "newName": "x"},
                {"oldName": "value.x.b", "newName": "y"},
                {"oldName": "value.d", "newName": "taken"},
            ]
        ),
    )
    assert document == {"x": {"y": 1, "c": 2}, "d": [{"b": 3}], "taken": 4}


def test_new_names_by_regular_expressions_of_java() -> None:
    document = {"a.b": {"my_c": 1}, "other": 2}
    rename_fields(
        document,
        "key",
        rename_by_regex(
            [
                {"regexp": r"^key\..*my.*$", "pattern": "my_(.)", "replace": "$1"},
                {"regexp": r"^key\.a.*$", "pattern": r"\.", "replace": "_"},
            ]
        ),
    )
    assert document == {"a_b": {"c": 1}, "other": 2}


def test_null_fields_are_removed_in_all_depths() -> None:
    document = {"a": None, "b": {"c": None, "d": 1}, "e": [{"f": None}, None]}
    remove_nulls(document)
    assert document == {"b": {"d": 1}, "e": [{}, None]}


def test_dotted_paths_and_equality() -> None:
    assert list(dotted({"a": {"b": 1, "c": {}}, "d": [1]})) == [("a.b", 1), ("a.c", {}), ("d", [1])]
    assert equality({"$gt": 1}) == {"$eq": {"$gt": 1}}
    assert equality("text") == "text"


def test_wildcards_in_long_paths_do_not_multiply() -> None:
    # Java tries two to the power of the path's length of combinations.
    document: dict[str, Any] = {"end": 1}
    for _ in range(60):
        document = {"a": document}
    project = projection("allowlist", ".".join(["*"] * 61))
    assert project is not None
    project(document)
    for _ in range(60):
        document = document["a"]
    assert document == {"end": 1}
