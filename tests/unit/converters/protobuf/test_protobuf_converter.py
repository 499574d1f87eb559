"""Protobuf by its mapping: what is registered, what is written, what schemas of others become, what is refused."""

from __future__ import annotations

import datetime as dt
import logging
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
from converters.protobuf import ProtobufConverter
from converters.protobuf.proto_schema import ProtoSchema, index_bytes, read_indexes
from equipment.fakes.schema_registry import MemoryRegistry, serving

Make = Callable[..., ProtobufConverter]
PB = "io.confluent.connect.protobuf"


@pytest.fixture(scope="module")
def server() -> Iterator[MemoryRegistry]:
    """One registry for all tests."""
    with serving(MemoryRegistry(tells_versions=False)) as registry:
        yield registry


@pytest.fixture
def memory(server: MemoryRegistry) -> MemoryRegistry:
    """The registry, empty."""
    server.schemas.clear()
    server.subjects.clear()
    return server


@pytest.fixture
def converter(memory: MemoryRegistry) -> Iterator[Make]:
    """Makes converters that use the registry, from keys with underscores for dots."""
    made: list[ProtobufConverter] = []

    def make(is_key: bool = False, **props: str) -> ProtobufConverter:
        named = {"schema_registry_url": memory.url, "max_retries": "0", **props}
        config = {key.replace("_", "."): value for key, value in named.items()}
        made.append(ProtobufConverter.configured(config, is_key=is_key))
        return made[-1]

    yield make
    for each in made:
        each.close()


def tag(number: int, **more: str) -> dict[str, str]:
    return {f"{PB}.Tag": str(number), **{f"{PB}.{name}": text for name, text in more.items()}}


def read(converter: Make, memory: MemoryRegistry, text: str, data: str, **props: str) -> SchemaAndValue:
    """What a message of somebody else's schema becomes; ``data`` is in hexadecimal, indexes included."""
    schema_id = memory.add("t-value", text, schemaType="PROTOBUF")
    return converter(**props).to_connect("t", b"\0" + schema_id.to_bytes(4, "big") + bytes.fromhex(data))


INSTANT = dt.datetime(2024, 2, 29, 1, 2, 3, 4000, tzinfo=dt.UTC)
MATRIX = [
    (Schema.int8(), -5, "int32 f = 1", "08fbffffffffffffffff01"),
    (Schema.int16(), 5, "int32 f = 1", "0805"),
    (Schema.int32(), 7, "int32 f = 1", "0807"),
    (Schema.int64(), 300, "int64 f = 1", "08ac02"),
    (Schema.int64(parameters={f"{PB}.Type": "uint32"}), 2**32 - 1, "uint32 f = 1", "08ffffffff0f"),
    (Schema.int64(parameters={f"{PB}.Type": "sint64"}), -2, "sint64 f = 1", "0803"),
    (Schema.int64(parameters={f"{PB}.Type": "fixed64"}), 1, "fixed64 f = 1", "090100000000000000"),
    (Schema.int32(parameters={f"{PB}.Type": "sfixed32"}), 1, "sfixed32 f = 1", "0d01000000"),
    (Schema.float32(), 0.5, "float f = 1", "0d0000003f"),
    (Schema.float64(), 0.5, "double f = 1", "09000000000000e03f"),
    (Schema.boolean(), True, "bool f = 1", "0801"),
    (Schema.string(), "Zoë", "string f = 1", "0a045a6fc3ab"),
    (Schema.bytes(), b"\x00\xff", "bytes f = 1", "0a0200ff"),
    (decimal_schema(2), Decimal("-12.30"), "confluent.type.Decimal f = 1", "0a080a02fb3210041802"),
    (date_schema(), dt.date(2024, 2, 29), "google.type.Date f = 1", "0a0708e80f1002181d"),
    (time_schema(), dt.time(1, 2, 3, 4000), "google.type.TimeOfDay f = 1", "0a0b080110021803208092f401"),
    (timestamp_schema(), INSTANT, "google.protobuf.Timestamp f = 1", "0a0b088bafffae06108092f401"),
    (Schema.array(Schema.int32()), [1, 2], "repeated int32 f = 1", "0a020102"),
    (Schema.map(Schema.string(), Schema.int32()), {"a": 1}, "repeated ConnectDefault2Entry f = 1", "0a050a01611001"),
    (Schema.map(Schema.int32(), Schema.string(), name="a_map"), {1: "a"}, "repeated AMapEntry f = 1", "0a050801120161"),
    (Schema.struct({"x": Schema.int32()}, name="n.Inner"), {"x": 1}, "Inner f = 1", "0a020801"),
    (Schema.string(name="Color", parameters={f"{PB}.Enum": "Color", f"{PB}.Enum.RED": "0", f"{PB}.Enum.BLUE": "1"}),
     "BLUE", "Color f = 1", "0801"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "line", "data"), MATRIX)
def test_every_type(converter: Make, memory: MemoryRegistry, schema: Schema, value: Any, line: str, data: str) -> None:
    whole = Schema.struct({"f": schema})
    message = b"\0\0\0\0\x01\0" + bytes.fromhex(data)
    written = converter()
    assert written.from_connect("t", whole, {"f": value}) == message
    assert written.from_connect_column("t", ValueColumn([{"f": value}] * 3, whole)) == [message] * 3
    (registered,) = memory.schemas
    assert registered["schemaType"] == "PROTOBUF"
    assert f"  {line}" in registered["schema"].split("\n\n")[-1]
    found = converter().to_connect("t", message)
    assert found.value == {"f": value}
    assert found.schema is not None
    (field,) = found.schema.fields
    assert (field.schema.type, field.schema.optional, field.schema.parameters[f"{PB}.Tag"]) == (schema.type, True, "1")
    (column,) = converter().to_connect_column("t", [message] * 2)
    assert (column.schema, list(column)) == (found.schema, [{"f": value}] * 2)
    # What has been read is written in the same bytes, with the same text of the schema.
    assert converter().from_connect("t", found.schema, found.value) == message


@pytest.mark.parametrize(
    ("schema", "value", "data"),
    [
        (Schema.string(), "a", "020e0a0161"),
        (Schema.int8(), 5, "02080805"),
        (Schema.int64(), 5, "02040805"),
        (Schema.float32(), 0.5, "02020d0000003f"),
        (Schema.float64(), 0.5, "0009000000000000e03f"),
        (Schema.boolean(), False, "020c"),
        (Schema.bytes(), b"a", "02100a0161"),
    ],
)
def test_scalars_alone_are_wrappers(converter: Make, schema: Schema, value: Any, data: str) -> None:
    message = converter().from_connect("t", schema, value)
    assert message == b"\0\0\0\0\x01" + bytes.fromhex(data)
    assert converter().to_connect("t", message).value == value
    kept = converter(wrapper_for_raw_primitives="false").to_connect("t", message)
    assert kept.value == {"value": value}


NULLABLE = Schema.struct({"a": Schema.int32(optional=True), "b": Schema.string(optional=True)}, name="p.N")


@pytest.mark.parametrize("option", ["optional_for_nullables", "wrapper_for_nullables"])
@pytest.mark.parametrize("value", [{"a": None, "b": None}, {"a": 0, "b": ""}, {"a": 5, "b": None}])
def test_nulls_are_kept_on_request(converter: Make, option: str, value: Any) -> None:
    keeping = converter(**{option: "true"})
    assert keeping.to_connect("t", keeping.from_connect("t", NULLABLE, value)).value == value


def test_a_null_that_is_lost_is_told_once(converter: Make, caplog: pytest.LogCaptureFixture) -> None:
    plain = converter()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            message = plain.from_connect("t", NULLABLE, {"a": None, "b": "x"})
    assert plain.to_connect("t", message).value == {"a": 0, "b": "x"}
    assert [each.getMessage() for each in caplog.records if "null" in each.getMessage()] == [
        "Writing null in p.N.a, which is read again as 0, false or empty: set optional.for.nullables=true or "
        "wrapper.for.nullables=true to keep nulls."
    ]


UNION = Schema.struct(
    {
        "id": Schema.int32(),
        "choice_0": Schema.struct(
            {"s": Schema.string(optional=True), "n": Schema.int32(optional=True)},
            name=f"{PB}.Union.choice",
            optional=True,
        ),
        "z": Schema.int32(),
    },
    name="U",
)


def test_unions(converter: Make, memory: MemoryRegistry) -> None:
    ours = converter()
    for member in ({"s": None, "n": 0}, {"s": "x", "n": None}):
        value = {"id": 1, "choice_0": member, "z": 2}
        assert ours.to_connect("t", ours.from_connect("t", UNION, value)).value == value
    nothing = ours.from_connect("t", UNION, {"id": 1, "choice_0": None, "z": 2})
    assert ours.to_connect("t", nothing).value["choice_0"] is None
    text = memory.schemas[0]["schema"]
    assert "int32 id = 1;" in text
    assert "oneof choice {\n    string s = 2;\n    int32 n = 3;\n  }" in text
    assert "int32 z = 4;" in text
    flat = converter(flatten_unions="true").to_connect("t", nothing)
    assert flat.value == {"s": None, "n": None, "id": 1, "z": 2}
    assert converter(generate_index_for_unions="false").to_connect("t", nothing).value.keys() == {"choice", "id", "z"}
    with pytest.raises(DataError, match="at most one member"):
        ours.from_connect("t", UNION, {"id": 1, "choice_0": {"s": "a", "n": 1}, "z": 2})


# -- numbers of fields -------------------------------------------------------------------------------------------


def lines_of(memory: MemoryRegistry) -> list[str]:
    return [line.strip() for line in memory.schemas[-1]["schema"].splitlines() if "=" in line or "reserved" in line][1:]


def test_numbers_do_not_move_when_fields_come_and_go(converter: Make, memory: MemoryRegistry) -> None:
    def write(**fields: Schema) -> list[str]:
        schema = Schema.struct(fields, name="S")
        converter().from_connect("t", schema, dict.fromkeys(fields, 1))
        return lines_of(memory)

    number, long = Schema.int32(), Schema.int64()
    assert write(b=number, d=number) == ["int32 b = 1;", "int32 d = 2;"]
    assert write(a=number, b=number, d=number) == ["int32 a = 3;", "int32 b = 1;", "int32 d = 2;"]
    assert write(a=number, d=number) == ["reserved 1;", "int32 a = 3;", "int32 d = 2;"]
    assert write(a=number, d=number, e=number)[-1] == "int32 e = 4;"
    # A field of another type is another field.
    assert write(a=long, d=number, e=number) == ["reserved 1, 3;", "int64 a = 5;", "int32 d = 2;", "int32 e = 4;"]


def test_numbers_of_inner_messages_do_not_move(converter: Make, memory: MemoryRegistry) -> None:
    for fields in (["x"], ["w", "x"]):
        inner = Schema.struct(dict.fromkeys(fields, Schema.int32()), name="I")
        schema = Schema.struct({"one": inner, "many": Schema.array(inner)}, name="S")
        value = dict.fromkeys(fields, 1)
        converter().from_connect("t", schema, {"one": value, "many": [value]})
    assert lines_of(memory) == ["I one = 1;", "repeated I many = 2;", "int32 w = 2;", "int32 x = 1;"]


def test_tags_are_kept_and_others_avoid_them(converter: Make, memory: MemoryRegistry) -> None:
    schema = Schema.struct({"a": Schema.int32(), "b": Schema.int32(parameters=tag(1)), "c": Schema.int32()})
    converter().from_connect("t", schema, {"a": 1, "b": 2, "c": 3})
    assert lines_of(memory) == ["int32 a = 2;", "int32 b = 1;", "int32 c = 3;"]
    twice = Schema.struct({"a": Schema.int32(parameters=tag(1)), "b": Schema.int32(parameters=tag(1))})
    with pytest.raises(SchemaError, match="a and b have the same tag 1"):
        converter().from_connect("t", twice, {"a": 1, "b": 2})


# -- schemas of others -------------------------------------------------------------------------------------------

HEAD = 'syntax = "proto3"; '


def test_large_numbers_without_sign(converter: Make, memory: MemoryRegistry) -> None:
    text, data = HEAD + "message M { uint64 u = 1; }", "0008ffffffffffffffffff01"
    with pytest.raises(DataError, match=r"18446744073709551615 .*uint64\.type=decimal or string"):
        read(converter, memory, text, data)
    most = 2**64 - 1
    for kind, value in (("decimal", Decimal(most)), ("string", str(most))):
        found = read(converter, memory, text, data, uint64_type=kind)
        assert found.value == {"u": value}
        message = converter().from_connect("u", found.schema, found.value)
        assert message is not None
        assert message[5:] == bytes.fromhex(data)


def test_what_contains_itself_is_bytes_there(converter: Make, memory: MemoryRegistry) -> None:
    text = HEAD + "message Tree { int32 v = 1; Tree next = 2; repeated Tree more = 3; }"
    data = "00080112080802120408031a00"
    found = read(converter, memory, text, data)
    assert found.value == {"v": 1, "next": bytes.fromhex("0802120408031a00"), "more": []}
    latest = converter(auto_register_schemas="false", use_latest_version="true")
    message = latest.from_connect("t", found.schema, found.value)
    assert message == b"\0\0\0\0\x01" + bytes.fromhex(data)


def test_well_known_types(converter: Make, memory: MemoryRegistry) -> None:
    text = HEAD + (
        'import "google/protobuf/struct.proto"; import "google/protobuf/any.proto"; '
        'import "google/protobuf/duration.proto"; import "google/protobuf/field_mask.proto"; '
        'import "google/protobuf/wrappers.proto"; import "google/protobuf/empty.proto"; '
        "message M { google.protobuf.Struct s = 1; google.protobuf.Duration d = 2; google.protobuf.Any a = 3;"
        "google.protobuf.FieldMask f = 4; google.protobuf.BoolValue b = 5; google.protobuf.Empty e = 6; }"
    )
    data = "00" + "0a0c0a0a0a016b12051a0361 6263" + "12020801" + "2203 0a0161" + "2a02 0801" + "3200"
    schema, value = read(converter, memory, text, data)
    assert value["d"] == {"seconds": 1, "nanos": 0}
    assert value["s"]["fields"]["k"]["kind_0"]["string_value"] == "abc"
    assert (value["a"], value["f"], value["b"], value["e"]) == (None, {"paths": ["a"]}, {"value": True}, {})
    assert schema is not None
    wrapped = read(converter, memory, text, data, wrapper_for_nullables="true")
    assert wrapped.value["b"] is True


def test_a_message_within_another_by_its_indexes(converter: Make, memory: MemoryRegistry) -> None:
    text = (
        HEAD
        + "message A { int32 a = 1; message B { int32 b = 1; } message C { int32 c = 1; } } message D { int32 d = 1; }"
    )
    for data, value in (("00", "a"), ("0200", "a"), ("0202", "d"), ("040002", "c"), ("040000", "b")):
        assert read(converter, memory, text, data + "0805").value == {value: 5}
    ours = converter()
    columns = ours.to_connect_column("t", [b"\0\0\0\0\x01" + bytes.fromhex(each) for each in ("00", "0202", "0202")])
    assert [list(column) for column in columns] == [[{"a": 0}], [{"d": 0}, {"d": 0}]]
    compiled = ProtoSchema(text)
    assert [index_bytes(compiled.message(path)).hex() for path in ((0,), (1,), (0, 1))] == ["00", "0202", "040002"]
    assert read_indexes(b"\x04\x00\x02", 0) == ((0, 1), 3)


def test_maps_enums_and_proto2(converter: Make, memory: MemoryRegistry) -> None:
    text = (
        'syntax = "proto2"; message M { required int32 a = 1; optional string b = 2; enum K { X = 0; Y = 2; } '
        "optional K k = 3; map<string, K> ks = 4; }"
    )
    schema, value = read(converter, memory, text, "0008001802" + "22050a01611002")
    assert value == {"a": 0, "b": None, "k": "Y", "ks": {"a": "Y"}}
    latest = converter(auto_register_schemas="false", use_latest_version="true")
    assert latest.from_connect("t", schema, value) == b"\0\0\0\0\x01" + bytes.fromhex("000800180222050a01611002")
    assert read(converter, memory, text, "0008001802", int_for_enums="true").value["k"] == 2
    assert read(converter, memory, text, "0008001802", optional_for_proto2="false").value["b"] == ""


def test_unknown_numbers_of_enums_are_kept(converter: Make, memory: MemoryRegistry) -> None:
    text = HEAD + "message M { K k = 1; enum K { A = 0; } }"
    found = read(converter, memory, text, "000807")
    assert found.value == {"k": "UNKNOWN_ENUM_VALUE_K_7"}
    assert converter().from_connect("t", found.schema, found.value) == b"\0\0\0\0\x02\0\x08\x07"


def test_imports_of_other_subjects(converter: Make, memory: MemoryRegistry) -> None:
    memory.add("city", HEAD + "package c; message City { string name = 1; }", schemaType="PROTOBUF")
    text = HEAD + 'import "geo/city.proto"; message M { c.City at = 1; }'
    reference = [{"name": "geo/city.proto", "subject": "city", "version": 1}]
    schema_id = memory.add("t-value", text, schemaType="PROTOBUF", references=reference)
    message = b"\0" + schema_id.to_bytes(4, "big") + bytes.fromhex("000a030a0161")
    assert converter().to_connect("t", message).value == {"at": {"name": "a"}}


def test_the_options_that_java_does_not_import(converter: Make, memory: MemoryRegistry) -> None:
    text = (
        HEAD + 'message M { int32 a = 1 [(confluent.field_meta) = {params: [{value: "int8", key: "connect.type"}]}]; }'
    )
    schema, _ = read(converter, memory, text, "000805")
    assert schema is not None
    assert schema.fields[0].schema == Schema.int8(optional=True, parameters=tag(1))


@pytest.mark.parametrize(
    ("text", "data", "reason"),
    [
        ("message M { int32 a = 1; }", "", "ends before it names its message type"),
        ("message M { int32 a = 1; }", "0202", r"indexes \[1\], but the Protobuf schema has no such message"),
        ("message M { int32 a = 1; }", "0201", "negative index -1"),
        ("message M { int32 a = 1; }", "01", "names -1 levels"),
        ("message M { int32 a = 1; }", "ffffffffffff", "more than five bytes"),
        ("message M { int32 a = 1; }", "0008", "not a valid Protobuf message of the type M"),
        ("message M { string a = 1; }", "000a01ff", "not a valid Protobuf message of the type M"),
        ("message M { int32 a = 1 }", "00", "is not valid: the schema:1"),
        ('import "nowhere.proto"; message M { int32 a = 1; }', "00", r"nowhere\.proto"),
        ('import "/etc/passwd"; message M { int32 a = 1; }', "00", "is not valid"),
        ("enum E { A = 0; }", "00", "no such message"),
    ],
)
def test_what_is_refused(converter: Make, memory: MemoryRegistry, text: str, data: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read(converter, memory, HEAD + text, data)


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        (None, {"a": 1}, r"JsonConverter with schemas\.enable=false"),
        (Schema.array(Schema.int32()), [1], r"ARRAY that is not within a message.*HoistField"),
        (date_schema(), dt.date(2024, 1, 1), "Date that is not within a message"),
        (
            Schema.struct({"a": Schema.array(Schema.array(Schema.int32()))}),
            {"a": [[1]]},
            "put the inner one into a struct",
        ),
        (Schema.struct({"a-b": Schema.int32()}), {"a-b": 1}, r"scrub\.invalid\.names=true"),
        (Schema.struct({"a": Schema.int32()}), {"a": "x"}, 'field "a": str where INT32 is expected'),
        (Schema.struct({"a": Schema.int32()}), {"a": 2**31}, 'field "a": the whole number 2147483648 is not within'),
        (Schema.struct({"a": Schema.int32()}), {"a": None}, 'field "a": null value for a field that is required'),
        (
            Schema.struct({"a": Schema.array(Schema.int32(optional=True))}),
            {"a": [1, None]},
            r"a\[1\].*null in an array",
        ),
        (Schema.struct({"a": Schema.int32()}), {"a": 1, "b": 2}, "b is not a valid field name"),
        (Schema.struct({"a": Schema.float32()}), {"a": 1e300}, "too large for single precision"),
    ],
)
def test_values_that_do_not_fit(converter: Make, schema: Schema | None, value: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        converter().from_connect("t", schema, value)


def test_names_are_never_code_or_schema(converter: Make) -> None:
    for name in ("a; message X {}", 'a"', "a\nb", "import"):
        schema = Schema.struct({name: Schema.int32()}, name="S")
        if name == "import":
            message = converter().from_connect("t", schema, {name: 1})
            assert converter().to_connect("t", message).value == {name: 1}
            continue
        with pytest.raises(SchemaError, match="is not a name that Protobuf allows"):
            converter().from_connect("t", schema, {name: 1})


def test_values_are_written_in_the_latest_schema(converter: Make, memory: MemoryRegistry) -> None:
    memory.add("t-value", HEAD + "message S { int64 b = 7; string c = 8; int64 a = 9; }", schemaType="PROTOBUF")
    latest = converter(auto_register_schemas="false", use_latest_version="true")
    schema = Schema.struct({"a": Schema.int32(), "b": Schema.int32()}, name="S")
    assert latest.from_connect("t", schema, {"a": 1, "b": 2}) == b"\0\0\0\0\x01\0" + bytes.fromhex("38024801")
    other = Schema.struct({"x": Schema.int32()}, name="S")
    with pytest.raises(SchemaError, match="message S has no field x"):
        latest.from_connect("t", other, {"x": 1})


def test_subjects_by_name(converter: Make, memory: MemoryRegistry) -> None:
    by_record = converter(value_subject_name_strategy="RecordNameStrategy")
    message = by_record.from_connect("t", NULLABLE, {"a": 1, "b": "x"})
    assert list(memory.subjects) == ["p.N"]
    assert by_record.to_connect("t", message).value == {"a": 1, "b": "x"}


def test_schemas_of_the_same_names_do_not_meet(converter: Make, memory: MemoryRegistry) -> None:
    ours = converter()
    for kind, data, value in (("int32", "000805", 5), ("string", "000a0161", "a")):
        schema_id = memory.add("t-value", HEAD + f"message M {{ {kind} a = 1; }}", schemaType="PROTOBUF")
        message = b"\0" + schema_id.to_bytes(4, "big") + bytes.fromhex(data)
        assert ours.to_connect("t", message).value == {"a": value}
