"""Incremental snapshots, signals, notifications, transactions and fields of MongoDB's capture, on a real server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pymongo.database import Database

from connect.data import SourceRecord
from connect.testing import StoredOffsets
from connect.testing.source_run import run_source
from connectors.cdc.mongodb import MongoDbConnector
from connectors.cdc.mongodb.config import MongoDbConfig
from equipment.servers.mongodb import MongoServer

pytestmark = pytest.mark.integration

Documents = Database[dict[str, Any]]
Until = Callable[[list[SourceRecord]], bool]


class Capture:
    """Runs of the connector without a first snapshot, each of which continues from the last."""

    def __init__(self, uri: str, database: str) -> None:
        self.props = {
            "name": "c",
            "topic.prefix": "p",
            "mongodb.connection.string": uri,
            "database.include.list": database,
            "collection.exclude.list": r".*\.signals",
            "signal.data.collection": f"{database}.signals",
            "snapshot.mode": "no_data",
            "cursor.max.await.time.ms": "50",
            "incremental.snapshot.chunk.size": "10",
        }
        self.offsets = StoredOffsets()

    def read(self, until: Until | None = None, **props: str) -> list[SourceRecord]:
        """What is read until a condition holds, or until nothing is left."""
        given = {**self.props, **{key.replace("_", "."): value for key, value in props.items()}}
        more: dict[str, Any] = {} if until is None else {"until": until}
        return run_source(MongoDbConnector, given, offsets=self.offsets, timeout=120, **more)

    @property
    def offset(self) -> dict[str, Any]:
        ((_, offset),) = self.offsets.items()
        return offset


@pytest.fixture
def capture(mongodb: MongoServer, documents: Documents) -> Capture:
    made = Capture(mongodb.uri, documents.name)
    documents["a"].insert_one({"_id": "first"})
    made.read()
    return made


def send(documents: Documents, **data: Any) -> None:
    documents["signals"].insert_one({"type": "execute-snapshot", "data": data})


def operations(records: list[SourceRecord]) -> list[tuple[str, str]]:
    return [(record.value["op"], record.key["id"]) for record in records if record.value and "op" in record.value]


def test_a_signal_has_a_collection_read_beside_the_stream(capture: Capture, documents: Documents) -> None:
    documents["a"].insert_many([{"_id": n} for n in range(25)])
    documents["a"].insert_many([{"_id": "x"}, {"_id": 2.5}, {"_id": {"n": 1}}])
    documents["b"].insert_one({"_id": 1})
    capture.read()
    send(documents, **{"data-collections": [f"{documents.name}.a"]})
    records = capture.read()
    expected = ["0", "1", "2", "2.5", *map(str, range(3, 25)), '"first"', '"x"', '{"n": 1}']
    assert operations(records) == [("r", key) for key in expected]
    assert {record.value["source"]["snapshot"] for record in records} == {"incremental"}
    assert {record.topic for record in records} == {f"p.{documents.name}.a"}
    assert not any(key.startswith("incremental") for key in capture.offset)


def test_a_killed_task_goes_on_with_the_next_document(capture: Capture, documents: Documents) -> None:
    documents["a"].insert_many([{"_id": n} for n in range(40)])
    capture.read()
    send(documents, **{"data-collections": [".*"], "type": "INCREMENTAL"})
    first = capture.read(lambda records: len(records) >= 15)
    assert json.loads(capture.offset["incremental_snapshot_collections"])[0]["incremental_snapshot_collections_id"]
    rest = capture.read()
    assert sorted(key for _, key in operations([*first, *rest])) == sorted(['"first"', *map(str, range(40))])


def test_no_older_state_follows_a_newer_one(capture: Capture, documents: Documents) -> None:
    documents["a"].insert_many([{"_id": n, "n": 0} for n in range(300)])
    capture.read()
    send(documents, **{"data-collections": [f"{documents.name}.a"]})
    over = threading.Event()

    def change() -> None:
        number = 0
        while not over.is_set():
            number += 1
            documents["a"].update_one({"_id": number * 7 % 300}, {"$set": {"n": number}})

    writer = threading.Thread(target=change)
    writer.start()
    seen: dict[str, int] = {}
    try:
        records = capture.read(lambda found: sum(op == "r" for op, _ in operations(found)) >= 250)
    finally:
        over.set()
        writer.join()
    for record in [*records, *capture.read()]:
        value = record.value
        if value["op"] == "r":
            number = json.loads(value["after"]).get("n", 0)
        else:
            number = json.loads(value["updateDescription"]["updatedFields"])["n"]
        assert number >= seen.get(record.key["id"], 0)
        seen[record.key["id"]] = number
    assert seen == {json.dumps(each["_id"]): each.get("n", 0) for each in documents["a"].find()}


def test_conditions_stops_and_files(capture: Capture, documents: Documents, tmp_path: Path) -> None:
    documents["a"].insert_many([{"_id": n} for n in range(30)])
    capture.read()
    name = f"{documents.name}.a"
    condition = {"data-collection": name, "filter": '{"_id": {"$gte": 28}}'}
    signals = tmp_path / "signals"
    order = {
        "id": "s",
        "type": "execute-snapshot",
        "data": {"data-collections": [name], "additional-conditions": [condition]},
    }
    signals.write_text(json.dumps(order) + "\n")
    by_file = {"signal_enabled_channels": "file", "signal_file": str(signals), "signal_poll_interval_ms": "10"}
    records = capture.read(lambda found: len(found) >= 2, **by_file)
    assert operations(records) == [("r", "28"), ("r", "29")]
    capture.read()
    documents["signals"].insert_many(
        [
            {"type": "pause-snapshot"},
            {"type": "execute-snapshot", "data": {"data-collections": [name], "surrogate-key": "n"}},
        ]
    )
    assert capture.read() == []


def test_notifications_and_what_is_refused(capture: Capture, documents: Documents) -> None:
    capture.offsets = StoredOffsets()
    documents["b"].insert_many([{"_id": n} for n in range(3)])
    told = {"notification_enabled_channels": "sink", "notification_sink_topic_name": "told", "snapshot_mode": "initial"}
    kinds = [record.value["type"] for record in capture.read(**told) if record.topic == "told"]
    between = ["IN_PROGRESS", "TABLE_SCAN_COMPLETED"]
    assert kinds == ["STARTED", *between, *between, "COMPLETED"]
    send(documents, **{"data-collections": [f"{documents.name}.b"]})
    kinds = [record.value["type"] for record in capture.read(**told) if record.topic == "told"]
    assert kinds == ["STARTED", "DATA_COLLECTIONS_RESOLVED", *between, "COMPLETED"]


def test_a_signal_collection_that_the_stream_does_not_show_is_refused(capture: Capture) -> None:
    given = {**capture.props, "capture.scope": "database", "capture.target": "other"}
    values = {value.name: value.errors for value in MongoDbConfig.validate(given)}
    assert "choose a wider capture.scope" in values["signal.data.collection"][0]


def test_events_tell_their_transaction_and_its_end_follows(
    capture: Capture, documents: Documents, mongodb: MongoServer
) -> None:
    with mongodb.client() as client, client.start_session() as session, session.start_transaction():
        for number in range(4):
            client[documents.name]["ab"[number % 2]].insert_one({"_id": number}, session=session)
    documents["a"].insert_one({"_id": "alone"})
    told = {"provide_transaction_metadata": "true"}
    # Killed in the midst of it, and again before its end.
    first = capture.read(lambda records: len(records) >= 3, max_batch_size="1", **told)
    assert capture.offset[f"transaction_data_collection_order_{documents.name}.a"] == 1
    records = [*first, *capture.read(**told)]
    begin, *events, end, alone = records
    orders = [
        (record.value["transaction"]["total_order"], record.value["transaction"]["data_collection_order"])
        for record in events
    ]
    assert orders == [(1, 1), (2, 1), (3, 2), (4, 2)]
    assert {record.value["transaction"]["id"] for record in events} == {begin.key["id"]}
    source = events[0].value["source"]
    assert begin.key["id"] == f"{source['lsid']}:{source['txnNumber']}"
    assert (begin.topic, begin.value["status"]) == ("p.transaction", "BEGIN")
    counts = [{"data_collection": f"{documents.name}.{name}", "event_count": 2} for name in "ab"]
    assert (end.value["status"], end.value["event_count"], end.value["data_collections"]) == ("END", 4, counts)
    assert alone.value["transaction"] is None
    assert not any(key.startswith("transaction") for key in capture.offset)


def test_fields_are_left_out_and_renamed_in_documents_and_changes(capture: Capture, documents: Documents) -> None:
    documents["a"].insert_one({"_id": 1, "secret": "s", "n": 1, "in": [{"secret": "s", "x": 1}]})
    documents["a"].update_one(
        {"_id": 1}, {"$set": {"secret": "t", "in.0.secret": "u", "in.0.x": 2}, "$unset": {"n": ""}}
    )
    documents["b"].insert_one({"_id": 1, "secret": "s"})
    rules = {
        "field_exclude_list": f"{documents.name}.a.secret,*.a.in.secret",
        "field_renames": f"{documents.name}.a.n:number,{documents.name}.a.in:inner",
    }
    created, updated, other = (record.value for record in capture.read(**rules))
    # Looked up when the event is read, after the update.
    assert json.loads(created["after"]) == {"_id": 1, "number": 1, "inner": [{"x": 1}]}
    assert "secret" not in json.dumps([created, updated])
    description = updated["updateDescription"]
    assert json.loads(description["updatedFields"]) == {"inner.0.x": 2}
    assert description["removedFields"] == ["number"]
    assert json.loads(other["after"]) == {"_id": 1, "secret": "s"}
