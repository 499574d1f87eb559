"""Schemas that are named in a header: written for and by confluent-kafka's own serializers, in all three formats."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass

from connect.data import (
    Constant,
    Schema,
    SinkBatch,
    SourceBatch,
    SourceRecord,
    TimestampType,
    ValueColumn,
)
from connect.errors import ConfigError, ConnectError, DataError
from connect.internals.chain.converters import Converters
from connect.internals.chain.raw_records import ConsumedBatch
from connect.internals.chain.sink import SinkChain
from connect.internals.chain.source import SourceChain
from connect.internals.chain.steps import Steps
from connect.internals.chain.tolerance import ErrorPolicy, StageError, Tolerance
from converters.avro import AvroConverter
from converters.json_schema import JsonSchemaConverter
from converters.protobuf import ProtobufConverter
from converters.protobuf.proto_schema import ProtoSchema
from converters.simple_header import SimpleHeaderConverter
from equipment.fakes.schema_registry import MemoryRegistry, serving

VALUE_ID = "__value_schema_id"
KEY_ID = "__key_schema_id"
ROW = Schema.struct({"a": Schema.int64(), "b": Schema.string()}, name="Row")
TEXT = "longer than the six bytes that the peer takes for the least of any message"
VALUE = {"a": 7, "b": TEXT}
HEADER_IDS = {
    "key.schema.id.serializer": "HeaderSchemaIdSerializer",
    "value.schema.id.serializer": "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer",
}
FORMATS: dict[str, Callable[..., Any]] = {
    "avro": AvroConverter.configured,
    "json": JsonSchemaConverter.configured,
    "protobuf": ProtobufConverter.configured,
}
PROTO = 'syntax = "proto3"; message First { } message Row { int64 a = 1; string b = 2; }'
AVRO = {"type": "record", "name": "Row", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]}
JSON = {"type": "object", "title": "Row", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}


@pytest.fixture
def memory() -> Iterator[MemoryRegistry]:
    with serving(MemoryRegistry(tells_guids=True)) as registry:
        yield registry


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def converters(memory: MemoryRegistry, kind: str, **more: str) -> Converters:
    props = {"schema.registry.url": memory.url, **more}
    make = FORMATS[kind]
    return Converters(make(props, is_key=True), make(props), SimpleHeaderConverter.configured({}))


def never(seconds: float) -> bool:
    raise AssertionError(seconds)


def source(made: Converters) -> SourceChain:
    tolerance = Tolerance(ErrorPolicy(), [], wait=never)
    return SourceChain(Steps((), tolerance), made, tolerance)


def sink(made: Converters) -> SinkChain:
    tolerance = Tolerance(ErrorPolicy(), [], wait=never)
    return SinkChain(Steps((), tolerance), made, tolerance)


def consumed(values: list[Any], headers: list[Any], keys: Any = None) -> ConsumedBatch:
    count = len(values)
    return ConsumedBatch(
        "t",
        Constant(None, count) if keys is None else keys,
        values,
        Constant(0, count),
        range(count),
        [0] * count,
        [TimestampType.CREATE_TIME] * count,
        headers,
    )


def rows(batches: list[SinkBatch]) -> list[Any]:
    return [record.value for batch in batches for record in batch]


def written(memory: MemoryRegistry, kind: str) -> tuple[bytes, list[tuple[str, bytes]]]:
    """A value and its headers, as written through the chain."""
    chain = source(converters(memory, kind, **HEADER_IDS))
    key, value, headers = chain.encode(SourceRecord("t", VALUE, ROW, VALUE, ROW, source_partition={}, source_offset={}))
    assert key == value
    assert value is not None
    assert headers is not None
    chain.close()
    return value, [(name, data or b"") for name, data in headers]


def test_the_peer_reads_what_is_written(memory: MemoryRegistry, kind: str) -> None:
    value, headers = written(memory, kind)
    assert [name for name, _ in headers] == [KEY_ID, VALUE_ID]
    frame = headers[1][1]
    assert frame[:1] == b"\x01"
    assert str(uuid.UUID(bytes=frame[1:17])) == memory.guid(memory.subjects["t-value"][0])
    client = SchemaRegistryClient({"url": memory.url})
    context = SerializationContext("t", MessageField.VALUE, headers)
    if kind == "avro":
        assert AvroDeserializer(client)(value, context) == VALUE
    elif kind == "json":
        assert JSONDeserializer(None, schema_registry_client=client)(value, context) == VALUE
    else:
        made = GetMessageClass(ProtoSchema(memory.schemas[0]["schema"]).root)
        found: Any = ProtobufDeserializer(made, {"use.deprecated.format": False}, client)(value, context)
        assert (found.a, found.b) == (7, TEXT)


def peer_message(memory: MemoryRegistry, kind: str) -> tuple[bytes, list[tuple[str, bytes]]]:
    """A value and its headers, as confluent-kafka writes them."""
    client = SchemaRegistryClient({"url": memory.url})
    options = {"schema.id.serializer": header_schema_id_serializer}
    headers: list[tuple[str, bytes]] = [("other", b"\xff")]
    context = SerializationContext("t", MessageField.VALUE, headers)
    if kind == "avro":
        serializer: Any = AvroSerializer(client, json.dumps(AVRO), conf=options)
        return serializer(VALUE, context), headers
    if kind == "json":
        return JSONSerializer(json.dumps(JSON), client, conf=options)(VALUE, context), headers
    made: Any = GetMessageClass(ProtoSchema(PROTO).message((1,)))
    serializer = ProtobufSerializer(made, client, {**options, "use.deprecated.format": False})
    return serializer(made(a=7, b=TEXT), context), headers


def test_what_the_peer_writes_is_read(memory: MemoryRegistry, kind: str) -> None:
    value, headers = peer_message(memory, kind)
    chain = sink(converters(memory, kind))
    batch = consumed([value, None, value], [headers, headers, headers])
    assert rows(chain.process(batch)) == [VALUE, None, VALUE]
    assert chain.decode(batch, 0).value == VALUE
    chain.close()


def test_headers_and_prefixes_mix(memory: MemoryRegistry, kind: str) -> None:
    value, headers = written(memory, kind)
    made = converters(memory, kind)
    prefixed = made.value.from_connect("t", ROW, VALUE)
    assert prefixed is not None
    assert prefixed[:1] == b"\0"
    old = [(VALUE_ID, prefixed[: len(prefixed) - len(value)])]
    doubled = [(VALUE_ID, b"\x01no"), *headers]
    batch = consumed([value, prefixed, value, value], [headers, None, old, doubled])
    assert rows(sink(made).process(batch)) == [VALUE] * 4
    messages = [headers[1][1] + value, prefixed] * 100
    (first, *_) = made.value.to_connect_column("t", messages)
    assert first.values()[0] == VALUE
    together = made.value.to_connect_arrow("t", pa.array([headers[1][1] + value] * 100, pa.binary()))  # type: ignore[attr-defined]
    assert [column.to_arrow().to_pylist() for column in together] == [[VALUE] * 100]
    made.close()


def test_a_batch_has_its_headers_row_by_row(memory: MemoryRegistry, kind: str) -> None:
    chain = source(converters(memory, kind, **{"value.schema.id.serializer": "HeaderSchemaIdSerializer"}))
    batch = SourceBatch.of(
        "t", ValueColumn([VALUE, None, VALUE], ROW.as_optional()), source_partition={}, source_offsets=[{}, {}, {}]
    )
    (encoded,) = chain.process(batch)
    assert [len(row or ()) for row in encoded.headers] == [1, 0, 1]
    assert encoded.values[1] is None
    assert rows(sink(converters(memory, kind)).process(consumed(list(encoded.values), list(encoded.headers)))) == [
        VALUE,
        None,
        VALUE,
    ]


def test_a_header_that_names_no_schema_is_a_bad_record(memory: MemoryRegistry, kind: str) -> None:
    value, headers = written(memory, kind)
    chain = sink(converters(memory, kind))
    unknown = b"\x01" + uuid.UUID(int=5).bytes + headers[1][1][17:]
    for frame in (b"", b"\x01", b"\x01" * 10, b"\x02" + bytes(16), unknown):
        batch = consumed([value], [[(VALUE_ID, frame)]])
        with pytest.raises(StageError) as caught:
            chain.decode(batch, 0)
        assert isinstance(caught.value.__cause__, DataError)
    memory.tells_guids = False
    with pytest.raises(StageError, match="knows none") as caught:
        sink(converters(memory, kind)).decode(consumed([value], [headers]), 0)
    assert isinstance(caught.value.__cause__, DataError)


def test_headers_are_left_alone_on_request(memory: MemoryRegistry, kind: str) -> None:
    value, headers = written(memory, kind)
    given = {"value.schema.id.deserializer": "io.confluent.kafka.serializers.schema.id.PrefixSchemaIdDeserializer"}
    chain = sink(converters(memory, kind, **given))
    with pytest.raises(StageError):
        chain.decode(consumed([value], [headers]), 0)


def test_an_old_registry_is_told(kind: str) -> None:
    with serving(MemoryRegistry()) as memory:
        made = converters(memory, kind, **HEADER_IDS)
        with pytest.raises(ConnectError, match=r"Confluent Platform 8\.0"):
            made.value.from_connect("t", ROW, VALUE)


def test_other_classes_are_refused(kind: str) -> None:
    for key in ("value.schema.id.serializer", "key.schema.id.deserializer"):
        with pytest.raises(ConfigError, match="custom classes are not supported"):
            FORMATS[kind]({"schema.registry.url": "http://127.0.0.1:1", key: "com.acme.Own"})


@pytest.mark.parametrize("header", [True, False])
def test_values_are_written_in_the_schema_of_a_guid(memory: MemoryRegistry, kind: str, header: bool) -> None:
    first = converters(memory, kind).value.from_connect("t", ROW, VALUE)
    assert first is not None
    chosen = {"auto.register.schemas": "false", "use.schema.guid": memory.guid(memory.subjects["t-value"][0])}
    made = converters(memory, kind, **chosen, **(HEADER_IDS if header else {})).value
    if not header:
        with pytest.raises(ConnectError, match=r"set use\.schema\.id instead"):
            made.from_connect("other", ROW, VALUE)
        return
    message = made.from_connect("other", ROW, VALUE)
    assert message is not None
    assert message[:1] == b"\x01"
    assert converters(memory, kind).value.to_connect("other", message).value == VALUE
    assert "other-value" not in memory.subjects


@pytest.mark.parametrize("key", ["use.schema.id", "use.schema.guid"])
def test_values_that_name_no_schema_are_read_in_a_given_one(memory: MemoryRegistry, kind: str, key: str) -> None:
    body, _ = written(memory, kind)
    number = memory.subjects["t-value"][0]
    given = {key: str(number) if key == "use.schema.id" else memory.guid(number)}
    deserializer = "io.confluent.kafka.serializers.schema.id.ConfigSchemaIdDeserializer"
    made = converters(memory, kind, **given, **{"value.schema.id.deserializer": deserializer}).value
    assert made.to_connect("t", body).value == VALUE
    assert made.to_connect("t", None).value is None
    columns = made.to_connect_column("t", [body, None, body])
    assert [value for column in columns for value in column] == [VALUE, None, VALUE]
    (column,) = made.to_connect_arrow("t", pa.array([body] * 100, pa.binary()))  # type: ignore[attr-defined]
    assert column.to_arrow().to_pylist() == [VALUE] * 100


def test_a_given_schema_must_be_given(kind: str) -> None:
    for more in ({}, {"use.schema.guid": "none"}):
        props = {
            "schema.registry.url": "http://127.0.0.1:1",
            "value.schema.id.deserializer": "ConfigSchemaIdDeserializer",
        }
        with pytest.raises(ConfigError, match=r"use\.schema\.guid"):
            FORMATS[kind]({**props, **more})
