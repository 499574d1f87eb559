"""JSON Schema by its mapping: what is registered, what is written, what schemas of others become, what is refused."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from connect.data import (
    Schema,
    SchemaAndValue,
    ValueColumn,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from connect.errors import DataError, SchemaError
from converters.json_schema import JsonSchemaConverter
from converters.json_schema.to_connect import ANY_JSON
from equipment.fakes.schema_registry import MemoryRegistry, serving

Make = Callable[..., JsonSchemaConverter]
ONE_OF = "io.confluent.connect.json.OneOf"


@pytest.fixture(scope="module")
def server() -> Iterator[MemoryRegistry]:
    """One registry for all tests."""
    with serving(MemoryRegistry()) as registry:
        yield registry


@pytest.fixture
def memory(server: MemoryRegistry) -> MemoryRegistry:
    """The registry, empty."""
    server.schemas.clear()
    server.subjects.clear()
    server.requests.clear()
    server.tells_versions = False
    return server


@pytest.fixture
def converter(memory: MemoryRegistry) -> Iterator[Make]:
    """Makes converters that use the registry, from keys with underscores for dots."""
    made: list[JsonSchemaConverter] = []

    def make(is_key: bool = False, **props: str) -> JsonSchemaConverter:
        named = {"schema_registry_url": memory.url, "max_retries": "0", **props}
        config = {key.replace("_", "."): value for key, value in named.items()}
        made.append(JsonSchemaConverter.configured(config, is_key=is_key))
        return made[-1]

    yield make
    for each in made:
        each.close()


def read(converter: Make, memory: MemoryRegistry, document: Any, text: str, **props: str) -> SchemaAndValue:
    """What a message of somebody else's schema becomes."""
    schema_id = memory.add("t-value", document, schemaType="JSON")
    return converter(**props).to_connect("t", b"\0" + schema_id.to_bytes(4, "big") + text.encode())


NUMBER = {"type": "integer", "connect.type": "int32"}
TITLES = "org.apache.kafka.connect.data."
MATRIX = [
    (Schema.int8(), -5, {"type": "integer", "connect.type": "int8"}, "-5"),
    (Schema.int16(), 5, {"type": "integer", "connect.type": "int16"}, "5"),
    (Schema.int32(), 7, NUMBER, "7"),
    (Schema.int64(), 2**63 - 1, {"type": "integer", "connect.type": "int64"}, "9223372036854775807"),
    (Schema.float32(), 0.5, {"type": "number", "connect.type": "float32"}, "0.5"),
    (Schema.float64(), 0.1, {"type": "number", "connect.type": "float64"}, "0.1"),
    (Schema.float64(), float("-inf"), {"type": "number", "connect.type": "float64"}, '"-Infinity"'),
    (Schema.boolean(), True, {"type": "boolean"}, "true"),
    (Schema.string(), "Zoë", {"type": "string"}, '"Zoë"'),
    (Schema.bytes(), b"\x00\xff", {"type": "string", "connect.type": "bytes"}, '"AP8="'),
    (
        decimal_schema(2),
        Decimal("-12.30"),
        {
            "type": "string",
            "connect.type": "bytes",
            "title": f"{TITLES}Decimal",
            "connect.version": 1,
            "connect.parameters": {"scale": "2"},
        },
        '"+zI="',
    ),
    (date_schema(), dt.date(1970, 1, 3), {**NUMBER, "title": f"{TITLES}Date", "connect.version": 1}, "2"),
    (time_schema(), dt.time(0, 0, 1), {**NUMBER, "title": f"{TITLES}Time", "connect.version": 1}, "1000"),
    (
        timestamp_schema(),
        dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
        {"type": "integer", "connect.type": "int64", "title": f"{TITLES}Timestamp", "connect.version": 1},
        "1000",
    ),
    (Schema.array(Schema.int32(optional=True)), [1, None], {
        "type": "array", "items": {"oneOf": [{"type": "null"}, NUMBER]},
    }, "[1,null]"),
    (Schema.map(Schema.string(), Schema.int32()), {"a": 1}, {
        "type": "object", "connect.type": "map", "additionalProperties": NUMBER,
    }, '{"a":1}'),
    (Schema.map(Schema.int32(), Schema.string()), {1: "a"}, {
        "type": "array",
        "connect.type": "map",
        "items": {
            "type": "object",
            "properties": {"key": {**NUMBER, "connect.index": 0}, "value": {"type": "string", "connect.index": 1}},
        },
    }, '[{"key":1,"value":"a"}]'),
    (Schema.struct(
        {"a": Schema.int32(optional=True, doc="A."), "b": Schema.string(default="x")}, name="n.S", version=3
    ), {"a": None, "b": "y"}, {
        "type": "object",
        "properties": {
            "a": {"oneOf": [{"type": "null"}, {**NUMBER, "description": "A."}], "connect.index": 0},
            "b": {"type": "string", "default": "x", "connect.index": 1},
        },
        "title": "n.S",
        "connect.version": 3,
    }, '{"a":null,"b":"y"}'),
    (Schema.struct(
        {
            f"{ONE_OF}.field.0": Schema.string(optional=True),
            f"{ONE_OF}.field.1": Schema.int32(optional=True),
        },
        name=ONE_OF,
        optional=True,
    ), {f"{ONE_OF}.field.0": None, f"{ONE_OF}.field.1": 7}, {
        "oneOf": [{"type": "null"}, {"type": "string", "connect.index": 0}, {**NUMBER, "connect.index": 1}],
    }, "7"),
    (Schema.string(parameters={"io.confluent.connect.json.Enum": "", "io.confluent.connect.json.Enum.RED": "RED"}),
     "RED", {"enum": ["RED"]}, '"RED"'),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "document", "text"), MATRIX)
def test_every_type(
    converter: Make, memory: MemoryRegistry, schema: Schema, value: Any, document: Any, text: str
) -> None:
    written = converter()
    assert written.from_connect("t", schema, value) == b"\0\0\0\0\x01" + text.encode()
    assert written.from_connect_column("t", ValueColumn([value] * 3, schema)) == [b"\0\0\0\0\x01" + text.encode()] * 3
    (registered,) = memory.schemas
    assert registered == {"schema": json.dumps(document, separators=(",", ":")), "schemaType": "JSON"} or (
        json.loads(registered["schema"]) == document
    )
    assert converter().to_connect("t", b"\0\0\0\0\x01" + text.encode()) == SchemaAndValue(schema, value)
    (column,) = converter().to_connect_column("t", [b"\0\0\0\0\x01" + text.encode()] * 2)
    assert (column.schema, list(column)) == (schema, [value, value])


def test_decimals_as_numbers_keep_all_digits(converter: Make) -> None:
    value = Decimal("123456789012345678901234567890.12")
    numeric = converter(decimal_format="numeric")
    message = numeric.from_connect("t", decimal_schema(2), value)
    assert message == b"\0\0\0\0\x01123456789012345678901234567890.12"
    assert numeric.to_connect("t", message).value == value


@pytest.mark.parametrize(
    ("document", "schema", "text", "value"),
    [
        ({"type": "integer"}, Schema.int64(), "3", 3),
        ({"type": "integer"}, Schema.int64(), "3.0", 3),
        ({"type": "number"}, Schema.float64(), "3", 3.0),
        ({"type": ["string", "null"]}, Schema.string(optional=True), "null", None),
        ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, Schema.boolean(optional=True), "true", True),
        ({"enum": [1, 2]}, Schema.int64(), "2", 2),
        ({"type": "integer", "enum": [1, 2]}, Schema.int64(), "2", 2),
        ({"enum": ["a", 1]}, ANY_JSON, "1", "1"),
        ({"type": "array"}, Schema.array(ANY_JSON), '[1,"a"]', ["1", '"a"']),
        ({"type": "object"}, ANY_JSON, '{"a":[1.10]}', '{"a":[1.1]}'),
        ({}, ANY_JSON, "12345678901234567890.25", "12345678901234567890.25"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, Schema.map(Schema.string(), Schema.int64()),
         '{"a":1}', {"a": 1}),
        ({"patternProperties": {"^x": {"type": "string"}}, "type": "object"},
         Schema.map(Schema.string(), Schema.string()), '{"x1":"a"}', {"x1": "a"}),
        ({"properties": {"b": {"type": "string"}, "a": {"type": "integer"}}},
         Schema.struct({"b": Schema.string(), "a": Schema.int64()}), '{"a":1,"c":2}', {"b": None, "a": 1}),
        ({"properties": {"b": {"type": "string", "connect.index": 1}, "a": {"type": "integer", "connect.index": 0}}},
         Schema.struct({"a": Schema.int64(), "b": Schema.string()}), '{"b":"x","a":1}', {"a": 1, "b": "x"}),
        ({"$ref": "#/definitions/n", "definitions": {"n": {"type": "integer", "title": "N"}}},
         Schema.int64(name="N"), "3", 3),
        ({"allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "integer"}}}]},
         Schema.struct({"a": Schema.int64(), "b": Schema.int64()}), '{"a":1,"b":2}', {"a": 1, "b": 2}),
        ({"allOf": [{"type": "string"}, {"maxLength": 3}]}, Schema.string(), '"abc"', "abc"),
        ({"properties": {"a": {"type": "integer"}}, "oneOf": [{"required": ["a"]}, {"maxProperties": 0}]},
         Schema.struct({"a": Schema.int64()}), '{"a":1}', {"a": 1}),
        ({"properties": {"k": {"type": "string"}}, "oneOf": [{"properties": {"a": {"type": "integer"}}},
                                                             {"properties": {"b": {"type": "integer"}}}]},
         Schema.struct({"k": Schema.string(), "a": Schema.int64(optional=True), "b": Schema.int64(optional=True)}),
         '{"k":"x","b":2}', {"k": "x", "a": None, "b": 2}),
        ({"type": "integer", "default": 5, "description": "D"}, Schema.int64(default=5, doc="D"), "6", 6),
    ],
)  # fmt: skip
def test_schemas_of_others(
    converter: Make, memory: MemoryRegistry, document: Any, schema: Schema, text: str, value: Any
) -> None:
    assert read(converter, memory, document, text) == SchemaAndValue(schema, value)


UNION = {
    "oneOf": [
        {"type": "integer"},
        {"type": "number"},
        {"type": "string"},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
        {"type": "object", "properties": {"a": {"type": "integer"}, "c": {"type": "integer"}}},
        {"type": "null"},
    ]
}


@pytest.mark.parametrize(
    ("text", "place", "value"),
    [
        ("3", 0, 3),
        ("3.5", 1, 3.5),
        ('"x"', 2, "x"),
        ("[1]", 3, [1]),
        ('{"a":1,"b":2}', 4, {"a": 1, "b": 2}),
        ('{"a":1,"c":2}', 5, {"a": 1, "c": 2}),
    ],
)
def test_a_union_is_read_as_its_first_member_that_fits(
    converter: Make, memory: MemoryRegistry, text: str, place: int, value: Any
) -> None:
    schema, found = read(converter, memory, UNION, text)
    assert schema is not None
    assert (schema.optional, schema.name) == (True, ONE_OF)
    assert {name: item for name, item in found.items() if item is not None} == {f"{ONE_OF}.field.{place}": value}
    general, other = read(converter, memory, UNION, text, generalized_sum_type_support="true")
    assert general is not None
    assert general.name == "connect_union_0"
    assert other[f"connect_union_field_{place}"] == value
    assert converter(generalized_sum_type_support="true").from_connect("u", general, other) is not None


def test_nothing_fits_a_union(converter: Make, memory: MemoryRegistry) -> None:
    with pytest.raises(DataError, match="BOOLEAN fits no member of the union"):
        read(converter, memory, UNION, "true")


def test_properties_that_are_not_required(converter: Make, memory: MemoryRegistry) -> None:
    document = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]}
    assert read(converter, memory, document, '{"a":1}', use_optional_for_nonrequired="true") == SchemaAndValue(
        Schema.struct({"a": Schema.int64(), "b": Schema.int64(optional=True)}), {"a": 1, "b": None}
    )
    with pytest.raises(DataError, match=r'"b": null where the schema requires INT64'):
        read(converter, memory, document, '{"a":1,"b":null}')


def test_undeclared_properties_are_kept_on_request(converter: Make, memory: MemoryRegistry) -> None:
    document = {"type": "object", "properties": {"a": {"type": "integer"}}}
    schema, value = read(converter, memory, document, '{"a":1,"x":[2]}', preserve_additional_properties="true")
    assert value == {"a": 1, "__connect_additional_properties__": {"x": "[2]"}}
    message = converter().from_connect("u", schema, value)
    assert message is not None
    assert message[5:] == b'{"a":1,"x":[2]}'
    assert json.loads(memory.schemas[-1]["schema"])["properties"].keys() == {"a"}


def test_what_contains_itself_is_json_text_there(converter: Make, memory: MemoryRegistry) -> None:
    document = {
        "title": "Tree",
        "type": "object",
        "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}},
    }
    schema, value = read(converter, memory, document, '{"v":1,"next":{"v":2,"next":{"v":3}}}')
    assert value == {"v": 1, "next": '{"v":2,"next":{"v":3}}'}
    message = converter().from_connect("u", schema, value)
    assert message is not None
    assert message[5:] == b'{"v":1,"next":{"v":2,"next":{"v":3}}}'


def test_references_to_other_subjects(converter: Make, memory: MemoryRegistry) -> None:
    memory.add("city", {"$id": "http://x.org/city.json", "type": "object", "properties": {"c": {"type": "string"}}},
               schemaType="JSON")  # fmt: skip
    reference = [{"name": "city.json", "subject": "city", "version": 1}]
    for base in ({}, {"$id": "http://y.org/root.json"}):
        document = {**base, "type": "object", "properties": {"at": {"$ref": "city.json"}}}
        schema_id = memory.add("t-value", document, schemaType="JSON", references=reference)
        message = b"\0" + schema_id.to_bytes(4, "big") + b'{"at":{"c":"Ghent"}}'
        valid = converter(json_fail_invalid_schema="true")
        assert valid.to_connect("t", message).value == {"at": {"c": "Ghent"}}
        with pytest.raises(DataError, match=r"not valid by its JSON Schema|STRING is expected|string is expected"):
            valid.to_connect("t", message.replace(b'"Ghent"', b"1"))


def test_a_reference_to_nowhere(converter: Make, memory: MemoryRegistry) -> None:
    with pytest.raises(SchemaError, match=r"refers to 'http://nowhere\.test/x'.*register it with all its references"):
        read(converter, memory, {"$ref": "http://nowhere.test/x"}, "1")


@pytest.mark.parametrize(
    ("document", "text", "reason"),
    [
        ({"type": "integer"}, '"3"', "STRING where a whole number is expected"),
        ({"type": "integer"}, "3.5", r"3\.5 where a whole number"),
        ({"type": "integer", "connect.type": "int8"}, "128", "does not fit INT8"),
        ({"type": "string"}, "3", "NUMBER where a string is expected"),
        ({"type": "boolean"}, "1", "NUMBER where a boolean is expected"),
        ({"type": "string", "connect.type": "bytes"}, '"%"', "not base64"),
        ({"properties": {"a": {"items": {"type": "boolean"}}}}, '{"a":[true,0]}', r'field "a\[1\]": NUMBER'),
        ({"type": "integer"}, "{", "not valid JSON"),
        ({"type": "integer"}, "1" * 30, "whole number of 64 bits"),
        ({"type": "complex"}, "1", "has the type 'complex'"),
        (
            {"properties": {"a": {"connect.index": 0}, "b": {"connect.index": 0}}},
            "{}",
            "a and b the same connect.index",
        ),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "1", "refers to itself at once"),
        ([1], "1", "where a schema must be"),
    ],
)
def test_what_is_refused(converter: Make, memory: MemoryRegistry, document: Any, text: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read(converter, memory, document, text)


def test_values_without_a_schema_are_refused(converter: Make, memory: MemoryRegistry) -> None:
    with pytest.raises(SchemaError, match=r"JsonConverter with schemas\.enable=false"):
        converter().from_connect("t", None, {"a": 1})
    assert not memory.requests


def test_a_payload_that_is_not_valid(converter: Make, memory: MemoryRegistry) -> None:
    document = {"properties": {"a": {"type": "integer", "maximum": 3}}}
    assert read(converter, memory, document, '{"a":4}').value == {"a": 4}
    with pytest.raises(DataError, match=r'field "a": it is not valid by its JSON Schema: 4 is greater than'):
        read(converter, memory, document, '{"a":4}', json_fail_invalid_schema="true")


def test_values_are_valid_in_the_latest_schema_or_refused(converter: Make, memory: MemoryRegistry) -> None:
    memory.add("t-value", {"properties": {"a": {"type": "integer", "maximum": 3}}}, schemaType="JSON")
    latest = converter(auto_register_schemas="false", use_latest_version="true")
    schema = Schema.struct({"a": Schema.int32()})
    assert latest.from_connect("t", schema, {"a": 3}) == b'\0\0\0\0\x01{"a":3}'
    with pytest.raises(DataError, match="4 is greater than"):
        latest.from_connect("t", schema, {"a": 4})
    loose = converter(auto_register_schemas="false", use_latest_version="true", latest_compatibility_strict="false")
    assert loose.from_connect("t", schema, {"a": 4}) == b'\0\0\0\0\x01{"a":4}'


def test_subjects_by_title(converter: Make, memory: MemoryRegistry) -> None:
    named = Schema.struct({"a": Schema.int32()}, name="n.S")
    by_record = converter(value_subject_name_strategy="TopicRecordNameStrategy")
    for schema in (named, named.as_optional()):
        by_record.from_connect("t", schema, {"a": 1})
    assert list(memory.subjects) == ["t-n.S"]


def test_output_is_indented_and_objects_closed_on_request(converter: Make, memory: MemoryRegistry) -> None:
    schema = Schema.struct({"a": Schema.int32()})
    pretty = converter(json_indent_output="true", object_additional_properties="false")
    assert pretty.from_connect("t", schema, {"a": 1}) == b'\0\0\0\0\x01{\n  "a": 1\n}'
    assert json.loads(memory.schemas[0]["schema"])["additionalProperties"] is False


def test_nulls_and_defaults(converter: Make) -> None:
    schema = Schema.struct({"a": Schema.int32(optional=True, default=5)})
    plain, ignoring = converter(), converter(ignore_default_for_nullables="true")
    written = plain.from_connect("t", schema, {"a": None})
    assert written is not None
    assert written[5:] == b'{"a":5}'
    kept = ignoring.from_connect("t", schema, {"a": None})
    assert kept is not None
    assert kept[5:] == b'{"a":null}'
    assert plain.to_connect("t", kept).value == {"a": 5}
    assert ignoring.to_connect("t", kept).value == {"a": None}
    assert ignoring.to_connect("t", kept[:5] + b"{}").value == {"a": None}


@pytest.mark.parametrize("schema", [Schema.int32(), Schema.struct({"a": Schema.array(Schema.string())})])
def test_values_that_do_not_fit_are_named(converter: Make, schema: Schema) -> None:
    with pytest.raises(DataError, match=r"where INT32 is expected|a\[1\]"):
        converter().from_connect("t", schema, {"a": ["x", 1]})


DRAFTS = {
    "http://json-schema.org/draft-04/schema#": ("id", "definitions"),
    "http://json-schema.org/draft-06/schema#": ("$id", "definitions"),
    "http://json-schema.org/draft-07/schema#": ("$id", "definitions"),
    "https://json-schema.org/draft/2019-09/schema": ("$id", "$defs"),
    "https://json-schema.org/draft/2020-12/schema": ("$id", "$defs"),
}


@pytest.mark.parametrize("draft", DRAFTS)
def test_references_relative_to_an_id_in_every_draft(memory: MemoryRegistry, converter: Make, draft: str) -> None:
    identity, definitions = DRAFTS[draft]
    whole = {"type": "integer"}
    third = {"$schema": draft, "type": "boolean"}
    memory.add("third", third, schemaType="JSON")
    to_third = [{"name": "third.json", "subject": "third", "version": 1}]
    other = {"$schema": draft, identity: "http://y/other.json", "allOf": [{"$ref": "third.json"}]}
    memory.add("other", other, schemaType="JSON", references=to_third)
    document = {
        "$schema": draft,
        identity: "http://x/root.json",
        "type": "object",
        "properties": {
            "within": {"$ref": f"sub.json#/{definitions}/whole"},
            "named": {"$ref": "named.json"},
            "chain": {"$ref": "http://y/other.json"},
        },
        definitions: {"sub": {identity: "sub.json", definitions: {"whole": whole}}},
    }
    memory.add("named", {"$schema": draft, "type": "string"}, schemaType="JSON")
    names = {"named.json": "named", "http://y/other.json": "other"}
    references = [{"name": name, "subject": subject, "version": 1} for name, subject in names.items()]
    schema_id = memory.add("t-value", document, schemaType="JSON", references=references)
    start = b"\0" + schema_id.to_bytes(4, "big")
    made = converter(json_fail_invalid_schema="true")
    schema, value = made.to_connect("t", start + b'{"within":1,"named":"x","chain":true}')
    expected = {"within": Schema.int64(), "named": Schema.string(), "chain": Schema.boolean()}
    assert schema is Schema.struct(expected)
    assert value == {"within": 1, "named": "x", "chain": True}
    with pytest.raises(DataError, match="chain"):
        made.to_connect("t", start + b'{"within":1,"named":"x","chain":"no"}')
