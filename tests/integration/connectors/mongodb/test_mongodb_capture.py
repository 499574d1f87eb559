"""The change data capture of MongoDB on a real server: snapshots, events, and what goes wrong."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import bson
import pytest
from pymongo.database import Database

from connect.data import SourceRecord
from connect.errors import ConnectError
from connect.testing import StoredOffsets
from connect.testing.source_run import run_source
from connectors.cdc.mongodb import MongoDbConnector
from equipment.servers.mongodb import MongoServer

pytestmark = pytest.mark.integration

OVERRIDES = "snapshot.collection.filter.overrides"
Documents = Database[dict[str, Any]]


class Capture:
    """Runs of the connector, each of which continues from the last."""

    def __init__(self, uri: str, database: str) -> None:
        self.props = {
            "name": "c",
            "topic.prefix": "p",
            "mongodb.connection.string": uri,
            "database.include.list": database,
            "cursor.max.await.time.ms": "50",
        }
        self.offsets = StoredOffsets()

    def read(self, count: int, **props: str) -> list[SourceRecord]:
        given = {**self.props, **{key.replace("_", "."): value for key, value in props.items()}}
        return run_source(
            MongoDbConnector, given, offsets=self.offsets, until=lambda records: len(records) >= count > 0 or not count
        )

    def drain(self, props: Mapping[str, str]) -> list[SourceRecord]:
        return run_source(MongoDbConnector, {**self.props, **props}, offsets=self.offsets)

    @property
    def offset(self) -> dict[str, Any]:
        ((_, offset),) = self.offsets.items()
        return offset


@pytest.fixture
def capture(mongodb: MongoServer, documents: Documents) -> Capture:
    return Capture(mongodb.uri, documents.name)


def brief(records: list[SourceRecord]) -> list[Any]:
    """Return key, operation, document and marker of events, and None for tombstones."""
    return [
        record.value
        and (record.key["id"], record.value["op"], record.value["after"], record.value["source"]["snapshot"])
        for record in records
    ]


def test_a_snapshot_marks_the_places_of_documents_and_continues(capture: Capture, documents: Documents) -> None:
    documents["a"].insert_many([{"_id": n} for n in range(3)])
    documents["b"].insert_many([{"_id": n} for n in range(2)])
    first = capture.read(2, max_batch_size="1")
    assert capture.offset["initsync"] is True
    documents["a"].update_one({"_id": 0}, {"$set": {"n": 1}})
    rest = capture.read(4)
    assert brief([*first, *rest]) == [
        ("0", "r", '{"_id": 0}', "first"),
        ("1", "r", '{"_id": 1}', "true"),
        ("2", "r", '{"_id": 2}', "last_in_data_collection"),
        ("0", "r", '{"_id": 0}', "first_in_data_collection"),
        ("1", "r", '{"_id": 1}', "last"),
        ("0", "u", '{"_id": 0,"n": 1}', "false"),
    ]
    assert [record.topic for record in (first[0], rest[-2])] == [f"p.{documents.name}.{name}" for name in "ab"]


def test_deletions_and_tombstones(capture: Capture, documents: Documents) -> None:
    documents["a"].insert_one({"_id": "x"})
    capture.read(1)
    documents["a"].delete_one({"_id": "x"})
    deleted, tombstone = capture.read(2)
    assert (deleted.key, deleted.value["op"], tombstone.key) == ({"id": '"x"'}, "d", {"id": '"x"'})
    assert tombstone.value is None
    # A kill between the two repeats both.
    assert deleted.source_offset != tombstone.source_offset
    documents["a"].insert_one({"_id": "x"})
    documents["a"].delete_one({"_id": "x"})
    assert len(capture.drain({"tombstones.on.delete": "false", "skipped.operations": "c"})) == 1


def test_collections_that_are_not_captured_move_the_position(capture: Capture, documents: Documents) -> None:
    documents["a"].insert_one({"_id": 1})
    documents["b"].insert_one({"_id": 1})
    props = {"collection.exclude.list": ".*\\.B"}
    assert len(capture.drain(props)) == 1
    before = capture.offset
    documents["b"].insert_one({"_id": 2})
    assert capture.drain(props) == []
    assert capture.offset != before


@pytest.mark.parametrize(
    ("props", "count"),
    [
        ({"snapshot.mode": "no_data"}, 0),
        ({"snapshot.mode": "initial_only"}, 4),
        ({"snapshot.include.collection.list": ".*\\.a"}, 2),
        (
            {"snapshot.collection.filter.overrides": "DB.a", "snapshot.collection.filter.overrides.DB.a": '{"_id": 1}'},
            3,
        ),
    ],
)
def test_what_a_snapshot_reads(props: dict[str, str], count: int, capture: Capture, documents: Documents) -> None:
    documents["a"].insert_many([{"_id": n} for n in range(2)])
    documents["b"].insert_many([{"_id": n} for n in range(2)])
    given = {key.replace("DB", documents.name): value.replace("DB", documents.name) for key, value in props.items()}
    assert len(capture.drain(given)) == count
    documents["a"].insert_one({"_id": 9})
    assert len(capture.drain(given)) == (0 if props.get("snapshot.mode") == "initial_only" else 1)


def test_a_snapshot_at_each_start(capture: Capture, documents: Documents) -> None:
    documents["a"].insert_one({"_id": 1})
    props = {"snapshot.mode": "always"}
    assert [len(capture.drain(props)) for _ in range(2)] == [1, 1]


@pytest.mark.parametrize("mode", ["change_streams", "change_streams_with_pre_image"])
def test_capture_modes(mode: str, capture: Capture, documents: Documents) -> None:
    documents.create_collection("a", changeStreamPreAndPostImages={"enabled": True})
    # A small document would be replaced as a whole.
    documents["a"].insert_one({"_id": 1, "list": list(range(99))})
    capture.read(1)
    documents["a"].update_one({"_id": 1}, [{"$set": {"list": {"$slice": ["$list", 90]}, "n": 2**40}}])
    (record,) = capture.drain({"capture.mode": mode})
    assert record.value["after"] is None
    before = json.dumps({"_id": 1, "list": list(range(99))}, separators=(",", ": "))
    assert record.value["before"] == (before if "pre_image" in mode else None)
    description = record.value["updateDescription"]
    assert description["truncatedArrays"] == [{"field": "list", "size": 90}]
    assert json.loads(description["updatedFields"]) == {"n": 2**40}


def test_heartbeats(capture: Capture, documents: Documents) -> None:
    documents["a"].insert_one({"_id": 1})
    found = capture.read(2, heartbeat_interval_ms="1")
    assert {record.topic for record in found} == {f"p.{documents.name}.a", "__debezium-heartbeat.p"}


def test_a_lost_position(capture: Capture, documents: Documents) -> None:
    documents["a"].insert_one({"_id": 1})
    capture.read(1)
    documents["a"].update_one({"_id": 1}, {"$set": {"n": 1}})
    (record,) = capture.read(1)
    documents["a"].update_one({"_id": 1}, {"$unset": {"n": 1}})
    # The same event in another year, as if it were of another cluster.
    data = bson.decode(base64.b64decode(record.source_offset["resume_token"]))["_data"]
    capture.offsets.put({"server_id": "p"}, {"sec": 1, "ord": 1, "resume_token": f"8250000000{data[10:]}"})
    with pytest.raises(ConnectError, match=r"snapshot\.mode=when_needed"):
        capture.read(1)
    assert brief(capture.read(1, snapshot_mode="when_needed")) == [("1", "r", '{"_id": 1}', "last")]


def test_a_collection_that_was_dropped_is_followed_when_it_comes_again(capture: Capture, documents: Documents) -> None:
    props = {"capture.scope": "collection", "capture.target": f"{documents.name}.a"}
    documents["a"].insert_one({"_id": 1})
    assert len(capture.drain(props)) == 1
    documents["a"].insert_one({"_id": 2})
    documents["a"].drop()
    documents["a"].insert_one({"_id": 3})
    documents["a"].rename("b")
    documents["a"].insert_one({"_id": 4})
    found = capture.read(3, **_dotless(props))
    assert [record.key["id"] for record in found] == ["2", "3", "4"]


def _dotless(props: Mapping[str, str]) -> dict[str, str]:
    return {key.replace(".", "_"): value for key, value in props.items()}
