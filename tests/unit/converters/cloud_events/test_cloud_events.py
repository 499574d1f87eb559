"""CloudEvents on their way through the chain of a source and that of a sink, and those of others."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from connect.config import InvalidConfigError
from connect.data import (
    Constant,
    Header,
    Headers,
    Schema,
    SinkRecord,
    SourceBatch,
    SourceRecord,
    TimestampType,
    ValueColumn,
    decimal_schema,
)
from connect.errors import ConfigError, DataError
from connect.internals.chain.converters import Converters
from connect.internals.chain.raw_records import ConsumedBatch
from connect.internals.chain.sink import SinkChain
from connect.internals.chain.source import SourceChain
from connect.internals.chain.steps import Steps
from connect.internals.chain.tolerance import ErrorPolicy, Tolerance
from connect.kits.cdc.envelope import source_schema
from connect.kits.cdc.table_schemas import envelope_schema
from converters.cloud_events import CloudEventsConverter, CloudEventsConverterConfig
from converters.json import JsonConverter
from equipment.fakes.schema_registry import MemoryRegistry, serving

SOURCE = source_schema(
    "io.debezium.connector.postgresql.Source",
    {
        "schema": Schema.string(),
        "table": Schema.string(),
        "txId": Schema.int64(optional=True),
        "lsn": Schema.int64(optional=True),
        "xmin": Schema.int64(optional=True),
    },
)
ROW = Schema.struct({"pk": Schema.int32(), "price": decimal_schema(2, optional=True)}, name="s1.a.Value", optional=True)
ENVELOPE = envelope_schema("test_server.s1.a.Envelope", ROW, SOURCE)
PRICE = Decimal("12345678901234567.89")
CHANGE = {
    "before": None,
    "after": {"pk": 1, "price": PRICE},
    "source": {
        "version": "3.6.3.Final",
        "connector": "postgresql",
        "name": "test_server",
        "ts_ms": 1578923739738,
        "snapshot": "true",
        "db": "postgres",
        "schema": "s1",
        "table": "a",
        "txId": 565,
        "lsn": 29274832,
        "xmin": None,
    },
    "op": "r",
    "ts_ms": 1578923739739,
    "transaction": None,
}
ATTRIBUTES = {
    "id": "name:test_server;lsn:29274832;txId:565;sequence:null",
    "source": "/debezium/postgresql/test_server",
    "specversion": "1.0",
    "type": "io.debezium.connector.postgresql.DataChangeEvent",
    "time": "2020-01-13T13:55:39.738Z",
    "datacontenttype": "application/json",
}
DATA = {"before": None, "after": {"pk": 1, "price": PRICE}}


@pytest.fixture
def memory() -> Iterator[MemoryRegistry]:
    with serving(MemoryRegistry()) as registry:
        yield registry


def never(seconds: float) -> bool:
    raise AssertionError(seconds)


def converters(props: dict[str, str]) -> Converters:
    plain = JsonConverter.configured({"schemas.enable": "true"})
    return Converters(plain, CloudEventsConverter.configured(props), plain)


def written(props: dict[str, str], records: list[SourceRecord]) -> list[tuple[Any, Any]]:
    """The values and headers that a source's chain makes, which are the same by row and by column."""
    tolerance = Tolerance(ErrorPolicy(), [], wait=never)
    chain = SourceChain(Steps((), tolerance), converters(props), tolerance)
    by_row = [chain.encode(record)[1:] for record in records]
    schema = records[0].value_schema
    batch = SourceBatch.of(
        "t",
        ValueColumn([record.value for record in records], schema),
        headers=[record.headers for record in records],
        source_partition={},
        source_offsets=[{} for _ in records],
    )
    (encoded,) = chain.process(batch)
    assert list(encoded.values) == [value for value, _ in by_row]
    chain.close()
    return by_row


def read(props: dict[str, str], values: list[bytes | None]) -> list[SinkRecord]:
    count, tolerance = len(values), Tolerance(ErrorPolicy(), [], wait=never)
    chain = SinkChain(Steps((), tolerance), converters(props), tolerance)
    none: Constant[None] = Constant(None, count)
    kinds = Constant(TimestampType.CREATE_TIME, count)
    batch = ConsumedBatch("t", none, values, Constant(0, count), range(count), [0] * count, kinds, none)
    found = [record for part in chain.process(batch) for record in part]
    chain.close()
    return found


def record(value: Any = CHANGE, schema: Schema | None = ENVELOPE, headers: Headers | None = None) -> SourceRecord:
    return SourceRecord("t", value, schema, headers=headers or Headers(), source_partition={}, source_offset={})


@pytest.mark.parametrize("form", ["json", "avro in json", "avro"])
def test_a_change_comes_back_from_a_sinks_chain(memory: MemoryRegistry, form: str) -> None:
    props = {"extension.attributes.enable": "false"}
    if form != "json":
        props |= {"data.serializer.type": "avro", "avro.schema.registry.url": memory.url}
    if form == "avro":
        props["serializer.type"] = "avro"
    ((value, _),) = written(props, [record()])
    found, none = read(props, [value, None])
    assert none.value is None
    attributes = dict(ATTRIBUTES)
    if form != "json":
        attributes |= {"datacontenttype": "application/avro", "dataschema": f"{memory.url}/schemas/ids/1"}
    assert found.value == {**attributes, "data": DATA}
    if form == "avro":
        assert found.value_schema is not None
        assert found.value_schema.name == "test_server.postgres.CloudEvents.Envelope"
        data = found.value_schema.field("data")
        assert data is not None
        assert data.schema.field_names == ("before", "after")


def test_attributes_of_source_and_transaction_extend_an_event() -> None:
    change = {**CHANGE, "transaction": {"id": "571", "total_order": 1, "data_collection_order": 2}}
    ((value, _),) = written({"json.schemas.enable": "false", "json.decimal.format": "numeric"}, [record(change)])
    assert json.loads(value, parse_float=Decimal) == {
        **ATTRIBUTES,
        "iodebeziumop": "r",
        "iodebeziumversion": "3.6.3.Final",
        "iodebeziumconnector": "postgresql",
        "iodebeziumname": "test_server",
        "iodebeziumtsms": "1578923739738",
        "iodebeziumsnapshot": "true",
        "iodebeziumdb": "postgres",
        "iodebeziumsequence": None,
        "iodebeziumtsus": None,
        "iodebeziumtsns": None,
        "iodebeziumschema": "s1",
        "iodebeziumtable": "a",
        "iodebeziumtxId": "565",
        "iodebeziumlsn": "29274832",
        "iodebeziumxmin": None,
        "iodebeziumtxid": "571",
        "iodebeziumtxtotalorder": "1",
        "iodebeziumtxdatacollectionorder": "2",
        "data": DATA,
    }


def test_metadata_may_be_in_headers() -> None:
    text = Schema.string()
    headers = Headers(
        [
            Header("source", CHANGE["source"], SOURCE),
            Header("op", "c", text),
            Header("id", "first", text),
            Header("id", "last", text),
            Header("traceparent", "00-a-b-01", text),
        ]
    )
    props = {
        "metadata.source": "header,id:header,type:generate,traceparent:header",
        "opentelemetry.tracing.attributes.enable": "true",
        "extension.attributes.enable": "false",
    }
    row = ROW.as_required()
    ((value, raw), (bare, _)) = written(props, [record(DATA["after"], row, headers), record(DATA["after"], row)])
    assert bare is None  # no change without source and op
    assert [name for name, _ in raw] == ["source", "op", "id", "id", "traceparent"]
    (found,) = read(props, [value])
    assert found.value == {**ATTRIBUTES, "id": "last", "traceparent": "00-a-b-01", "data": DATA["after"]}


def test_what_is_no_change_has_no_value_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    heartbeat = Schema.struct({"ts_ms": Schema.int64()}, name="io.debezium.connector.common.Heartbeat")
    with caplog.at_level(logging.WARNING):
        assert [value for value, _ in written({}, [record({"ts_ms": 1}, heartbeat)] * 3)] == [None] * 3
    assert [message for message in caplog.messages if "describes no change" in message] == [
        "A record of topic t with the schema io.debezium.connector.common.Heartbeat describes no change, so it is "
        "written without a value, as are others like it: send them to a converter of their own."
    ]


def test_events_of_others_are_read() -> None:
    event = {"id": "1", "source": "/shop", "specversion": "1.0", "type": "sold"}
    for data in ({"data": {"a": 1}}, {"data": "text"}, {}, {"data": None}, {"data_base64": "AP8="}):
        (found,) = read({}, [json.dumps({**data, **event}).encode()])
        assert found.value == {**event, **data}
    enclosed = {"schema": {"type": "int64", "optional": False}, "payload": 5}
    (found,) = read({}, [json.dumps({"data": enclosed, **event}).encode()])
    assert found.value == {**event, "data": 5}


def test_what_is_no_event_is_a_bad_record(memory: MemoryRegistry) -> None:
    avro = {"data.serializer.type": "avro", "avro.schema.registry.url": memory.url}
    event = b'{"id":"1","source":"/s","specversion":"1.0","type":"t","data":'
    for props, message in (
        ({}, b"{}"),
        ({}, b"[]"),
        ({}, b"null"),
        ({}, b'{"id":"1","source":"/s","type":"t"}'),
        ({}, event + b'{"schema":{"type":"no"},"payload":1}}'),
        ({}, event),
        (avro, event + b'"no base64"}'),
        (avro, event + b'"AAAAAGM="}'),
        ({**avro, "serializer.type": "avro"}, b"\0\0\0\0\x63"),
        ({**avro, "serializer.type": "avro"}, b""),
    ):
        made = CloudEventsConverter.configured(props)
        with pytest.raises(DataError):
            made.to_connect("t", message)
        made.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": {**CHANGE["source"], "connector": "acme"}}, "acme"),  # type: ignore[dict-item]
        ({"source": None}, "source"),
        ({"source": {**CHANGE["source"], "ts_ms": None}}, "ts_ms"),  # type: ignore[dict-item]
        ({"source": {**CHANGE["source"], "ts_ms": 10**17}}, "year 9999"),  # type: ignore[dict-item]
        ({"op": None}, "iodebeziumop"),
    ],
)
def test_a_change_that_lacks_what_an_event_needs_is_a_bad_record(change: dict[str, Any], words: str) -> None:
    made = CloudEventsConverter.configured({})
    with pytest.raises(DataError, match=words):
        made.from_connect("t", ENVELOPE, {**CHANGE, **change})


def test_a_source_that_is_no_attribute_is_refused_unless_it_is_left_out() -> None:
    odd = source_schema("Odd", {"list": Schema.array(Schema.string(), optional=True)})
    envelope = envelope_schema("x.Envelope", ROW, odd)
    change = {**CHANGE, "source": {**CHANGE["source"], "list": ["a"]}}  # type: ignore[dict-item]
    with pytest.raises(DataError, match=r"list of the record's source .* extension\.attributes\.enable=false"):
        CloudEventsConverter.configured({}).from_connect("t", envelope, change)
    plain = CloudEventsConverter.configured({"extension.attributes.enable": "false"})
    assert plain.from_connect("t", envelope, change) is not None


def test_headers_that_are_not_json_with_a_schema_say_what_to_set() -> None:
    made = CloudEventsConverter.configured({"metadata.source": "value,id:header,type:generate"})
    with pytest.raises(DataError, match="no header id"):
        made.from_connect_with_headers("t", [], ENVELOPE, CHANGE)
    with pytest.raises(DataError, match=r"header\.converter=org\.apache\.kafka\.connect\.json\.JsonConverter"):
        made.from_connect_with_headers("t", [("id", b"plain")], ENVELOPE, CHANGE)
    with pytest.raises(DataError, match="is no text"):
        number = b'{"schema":{"type":"int32"},"payload":1}'
        made.from_connect_with_headers("t", [("id", number)], ENVELOPE, CHANGE)


@pytest.mark.parametrize(
    ("props", "words"),
    [
        ({"serializer.type": "avro"}, "within events in Avro data is Avro"),
        ({"data.serializer.type": "avro"}, "avro.schema.registry.url"),
        ({"metadata.source": "generate"}, "begin with value or header"),
        ({"metadata.source": ""}, "begin with value or header"),
        ({"metadata.source": "value"}, "id:generate"),
        ({"metadata.source": "value,time:header"}, "'time' is none of"),
        ({"metadata.source": "value,id:here,type:generate"}, "not 'here'"),
        (
            {"metadata.source": "header,traceparent:generate", "opentelemetry.tracing.attributes.enable": "true"},
            "traceparent can only come from a header",
        ),
        ({"json.decimal.format": "HEX"}, "json.decimal.format"),
        (
            {
                "data.serializer.type": "avro",
                "avro.schema.registry.url": "http://127.0.0.1:1",
                "avro.value.schema.id.serializer": "HeaderSchemaIdSerializer",
            },
            "named by their ids",
        ),
    ],
)
def test_options_that_cannot_be_are_refused(props: dict[str, str], words: str) -> None:
    with pytest.raises((ConfigError, InvalidConfigError), match=words):
        CloudEventsConverterConfig.parse(props)


def test_the_keys_of_its_converters_are_known_and_none_is_required() -> None:
    keys = {key.name: key for key in CloudEventsConverterConfig.definitions()}
    assert not any(key.required for key in keys.values())
    assert {"json.schemas.enable", "avro.schema.registry.url", "avro.basic.auth.user.info"} <= keys.keys()
    assert not {"json.converter.type", "avro.http.allowed.hosts", "json.schema.content"} & keys.keys()


def test_the_rules_for_hosts_are_the_workers() -> None:
    given = {
        "avro.schema.registry.url": "http://registry:1",
        "avro.http.allowed.hosts": "*",
        "http.allowed.hosts": "other",
        "data.serializer.type": "avro",
    }
    assert CloudEventsConverterConfig.parse(given).avro.http_allowed_hosts == ("other",)


def test_the_link_to_a_schema_tells_no_password(memory: MemoryRegistry) -> None:
    url = memory.url.replace("http://", "http://me:secret@")
    made = CloudEventsConverter.configured({"data.serializer.type": "avro", "avro.schema.registry.url": url})
    message = made.from_connect("t", ENVELOPE, CHANGE)
    made.close()
    assert message is not None
    event = json.loads(message)
    assert event["dataschema"] == f"{memory.url}/schemas/ids/1"
    assert base64.b64decode(event["data"])[:5] == b"\0\0\0\0\1"
