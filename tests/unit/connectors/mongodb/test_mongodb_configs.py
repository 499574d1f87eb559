"""The configurations of the MongoDB connectors: what is refused, and what to do then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import pytest

from connect.config import Config
from connect.errors import ConnectError
from connect.kits.mongodb.checks import stream_problems, transaction_problems
from connectors.cdc.mongodb import MongoDbConfig
from connectors.cdc.mongodb import positions as captured
from connectors.mongodb import MongoSinkConfig, MongoSourceConfig
from connectors.mongodb.source.positions import position_of, source_partition

_ENUM = '{"type": "enum", "name": "e", "symbols": ["A"]}'
ENUM = f'{{"type": "record", "name": "r", "fields": [{{"name": "e", "type": {_ENUM}}}]}}'
# A name that nothing resolves: what is to be refused is refused before anything connects.
SINK = {"topics": "orders", "database": "shop"}


def errors(kind: type[Config], props: Mapping[str, str]) -> dict[str, str]:
    return {value.name: " ".join(value.errors) for value in kind.validate(props) if value.errors}


@pytest.mark.parametrize(
    ("props", "key", "told"),
    [
        ({"connection.uri": "mongo://x"}, "connection.uri", "It is not a connection string"),
        ({"connection.uri": "mongodb://me:s3cr/et@x"}, "connection.uri", "percent-encoded"),
        ({"connection.uri": "mongodb://169.254.169.254"}, "connection.uri", "clouds serve credentials"),
        ({"connection.uri": "mongodb://x/?w=0"}, "connection.uri", "w=0"),
        ({"connection.ssl.truststore": "/nowhere"}, "connection.ssl.truststore", "It cannot be read"),
        ({"csfle.enabled": "true"}, "csfle.enabled", "encrypt the fields"),
        ({"server.api.strict": "true"}, "server.api.strict", "server.api.version"),
        ({"document.id.strategy": "com.acme.MyStrategy"}, "document.id.strategy", "Java's classes cannot run here"),
        (
            {"document.id.strategy": "PartialKeyStrategy"},
            "document.id.strategy.partial.key.projection.type",
            "AllowList",
        ),
        ({"field.value.transformer": "com.acme.Aes"}, "field.value.transformer", "transformation"),
        (
            {"namespace.mapper.value.collection.field": "c"},
            "namespace.mapper.value.collection.field",
            "namespace.mapper=",
        ),
        ({"timeseries.metafield": "m"}, "timeseries.metafield", "requires timeseries.timefield"),
        ({"timeseries.timefield": "t", "delivery": "exactly-once"}, "delivery", "transactions"),
        (
            {
                "timeseries.timefield": "t",
                "timeseries.timefield.auto.convert.date.format": "[",
                "timeseries.timefield.auto.convert": "true",
            },
            "timeseries.timefield.auto.convert.date.format",
            "not closed",
        ),
        ({"field.renamer.mapping": "[{}]"}, "field.renamer.mapping", "no text oldName"),
        ({"topic.override.orders.connection.uri": "x"}, "topic.override.orders.connection.uri", "cannot be overridden"),
        ({"topic.override.orders.nothing": "x"}, "topic.override.orders.nothing", "names no key"),
        ({"topic.override.a.b.max.batch.size": "-1"}, "topic.override.a.b.max.batch.size", "Of topic a.b"),
    ],
)
def test_the_sink_refuses(props: dict[str, str], key: str, told: str) -> None:
    found = errors(MongoSinkConfig, {**SINK, **props})
    assert list(found) == [key]
    assert told in found[key]
    assert "s3cr" not in found[key]


@pytest.mark.parametrize(
    ("props", "key", "told"),
    [
        ({"collection": "c"}, "database", "collection requires database"),
        ({"pipeline": "{}"}, "pipeline", "not a JSON array"),
        ({"startup.mode": "timestamp"}, "startup.mode.timestamp.start.at.operation.time", "set it"),
        (
            {"startup.mode.timestamp.start.at.operation.time": "soon"},
            "startup.mode.timestamp.start.at.operation.time",
            "Write seconds",
        ),
        ({"topic.mapper": "com.acme.Mapper"}, "topic.mapper", "Java's classes cannot run here"),
        ({"topic.namespace.map": '{"/x/": "{what}"}'}, "topic.namespace.map", "{what} is none of"),
        (
            {"output.format.value": "schema", "output.schema.value": '"int"'},
            "output.schema.value",
            "it must be a record",
        ),
        (
            {
                "output.format.key": "schema",
                "output.schema.key": ENUM,
            },
            "output.schema.key",
            "enum at e is not supported",
        ),
        (
            {"publish.full.document.only.tombstone.on.delete": "true"},
            "publish.full.document.only.tombstone.on.delete",
            "publish.full.document.only=true",
        ),
    ],
)
def test_the_source_refuses(props: dict[str, str], key: str, told: str) -> None:
    found = errors(MongoSourceConfig, props)
    assert list(found) == [key]
    assert told in found[key]


def test_overrides_of_topics() -> None:
    config = MongoSinkConfig.parse({**SINK, "collection": "all", "topic.override.a.b.collection": "mine"})
    assert [config.of_topic(topic).collection for topic in ("a.b", "b", "orders")] == ["mine", "all", "all"]


@pytest.mark.parametrize(
    ("props", "expected"),
    [
        (
            {"connection.uri": "mongodb://me:secret@h1:1,h2:2/admin?tls=false", "database": "d", "collection": "c"},
            "mongodb://h1:1,h2:2/d.c",
        ),
        ({"connection.uri": "mongodb://h"}, "mongodb://h/"),
        (
            {"connection.uri": "mongodb+srv://u:p@cluster.example.com/?a=b", "database": "d"},
            "mongodb+srv://cluster.example.com/d",
        ),
        ({"offset.partition.name": "mine"}, "mine"),
    ],
)
def test_source_partitions(props: dict[str, str], expected: str) -> None:
    assert source_partition(MongoSourceConfig.parse(props)) == {"ns": expected}


def test_positions() -> None:
    position = position_of({"_id": '{"_data": "82"}', "copy": "true", "copy.ns": "d.c", "copy.id": '{"_id": 5}'})
    assert (position.token, position.is_copying) == ({"_data": "82"}, True)
    assert position.copied is not None
    assert (position.copied.namespace, position.copied.identity) == ("d.c", 5)


def test_a_server_that_is_not_there_is_told_when_a_configuration_is_validated() -> None:
    uri = {"connection.uri": "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50"}
    for kind, props in ((MongoSinkConfig, {**SINK, **uri}), (MongoSourceConfig, uri)):
        assert "Cannot connect: 127.0.0.1:1" in errors(kind, props)["connection.uri"]
    cdc = {"topic.prefix": "p", "mongodb.connection.string": uri["connection.uri"]}
    found = errors(MongoDbConfig, {**cdc, "mongodb.server.selection.timeout.ms": "50"})
    assert "Cannot connect: 127.0.0.1:1" in found["mongodb.connection.string"]


@pytest.mark.parametrize(
    ("props", "key", "told"),
    [
        ({"field.exclude.list": "a.b"}, "field.exclude.list", "DATABASE.COLLECTION.FIELD"),
        ({"field.renames": "a.b.c"}, "field.renames", "DATABASE.COLLECTION.FIELD:NAME"),
        ({"signal.data.collection": "a"}, "signal.data.collection", "DATABASE.COLLECTION"),
        ({"signal.enabled.channels": "kafka"}, "signal.kafka.bootstrap.servers", "list the brokers"),
        ({"capture.scope": "database"}, "capture.target", "set both"),
        ({"capture.scope": "collection", "capture.target": "d"}, "capture.target", "DATABASE.COLLECTION"),
        (
            {"snapshot.collection.filter.overrides": "d.c"},
            "snapshot.collection.filter.overrides.d.c",
            "a condition as JSON",
        ),
        ({"mongodb.connection.string": "mongodb:/x"}, "mongodb.connection.string", "not a connection string"),
    ],
)
def test_the_capture_refuses(props: dict[str, str], key: str, told: str) -> None:
    found = errors(MongoDbConfig, {"topic.prefix": "p", "mongodb.connection.string": "mongodb://h", **props})
    assert list(found) == [key]
    assert told in found[key]


def test_positions_of_debezium() -> None:
    data = {"_data": "826B0291BD0000000C2B0229296E04"}
    recorded = {
        "sec": -1,
        "ord": -1,
        "resume_token": "LwAAAAJfZGF0YQAfAAAAODI2QjAyOTFCRDAwMDAwMDBDMkIwMjI5Mjk2RTA0AAA=",
    }
    assert captured.position_of(recorded).token == data
    assert captured.offset_of(data) == recorded
    assert captured.position_of({"resume_token": data["_data"]}).token == data
    position = captured.position_of(captured.snapshot_offset(data, "d.c", 5))
    assert (position.is_snapshot, position.namespace, position.identity) == (True, "d.c", 5)


def test_a_name_that_cannot_be_looked_up_is_a_problem_of_the_connection() -> None:
    def connect() -> NoReturn:
        raise ConnectError("The name does not exist.")

    assert list(transaction_problems(connect, needs_transactions=True)) == ["The name does not exist."]
    assert list(stream_problems(connect)) == ["The name does not exist."]
