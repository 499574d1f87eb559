"""Every type in every format with a registry, by row and by column, beside confluent-kafka's own serializers both ways.

What the other client has for a value is written down for each format; of Protobuf it is its library's form in JSON.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import json_format
from google.protobuf.message_factory import GetMessageClass

from connect.data import Schema, ValueColumn, date_schema, decimal_schema, time_schema, timestamp_schema
from converters.avro import AvroConverter
from converters.json_schema import JsonSchemaConverter
from converters.protobuf import ProtobufConverter
from converters.protobuf.proto_schema import ProtoSchema
from equipment.fakes.schema_registry import MemoryRegistry, serving

MAKERS: Final[dict[str, Callable[..., Any]]] = {
    "avro": AvroConverter.configured,
    "json": JsonSchemaConverter.configured,
    "protobuf": ProtobufConverter.configured,
}
NULLS: Final = {"protobuf": {"optional.for.nullables": "true"}}
CONTEXT: Final = SerializationContext("t", MessageField.VALUE)
CHOSEN: Final = {"auto.register.schemas": False, "use.latest.version": True}
MANY: Final = 100
ABSENT: Final = object()
"""What Protobuf has for a null: no field."""


@dataclass(frozen=True)
class Case:
    """A type, a value, and what another client has for it in Avro, JSON and Protobuf."""

    schema: Schema
    value: Any
    avro: Any
    json: Any
    protobuf: Any


TINY = Schema.struct({"a": Schema.int32(), "b": Schema.string(optional=True)}, name="Tiny")
MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC)
DAY = dt.date(2026, 2, 1)
TIME = dt.time(23, 59, 58, 999000)
CASES: Final = {
    "int8": Case(Schema.int8(), -128, -128, -128, -128),
    "int16": Case(Schema.int16(), 32767, 32767, 32767, 32767),
    "int32": Case(Schema.int32(), -(2**31), -(2**31), -(2**31), -(2**31)),
    "int64": Case(Schema.int64(), 2**63 - 1, 2**63 - 1, 2**63 - 1, "9223372036854775807"),
    "float32": Case(Schema.float32(), 1.5, 1.5, 1.5, 1.5),
    "float64": Case(Schema.float64(), -0.1, -0.1, -0.1, -0.1),
    "boolean": Case(Schema.boolean(), True, True, True, True),
    "string": Case(Schema.string(), "ü\U0001f600\0", "ü\U0001f600\0", "ü\U0001f600\0", "ü\U0001f600\0"),
    "bytes": Case(Schema.bytes(), b"\0\xff", b"\0\xff", "AP8=", "AP8="),
    "decimal": Case(
        decimal_schema(2), Decimal("-12.30"), Decimal("-12.30"), "+zI=", {"value": "+zI=", "precision": 4, "scale": 2}
    ),
    "date": Case(date_schema(), DAY, DAY, 20485, {"year": 2026, "month": 2, "day": 1}),
    "time": Case(time_schema(), TIME, TIME, 86398999, {"hours": 23, "minutes": 59, "seconds": 58, "nanos": 999000000}),
    "timestamp": Case(timestamp_schema(), MOMENT, MOMENT, 1767323045678, "2026-01-02T03:04:05.678Z"),
    "optional": Case(Schema.string(optional=True), "x", "x", "x", "x"),
    "null": Case(Schema.int64(optional=True), None, None, None, ABSENT),
    "array": Case(Schema.array(Schema.int64()), [1, -2], [1, -2], [1, -2], ["1", "-2"]),
    "empty": Case(Schema.array(Schema.string()), [], [], [], ABSENT),
    "map": Case(
        Schema.map(Schema.string(), Schema.boolean()),
        {"a": True},
        {"a": True},
        {"a": True},
        [{"key": "a", "value": True}],
    ),
    "map of numbers": Case(
        Schema.map(Schema.int32(), Schema.string()),
        {7: "x"},
        [{"key": 7, "value": "x"}],
        [{"key": 7, "value": "x"}],
        [{"key": 7, "value": "x"}],
    ),
    "struct": Case(TINY, {"a": 1, "b": None}, {"a": 1, "b": None}, {"a": 1, "b": None}, {"a": 1}),
    "structs": Case(
        Schema.array(TINY), [{"a": 1, "b": "y"}], [{"a": 1, "b": "y"}], [{"a": 1, "b": "y"}], [{"a": 1, "b": "y"}]
    ),
}


@pytest.fixture
def memory() -> Iterator[MemoryRegistry]:
    """A registry that serves on loopback."""
    with serving(MemoryRegistry(tells_versions=False)) as registry:
        yield registry


def peer(memory: MemoryRegistry, kind: str) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    """What the other client reads and writes with, in the schema that is registered."""
    client, text = SchemaRegistryClient({"url": memory.url}), memory.schemas[-1]["schema"]
    if kind == "avro":
        read, write = AvroDeserializer(client), AvroSerializer(client, text, conf=CHOSEN)
    elif kind == "json":
        read = JSONDeserializer(None, schema_registry_client=client)  # type: ignore[assignment]
        write = JSONSerializer(text, client, conf=CHOSEN)  # type: ignore[assignment]
    else:
        return _protobuf(client, GetMessageClass(ProtoSchema(text).root))
    return lambda data: read(data, CONTEXT), lambda value: write(value, CONTEXT) or b""


def _protobuf(client: SchemaRegistryClient, made: Any) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    options = {**CHOSEN, "use.deprecated.format": False, "skip.known.types": True}
    write = ProtobufSerializer(made, client, options)
    read = ProtobufDeserializer(made, {"use.deprecated.format": False}, client)

    def shown(data: bytes) -> Any:
        message: Any = read(data, CONTEXT)
        return json_format.MessageToDict(message, preserving_proto_field_name=True)

    return shown, lambda value: write(json_format.ParseDict(value, made()), CONTEXT) or b""


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("name", CASES)
def test_a_type_goes_to_the_other_client_and_comes_back(memory: MemoryRegistry, kind: str, name: str) -> None:
    case = CASES[name]
    schema = Schema.struct({"id": Schema.int32(), "x": case.schema}, name="Row")
    values = [{"id": number + 1, "x": case.value} for number in range(MANY)]
    theirs = [{"id": number + 1, "x": getattr(case, kind)} for number in range(MANY)]
    theirs = [{key: part for key, part in each.items() if part is not ABSENT} for each in theirs]
    props = {"schema.registry.url": memory.url, **NULLS.get(kind, {})}
    ours = MAKERS[kind](props)
    messages = [ours.from_connect("t", schema, value) for value in values]
    assert ours.from_connect_column("t", ValueColumn(values, schema)) == messages
    read, write = peer(memory, kind)
    assert [read(message) for message in messages[:3]] == theirs[:3]
    written = [write(value) for value in theirs]
    reader = MAKERS[kind](props)
    assert [reader.to_connect("t", message).value for message in written[:3]] == values[:3]
    (column,) = reader.to_connect_column("t", written)
    assert list(column) == values
    (arrow,) = reader.to_connect_arrow("t", pa.array(written, pa.binary()))
    assert list(arrow.values()) == values
    assert column.to_arrow().equals(arrow.to_arrow())
    ours.close()
    reader.close()
