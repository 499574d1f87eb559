"""The records that MongoDB's own source published for the same changes, in five configurations."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from bson.binary import Binary
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.min_key import MinKey
from bson.objectid import ObjectId
from bson.regex import Regex
from bson.timestamp import Timestamp
from pymongo import MongoClient

from connect.data import SourceRecord, validate
from connect.testing import StoredOffsets
from connect.testing.source_run import run_source
from connectors.cdc.mongodb import MongoDbConnector
from connectors.mongodb import MongoSourceConnector
from converters.json import JsonConverter
from equipment.servers.mongodb import MongoServer, database_name

pytestmark = pytest.mark.integration

_DATA = Path(__file__).parent / "data/cdc"
_RUN = json.loads((_DATA / "mongodb_run.json").read_text(encoding="utf-8"))
_CONFIGS = {name: props for name, props in _RUN["source_configs"].items() if name != "debezium"}
_EVENTS = [json.loads(line) for line in (_DATA / "mongodb_events.jsonl").read_text(encoding="utf-8").splitlines()]
_OID = ObjectId("0123456789ab0123456789ac")
_OWN = ("wallTime", "collectionUUID", "lsid", "txnNumber", "clusterTime")
_UNLIKE = (
    (re.compile(r"82[0-9A-F]{20,}"), "TOKEN"),
    (re.compile(r'\{"t": 17[0-9]{8}, "i": \d+\}'), "TIME"),
)


def _change(client: MongoClient[Any], name: str) -> None:
    """Make the changes that were recorded."""
    collection = client[name]["c"]
    document = {
        "_id": 1,
        "s": "x",
        "i": 1,
        "l": Int64(1099511627776),
        "d": 1.5,
        "dec": Decimal128("1.50"),
        "b": True,
        "n": None,
        "oid": ObjectId("0123456789ab0123456789ab"),
        "dt": dt.datetime(2024, 1, 2, 3, 4, 5, 123000, tzinfo=dt.UTC),
        "bin": b"\x00\xff",
        "uuid": Binary(b"\x01" * 16, 4),
        "arr": [1, "a", {"z": 1}],
        "sub": {"k": "v"},
        "ts": Timestamp(1700000000, 1),
        "re": Regex("^a", "i"),
        "min": MinKey(),
        "nan": float("nan"),
    }
    collection.insert_one(document)
    collection.insert_one({"_id": _OID, "a": 1})
    collection.update_one({"_id": 1}, {"$set": {"s": "y", "sub.k": "w"}, "$unset": {"i": ""}, "$push": {"arr": 2}})


def _change_more(client: MongoClient[Any], name: str) -> None:
    collection = client[name]["c"]
    collection.replace_one({"_id": 1}, {"_id": 1, "only": "this"})


def _end(client: MongoClient[Any], name: str) -> None:
    collection = client[name]["c"]
    collection.delete_one({"_id": 1})
    with client.start_session() as session, session.start_transaction():
        collection.insert_one({"_id": 2}, session=session)
        collection.insert_one({"_id": 3}, session=session)
    collection.create_index("a")


@pytest.fixture(params=list(_CONFIGS))
def published(request: pytest.FixtureRequest, mongodb: MongoServer) -> Iterator[tuple[str, list[Any], list[Any]]]:
    config = dict(_CONFIGS[request.param])
    recorded = [
        event for event in _EVENTS if event["config"] == request.param and event["topic"] != "__mongodb_heartbeats"
    ]
    name = database_name()
    config |= {"connection.uri": mongodb.uri, "database": name, "name": "m", "heartbeat.interval.ms": "0"}
    with mongodb.client() as client:
        client[name].create_collection("c", changeStreamPreAndPostImages={"enabled": True})
        client[name]["c"].insert_one({"_id": 0, "pre": "existing"})
        records = _records(config, client, name, len(recorded))
    yield request.param, [_shown(record, config, name) for record in records], [_recorded(event) for event in recorded]


def _records(config: Mapping[str, str], client: MongoClient[Any], name: str, count: int) -> list[SourceRecord]:
    offsets = StoredOffsets()
    found: list[SourceRecord] = []
    # The whole document is looked up when an event is read: each change must be read before the next one is made.
    copied = 1 if config.get("startup.mode") == "copy_existing" else 0
    is_late = "updateLookup" in config.values() or config.get("output.schema.infer.value") == "true"
    _start(config, offsets)
    if copied:
        found += run_source(MongoSourceConnector, config, offsets=offsets, until=lambda records: len(records) == 1)
    _change(client, name)
    # As it was recorded: in two runs the document was gone when the event of the update was read.
    if not is_late:
        found += run_source(MongoSourceConnector, config, offsets=offsets, until=lambda records: len(records) == 3)
    _change_more(client, name)
    _end(client, name)
    left = count - len(found)
    found += run_source(MongoSourceConnector, config, offsets=offsets, until=lambda records: len(records) == left)
    return found


def _start(config: Mapping[str, str], offsets: StoredOffsets) -> None:
    """Let the source take its first position, which is stored though no record carries it."""
    if config.get("startup.mode") != "copy_existing":
        run_source(MongoSourceConnector, config, offsets=offsets, until=lambda _: bool(offsets.items()))


def _shown(record: SourceRecord, config: Mapping[str, str], name: str) -> tuple[Any, ...]:
    key = record.key if config["key.converter"].endswith("StringConverter") else _json(record, "key")
    value = record.value if config["value.converter"].endswith("StringConverter") else _json(record, "value")
    parts = [None if part is None else json.loads(part.replace(name, "lab2")) for part in (key, value)]
    return record.topic.replace(name, "lab2"), *map(_comparable, parts)


def _json(record: SourceRecord, part: str) -> str:
    converter = JsonConverter(JsonConverter.config_class.parse({"converter.type": part}))
    schema = record.key_schema if part == "key" else record.value_schema
    data = converter.from_connect(record.topic, schema, record.key if part == "key" else record.value)
    assert data is not None
    return data.decode()


def _recorded(event: Mapping[str, Any]) -> tuple[Any, ...]:
    return event["topic"], _comparable(event["key"]), _comparable(event["value"])


def _comparable(value: Any) -> Any:
    """Return a value without what differs from run to run; NaN, which equals nothing, as text."""
    if isinstance(value, dict):
        return {name: name if name in _OWN and item else _comparable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, str):
        for pattern, replacement in _UNLIKE:
            value = pattern.sub(replacement, value)
    return value


def test_publishes_the_records_of_the_java_connector(published: tuple[str, list[Any], list[Any]]) -> None:
    _, found, recorded = published
    assert found == recorded


def test_publishes_the_records_of_debezium(mongodb: MongoServer) -> None:
    name = database_name()
    recorded = [event for event in _EVENTS if event["config"] == "debezium" and event["topic"] == "md.lab2.c"]
    config = dict(_RUN["source_configs"]["debezium"])
    config |= {"mongodb.connection.string": mongodb.uri, "name": "m", "collection.include.list": f"{name}.c"}
    config |= {"heartbeat.interval.ms": "0"}
    offsets = StoredOffsets()
    with mongodb.client() as client:
        client[name].create_collection("c", changeStreamPreAndPostImages={"enabled": True})
        client[name]["c"].insert_one({"_id": 0, "pre": "existing"})
        found = run_source(MongoDbConnector, config, offsets=offsets, until=lambda records: len(records) == 1)
        _change(client, name)
        _change_more(client, name)
        _end(client, name)
        left = len(recorded) - 1
        found += run_source(MongoDbConnector, config, offsets=offsets, until=lambda records: len(records) == left)
    shown = [_event(record, name) for record in found]
    assert shown == [_recorded_event(event) for event in recorded]
    ((partition, offset),) = offsets.items()
    assert partition == {"server_id": "md"}
    assert sorted(offset) == ["ord", "resume_token", "sec"]
    assert [sorted(header.key for header in record.headers) for record in found] == [
        sorted(key for key, _ in event["headers"]) for event in recorded
    ]


def _event(record: SourceRecord, name: str) -> tuple[Any, ...]:
    for schema, value in ((record.key_schema, record.key), (record.value_schema, record.value)):
        if value is not None:
            assert schema is not None
            validate(schema, value)
    value = json.loads(json.dumps(record.value).replace(name, "lab2"))
    return record.topic.replace(name, "lab2"), record.key, _own_times(value)


def _recorded_event(event: Mapping[str, Any]) -> tuple[Any, ...]:
    return event["topic"], event["key"], _own_times(event["value"])


def _own_times(value: Any) -> Any:
    """Return an event without what differs from run to run."""
    if value is None:
        return None
    source = {
        key: key if key in ("ts_ms", "ts_us", "ts_ns", "wallTime", "lsid", "txnNumber", "ord") and item else item
        for key, item in value["source"].items()
    }
    return {**value, "source": source, "ts_ms": "ts_ms"}
