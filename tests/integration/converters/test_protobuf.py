"""The Protobuf converter against a real schema registry, and against another client's serializers, both ways."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, json_format
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc

from connect.data import Schema, ValueColumn, date_schema, decimal_schema, time_schema, timestamp_schema
from converters.protobuf import ProtobufConverter
from worker.embedded.registry.server import RegistryInfo

ORDER = Schema.struct(
    {
        "id": Schema.int64(),
        "price": decimal_schema(2),
        "placed": timestamp_schema(),
        "due": date_schema(),
        "at": time_schema(optional=True),
        "lines": Schema.array(Schema.struct({"sku": Schema.string(), "count": Schema.int32()}, name="shop.Line")),
        "tags": Schema.map(Schema.string(), Schema.boolean()),
        "note": Schema.string(optional=True),
        "small": Schema.int8(),
        "raw": Schema.bytes(),
    },
    name="shop.Order",
)
VALUE = {
    "id": 2**40,
    "price": Decimal("-12.30"),
    "placed": dt.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC),
    "due": dt.date(2026, 2, 1),
    "at": None,
    "lines": [{"sku": "a", "count": 2}, {"sku": "ü", "count": -1}],
    "tags": {"new": True},
    "note": None,
    "small": -5,
    "raw": b"\x00\xff",
}
FOREIGN = """syntax = "proto3";
package lab;
message Other { int32 x = 1; }
message Reading {
  enum Kind { HOT = 0; COLD = 1; }
  message Inner { string name = 1; }
  Kind kind = 1;
  oneof value { int32 number = 2; string text = 3; }
  map<string, Inner> inners = 4;
  optional double level = 5;
  uint64 big = 6;
}
"""
Make = Callable[..., ProtobufConverter]


@pytest.fixture
def protobuf(registry: RegistryInfo) -> Iterator[Make]:
    """Makes converters that use the run's registry, from keys with underscores for dots."""
    made: list[ProtobufConverter] = []

    def make(**props: str) -> ProtobufConverter:
        named = {"schema_registry_url": registry.url, **props}
        made.append(ProtobufConverter.configured({key.replace("_", "."): value for key, value in named.items()}))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def theirs(registry: RegistryInfo) -> Iterator[SchemaRegistryClient]:
    """Confluent's own client of the same registry."""
    with SchemaRegistryClient({"url": registry.url, "timeout": 20}) as client:
        yield client


def class_of(text: str, name: str, folder: Path) -> Any:
    """The class of a message, compiled here."""
    (folder / "lab.proto").write_text(text)
    arguments = ["protoc", f"-I{folder}", f"--descriptor_set_out={folder / 'out'}", "lab.proto"]
    assert protoc.main(arguments) == 0
    pool = descriptor_pool.DescriptorPool()
    for each in descriptor_pb2.FileDescriptorSet.FromString((folder / "out").read_bytes()).file:
        pool.AddSerializedFile(each.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(name))


def test_a_value_comes_back_from_a_real_registry(protobuf: Make, topic: str) -> None:
    keeping = protobuf(optional_for_nullables="true")
    message = keeping.from_connect(topic, ORDER, VALUE)
    other = protobuf(optional_for_nullables="true")
    schema, value = other.to_connect(topic, message)
    assert value == VALUE
    assert schema is not None
    assert (schema.name, schema.version) == ("Order", 1)
    (column,) = other.to_connect_column(topic, [message] * 100)
    assert list(column) == [VALUE] * 100
    assert protobuf(optional_for_nullables="true").from_connect(topic, ORDER, VALUE) == message


def test_numbers_of_fields_do_not_move_in_a_real_registry(
    protobuf: Make, topic: str, theirs: SchemaRegistryClient
) -> None:
    first = Schema.struct({"b": Schema.int32()}, name="S")
    second = Schema.struct({"a": Schema.string(), "b": Schema.int32()}, name="S")
    old = protobuf().from_connect(topic, first, {"b": 5})
    theirs.set_compatibility(f"{topic}-value", "BACKWARD")
    protobuf().from_connect(topic, second, {"a": "x", "b": 6})
    assert protobuf(use_latest_version="true").to_connect(topic, old).value == {"a": "", "b": 5}


@pytest.mark.parametrize("name", ["lab.Reading", "lab.Other", "lab.Reading.Inner"])
def test_confluents_serializer_and_deserializer(
    protobuf: Make, topic: str, theirs: SchemaRegistryClient, tmp_path: Path, name: str
) -> None:
    given = {
        "lab.Reading": {"kind": "COLD", "text": "t", "inners": {"a": {"name": "n"}}, "level": 0.0, "big": "7"},
        "lab.Other": {"x": -3},
        "lab.Reading.Inner": {"name": "ü"},
    }[name]
    made = class_of(FOREIGN, name, tmp_path)
    context = SerializationContext(topic, MessageField.VALUE)
    original = json_format.ParseDict(given, made())
    message = ProtobufSerializer(made, theirs, {"use.deprecated.format": False})(original, context)
    ours = protobuf()
    schema, value = ours.to_connect(topic, message)
    expected = {
        "lab.Reading": {
            "value_0": {"number": None, "text": "t"},
            "kind": "COLD",
            "inners": {"a": {"name": "n"}},
            "level": 0.0,
            "big": 7,
        },
    }.get(name, given)
    assert value == expected
    again = protobuf(auto_register_schemas="false", use_latest_version="true", enhanced_protobuf_schema_support="true")
    schema, value = again.to_connect(topic, message)
    if name != "lab.Reading.Inner":  # a name within another is none that a Connect schema can give
        back = again.from_connect_column(topic, ValueColumn([value], schema))[0]
        assert back == message
        deserialize = ProtobufDeserializer(made, {"use.deprecated.format": False})
        assert deserialize(back, context) == original


def test_what_we_write_confluents_deserializer_reads(
    protobuf: Make, topic: str, theirs: SchemaRegistryClient, tmp_path: Path
) -> None:
    schema = Schema.struct({"x": Schema.int32(), "names": Schema.array(Schema.string())}, name="lab.Mine")
    message = protobuf().from_connect(topic, schema, {"x": 5, "names": ["a", ""]})
    text = theirs.get_latest_version(f"{topic}-value").schema.schema_str
    made = class_of(text, "lab.Mine", tmp_path)
    deserialize = ProtobufDeserializer(made, {"use.deprecated.format": False})
    read = deserialize(message, SerializationContext(topic, MessageField.VALUE))
    assert json_format.MessageToDict(read) == {"x": 5, "names": ["a", ""]}


def test_imports_of_a_real_registry(protobuf: Make, topic: str, theirs: SchemaRegistryClient) -> None:
    name = f"{topic}/city.proto"
    city = 'syntax = "proto3"; package c; message City { string name = 1; }'
    theirs.register_schema(name, TheirSchema(city, "PROTOBUF"))
    text = f'syntax = "proto3"; import "{name}"; message M {{ c.City at = 1; }}'
    reference = SchemaReference(name, name, 1)
    schema_id = theirs.register_schema(f"{topic}-value", TheirSchema(text, "PROTOBUF", [reference]))
    message = b"\0" + schema_id.to_bytes(4, "big") + bytes.fromhex("000a030a0161")
    assert protobuf().to_connect(topic, message).value == {"at": {"name": "a"}}
