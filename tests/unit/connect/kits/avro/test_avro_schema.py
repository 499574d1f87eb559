"""Avro schemas: the text that Java writes, unions, enums, names, docs, defaults, both ways."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect.data import Schema, Type, date_schema, decimal_schema, time_schema, timestamp_schema
from connect.errors import DataError, SchemaError
from connect.kits.avro.avro_schema import parse_avro
from connect.kits.avro.avro_text import avro_text
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.from_connect import avro_from_connect
from connect.kits.avro.to_connect import connect_from_avro
from unit.connect.kits.avro.codecs_of import avro_of, reader_of, text_of, writer_of

DECIMAL = (
    '{"type":"bytes","scale":2,"precision":64,"connect.version":1,"connect.parameters":{"scale":"2"},'
    '"connect.name":"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}'
)
ANYTHING = (
    '{"type":"record","name":"Anything","namespace":"io.confluent.connect.avro","fields":['
    '{"name":"boolean","type":["null","boolean"],"default":null},'
    '{"name":"bytes","type":["null","bytes"],"default":null},'
    '{"name":"double","type":["null","double"],"default":null},'
    '{"name":"float","type":["null","float"],"default":null},'
    '{"name":"int","type":["null","int"],"default":null},'
    '{"name":"long","type":["null","long"],"default":null},'
    '{"name":"string","type":["null","string"],"default":null},'
    '{"name":"array","type":["null",{"type":"array","items":"Anything"}],"default":null},'
    '{"name":"map","type":["null",{"type":"array","items":{"type":"record","name":"MapEntry","fields":['
    '{"name":"key","type":"Anything"},{"name":"value","type":"Anything"}]}}],"default":null}]}'
)


def logical(base: str, kind: str, name: str) -> str:
    return (
        f'{{"type":"{base}","connect.version":1,"connect.name":"org.apache.kafka.connect.data.{name}",'
        f'"logicalType":"{kind}"}}'
    )


def record(fields: str, name: str = "ConnectDefault", namespace: str = "io.confluent.connect.avro") -> str:
    return f'{{"type":"record","name":"{name}","namespace":"{namespace}","fields":[{fields}]}}'


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (None, ANYTHING),
        (Schema.int8(), '{"type":"int","connect.type":"int8"}'),
        (Schema.int16(optional=True), '["null",{"type":"int","connect.type":"int16"}]'),
        (Schema.int32(), '"int"'),
        (Schema.string(optional=True), '["null","string"]'),
        (Schema.int32(optional=True, default=4), '[{"type":"int","connect.default":4},"null"]'),
        (Schema.bytes(default=b"\x01\xff"), '{"type":"bytes","connect.default":"\x01ÿ"}'.replace("\x01", "\\u0001")),
        (decimal_schema(2), DECIMAL),
        (date_schema(), logical("int", "date", "Date")),
        (time_schema(), logical("int", "time-millis", "Time")),
        (timestamp_schema(), logical("long", "timestamp-millis", "Timestamp")),
        (Schema.array(Schema.int64()), '{"type":"array","items":"long"}'),
        (Schema.map(Schema.string(), Schema.int64()), '{"type":"map","values":"long"}'),
        (
            Schema.map(Schema.int32(), Schema.string()),
            '{"type":"array","items":'
            + record('{"name":"key","type":"int"},{"name":"value","type":"string"}', "MapEntry")
            + "}",
        ),
        (
            Schema.struct({"a": Schema.int32(), "b": Schema.string(optional=True)}),
            record('{"name":"a","type":"int"},{"name":"b","type":["null","string"],"default":null}'),
        ),
        (
            Schema.struct({"a": Schema.int32(default=3)}, name="x.y.Z", version=2, doc="d"),
            record('{"name":"a","type":{"type":"int","connect.default":3},"default":3}', "Z", "x.y")[:-1]
            + ',"connect.doc":"d","connect.version":2,"connect.name":"x.y.Z"}',
        ),
    ],
)
def test_the_text_is_that_of_java(schema: Schema | None, text: str) -> None:
    assert text_of(schema) == text
    assert connect_from_avro(parse_avro(text), AvroDataConfig()) is schema


def test_one_struct_in_several_places_is_defined_once() -> None:
    point = Schema.struct({"x": Schema.int32()}, name="a.Point")
    line = Schema.struct({"from": point, "to": point.as_optional(), "via": Schema.array(point)}, name="a.Line")
    text = text_of(line)
    assert text.count('"fields"') == 2
    assert '{"name":"to","type":["null","Point"],"default":null}' in text
    assert reader_of(parse_avro(text), AvroDataConfig())[0] is line


def test_nameless_structs_are_numbered() -> None:
    inner = Schema.struct({"x": Schema.int32()})
    names = text_of(Schema.struct({"a": inner, "b": Schema.array(Schema.struct({"y": inner}))}))
    assert [name in names for name in ("ConnectDefault", "ConnectDefault2", "ConnectDefault3")] == [True] * 3


def test_two_structs_of_one_name_are_refused() -> None:
    one, other = (Schema.struct({field: Schema.int32()}, name="a.P") for field in "xy")
    with pytest.raises(SchemaError, match=r"Two different schemas are called a\.P"):
        text_of(Schema.struct({"a": one, "b": other}))


def test_maps_of_several_types_have_entries_of_several_names() -> None:
    maps = {name: Schema.map(Schema.int32(), part) for name, part in (("a", Schema.int32()), ("b", Schema.string()))}
    schema = Schema.struct({**maps, "c": maps["a"]})
    assert '"name":"MapEntry2"' in text_of(schema)
    read, decode = reader_of(avro_of(schema))
    assert read is schema
    value = {"a": {1: 2}, "b": {3: "x"}, "c": {}}
    assert decode(writer_of(schema)([value])) == [value]


@pytest.mark.parametrize("name", ["with space", "1st", "dash-ed", "ä"])
def test_names_that_avro_does_not_allow(name: str) -> None:
    schema = Schema.struct({name: Schema.int32()}, name=f"x.{name}")
    with pytest.raises(SchemaError, match=r"scrub\.invalid\.names=true"):
        text_of(schema)
    assert json.loads(text_of(schema, scrub_invalid_names=True))["namespace"] == "x"


@pytest.mark.parametrize(
    ("name", "clean"), [("a b", "a_b"), ("1st", "x1st"), ("a-b", "a_b"), ("ä", "_C3_A4"), ("ok_1", "ok_1")]
)
def test_scrubbing(name: str, clean: str) -> None:
    text = text_of(Schema.struct({name: Schema.int32()}), scrub_invalid_names=True)
    assert json.loads(text)["fields"][0]["name"] == clean


UNION = (
    '["null","int","long",{"type":"record","name":"R","namespace":"n","fields":[{"name":"x","type":"int"}]},"string"]'
)


@pytest.mark.parametrize(
    ("options", "members"),
    [
        ({}, ["int", "long", "R", "string"]),
        ({"enhanced_avro_schema_support": True}, ["int", "long", "n.R", "string"]),
        ({"generalized_sum_type_support": True}, [f"connect_union_field_{number}" for number in (1, 2, 3, 4)]),
    ],
)
def test_unions_are_structs_of_which_one_field_is_set(options: Any, members: list[str]) -> None:
    config = AvroDataConfig(**options)
    schema, decode = reader_of(parse_avro(UNION), config)
    assert schema is not None
    assert schema.optional
    assert list(schema.field_names) == members
    assert all(field.schema.optional for field in schema.fields)
    nothing = dict.fromkeys(members)
    values = [None, *(nothing | {name: value} for name, value in zip(members, (5, 5, {"x": 1}, "t"), strict=True))]
    messages = writer_of(schema, config)(values)
    assert [message[5] for message in messages] == [0, 2, 4, 6, 8]
    assert decode(messages) == values


def test_union_members_of_one_simple_name_need_their_namespaces() -> None:
    avro = parse_avro('["null",' + ",".join(record("", "R", space) for space in ("a", "b")) + "]")
    with pytest.raises(SchemaError, match="Multiple union schemas map to the Connect union field name R"):
        connect_from_avro(avro, AvroDataConfig())
    schema = connect_from_avro(avro, AvroDataConfig(enhanced_avro_schema_support=True))
    assert schema is not None
    assert schema.field_names == ("a.R", "b.R")


@pytest.mark.parametrize(("flatten", "kind"), [(True, Type.INT32), (False, Type.STRUCT)])
def test_a_union_of_one_type(flatten: bool, kind: Type) -> None:
    config = AvroDataConfig(flatten_singleton_unions=flatten)
    schema, decode = reader_of(parse_avro('["int"]'), config)
    assert schema is not None
    assert schema.type is kind
    assert decode([b"\0\0\0\0\x07\x00\x06"]) == [3 if flatten else {"int": 3}]


ENUM = '{"type":"enum","name":"Color","namespace":"n","doc":"about","symbols":["RED","BLUE"],"default":"RED"}'


def test_enums_are_strings_and_enums_again_where_that_is_asked_for() -> None:
    plain, enhanced = AvroDataConfig(), AvroDataConfig(enhanced_avro_schema_support=True)
    schema, decode = reader_of(parse_avro(ENUM), plain)
    assert schema is not None
    assert schema.type is Type.STRING
    assert schema.parameters["io.confluent.connect.avro.Enum"] == "n.Color"
    assert schema.parameters["io.confluent.connect.avro.Enum.BLUE"] == "BLUE"
    assert decode([b"\0\0\0\0\x07\x02"]) == ["BLUE"]
    assert json.loads(text_of(schema))["type"] == "string"
    again = json.loads(text_of(schema, enhanced_avro_schema_support=True))
    assert {key: again[key] for key in json.loads(ENUM)} == json.loads(ENUM)
    assert reader_of(avro_of(schema, enhanced), enhanced)[0] is schema
    assert writer_of(schema, enhanced)(["BLUE"]) == [b"\0\0\0\0\x07\x02"]
    with pytest.raises(DataError, match="'GREEN' is no symbol"):
        writer_of(schema, enhanced)(["GREEN"])


def test_generalized_enums_keep_the_order_of_their_symbols() -> None:
    config = AvroDataConfig(generalized_sum_type_support=True)
    schema, decode = reader_of(parse_avro(ENUM), config)
    assert schema is not None
    assert schema.parameters["org.apache.kafka.connect.data.Enum.BLUE"] == "1"
    assert decode(writer_of(schema, config)(["BLUE", "RED"])) == ["BLUE", "RED"]


def test_fixed_and_its_size() -> None:
    schema, decode = reader_of(parse_avro('{"type":"fixed","name":"n.F","size":3}'))
    assert schema is not None
    assert (schema.name, schema.parameters["connect.fixed.size"]) == ("n.F", "3")
    assert decode(writer_of(schema)([b"abc"])) == [b"abc"]
    with pytest.raises(DataError, match="2 bytes cannot be a fixed of 3"):
        writer_of(schema)([b"ab"])


def test_a_fixed_decimal_keeps_its_meaning() -> None:
    text = '{"type":"fixed","name":"D","size":4,"logicalType":"decimal","precision":8,"scale":1}'
    schema, decode = reader_of(parse_avro(text))
    assert schema is not None
    (value,) = decode([b"\0\0\0\0\x07\xff\xff\xff\xf6"])
    assert str(value) == "-1.0"
    assert writer_of(schema)([value]) == [b"\0\0\0\0\x07\xff\xff\xff\xf6"]


def test_docs_and_parameters_go_both_ways() -> None:
    text = json.dumps(
        {
            "type": "record",
            "name": "n.R",
            "doc": "all of it",
            "fields": [
                {"name": "a", "type": {"type": "string", "avro.java.string": "String"}, "doc": "the a"},
                {"name": "b", "type": "int", "default": 7},
            ],
        }
    )
    schema = connect_from_avro(parse_avro(text), AvroDataConfig())
    assert schema is not None
    assert schema.parameters["io.confluent.connect.avro.record.doc"] == "all of it"
    assert schema.parameters["io.confluent.connect.avro.field.doc.a"] == "the a"
    assert schema.fields[0].schema.parameters["avro.java.string"] == "String"
    assert schema.fields[1].schema.default == 7
    assert schema.fields[1].schema.parameters["io.confluent.connect.avro.field.default"] == "true"
    again = json.loads(text_of(schema))
    assert again["doc"] == "all of it"
    assert again["fields"][0]["doc"] == "the a"
    assert again["fields"][1] == {"name": "b", "type": "int", "default": 7}


def test_without_metadata_the_avro_schema_is_bare() -> None:
    schema = Schema.struct({"a": Schema.int8(doc="d")}, name="n.R", version=3, parameters={"p": "q"})
    assert text_of(schema, connect_meta_data=False) == record('{"name":"a","type":"int"}', "R", "n")


def test_docs_of_fields_where_types_keep_none() -> None:
    config = AvroDataConfig(discard_type_doc_default=True)
    text = record('{"name":"a","type":"int","doc":"of a"}', "R", "n")[:-1] + ',"doc":"of R"}'
    schema = connect_from_avro(parse_avro(text), config)
    assert schema is not None
    assert schema.doc == "of R"
    assert schema.fields[0].schema.doc == "of a"
    assert json.loads(text_of(schema, discard_type_doc_default=True))["fields"][0]["doc"] == "of a"


@pytest.mark.parametrize("kind", ["timestamp-micros", "local-timestamp-millis"])
def test_logical_types_that_connect_lacks_are_their_base_type(kind: str) -> None:
    schema = connect_from_avro(parse_avro(f'{{"type":"long","logicalType":"{kind}"}}'), AvroDataConfig())
    assert schema is Schema.int64()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("3", "An Avro type is"),
        ('{"type":"record","name":"R"}', '"fields"'),
        ('{"type":"record","fields":[]}', "needs a name"),
        ('{"type":"record","name":"R","fields":[{"name":"a"}]}', "a name and a type"),
        ('{"type":"array"}', '"items"'),
        ('{"type":"fixed","name":"F","size":-1}', '"size"'),
        ('{"type":"enum","name":"E"}', '"symbols"'),
        ('"unknown"', "the type unknown"),
        ('["int","int"]', "each type once"),
        ("[" * 5000 + "]" * 5000, "nested too deeply"),
        ('{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]}]}', "R contains itself"),
        ('{"type":"int","connect.version":"x"}', "Invalid Connect version"),
        ('{"type":"int","connect.parameters":[]}', "Expected JSON object"),
        ('{"type":"int","connect.name":3}', "Invalid schema name"),
    ],
)
def test_what_is_no_schema_for_connect_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        connect_from_avro(parse_avro(text), AvroDataConfig())


def test_a_default_that_does_not_fit_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    schema = connect_from_avro(parse_avro('{"type":"int","connect.default":"x"}'), AvroDataConfig())
    assert schema is Schema.int32()
    assert "Ignoring the default" in caplog.text


@pytest.mark.parametrize("value", [[1, None, 3], []])
def test_defaults_of_containers_with_nulls(value: list[int | None]) -> None:
    schema = Schema.array(Schema.int32(optional=True), default=value)
    assert reader_of(avro_of(schema))[0] is schema


def test_nulls_of_fields_with_a_default() -> None:
    schema = Schema.struct({"a": Schema.int32(optional=True, default=4)})
    replaced, kept = AvroDataConfig(), AvroDataConfig(ignore_default_for_nullables=True)
    assert reader_of(avro_of(schema))[1](writer_of(schema, replaced)([{"a": None}, {}])) == [{"a": 4}] * 2
    assert reader_of(avro_of(schema))[1](writer_of(schema, kept)([{"a": None}, {}])) == [{"a": None}] * 2


def test_references_of_the_registry() -> None:
    inner = record('{"name":"x","type":"int"}', "In", "n")
    avro = parse_avro(record('{"name":"i","type":"n.In"}', "Out", "m"), [inner])
    assert reader_of(avro)[1]([b"\0\0\0\0\x07\x06"]) == [{"i": {"x": 3}}]
    assert parse_avro(avro_text(avro)).fields[0].schema.name == "n.In"


def test_a_union_of_a_string_and_an_enum_says_which_key_writes_it() -> None:
    avro = parse_avro('["string",{"type":"enum","name":"E","symbols":["A"]}]')
    schema = connect_from_avro(avro, AvroDataConfig())
    with pytest.raises(SchemaError, match=r"has string, string: set enhanced\.avro\.schema\.support=true"):
        avro_from_connect(schema, AvroDataConfig())
    enhanced = AvroDataConfig(enhanced_avro_schema_support=True)
    written = avro_from_connect(connect_from_avro(avro, enhanced), enhanced)
    assert [branch.full_name for branch in written.branches] == ["string", "E"]


def test_a_union_whose_types_are_alike_for_another_reason_says_so() -> None:
    members = {"a": Schema.int32(optional=True), "b": Schema.int32(optional=True)}
    union = Schema.struct(members, name="io.confluent.connect.avro.Union")
    with pytest.raises(SchemaError, match="give its members other types"):
        avro_from_connect(union, AvroDataConfig())
