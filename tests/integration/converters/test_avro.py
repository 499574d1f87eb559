"""The Avro converter against a real schema registry, and against another client's serializers, both ways."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from connect.data import Schema, SchemaAndValue, ValueColumn, date_schema, decimal_schema, time_schema, timestamp_schema
from connect.errors import DataError, RetriableError
from converters.avro import AvroConverter
from worker.cli.servers.registry import registry as registry_command
from worker.embedded.registry.server import EmbeddedRegistry, RegistryInfo, RegistryServerConfig

ORDER = Schema.struct(
    {
        "id": Schema.int64(),
        "price": decimal_schema(2),
        "placed": timestamp_schema(),
        "due": date_schema(optional=True),
        "at": time_schema(optional=True),
        "lines": Schema.array(Schema.struct({"sku": Schema.string(), "count": Schema.int32()}, name="shop.Line")),
        "tags": Schema.map(Schema.string(), Schema.boolean()),
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
    "note": "hello",
    "small": -5,
    "raw": b"\x00\xff",
}

Make = Callable[..., AvroConverter]


@pytest.fixture
def avro(registry: RegistryInfo) -> Iterator[Make]:
    """Makes converters that use the run's registry, from keys with underscores for dots."""
    made: list[AvroConverter] = []

    def make(**props: str) -> AvroConverter:
        named = {"schema_registry_url": registry.url, **props}
        made.append(AvroConverter.configured({key.replace("_", "."): value for key, value in named.items()}))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def theirs(registry: RegistryInfo) -> Iterator[SchemaRegistryClient]:
    """Confluent's own client of the same registry."""
    with SchemaRegistryClient({"url": registry.url, "timeout": 20}) as client:
        yield client


def test_a_value_comes_back_from_a_real_registry(avro: Make, topic: str) -> None:
    message = avro().from_connect(topic, ORDER, VALUE)
    other = avro()
    schema, value = other.to_connect(topic, message)
    assert value == VALUE
    assert schema is ORDER.replace(version=1)
    (column,) = other.to_connect_column(topic, [message] * 100)
    assert list(column) == [VALUE] * 100
    assert avro().from_connect(topic, ORDER, VALUE) == message


def test_values_without_a_schema(avro: Make, topic: str) -> None:
    value = {"a": [1, 2.5, None, "x", True], "b": {"c": b"y"}}
    assert avro().to_connect(topic, avro().from_connect(topic, None, value)) == SchemaAndValue(None, value)


def test_what_we_write_confluents_deserializer_reads(avro: Make, topic: str, theirs: SchemaRegistryClient) -> None:
    message = avro().from_connect(topic, ORDER, VALUE)
    read = AvroDeserializer(theirs)(message, SerializationContext(topic, MessageField.VALUE))
    assert read == {**VALUE, "at": None}


def test_what_confluents_serializer_writes_we_read(avro: Make, topic: str, theirs: SchemaRegistryClient) -> None:
    ours = avro().from_connect(topic, ORDER, VALUE)
    text = theirs.get_latest_version(f"{topic}-value").schema.schema_str
    context = SerializationContext(topic, MessageField.VALUE)
    message = AvroSerializer(theirs, text)(VALUE, context)
    assert message == ours
    assert avro().to_connect(topic, message).value == VALUE


FOREIGN = {
    "type": "record",
    "name": "Reading",
    "namespace": "lab",
    "fields": [
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["HOT", "COLD"]}},
        {"name": "value", "type": ["null", "int", "double", "string"]},
        {"name": "digest", "type": {"type": "fixed", "name": "Digest", "size": 2}},
        {
            "name": "inner",
            "type": ["null", {"type": "record", "name": "In", "fields": [{"name": "x", "type": "float"}]}],
        },
    ],
}


def test_unions_enums_and_fixed_of_others(avro: Make, topic: str, theirs: SchemaRegistryClient) -> None:
    serialize = AvroSerializer(theirs, json.dumps(FOREIGN))
    context = SerializationContext(topic, MessageField.VALUE)
    given: list[dict[str, Any]] = [
        {"kind": "COLD", "value": 7, "digest": b"ab", "inner": {"x": 0.5}},
        {"kind": "HOT", "value": "t", "digest": b"cd", "inner": None},
    ]
    enhanced = {"enhanced_avro_schema_support": "true"}
    messages = [serialize(each, context) for each in given]
    (column,) = avro(**enhanced).to_connect_column(topic, messages)
    nothing = {"int": None, "double": None, "string": None}
    assert list(column) == [
        {**given[0], "value": {**nothing, "int": 7}},
        {**given[1], "value": {**nothing, "string": "t"}},
    ]
    again = avro(**enhanced).from_connect_column(topic, column)
    deserialize = AvroDeserializer(theirs)
    assert [deserialize(message, context) for message in again] == given


def test_references_of_a_real_registry(avro: Make, topic: str, theirs: SchemaRegistryClient) -> None:
    inner = {"type": "record", "name": "lab.In", "fields": [{"name": "x", "type": "int"}]}
    theirs.register_schema(f"{topic}-in", TheirSchema(json.dumps(inner), "AVRO"))
    outer = {"type": "record", "name": "lab.Out", "fields": [{"name": "i", "type": "lab.In"}]}
    reference = SchemaReference("lab.In", f"{topic}-in", 1)
    schema_id = theirs.register_schema(f"{topic}-value", TheirSchema(json.dumps(outer), "AVRO", [reference]))
    read = avro().to_connect(topic, b"\0" + schema_id.to_bytes(4, "big") + b"\x06")
    assert read.value == {"i": {"x": 3}}


def test_an_incompatible_schema_is_refused_by_the_registry(
    avro: Make, topic: str, theirs: SchemaRegistryClient
) -> None:
    converter = avro()
    converter.from_connect(topic, ORDER, VALUE)
    theirs.set_compatibility(f"{topic}-value", "BACKWARD")
    with pytest.raises(DataError, match="compatibility level of the subject"):
        converter.from_connect(topic, Schema.struct({"other": Schema.int32()}, name="shop.Order"), {"other": 1})


def test_an_id_that_the_registry_does_not_have(avro: Make, topic: str) -> None:
    with pytest.raises(DataError, match="id 99999"):
        avro().to_connect(topic, b"\0\x00\x01\x86\x9f\x00")


def test_evolution_with_the_latest_version(avro: Make, topic: str) -> None:
    old = Schema.struct({"a": Schema.int32()}, name="shop.E")
    new = Schema.struct({"a": Schema.int32(), "b": Schema.string(optional=True)}, name="shop.E")
    message = avro().from_connect(topic, old, {"a": 1})
    avro().from_connect(topic, new, {"a": 2, "b": "x"})
    schema, value = avro(use_latest_version="true").to_connect(topic, message)
    assert (schema, value) == (new.replace(version=2), {"a": 1, "b": None})


@pytest.fixture
def own(registry_application: Path, tmp_path: Path) -> Iterator[EmbeddedRegistry]:
    """A registry of this test's own, to be killed and stopped."""
    embedded = EmbeddedRegistry(RegistryServerConfig(folder=tmp_path / "own registry", port=0))
    yield embedded
    embedded.stop()


def test_a_registry_that_is_down_and_comes_back(own: EmbeddedRegistry, registry: RegistryInfo, topic: str) -> None:
    with own.lease() as info, own.lease() as second:
        assert (info.pid, second.leases) == (second.pid, 2)
        quick = {"schema.registry.url": info.url, "retries.wait.ms": "1", "max.retries": "2"}
        converter = AvroConverter.configured(quick)
        message = converter.from_connect(topic, ORDER, VALUE)
        own.kill()
        assert own.status() is None
        assert converter.from_connect(topic, ORDER, VALUE) == message
        with pytest.raises(RetriableError, match="the schema registry does not answer"):
            converter.from_connect(topic, Schema.int64(), 5)
        with_another = {**quick, "schema.registry.url": f"{info.url},{registry.url}"}
        other = AvroConverter.configured(with_another)
        assert other.to_connect(topic, other.from_connect(topic, Schema.int64(), 5)).value == 5
        with own.lease() as again:
            assert again.url == info.url
            fresh = AvroConverter.configured(quick)
            assert fresh.to_connect(topic, message) == SchemaAndValue(ORDER.replace(version=1), VALUE)
            assert fresh.from_connect(topic, Schema.int64(), 5) is not None
        assert own.status() is not None, "there are leases yet"
    assert own.status() is None, "the last lease has ended"
    for each in (converter, other, fresh):
        each.close()


def test_the_commands_start_tell_and_stop(registry_application: Path, tmp_path: Path) -> None:
    runner, folder = CliRunner(), ["--folder", str(tmp_path / "cli")]
    try:
        assert runner.invoke(registry_command, ["status", *folder]).exit_code == 3
        started = runner.invoke(registry_command, ["start", *folder, "--port", "0", "--storage", "memory"])
        assert started.exit_code == 0, started.output
        told = runner.invoke(registry_command, ["status", *folder])
        assert (told.exit_code, told.stdout) == (0, started.stdout)
        assert "runs until `sluice registry stop`" in told.output
        assert "in memory" in told.output
        other = runner.invoke(registry_command, ["start", *folder])
        assert other.exit_code == 1
        assert "runs with memory; stop it first" in other.output
    finally:
        stopped = runner.invoke(registry_command, ["stop", *folder])
    assert (stopped.exit_code, stopped.output) == (0, "Stopped.\n")
    assert runner.invoke(registry_command, ["status", *folder]).exit_code == 3


def test_a_column_of_a_thousand_is_written_like_rows(avro: Make, topic: str) -> None:
    converter = avro()
    values: list[Any] = [{**VALUE, "id": number, "at": dt.time(1, 2) if number % 2 else None} for number in range(1000)]
    messages = converter.from_connect_column(topic, ValueColumn(values, ORDER))
    assert messages == [converter.from_connect(topic, ORDER, value) for value in values]
