"""The source on a real server: positions, copies, topics, formats, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import bson
import pytest
from bson.int64 import Int64
from bson.objectid import ObjectId
from pymongo.database import Database

from connect.data import Schema, SourceRecord
from connect.errors import ConnectError, MissingError, RetriableError
from connect.testing import StoredOffsets
from connect.testing.source_run import run_source, running_source
from connectors.mongodb import MongoSourceConnector
from equipment.servers.mongodb import MongoServer
from equipment.waiting import wait_until

pytestmark = pytest.mark.integration

Documents = Database[dict[str, Any]]


class Source:
    """Runs of a source, each of which continues from the last."""

    def __init__(self, uri: str, database: str) -> None:
        self.props = {"name": "m", "connection.uri": uri, "database": database, "poll.await.time.ms": "50"}
        self.offsets = StoredOffsets()

    def begin(self, **props: str) -> None:
        """Run until the first position is stored."""
        run_source(
            MongoSourceConnector,
            {**self.props, **props},
            offsets=self.offsets,
            until=lambda _: bool(self.offsets.items()),
        )

    def read(self, count: int, props: Mapping[str, str] | None = None) -> list[SourceRecord]:
        """Read so many records."""
        return run_source(
            MongoSourceConnector,
            {**self.props, **(props or {})},
            offsets=self.offsets,
            until=lambda records: len(records) >= count,
        )

    @property
    def offset(self) -> dict[str, Any]:
        ((_, offset),) = self.offsets.items()
        return offset


@pytest.fixture
def source(mongodb: MongoServer, documents: Documents) -> Source:
    return Source(mongodb.uri, documents.name)


def test_the_first_position_is_stored_before_there_is_an_event(source: Source, documents: Documents) -> None:
    source.begin()
    documents["a"].insert_one({"_id": 1})
    (record,) = source.read(1)
    assert (record.topic, record.key) == (f"{documents.name}.a", '{"_id": 1}')
    assert source.offsets.items() == [
        ({"ns": f"{source.props['connection.uri'].partition('?')[0]}{documents.name}"}, record.source_offset)
    ]


def test_a_copy_continues_after_its_last_document(source: Source, documents: Documents) -> None:
    identities = [1, 2.5, Int64(3), "x", {"k": 1}, b"\x01", ObjectId(), False]
    documents["a"].insert_many([{"_id": identity} for identity in identities])
    documents["b"].insert_many([{"_id": n} for n in range(3)])
    props = {"startup.mode": "copy_existing", "poll.max.batch.size": "3"}
    first = source.read(3, props)
    assert set(source.offset) == {"_id", "copy", "copy.ns", "copy.id"}
    documents["a"].insert_one({"_id": -1})
    rest = source.read(len(identities) + 1, props)
    keys = [(record.topic, record.key) for record in (*first, *rest)]
    assert len(keys) == len(set(keys)) == len(identities) + 3 + 1
    assert set(source.offset) == {"_id"}


def test_what_changes_during_a_copy_follows_it(source: Source, documents: Documents) -> None:
    documents["a"].insert_many([{"_id": n, "v": 0} for n in range(6)])
    props = {"startup.mode": "copy_existing", "poll.max.batch.size": "2", "publish.full.document.only": "true"}
    found = source.read(2, props)
    documents["a"].update_one({"_id": 0}, {"$set": {"v": 1}})
    documents["a"].update_one({"_id": 5}, {"$set": {"v": 1}})
    found += source.read(6, props)
    assert [json.loads(record.value) for record in found] == [
        *({"_id": n, "v": 0} for n in range(5)),
        {"_id": 5, "v": 1},
        {"_id": 0, "v": 1},
        {"_id": 5, "v": 1},
    ]


def test_databases_whose_names_begin_like_internal_ones_are_copied(mongodb: MongoServer) -> None:
    with mongodb.client() as client:
        client["localshop"]["a"].insert_one({"_id": 1})
        client["admins"]["a"].insert_one({"_id": 2})
        source = Source(mongodb.uri, "")
        props = {
            "startup.mode": "copy_existing",
            "startup.mode.copy.existing.namespace.regex": "^(localshop|admins)\\.",
        }
        found = source.read(2, props)
        client.drop_database("localshop")
        client.drop_database("admins")
    assert [record.topic for record in found] == ["admins.a", "localshop.a"]


def test_pipelines_of_copy_and_stream(source: Source, documents: Documents) -> None:
    documents["a"].insert_many([{"_id": n} for n in range(4)])
    props = {
        "startup.mode": "copy_existing",
        "startup.mode.copy.existing.pipeline": '[{"$match": {"_id": {"$gt": 0}}}]',
        "pipeline": '[{"$match": {"fullDocument._id": {"$ne": 2}}}, {"$addFields": {"by": "me"}}]',
    }
    found = source.read(2, props)
    documents["a"].insert_one({"_id": 9})
    documents["a"].insert_one({"_id": 10})
    found += source.read(2, props)
    assert [record.key for record in found] == ['{"_id": 1}', '{"_id": 3}', '{"_id": 9}', '{"_id": 10}']
    assert json.loads(found[0].value)["by"] == "me"


@pytest.mark.parametrize(
    ("props", "expected"),
    [
        ({}, "DB.a"),
        ({"topic.prefix": "p", "topic.suffix": "s", "topic.separator": "-"}, "p-DB-a-s"),
        ({"topic.namespace.map": '{"DB.a": "exact", "DB": "d", "*": "rest"}'}, "exact"),
        ({"topic.namespace.map": '{"DB": "d", "*": "rest"}', "topic.prefix": "p"}, "p.d.a"),
        ({"topic.namespace.map": '{"/^DB.*/": "x{sep_coll}", "*": "rest"}'}, "x.a"),
        ({"topic.namespace.map": '{"other": "d", "*": "rest"}'}, "rest"),
    ],
)
def test_topics(props: dict[str, str], expected: str, source: Source, documents: Documents) -> None:
    source.begin()
    documents["a"].insert_one({"_id": 1})
    (record,) = source.read(1, {key: value.replace("DB", documents.name) for key, value in props.items()})
    assert record.topic == expected.replace("DB", documents.name)


def test_bson_is_passed_on_as_it_is(source: Source, documents: Documents) -> None:
    source.begin()
    documents["a"].insert_one({"_id": 1, "x": Int64(5)})
    documents["a"].delete_one({"_id": 1})
    props = {
        "output.format.key": "bson",
        "output.format.value": "bson",
        "publish.full.document.only": "true",
        "publish.full.document.only.tombstone.on.delete": "true",
    }
    inserted, deleted = source.read(2, props)
    assert (bson.decode(inserted.key), bson.decode(inserted.value)) == ({"_id": 1}, {"_id": 1, "x": 5})
    assert (bson.decode(deleted.key), deleted.value) == ({"_id": 1}, None)


def test_deletions_that_are_not_published_move_the_position(source: Source, documents: Documents) -> None:
    documents["a"].insert_one({"_id": 1})
    source.begin()
    before = source.offset
    documents["a"].delete_one({"_id": 1})
    props = {**source.props, "publish.full.document.only": "true"}
    run_source(MongoSourceConnector, props, offsets=source.offsets, until=lambda _: source.offset != before)


def test_an_avro_schema_and_what_does_not_fit_it(source: Source, documents: Documents) -> None:
    schema = {
        "type": "record",
        "name": "order",
        "fields": [
            {"name": "_id", "type": "int"},
            {"name": "n", "type": ["null", "int"]},
            {"name": "any", "type": "string", "default": "none"},
        ],
    }
    props = {
        "publish.full.document.only": "true",
        "output.format.value": "schema",
        "output.schema.value": json.dumps(schema),
    }
    source.begin()
    documents["a"].insert_many([{"_id": 1, "n": 5, "any": {"x": [1]}}, {"_id": 2, "n": 1 << 40}, {"_id": 3}])
    with pytest.raises(ConnectError, match=r"The field n has 1099511627776, which does not fit into an int32"):
        source.read(3, props)
    tolerant = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}
    first, dead, last = source.read(3, props | tolerant)
    assert first.value == {"_id": 1, "n": 5, "any": '{"x": [1]}'}
    assert (dead.topic, dead.key) == ("dead", '{"_id": 2}')
    assert json.loads(dead.value)["fullDocument"]["n"] == {"$numberLong": "1099511627776"}
    assert last.value == {"_id": 3, "n": None, "any": "none"}


def test_inferred_schemas_of_arrays_are_combined(source: Source, documents: Documents) -> None:
    source.begin()
    documents["a"].insert_one({"_id": 1, "items": [{"b": 1}, {"a": None}, {"a": "x"}], "mixed": [1, "x"], "none": []})
    props = {"publish.full.document.only": "true", "output.format.value": "schema", "output.schema.infer.value": "true"}
    (record,) = source.read(1, props)
    item = Schema.struct(
        {"a": Schema.string(optional=True), "b": Schema.int32(optional=True)}, name="items", optional=True
    )
    assert record.value_schema is Schema.struct(
        {
            "_id": Schema.int32(optional=True),
            "items": Schema.array(item, name="items", optional=True),
            "mixed": Schema.array(Schema.string(optional=True), name="mixed", optional=True),
            "none": Schema.array(Schema.string(optional=True), name="none", optional=True),
        },
        name="default",
    )
    assert record.value == {
        "_id": 1,
        "items": [{"a": None, "b": 1}, {"a": None, "b": None}, {"a": "x", "b": None}],
        "mixed": ["1", "x"],
        "none": [],
    }


def test_heartbeats_carry_the_position(source: Source, documents: Documents) -> None:
    props = {"heartbeat.interval.ms": "1", "collection": "a", "heartbeat.topic.name": "beats"}
    source.begin(**props)
    documents["other"].insert_one({"_id": 1})
    (beat, *_) = source.read(1, props)
    assert (beat.topic, beat.value) == ("beats", None)
    assert beat.source_offset == {"_id": beat.key, "HEARTBEAT": "true"}
    documents["a"].insert_one({"_id": 1})
    assert '{"_id": 1}' in [record.key for record in source.read(1, {"collection": "a"})]


def test_a_stream_goes_on_behind_an_invalidation(source: Source, documents: Documents) -> None:
    documents["a"].insert_one({"_id": 1})
    source.begin(collection="a")
    documents["a"].drop()
    documents["a"].insert_one({"_id": 2})
    found = source.read(2, {"collection": "a"})
    assert [json.loads(record.value)["operationType"] for record in found] == ["drop", "insert"]


def test_a_lost_position_is_an_error_with_advice(
    source: Source, documents: Documents, own_mongodb: MongoServer
) -> None:
    other = Source(own_mongodb.uri, "d")
    other.begin()
    with own_mongodb.client() as client:
        client["d"]["a"].insert_one({"_id": 1})
        (record,) = other.read(1)
    seconds = json.loads(record.value)["clusterTime"]["$timestamp"]["t"]

    def is_later() -> bool:
        documents["a"].replace_one({"_id": 1}, {}, upsert=True)
        return documents.client.admin.command("hello")["operationTime"].time > seconds

    wait_until("the server has later changes", is_later)
    source.begin()
    # A position that this server has never had.
    source.offsets.put(source.offsets.items()[0][0], other.offset)
    with pytest.raises(ConnectError, match=r"no longer has the changes.*set lost\.token\.action=copy_existing"):
        source.read(1)
    (record,) = source.read(1, {"lost.token.action": "copy_existing"})
    assert json.loads(record.value)["fullDocument"] == {"_id": 1}
    documents["a"].insert_one({"_id": 2})
    (record,) = source.read(1)
    assert record.key == '{"_id": 2}'


def test_offsets_of_the_java_connector_are_taken_over(source: Source, documents: Documents) -> None:
    source.begin()
    partition, offset = source.offsets.items()[0]
    documents["a"].insert_one({"_id": 1})
    source.offsets.put(partition, {**offset, "HEARTBEAT": "true"})
    assert [record.key for record in source.read(1)] == ['{"_id": 1}']
    # Java copies anew what was interrupted.
    source.offsets.put(partition, {**offset, "copy": "true"})
    assert [record.key for record in source.read(1, {"startup.mode": "copy_existing"})] == ['{"_id": 1}']


def test_a_standalone_server_has_no_change_streams(standalone_mongodb: MongoServer) -> None:
    with pytest.raises(ConnectError, match="it is no replica set"):
        Source(standalone_mongodb.uri, "d").read(1)


def test_an_outage_is_waited_for(own_mongodb: MongoServer) -> None:
    source = Source(f"{own_mongodb.uri}&serverSelectionTimeoutMS=200", "d")
    source.begin()
    with own_mongodb.client() as client:
        client["d"]["a"].insert_one({"_id": 1})
        assert len(source.read(1)) == 1
        with running_source(MongoSourceConnector, source.props, source.offsets) as (run,):
            with own_mongodb.down():
                wait_until("the task asks for another try", lambda: _is_retried(run.task))
            client["d"]["a"].insert_one({"_id": 2})
            wait_until("the change is read", lambda: [each.key for each in run.poll()] == ['{"_id": 2}'])


def _is_retried(task: Any) -> bool:
    try:
        task.poll()
    except MissingError:
        return False
    except RetriableError:
        return True
    return False
