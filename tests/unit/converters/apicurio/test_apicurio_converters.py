"""Avro and JSON with schemas in Apicurio Registry: where schemas are named, which is chosen, and what may fail."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from connect.data import Constant, Schema, SchemaAndValue, SourceRecord, TimestampType, ValueColumn
from connect.errors import ConfigError, ConnectError, DataError, RetriableError
from connect.internals.chain.converters import Converters
from connect.internals.chain.raw_records import ConsumedBatch
from connect.internals.chain.sink import SinkChain
from connect.internals.chain.source import SourceChain
from connect.internals.chain.steps import Steps
from connect.internals.chain.tolerance import ErrorPolicy, Tolerance
from connect.internals.plugins import PluginKind, PluginRegistry
from connectors.spark.decoding.columns import column_reader
from converters.apicurio import ApicurioAvroConverter, ExtJsonConverter
from converters.simple_header import SimpleHeaderConverter
from equipment.fakes.apicurio import MemoryApicurio

ROW = Schema.struct({"a": Schema.int64(), "b": Schema.string(optional=True)}, name="shop.Row")
VALUE = {"a": 7, "b": "x"}
BODY = b"\x0e\x02\x02x"
TWO, THREE = "/apis/registry/v2", "/apis/registry/v3"
OLD = "io.apicurio.registry.serde."
Make = Callable[..., Any]


@pytest.fixture
def make(memory: MemoryApicurio) -> Iterator[Make]:
    """Makes converters that register what they write, from keys without their beginning."""
    made: list[Any] = []

    def converter(path: str = "", kind: Any = ApicurioAvroConverter, *, is_key: bool = False, **props: str) -> Any:
        given = {"url": memory.url + path, "auto_register": "true", **props}
        named = {f"apicurio.registry.{key.replace('_', '-').replace('--', '.')}": text for key, text in given.items()}
        made.append(kind.configured(named, is_key=is_key))
        return made[-1]

    yield converter
    for each in made:
        each.close()


def id_of(number: int, size: int) -> bytes:
    return b"\0" + number.to_bytes(size, "big")


@pytest.mark.parametrize(
    ("path", "props", "frame"),
    [
        ("", {}, id_of(2, 4)),
        (THREE, {}, id_of(2, 4)),
        (THREE, {"use_id": "globalId"}, id_of(1, 4)),
        (THREE, {"id_handler": "io.apicurio.registry.serde.Legacy8ByteIdHandler"}, id_of(2, 8)),
        (TWO, {"headers__enabled": "false"}, id_of(1, 8)),
        (TWO, {"headers__enabled": "false", "use_id": "contentId"}, id_of(2, 8)),
        (TWO, {"headers__enabled": "false", "id_handler": OLD + "Legacy4ByteIdHandler"}, id_of(1, 4)),
        (TWO, {"headers__enabled": "false", "as_confluent": "true"}, id_of(1, 4)),
    ],
)
def test_ids_stand_before_the_data(make: Make, path: str, props: dict[str, str], frame: bytes) -> None:
    converter = make(path, **props)
    assert converter.from_connect("t", ROW, VALUE) == frame + BODY
    assert converter.to_connect("t", frame + BODY) == SchemaAndValue(ROW, VALUE)
    (column,) = converter.to_connect_column("t", [frame + BODY] * 3)
    assert list(column) == [VALUE] * 3
    (arrow,) = converter.to_connect_arrow("t", pa.array([frame + BODY] * 200, pa.binary()))
    assert arrow.to_arrow().to_pylist() == [VALUE] * 200


def never(seconds: float) -> bool:
    raise AssertionError(seconds)


def chains(key: Any, value: Any) -> tuple[SourceChain, SinkChain]:
    tolerance = Tolerance(ErrorPolicy(), [], wait=never)
    made = Converters(key, value, SimpleHeaderConverter.configured({}))
    return SourceChain(Steps((), tolerance), made, tolerance), SinkChain(Steps((), tolerance), made, tolerance)


def consumed(values: list[Any], headers: list[Any]) -> ConsumedBatch:
    count = len(values)
    nothing: Any = Constant(None, count)
    times = [TimestampType.CREATE_TIME] * count
    return ConsumedBatch("t", nothing, values, Constant(0, count), range(count), [0] * count, times, headers)


@pytest.mark.parametrize(
    ("path", "props", "name", "number"),
    [
        (TWO, {}, "apicurio.value.globalId", 1),
        (TWO, {"use_id": "contentId"}, "apicurio.value.contentId", 2),
        (THREE, {"headers__enabled": "true"}, "apicurio.value.contentId", 2),
        (TWO, {"headers__value__globalId__name": "own"}, "own", 1),
    ],
)
def test_ids_are_in_headers(make: Make, path: str, props: dict[str, str], name: str, number: int) -> None:
    value = make(path, **props)
    source, sink = chains(make(path, is_key=True, **props), value)
    record = SourceRecord("t", VALUE, ROW, source_partition={}, source_offset={})
    _, data, headers = source.encode(record)
    assert (data, headers) == (BODY, [(name, number.to_bytes(8, "big"))])
    prefix = id_of(number, 4 if path == THREE else 8)
    batch = consumed([data, prefix + BODY, None], [headers, None, headers])
    assert [record.value for found in sink.process(batch) for record in found] == [VALUE, VALUE, None]
    assert sink.decode(batch, 0).value == VALUE


def test_of_both_headers_the_content_id_counts(make: Make) -> None:
    value = make(TWO)
    value.from_connect("t", ROW, VALUE)
    headers = [("apicurio.value.globalId", bytes(8)), ("apicurio.value.contentId", (2).to_bytes(8, "big"))]
    _, sink = chains(make(TWO, is_key=True), value)
    assert sink.decode(consumed([BODY], [headers]), 0).value == VALUE


@pytest.mark.parametrize("path", [TWO, THREE])
def test_a_key_has_an_artifact_of_its_own(make: Make, memory: MemoryApicurio, path: str) -> None:
    make(path, is_key=True).from_connect("t", ROW, VALUE)
    make(path, artifact_resolver_strategy="TopicRecordIdStrategy").from_connect("t", ROW, VALUE)
    make(path, artifact__group_id="g 1", artifact__artifact_id="own").from_connect("t", ROW, VALUE)
    assert [name for name, _ in memory.versions] == [("default", "t-key"), ("shop", "t-Row"), ("g 1", "own")]


@pytest.mark.parametrize("path", [TWO, THREE])
@pytest.mark.parametrize("kind", [ApicurioAvroConverter, ExtJsonConverter])
def test_schemas_that_are_not_registered_are_bad_records(make: Make, path: str, kind: Any) -> None:
    strict = make(path, kind, auto_register="false")
    with pytest.raises(DataError, match=r"artifact t-value in the group default.*auto-register=true"):
        strict.from_connect("t", ROW, VALUE)
    message = make(path, kind).from_connect("t", ROW, VALUE)
    assert strict.from_connect("t", ROW, VALUE) == message


@pytest.mark.parametrize("path", [TWO, THREE])
def test_values_are_written_in_the_latest_version(make: Make, memory: MemoryApicurio, path: str) -> None:
    fields = [{"name": name, "type": kind} for name, kind in (("b", ["null", "string"]), ("a", "long"))]
    latest = {"type": "record", "name": "Row", "namespace": "shop", "fields": fields}
    make(path).from_connect("t", ROW, VALUE)
    follows = make(path, auto_register="false", find_latest="true", check_period_ms="0")
    first = follows.from_connect("t", ROW, VALUE)
    memory.add("default", "t-value", json.dumps(latest))
    second = follows.from_connect("t", ROW, VALUE)
    assert (first[-len(BODY) :], second[-len(BODY) :]) == (BODY, b"\x02\x02x\x0e")
    assert follows.to_connect("t", second).value == VALUE
    fixed = make(path, auto_register="false", artifact__version="1")
    assert fixed.from_connect("t", ROW, VALUE) == first
    asked = len(memory.requests)
    assert fixed.from_connect("t", ROW, VALUE) == first
    assert len(memory.requests) == asked


def test_references_are_followed(make: Make, memory: MemoryApicurio) -> None:
    inner = {"type": "record", "name": "lab.In", "fields": [{"name": "x", "type": "int"}]}
    middle = {"type": "record", "name": "lab.Mid", "fields": [{"name": "i", "type": "lab.In"}]}
    outer = {"type": "record", "name": "lab.Out", "fields": [{"name": "m", "type": "lab.Mid"}]}
    named = {"groupId": "lab", "version": "1", "name": "-"}
    memory.add("lab", "in", json.dumps(inner))
    memory.add("lab", "mid", json.dumps(middle), [{**named, "artifactId": "in"}])
    memory.add("lab", "out", json.dumps(outer), [{**named, "artifactId": "mid"}])
    converter = make(use_id="globalId")
    assert converter.to_connect("t", id_of(3, 4) + b"\x06").value == {"m": {"i": {"x": 3}}}
    memory.references[json.dumps(inner)] = [{**named, "artifactId": "mid"}]
    with pytest.raises(DataError, match="refers to itself"):
        make(use_id="globalId").to_connect("t", id_of(3, 4) + b"\x06")


@pytest.mark.parametrize(
    "damaged", [id_of(2, 4)[:4], id_of(2, 4), id_of(9, 4) + BODY, id_of(2, 4) + BODY + b"\0", b"\2" + bytes(8) + BODY]
)
def test_damaged_messages_are_named(make: Make, damaged: bytes) -> None:
    converter = make()
    good = converter.from_connect("t", ROW, VALUE)
    with pytest.raises(DataError) as row:
        converter.to_connect("t", damaged)
    with pytest.raises(DataError):
        converter.to_connect_column("t", [good, damaged])
    if damaged.endswith(BODY + b"\0"):
        assert "the Avro schema with the contentId 2" in str(row.value)


def test_json_is_read_however_it_is_written(make: Make) -> None:
    converter = make(kind=ExtJsonConverter)
    message = converter.from_connect("t", ROW, VALUE)
    assert message == b'{"schemaId":2,"payload":{"a":7,"b":"x"}}'
    others = [
        b' {"payload": {"b":"x", "a":7}, "schemaId": 2, "more": []}',
        b'{"schemaId":2,"payload":{"a":7,"b":"x"} }',
    ]
    for other in others:
        assert converter.to_connect("t", other) == SchemaAndValue(ROW, VALUE)
    messages = [message, None, *others, message, message]
    columns = converter.to_connect_column("t", messages)
    assert [value for column in columns for value in column] == [VALUE, None, *[VALUE] * 4]
    again = converter.from_connect_column("t", ValueColumn([VALUE, None], ROW.as_optional()))
    assert again == [message.replace(b":2,", b":4,"), b'{"schemaId":4,"payload":null}']
    big = b'{"schemaId":2,"payload":{"a":9223372036854775808,"b":"x"}}'
    with pytest.raises(DataError):
        converter.to_connect("t", big)
    with pytest.raises(DataError):
        converter.to_connect_column("t", [message, big])


def test_json_whose_schema_is_of_another_format(make: Make, memory: MemoryApicurio) -> None:
    memory.add("default", "t-value", '{"type":"record","name":"R","fields":[]}')
    with pytest.raises(DataError, match="contentId 2 is none of Kafka Connect's"):
        make(kind=ExtJsonConverter).to_connect("t", b'{"schemaId":2,"payload":{}}')


@pytest.mark.parametrize("path", [TWO, THREE])
def test_a_registry_that_does_not_answer(make: Make, memory: MemoryApicurio, path: str) -> None:
    quick = {"retry_count": "2", "retry_backoff_ms": "0"}
    memory.answers.extend([(503, ""), (429, "")])
    assert make(path, **quick).from_connect("t", ROW, VALUE)
    memory.answers.extend([(503, "")] * 3)
    with pytest.raises(RetriableError, match=r"does not answer \(HTTP status 503\)"):
        make(path, **quick).from_connect("t", ROW, VALUE)


def test_what_a_registry_refuses(make: Make, memory: MemoryApicurio) -> None:
    refusal = {"title": "Incompatible artifact", "name": "RuleViolationException", "status": 409}
    memory.answers.append((409, json.dumps(refusal)))
    with pytest.raises(DataError, match="Incompatible artifact"):
        make().from_connect("t", ROW, VALUE)
    for status, body in ((404, "<html>"), (200, "<html>"), (200, "{}"), (302, ""), (418, json.dumps(refusal))):
        memory.answers.append((status, body))
        with pytest.raises(ConnectError) as caught:
            make().from_connect("t", ROW, VALUE)
        assert not isinstance(caught.value, DataError | RetriableError)


CLIENT = {"auth__client__id": "me", "auth__client__secret": "s3cret"}


@pytest.mark.parametrize(
    ("props", "authorization"),
    [
        ({"auth__username": "me", "auth__password": "s3cret"}, "Basic bWU6czNjcmV0"),
        (CLIENT, "Bearer t0ken"),
    ],
)
def test_credentials(make: Make, memory: MemoryApicurio, props: dict[str, str], authorization: str) -> None:
    memory.authorization = authorization
    if props is CLIENT:
        props = {**CLIENT, "auth__service__token__endpoint": f"{memory.url}/token"}
    assert make(**props).from_connect("t", ROW, VALUE)
    memory.authorization = "Basic other"
    with pytest.raises(ConnectError, match=r"apicurio\.registry\.auth keys") as caught:
        make(**props).from_connect("u", ROW, VALUE)
    assert not isinstance(caught.value, DataError)


def test_the_names_of_credentials_in_apicurio_2(memory: MemoryApicurio) -> None:
    memory.authorization = "Basic bWU6czNjcmV0"
    given = {
        "apicurio.registry.auto-register": "true",
        "apicurio.auth.username": "me",
        "apicurio.auth.password": "s3cret",
    }
    old = ApicurioAvroConverter.configured({"apicurio.registry.url": memory.url + TWO, **given})
    assert old.from_connect("t", ROW, VALUE)
    with_user = ApicurioAvroConverter.configured(
        {"apicurio.registry.url": memory.url.replace("//", "//me:s3cret@"), "apicurio.registry.auto-register": "true"}
    )
    assert with_user.from_connect("t", ROW, VALUE)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("url", "ftp://x"),
        ("url", "http://user:s3cret@x?y=s3cret"),
        ("use-id", "hash"),
        ("id-handler", "com.acme.Own"),
        ("artifact-resolver-strategy", "com.acme.Own"),
        ("auto-register.if-exists", "RETURN"),
        ("avro.encoding", "JSON"),
        ("auth.username", "me"),
        ("auth.service.token.endpoint", "http://x/token"),
    ],
)
def test_configurations_that_are_refused(key: str, value: str) -> None:
    given = {"apicurio.registry.url": "http://127.0.0.1:1", f"apicurio.registry.{key}": value}
    with pytest.raises(ConfigError) as caught:
        ApicurioAvroConverter.configured(given)
    assert "s3cret" not in str(caught.value)


def test_schemas_of_json_have_no_records() -> None:
    given = {"apicurio.registry.artifact-resolver-strategy": "RecordIdStrategy"}
    with pytest.raises(ConfigError, match="TopicIdStrategy"):
        ExtJsonConverter.configured({"apicurio.registry.url": "http://127.0.0.1:1", **given})


@pytest.mark.parametrize(
    ("name", "kind"), [("AvroConverter", ApicurioAvroConverter), ("ExtJsonConverter", ExtJsonConverter)]
)
def test_the_names_of_java(name: str, kind: type[Any]) -> None:
    found = PluginRegistry.discover((), []).load(PluginKind.CONVERTER, f"io.apicurio.registry.utils.converter.{name}")
    assert found is kind


@pytest.mark.parametrize(("path", "props"), [(TWO, {"headers__enabled": "false"}), (TWO, {}), (THREE, {})])
def test_executors_of_spark_read_by_column(make: Make, path: str, props: dict[str, str]) -> None:
    converter = make(path, **props)
    reader = column_reader(converter)
    assert reader is not None
    messages = converter.from_connect_column("t", ValueColumn([VALUE] * 100, ROW))
    (reading,) = reader("t", pa.array(messages, pa.binary()), None)
    assert (reading.column.schema, list(reading.column.values())) == (ROW, [VALUE] * 100)


def test_bytes_have_their_length(make: Make) -> None:
    converter = make()
    for schema in (Schema.bytes(), Schema.bytes(optional=True)):
        message = converter.from_connect(f"t{schema.optional}", schema, b"abc")
        assert message.endswith(b"\x06abc")
        assert converter.to_connect("t", message) == SchemaAndValue(schema, b"abc")
        with pytest.raises(DataError):
            converter.to_connect("t", message + b"d")


def test_an_id_that_does_not_fit(make: Make, memory: MemoryApicurio) -> None:
    answer = {"version": {"globalId": 2**40, "contentId": 2**40}}
    memory.answers.append((200, json.dumps(answer)))
    with pytest.raises(DataError, match=r"set apicurio\.registry\.id-handler"):
        make().from_connect("t", ROW, VALUE)
    memory.answers.append((200, json.dumps(answer)))
    message = make(id_handler="Legacy8ByteIdHandler").from_connect("t", ROW, VALUE)
    assert base64.b16encode(message[:9]) == b"000000010000000000"
