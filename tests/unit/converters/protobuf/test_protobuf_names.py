"""Schemas of others that are written again in a file of our own, in which all names of a message must differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass

from connect.errors import DataError
from converters.protobuf import ProtobufConverter
from converters.protobuf.proto_schema import ProtoSchema, index_bytes
from equipment.fakes.schema_registry import MemoryRegistry, serving

ENUMS = "message X { enum S { OK = 0; BAD = 1; } } message Y { enum T { OK = 0; GOOD = 1; } }"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "a symbol in two enums": (f"{ENUMS} message M {{ X.S s = 1; Y.T t = 2; }}", {"s": 1, "t": 1}),
    "two enums of one name": (
        "message X { enum S { OK = 0; BAD = 1; } } message Y { enum S { NEW = 0; OLD = 2; } } "
        "message M { X.S s = 1; Y.S t = 2; repeated Y.S u = 3; }",
        {"s": 1, "t": 2, "u": [2, 0]},
    ),
    "a symbol called like a field": (
        "message X { enum S { f = 0; g = 1; } } message M { X.S s = 1; int32 f = 2; X.S t = 3; }",
        {"s": 1, "f": 7, "t": 1},
    ),
    "a symbol called like a message": (
        "message X { enum S { N = 0; O = 1; } } message N { int32 a = 1; } message M { X.S s = 1; N n = 2; }",
        {"s": 1, "n": {"a": 5}},
    ),
    "a symbol called like an earlier message": (
        "message X { enum S { N = 0; O = 1; } } message N { int32 a = 1; } message M { N n = 1; X.S s = 2; }",
        {"s": 1, "n": {"a": 5}},
    ),
    "a symbol called like its enum": (
        "message X { enum S { A = 0; B = 1; } } message Z { enum T { S = 0; U = 1; } } "
        "message M { X.S s = 1; Z.T t = 2; }",
        {"s": 1, "t": 1},
    ),
    "a message called like another field": (
        "message N { int32 a = 1; } message M { int32 N = 1; .N q = 3; }",
        {"N": 4, "q": {"a": 5}},
    ),
    "an enum called like a oneof": (
        "enum kind { A = 0; B = 1; } message M { kind k = 1; oneof one { int32 x = 2; } oneof kind { int32 y = 3; } }",
        {"k": 1, "y": 3},
    ),
    "an enum and a message of one name": (
        "message X { enum N { A = 0; B = 1; } } message N { int32 a = 1; } message M { N n = 1; X.N e = 2; }",
        {"n": {"a": 5}, "e": 1},
    ),
}
NO_ZERO = "message M { optional E e = 1; optional E other = 2; required string s = 3; enum E { A = 1; B = 2; } }"


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryRegistry]:
    """A registry that serves on loopback."""
    with serving(MemoryRegistry(tells_versions=False)) as registry:
        yield registry


def message_of(memory: MemoryRegistry, text: str, fields: dict[str, Any], topic: str = "t") -> bytes:
    """A message of the type M in a schema that is registered."""
    found = ProtoSchema(text).named("M")
    schema_id = memory.add(f"{topic}-value", text, schemaType="PROTOBUF")
    body: bytes = GetMessageClass(found)(**fields).SerializePartialToString()
    return b"\0" + schema_id.to_bytes(4, "big") + index_bytes(found) + body


def converter_with(memory: MemoryRegistry, **options: str) -> ProtobufConverter:
    given = {key.replace("_", "."): text for key, text in options.items()}
    made: ProtobufConverter = ProtobufConverter.configured({"schema.registry.url": memory.url, **given})
    return made


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("integers", ["false", "true"])
def test_names_that_meet_in_one_message(memory: MemoryRegistry, case: str, integers: str) -> None:
    text, fields = CASES[case]
    converter = converter_with(memory, int_for_enums=integers)
    schema, value = converter.to_connect("t", message_of(memory, f'syntax = "proto3"; {text}', fields))
    # Another topic has a subject of its own, in which our own schema is registered, and another version after it.
    topic = case.replace(" ", "-") + integers
    for _ in range(2):
        again = converter.from_connect(topic, schema, value)
        assert again is not None
        read = converter.to_connect(topic, again)
        assert read.value == value
        schema = read.schema
    assert len(memory.subjects[f"{topic}-value"]) == 1
    converter.close()


def test_an_enum_without_a_zero(memory: MemoryRegistry) -> None:
    converter = converter_with(memory)
    schema, value = converter.to_connect("t", message_of(memory, f'syntax = "proto2"; {NO_ZERO}', {"e": 2, "s": "x"}))
    assert value == {"e": "B", "other": None, "s": "x"}
    again = converter.from_connect("zero", schema, value)
    # What is not there is the number 0 in proto3, for which the enum has no symbol of its own.
    read = converter.to_connect("zero", again)
    assert read.value == {"e": "B", "other": "UNKNOWN_ENUM_VALUE_E_0", "s": "x"}
    assert converter.to_connect("zero", converter.from_connect("zero", read.schema, read.value)) == read
    converter.close()


def test_an_optional_enum_stays_null(memory: MemoryRegistry) -> None:
    text = 'syntax = "proto3"; message M { optional E e = 1; E f = 2; oneof o { E g = 3; } enum E { A = 0; B = 1; } }'
    converter = converter_with(memory, optional_for_nullables="true")
    schema, value = converter.to_connect("t", message_of(memory, text, {"f": 1}))
    assert value == {"o_0": None, "e": None, "f": "B"}
    again = converter.from_connect("optional", schema, value)
    assert converter.to_connect("optional", again) == (schema, value)
    converter.close()


def test_a_required_field_that_is_null_concerns_its_record_alone(memory: MemoryRegistry) -> None:
    message = message_of(memory, f'syntax = "proto2"; {NO_ZERO}', {"e": 2, "s": "x"}, "required")
    converter = converter_with(memory, auto_register_schemas="false", use_latest_version="true")
    schema, value = converter.to_connect("required", message)
    assert schema is not None
    assert converter.from_connect("required", schema, value) == message
    with pytest.raises(DataError, match="required fields: s"):
        converter.from_connect("required", schema, {**value, "s": None})
    converter.close()
