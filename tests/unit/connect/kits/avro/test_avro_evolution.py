"""Messages of one Avro schema read in another, by the rules of Avro's resolution; its own implementation agrees."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from connect.errors import DataError, SchemaError
from unit.connect.kits.avro.codecs_of import read_with


def record(*fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO(b"\0\0\0\0\x07")
    out.seek(5)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


COLORS = {"type": "enum", "name": "C", "symbols": ["RED", "BLUE"]}
FEWER = {"type": "enum", "name": "C", "symbols": ["RED"], "default": "RED"}


@pytest.mark.parametrize(
    ("writer", "reader", "value", "expected"),
    [
        ("int", "long", 5, 5),
        ("int", "double", 5, 5.0),
        ("long", "float", 5, 5.0),
        ("float", "double", 1.5, 1.5),
        ("string", "bytes", "é", "é".encode()),
        ("bytes", "string", b"ab", "ab"),
        (["null", "int"], ["null", "long"], 5, 5),
        (["null", "int"], "long", 5, 5),
        ("int", ["null", "long"], 5, 5),
        ("string", ["null", "string"], "t", "t"),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "double"}, {"a": 1}, {"a": 1.0}),
        (COLORS, FEWER, "BLUE", "RED"),
        (record(field("a", "int"), field("b", "string")), record(field("b", "string")), {"a": 1, "b": "x"}, {"b": "x"}),
        (
            record(field("a", "int")),
            record(field("new", {"type": "array", "items": "int"}, default=[7]), field("a", "long")),
            {"a": 1},
            {"new": [7], "a": 1},
        ),
        (record(field("a", "int")), record(field("b", "int", aliases=["a"])), {"a": 1}, {"b": 1}),
        (
            record(field("a", record(field("x", "int"), name="I"))),
            record(field("a", ["null", record(field("x", "long"), name="I")], default=None)),
            {"a": {"x": 1}},
            {"a": {"x": 1}},
        ),
        (record(field("n", "null"), field("a", "int")), record(field("a", "int")), {"n": None, "a": 1}, {"a": 1}),
    ],
)
def test_what_avro_allows(writer: Any, reader: Any, value: Any, expected: Any) -> None:
    message = written(writer, value)
    read = read_with(json.dumps(writer), json.dumps(reader), message)
    assert repr(read) == repr(expected)
    theirs = fastavro.schemaless_reader(
        io.BytesIO(message[5:]), fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    )
    assert theirs == expected


def test_a_default_is_nobody_elses() -> None:
    reader = record(field("new", {"type": "array", "items": "int"}, default=[7]))
    args = (json.dumps(record()), json.dumps(reader), b"\0\0\0\0\x07")
    read_with(*args)["new"].append(8)
    assert read_with(*args) == {"new": [7]}


def test_a_value_becomes_the_member_of_a_union() -> None:
    union = ["null", "string", "long", "boolean"]
    assert read_with('"int"', json.dumps(union), written("int", 5)) == {"string": None, "long": 5, "boolean": None}
    both = read_with('["int","string"]', json.dumps(union), written(["int", "string"], "t"))
    assert both == {"string": "t", "long": None, "boolean": None}


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("string", "int"),
        ("long", "int"),
        (record(field("a", "int")), record(field("b", "int"))),
        ("boolean", ["null", "string"]),
        ({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 3}),
    ],
)
def test_what_avro_forbids(writer: Any, reader: Any) -> None:
    with pytest.raises(SchemaError):
        read_with(json.dumps(writer), json.dumps(reader), b"\0\0\0\0\x07")


def test_a_member_that_cannot_be_read_is_an_error_only_when_it_is_met() -> None:
    writer = ["int", "string"]
    assert read_with(json.dumps(writer), '"long"', written(writer, 5)) == 5
    with pytest.raises(DataError, match="string cannot be read as long"):
        read_with(json.dumps(writer), '"long"', written(writer, "t"))


def test_a_symbol_that_the_reader_does_not_know() -> None:
    reader = {**FEWER}
    del reader["default"]
    with pytest.raises(DataError, match="symbol of an enum that the reader does not know"):
        read_with(json.dumps(COLORS), json.dumps(reader), written(COLORS, "BLUE"))
