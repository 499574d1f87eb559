"""The Avro converter against a registry in memory: ids, subjects, versions, columns, what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.data import Schema, SchemaAndValue, ValueColumn, timestamp_schema
from connect.errors import DataError, RetriableError, SchemaError
from converters.avro import AvroConverter, AvroConverterConfig
from equipment.examples import examples
from equipment.fakes.schema_registry import MemoryRegistry, serving
from equipment.vectors import encoded
from unit.connect.kits.avro.codecs_of import mutated

Make = Callable[..., AvroConverter]
POINT = Schema.struct({"x": Schema.int32(), "label": Schema.string(optional=True)}, name="geo.Point")
ONE = {"x": 1, "label": None}


@pytest.fixture
def converter(memory: MemoryRegistry) -> Iterator[Make]:
    """Makes converters that use the registry, from keys with underscores for dots."""
    made: list[AvroConverter] = []

    def make(is_key: bool = False, **props: str) -> AvroConverter:
        named = {"schema_registry_url": memory.url, "max_retries": "0", **props}
        config = {key.replace("_", "."): value for key, value in named.items()}
        made.append(AvroConverter.configured(config, is_key=is_key))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_message_is_a_zero_the_id_and_the_value(converter: Make, memory: MemoryRegistry) -> None:
    memory.add("other", '"int"')
    assert converter().from_connect("t", POINT, {"x": -1, "label": "a"}) == b"\0\0\0\0\x02\x01\x02\x02a"
    assert memory.subjects["t-value"] == [2]


def test_schemas_come_back_with_the_version_of_the_subject(converter: Make, memory: MemoryRegistry) -> None:
    memory.add("t-value", '"int"')
    avro = converter()
    schema, value = avro.to_connect("t", avro.from_connect("t", POINT, ONE))
    assert value == ONE
    assert schema is POINT.replace(version=2)
    versioned = POINT.replace(version=9)
    assert avro.to_connect("t", avro.from_connect("t", versioned, ONE)) == SchemaAndValue(versioned, ONE)
    assert avro.to_connect("elsewhere", avro.from_connect("t", POINT, ONE)) == SchemaAndValue(POINT, ONE)


def test_the_version_does_not_touch_a_logical_type(converter: Make, memory: MemoryRegistry) -> None:
    memory.add("t-value", '"int"')
    memory.add("t-value", '{"type":"long","logicalType":"timestamp-millis"}')
    schema, _value = converter().to_connect("t", b"\0\0\0\0\x02\x00")
    assert schema is timestamp_schema()


def test_bytes_stand_bare_behind_the_id(converter: Make) -> None:
    avro = converter()
    message = avro.from_connect("t", Schema.bytes(), b"abc")
    assert message == b"\0\0\0\0\x01abc"
    assert avro.to_connect("t", message).value == b"abc"
    assert avro.to_connect("t", b"\0\0\0\0\x01").value == b""
    optional = avro.from_connect("t", Schema.bytes(optional=True), b"abc")
    assert optional == b"\0\0\0\0\x02\x02\x06abc"


def test_nulls_are_tombstones(converter: Make, memory: MemoryRegistry) -> None:
    avro = converter()
    assert avro.from_connect("t", None, None) is None
    assert avro.from_connect("t", POINT.as_optional(), None) is None
    assert avro.to_connect("t", None) == SchemaAndValue(None, None)
    with pytest.raises(DataError, match="null value for non-optional schema"):
        avro.from_connect("t", POINT, None)
    assert not memory.requests


@pytest.mark.parametrize(
    ("strategy", "is_key", "subject"),
    [
        ("TopicNameStrategy", True, "t-key"),
        ("io.confluent.kafka.serializers.subject.TopicNameStrategy", False, "t-value"),
        ("RecordNameStrategy", False, "geo.Point"),
        ("io.confluent.kafka.serializers.subject.TopicRecordNameStrategy", False, "t-geo.Point"),
    ],
)
def test_subjects(converter: Make, memory: MemoryRegistry, strategy: str, is_key: bool, subject: str) -> None:
    side = "key" if is_key else "value"
    avro = converter(is_key=is_key, **{f"{side}_subject_name_strategy": strategy})
    message = avro.from_connect("t", POINT, ONE)
    assert list(memory.subjects) == [subject]
    assert avro.to_connect("t", message) == SchemaAndValue(POINT.replace(version=1), ONE)


def test_a_strategy_by_record_needs_a_record(converter: Make) -> None:
    with pytest.raises(DataError, match=r"value\.subject\.name\.strategy = RecordNameStrategy.*TopicNameStrategy"):
        converter(value_subject_name_strategy="RecordNameStrategy").from_connect("t", Schema.int32(), 1)


def test_without_registering_the_schema_must_be_there(converter: Make, memory: MemoryRegistry) -> None:
    strict = converter(auto_register_schemas="false")
    with pytest.raises(DataError, match=r"it must be registered first, or set auto\.register\.schemas=true"):
        strict.from_connect("t", POINT, ONE)
    message = converter().from_connect("t", POINT, ONE)
    assert strict.from_connect("t", POINT, ONE) == message
    assert "POST /subjects/t-value" in memory.requests


WIDER = {
    "type": "record",
    "name": "Point",
    "namespace": "geo",
    "fields": [
        {"name": "colour", "type": "string", "default": "red"},
        {"name": "x", "type": "long"},
        {"name": "label", "type": ["null", "string"], "default": None},
    ],
}


def test_values_are_written_in_the_latest_schema(converter: Make, memory: MemoryRegistry) -> None:
    memory.add("t-value", WIDER)
    avro = converter(auto_register_schemas="false", use_latest_version="true")
    message = avro.from_connect("t", POINT, ONE)
    assert message == b"\0\0\0\0\x01\x06red\x02\x00"
    assert avro.to_connect("t", message).value == {"colour": "red", **ONE}


def test_the_latest_schema_is_looked_for_again(converter: Make, memory: MemoryRegistry) -> None:
    options = {"auto_register_schemas": "false", "use_latest_version": "true", "latest_cache_ttl_sec": "0"}
    avro = converter(**options)
    memory.add("t-value", '"int"')
    assert avro.from_connect("t", Schema.int32(), 1) == b"\0\0\0\0\x01\x02"
    memory.add("t-value", '"long"')
    assert avro.from_connect("t", Schema.int32(), 1) == b"\0\0\0\0\x02\x02"
    assert avro.to_connect("t", b"\0\0\0\0\x01\x02").schema is Schema.int64(version=2)


def test_messages_are_read_in_the_latest_schema(converter: Make, memory: MemoryRegistry) -> None:
    message = converter().from_connect("t", POINT, ONE)
    memory.add("t-value", WIDER)
    schema, value = converter(use_latest_version="true").to_connect("t", message)
    assert value == {"colour": "red", **ONE}
    assert schema is not None
    assert schema.version == 2


@pytest.mark.parametrize(("key", "props"), [("latest", {"use_latest_version": "true"}), ("id", {"use_schema_id": "1"})])
def test_a_schema_that_cannot_be_read_in_the_target_is_refused(
    converter: Make, memory: MemoryRegistry, key: str, props: dict[str, str]
) -> None:
    memory.add("t-value", '"int"')
    with pytest.raises(SchemaError, match=rf"{key}\.compatibility\.strict=false"):
        converter(auto_register_schemas="false", **props).from_connect("t", POINT, ONE)
    loose = converter(auto_register_schemas="false", **props, **{f"{key}_compatibility_strict": "false"})
    with pytest.raises(SchemaError, match="cannot be written as Avro type int"):
        loose.from_connect("t", POINT, ONE)


def test_a_field_that_the_target_lacks_is_not_dropped(converter: Make, memory: MemoryRegistry) -> None:
    fewer = {**WIDER, "fields": WIDER["fields"][1:2]}
    memory.add("t-value", fewer)
    avro = converter(auto_register_schemas="false", use_latest_version="true")
    with pytest.raises(SchemaError, match=r"geo\.Point has no field label"):
        avro.from_connect("t", POINT, ONE)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "too short"),
        (b"\0\0\0", "too short"),
        (b'{"a":1}', "Unknown magic byte"),
        (b"\0\0\0\0\x63\x02", "Schema 99 not found"),
        (b"\0\xff\xff\xff\xff\x02", "id -1"),
    ],
)
def test_messages_of_others_are_refused(converter: Make, data: bytes, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        converter().to_connect("t", data)


@pytest.mark.parametrize("kind", ["JSON", "PROTOBUF"])
def test_schemas_of_other_formats_are_refused(converter: Make, memory: MemoryRegistry, kind: str) -> None:
    memory.add("t-value", "{}", schemaType=kind)
    with pytest.raises(DataError, match=f"of type {kind} and not Avro"):
        converter().to_connect("t", b"\0\0\0\0\x01\x02")


def test_a_registry_that_does_not_answer_is_to_be_tried_later(converter: Make, memory: MemoryRegistry) -> None:
    avro = converter()
    memory.troubles.extend([503, 503])
    with pytest.raises(RetriableError):
        avro.from_connect("t", POINT, ONE)
    with pytest.raises(RetriableError):
        avro.to_connect("t", b"\0\0\0\0\x01\x02")
    assert avro.from_connect("t", POINT, ONE) is not None


def test_a_known_schema_needs_no_registry(converter: Make, memory: MemoryRegistry) -> None:
    avro = converter()
    message = avro.from_connect("t", POINT, ONE)
    avro.to_connect("t", message)
    asked = len(memory.requests)
    for _ in range(3):
        assert avro.to_connect("t", avro.from_connect("t", POINT, ONE)).value == ONE
    assert len(memory.requests) == asked


def test_columns_break_where_the_schema_changes(converter: Make) -> None:
    avro = converter()
    points = avro.from_connect_column("t", ValueColumn([ONE, ONE], POINT))
    numbers = avro.from_connect_column("t", ValueColumn([1, None, 3], Schema.int32(optional=True)))
    columns = avro.to_connect_column("t", [*points, *numbers, *points])
    assert [list(column) for column in columns] == [[ONE, ONE], [1], [None], [3], [ONE, ONE]]
    assert [column.schema and column.schema.type.value for column in columns] == [
        *("struct", "int32", None, "int32", "struct")
    ]


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_columns_are_read_like_rows_whatever_the_bytes(shared: AvroConverter, data: st.DataObject) -> None:
    good = shared.from_connect(
        "t", POINT, {"x": data.draw(st.integers(-9, 9)), "label": data.draw(st.none() | st.text())}
    )
    other = shared.from_connect("t", Schema.int64(), data.draw(st.integers(-9, 9)))
    assert good is not None
    assert other is not None
    choices = st.sampled_from([good, other, None]) | mutated(good) | mutated(other)
    messages = data.draw(st.lists(choices, max_size=6))
    try:
        rows = [shared.to_connect("t", message) for message in messages]
    except DataError:
        with pytest.raises(DataError):
            shared.to_connect_column("t", messages)
        return
    columns = shared.to_connect_column("t", messages)
    found = [(column.schema, encoded(value, column.schema)) for column in columns for value in column]
    assert found == [(schema, encoded(value, schema)) for schema, value in rows]


@pytest.fixture(scope="module")
def shared() -> Iterator[AvroConverter]:
    """A converter for many examples."""
    with serving(MemoryRegistry()) as registry:
        avro = AvroConverter(AvroConverterConfig(schema_registry_url=(registry.url,)))
        yield avro
        avro.close()


def read_all(avro: AvroConverter, messages: Any) -> list[Any]:
    return [value for column in avro.to_connect_column("t", messages) for value in column]


def test_a_reader_and_a_writer_are_made_once_a_schema(converter: Make, memory: MemoryRegistry) -> None:
    avro = converter()
    other = Schema.struct({"y": Schema.int32()}, name="geo.Other")
    messages = [avro.from_connect("t", schema, value) for schema, value in ((POINT, ONE), (other, {"y": 2})) * 3]
    assert read_all(avro, messages) == [ONE, {"y": 2}] * 3
    assert len(memory.requests) == 6
