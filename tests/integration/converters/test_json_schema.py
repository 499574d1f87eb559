"""The JSON Schema converter against a real schema registry, and against another client's serializers, both ways."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from connect.data import Schema, date_schema, decimal_schema, time_schema, timestamp_schema
from connect.errors import DataError
from converters.json_schema import JsonSchemaConverter
from worker.embedded.registry.server import RegistryInfo

ORDER = Schema.struct(
    {
        "id": Schema.int64(),
        "price": decimal_schema(2),
        "placed": timestamp_schema(),
        "due": date_schema(optional=True),
        "at": time_schema(optional=True),
        "lines": Schema.array(Schema.struct({"sku": Schema.string(), "count": Schema.int32()}, name="shop.Line")),
        "tags": Schema.map(Schema.string(), Schema.boolean()),
        "by_number": Schema.map(Schema.int32(), Schema.string()),
        "note": Schema.string(optional=True, default="none"),
        "small": Schema.int8(),
        "raw": Schema.bytes(),
    },
    name="shop.Order",
    doc="An order.",
)
VALUE = {
    "id": 2**40,
    "price": Decimal("-12.30"),
    "placed": dt.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC),
    "due": dt.date(2026, 2, 1),
    "at": None,
    "lines": [{"sku": "a", "count": 2}, {"sku": "ü", "count": -1}],
    "tags": {"new": True},
    "by_number": {1: "a"},
    "note": "hello",
    "small": -5,
    "raw": b"\x00\xff",
}
PLAIN = {
    "id": 2**40,
    "price": "+zI=",
    "placed": 1767323045678,
    "due": 20485,
    "at": None,
    "lines": [{"sku": "a", "count": 2}, {"sku": "ü", "count": -1}],
    "tags": {"new": True},
    "by_number": [{"key": 1, "value": "a"}],
    "note": "hello",
    "small": -5,
    "raw": "AP8=",
}
Make = Callable[..., JsonSchemaConverter]


@pytest.fixture
def converter(registry: RegistryInfo) -> Iterator[Make]:
    """Makes converters that use the run's registry, from keys with underscores for dots."""
    made: list[JsonSchemaConverter] = []

    def make(**props: str) -> JsonSchemaConverter:
        named = {"schema_registry_url": registry.url, **props}
        made.append(JsonSchemaConverter.configured({key.replace("_", "."): value for key, value in named.items()}))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def theirs(registry: RegistryInfo) -> Iterator[SchemaRegistryClient]:
    """Confluent's own client of the same registry."""
    with SchemaRegistryClient({"url": registry.url, "timeout": 20}) as client:
        yield client


def same(value: Any, _context: Any) -> Any:
    return value


def test_a_value_comes_back_from_a_real_registry(converter: Make, topic: str) -> None:
    message = converter().from_connect(topic, ORDER, VALUE)
    other = converter(json_fail_invalid_schema="true")
    schema, value = other.to_connect(topic, message)
    assert value == VALUE
    assert schema is ORDER.replace(version=1)
    (column,) = other.to_connect_column(topic, [message] * 100)
    assert list(column) == [VALUE] * 100
    assert converter().from_connect(topic, ORDER, VALUE) == message


def test_confluents_serializer_and_deserializer(converter: Make, topic: str, theirs: SchemaRegistryClient) -> None:
    ours = converter().from_connect(topic, ORDER, VALUE)
    text = theirs.get_latest_version(f"{topic}-value").schema.schema_str
    context = SerializationContext(topic, MessageField.VALUE)
    assert JSONDeserializer(text, same, theirs)(ours, context) == PLAIN
    message = JSONSerializer(text, theirs, same)(PLAIN, context)
    assert message is not None
    assert json.loads(message[5:]) == json.loads(ours[5:] if ours is not None else b"")
    assert message[:5] == ours[:5] if ours is not None else False
    assert converter().to_connect(topic, message).value == VALUE


def test_a_schema_of_others_with_references(converter: Make, topic: str, theirs: SchemaRegistryClient) -> None:
    city = {
        "$id": f"http://example.org/{topic}/city.json",
        "type": "object",
        "properties": {"name": {"type": "string"}},
    }
    theirs.register_schema(f"{topic}-city", TheirSchema(json.dumps(city), "JSON"))
    document = {
        "$id": f"http://example.org/{topic}/root.json",
        "type": "object",
        "properties": {"at": {"$ref": "city.json"}, "n": {"type": ["integer", "null"]}},
    }
    reference = SchemaReference("city.json", f"{topic}-city", 1)
    schema_id = theirs.register_schema(f"{topic}-value", TheirSchema(json.dumps(document), "JSON", [reference]))
    message = b"\0" + schema_id.to_bytes(4, "big") + b'{"at":{"name":"Ghent"},"n":null}'
    ours = converter(json_fail_invalid_schema="true")
    assert ours.to_connect(topic, message).value == {"at": {"name": "Ghent"}, "n": None}
    with pytest.raises(DataError):
        ours.to_connect(topic, message.replace(b"null", b"true"))
