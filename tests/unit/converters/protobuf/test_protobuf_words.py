"""Names that are words of Python, of Protobuf's language or of its library: as fields, types, oneofs, packages."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import json_format
from google.protobuf.message_factory import GetMessageClass

from connect.data import Schema, decimal_schema, timestamp_schema
from connect.errors import SchemaError
from converters.protobuf import ProtobufConverter
from converters.protobuf.proto_schema import ProtoSchema, index_bytes
from equipment.fakes.schema_registry import MemoryRegistry, serving

METHODS = [
    *("ByteSize", "Clear", "CopyFrom", "DESCRIPTOR", "Extensions", "FromString", "HasField", "MergeFromString"),
    *("SerializeToString", "SetInParent", "WhichOneof", "mro"),
]
WORDS = ["None", "from", "class", "self", "lambda", "keys", "key", "value", "message", "option", "oneof", "string"]
TYPES = ["message", "option", "oneof", "optional", "reserved", "extensions", "group", "string", "uint64", "enum"]
FLAT = {"flatten_unions": "true", "optional_for_nullables": "true"}
TEXT = """syntax = "proto3";
message M {
  optional int32 NAME = 1;
  message A { message B { string NAME = 1; repeated int32 x = 2; } B NAME = 1; }
  message C { oneof o { int32 NAME = 1; A m = 2; } }
  message D { oneof NAME { int32 x = 1; string y = 2; } }
  message E { map<string, int32> NAME = 1; map<string, A> other = 2; }
  message F { repeated A NAME = 1; }
  message R { R NAME = 1; int32 x = 2; }
  message V { enum NAME { ZERO = 0; ONE = 1; } V.NAME e = 1; }
  message W { enum S { ZERO = 0; NAME_ = 1; } S e = 1; }
  A a = 2; C c = 3; D d = 4; E e = 5; F f = 6; R r = 7; V v = 8; W w = 9;
}
"""


def fields(name: str) -> dict[str, Any]:
    return {
        name: 5,
        "a": {name: {name: "x", "x": [1, 2]}},
        "c": {name: 3},
        "d": {"x": 4},
        "e": {name: {"k": 1}, "other": {"q": {name: {name: "y"}}}},
        "f": {name: [{name: {name: "z"}}]},
        "r": {name: {name: {"x": 3}, "x": 2}, "x": 1},
        "v": {"e": 1},
        "w": {"e": 1},
    }


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryRegistry]:
    """A registry that serves on loopback."""
    with serving(MemoryRegistry(tells_versions=False)) as registry:
        yield registry


def converter_with(memory: MemoryRegistry, **options: str) -> ProtobufConverter:
    given = {key.replace("_", "."): text for key, text in options.items()}
    made: ProtobufConverter = ProtobufConverter.configured({"schema.registry.url": memory.url, **given})
    return made


def plain_body(name: str) -> bytes:
    """The bytes of the message, for which the names of its fields make no difference."""
    plain = GetMessageClass(ProtoSchema(TEXT.replace("NAME", name)).root)
    body: bytes = json_format.ParseDict(fields(name), plain()).SerializeToString()
    return body


@pytest.mark.parametrize("options", [{}, FLAT], ids=["unions", "flat"])
@pytest.mark.parametrize("name", [*METHODS, *WORDS])
def test_fields_of_any_name(memory: MemoryRegistry, name: str, options: dict[str, str]) -> None:
    topic, ordinary = f"{name}-{len(options)}", "plain"
    for each in (name, ordinary):
        text = TEXT.replace("NAME", each)
        memory.add(f"{topic}{each}-value", text, schemaType="PROTOBUF")
    body = plain_body(ordinary)
    converter = converter_with(memory, **options)

    def message(each: str) -> bytes:
        (schema_id,) = memory.subjects[f"{topic}{each}-value"]
        found = ProtoSchema(TEXT.replace("NAME", each)).root
        return b"\0" + schema_id.to_bytes(4, "big") + index_bytes(found) + body

    expected = converter.to_connect(f"{topic}{ordinary}", message(ordinary)).value
    schema, value = converter.to_connect(f"{topic}{name}", message(name))
    # The recursive message is bytes, and the oneof d has the name of the field in its own.
    assert str(value).replace(name, ordinary) == str(expected).replace(name, ordinary)

    (column,) = converter.to_connect_arrow(f"{topic}{name}", pa.array([message(name)] * 3, pa.binary()))
    assert list(column) == [value] * 3
    again = converter.from_connect(f"{topic}-new", schema, value)
    assert converter.to_connect(f"{topic}-new", again).value == value
    latest = converter_with(memory, auto_register_schemas="false", use_latest_version="true", **options)
    assert latest.from_connect(f"{topic}{name}", schema, value) == message(name)
    converter.close()
    latest.close()


TIME = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
LOGICAL = {"t": timestamp_schema(), "d": decimal_schema(2), "b": Schema.int8()}
VALUES = {"t": TIME, "d": Decimal("1.25"), "b": 3}


def round_trip(memory: MemoryRegistry, topic: str, schema: Schema | None, value: Any) -> None:
    converter = converter_with(memory, enhanced_protobuf_schema_support="true")
    for _ in range(2):
        again = converter.from_connect(topic, schema, value)
        assert again is not None
        schema, read = converter.to_connect(topic, again)
        assert read == value
    assert len(memory.subjects[f"{topic}-value"]) == 1
    converter.close()


@pytest.mark.parametrize("name", TYPES)
def test_types_that_are_called_like_words(memory: MemoryRegistry, name: str) -> None:
    marker = "io.confluent.connect.protobuf.Enum"
    symbols = {marker: name, f"{marker}.A": "0", f"{marker}.B": "1"}
    inner = Schema.struct({"x": Schema.int32()}, name=name)
    members = {name: inner, "list": Schema.array(inner), "map": Schema.map(Schema.string(), inner)}
    round_trip(
        memory,
        f"{name}-message",
        Schema.struct(members, name="Row"),
        {name: {"x": 1}, "list": [{"x": 2}], "map": {"k": {"x": 3}}},
    )
    enum = Schema.string(name=name, parameters=symbols)
    round_trip(memory, f"{name}-enum", Schema.struct({"e": enum}, name="Row"), {"e": "B"})


@pytest.mark.parametrize("symbol", ["option", "reserved"])
def test_symbols_that_are_words_in_an_enum(memory: MemoryRegistry, symbol: str) -> None:
    marker = "io.confluent.connect.protobuf.Enum"
    enum = Schema.string(parameters={marker: "E", f"{marker}.A": "0", f"{marker}.{symbol}": "1"})
    row = Schema.struct({"e": enum}, name="Row")
    converter = converter_with(memory)
    with pytest.raises(SchemaError, match=f"symbol {symbol}.* scrub.invalid.names=true to have it called x{symbol}"):
        converter.from_connect(f"refused-{symbol}", row, {"e": symbol})
    converter.close()
    scrubbing = converter_with(memory, scrub_invalid_names="true")
    written = scrubbing.from_connect(f"scrubbed-{symbol}", row, {"e": symbol})
    assert scrubbing.to_connect(f"scrubbed-{symbol}", written).value == {"e": f"x{symbol}"}
    scrubbing.close()


@pytest.mark.parametrize("name", ["com.google.cloud.Row", "io.confluent.Row", "google.Row", "confluent.type.Row"])
def test_packages_that_hide_those_of_logical_types(memory: MemoryRegistry, name: str) -> None:
    round_trip(memory, name, Schema.struct(LOGICAL, name=name), VALUES)


@pytest.mark.parametrize("name", ["google", "confluent"])
def test_messages_that_hide_the_packages_of_logical_types(memory: MemoryRegistry, name: str) -> None:
    members = {**LOGICAL, "inner": Schema.struct(LOGICAL, name=name)}
    round_trip(memory, name, Schema.struct(members, name="Row"), {**VALUES, "inner": VALUES})


def test_fields_that_have_one_name_in_json(memory: MemoryRegistry) -> None:
    members = {"user_id": Schema.int32(), "userId": Schema.string()}
    schema = Schema.struct({**members, "inner": Schema.struct(members, name="Inner")}, name="Row")
    value = {"user_id": 1, "userId": "x"}
    round_trip(memory, "alike", schema, {**value, "inner": value})


def test_a_schema_with_half_a_character_is_refused() -> None:
    with pytest.raises(SchemaError, match="surrogates not allowed"):
        ProtoSchema('syntax = "proto3"; message M { } // \ud800')
