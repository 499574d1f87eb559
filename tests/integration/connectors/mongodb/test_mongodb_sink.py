"""The sink on a real server: what records become, and what happens to those that cannot be written."""

from __future__ import annotations

import datetime as dt
import decimal
import secrets
import uuid
from collections.abc import Callable
from typing import Any

import bson
import pytest
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.objectid import ObjectId
from pymongo.database import Database

from connect.data import Schema, SinkRecord, TimestampType, decimal_schema, timestamp_schema
from connect.errors import ConnectError, RetriableError
from connect.testing import run_sink
from connect.testing.sink_run import SinkTaskRun, TopicLog
from connectors.mongodb import MongoSinkConnector, MongoSinkTask
from equipment.growth import assert_grows_evenly
from equipment.mongodb_records import SINK, record, records
from equipment.proofs import thorough
from equipment.servers.mongodb import MongoServer

pytestmark = pytest.mark.integration

Sink = Callable[..., list[tuple[SinkRecord, Exception]]]
Documents = Database[dict[str, Any]]
_IDS = f"{SINK}.processor.id.strategy"
_MODELS = f"{SINK}.writemodel.strategy"
_CDC = f"{SINK}.cdc"


def _naive(text: str) -> dt.datetime:
    """Return a date as the driver returns it."""
    return dt.datetime.fromisoformat(text)


def content(documents: Documents, collection: str = "orders") -> list[dict[str, Any]]:
    return list(documents[collection].find({}, sort=[("_id", 1)]))


def test_the_types_of_a_struct(sink: Sink, documents: Documents) -> None:
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 123000, tzinfo=dt.UTC)
    schema = Schema.struct(
        {
            "_id": Schema.int32(),
            "long": Schema.int64(),
            "half": Schema.float64(),
            "yes": Schema.boolean(),
            "text": Schema.string(optional=True),
            "raw": Schema.bytes(),
            "price": decimal_schema(2),
            "at": timestamp_schema(),
            "list": Schema.array(Schema.int64()),
            "map": Schema.map(Schema.string(), Schema.int32()),
        }
    )
    value = {
        "_id": 1,
        "long": 5,
        "half": 0.5,
        "yes": True,
        "text": None,
        "raw": b"\x00\x01",
        "price": decimal.Decimal("1.50"),
        "at": moment,
        "list": [1],
        "map": {"a": 2},
    }
    sink([record(value, value_schema=schema)])
    (found,) = content(documents)
    assert found == {**value, "price": Decimal128("1.50"), "at": moment.replace(tzinfo=None)}
    assert list(documents.orders.find({"long": {"$type": "long"}, "list": {"$type": "long"}})) == [found]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"_id": 1, "n": 7}, {"_id": 1, "n": Int64(7)}),
        ('{"_id": 1, "n": {"$numberLong": "7"}}', {"_id": 1, "n": Int64(7)}),
        ('{"_id": {"$oid": "0123456789ab0123456789ab"}}', {"_id": ObjectId("0123456789ab0123456789ab")}),
        (
            '{"_id": 1, "d": {"$date": "2024-01-02T03:04:05.57Z"}}',
            {"_id": 1, "d": _naive("2024-01-02T03:04:05.570")},
        ),
        (bson.encode({"_id": 1, "x": [1, "a"]}), {"_id": 1, "x": [1, "a"]}),
    ],
)
def test_maps_json_and_bson(value: Any, expected: dict[str, Any], sink: Sink, documents: Documents) -> None:
    sink([record(value)])
    assert content(documents) == [expected]


@pytest.mark.parametrize("value", [17, [1], "[1]", "{", b"\x00", {"n": 1 << 63}, {"t": "\ud800"}, {"a\0b": 1}])
def test_what_is_no_document_concerns_its_record_alone(value: Any, sink: Sink, documents: Documents) -> None:
    given = records([{"_id": 1}, value, {"_id": 2}])
    ((refused, _),) = sink(given, tolerate=True)
    assert refused == given[1]
    assert [found["_id"] for found in content(documents)] == [1, 2]
    with pytest.raises(ConnectError):
        sink(given)


def test_a_document_nested_too_deeply_concerns_its_record_alone(sink: Sink, documents: Documents) -> None:
    deep: dict[str, Any] = {}
    for _ in range(130):
        deep = {"d": {"e": deep}}
    given = records(
        [*({"_id": n} for n in range(5)), bson.encode({"_id": 5, **deep}), *({"_id": n} for n in range(6, 9))]
    )
    ((refused, _),) = sink(given, tolerate=True)
    assert refused.offset == 5
    assert [found["_id"] for found in content(documents)] == [0, 1, 2, 3, 4, 6, 7, 8]


@pytest.mark.parametrize(
    ("strategy", "props", "expected"),
    [
        ("KafkaMetaDataStrategy", {}, "orders#0#0"),
        ("FullKeyStrategy", {}, {"a": 1, "b": {"c": 2}}),
        ("ProvidedInKeyStrategy", {"key": '{"_id": 9}'}, 9),
        (
            "UuidProvidedInValueStrategy",
            {"value": '{"_id": "0123456789abcdef0123456789abcdef"}'},
            "01234567-89ab-cdef-0123-456789abcdef",
        ),
        ("PartialKeyStrategy", {"type": "BlockList", "list": "b.**"}, {"a": 1, "b": {}}),
        ("PartialKeyStrategy", {"type": "AllowList", "list": "b.c"}, {"b": {"c": 2}}),
    ],
)
def test_ids(strategy: str, props: dict[str, str], expected: Any, sink: Sink, documents: Documents) -> None:
    given = {"document.id.strategy": f"{_IDS}.{strategy}", "document.id.strategy.overwrite.existing": "true"}
    if "type" in props:
        given["document.id.strategy.partial.key.projection.type"] = props["type"]
        given["document.id.strategy.partial.key.projection.list"] = props["list"]
    sink([record(props.get("value", '{"x": 1}'), props.get("key", '{"a": 1, "b": {"c": 2}}'))], **given)
    assert [found["_id"] for found in content(documents)] == [expected]


def test_uuids_as_binary(sink: Sink, documents: Documents) -> None:
    sink([record({})], **{"document.id.strategy": f"{_IDS}.UuidStrategy", "document.id.strategy.uuid.format": "Binary"})
    (found,) = content(documents)
    assert isinstance(found["_id"].as_uuid(), uuid.UUID)


def test_write_models_by_a_business_key(sink: Sink, documents: Documents) -> None:
    documents.orders.insert_one({"_id": "mine", "number": 7, "nested": {"x": 1}, "old": True})
    key = {
        "document.id.strategy": f"{_IDS}.PartialValueStrategy",
        "document.id.strategy.partial.value.projection.type": "AllowList",
        "document.id.strategy.partial.value.projection.list": "number,nested.x",
    }
    value = {"number": 7, "nested": {"x": 1}, "new": 1}
    sink([record(value)], **key, **{"writemodel.strategy": f"{_MODELS}.UpdateOneBusinessKeyTimestampStrategy"})
    (found,) = content(documents)
    assert found.items() >= {"_id": "mine", "old": True, "new": 1}.items()
    assert isinstance(found["_modifiedTS"], dt.datetime)
    assert "_insertedTS" not in found
    sink([record(value)], **key, **{"writemodel.strategy": f"{_MODELS}.ReplaceOneBusinessKeyStrategy"})
    assert content(documents) == [{"_id": "mine", "number": 7, "nested": {"x": 1}, "new": 1}]
    sink([record(value)], **key, **{"writemodel.strategy": f"{_MODELS}.DeleteOneBusinessKeyStrategy"})
    assert content(documents) == []


def test_an_operator_in_a_key_is_a_value(sink: Sink, documents: Documents) -> None:
    documents.orders.insert_many([{"_id": "a"}, {"_id": "b"}])
    sink([record(None, '{"_id": {"$gt": ""}}')], tolerate=True, **{"delete.on.null.values": "true"})
    assert [found["_id"] for found in content(documents)] == ["a", "b"]


def test_tombstones_delete(sink: Sink, documents: Documents) -> None:
    documents.orders.insert_many([{"_id": {"id": 1}}, {"_id": 2}])
    sink(records([('{"id": 1}', None), ('{"_id": 2}', None)]), **{"delete.on.null.values": "true"})
    assert content(documents) == []


def test_post_processors(sink: Sink, documents: Documents) -> None:
    chain = ["KafkaMetaAdder", "field.renaming.RenameByMapping", "field.renaming.RenameByRegExp"]
    chain += ["BlockListValueProjector", "NullFieldValueRemover"]
    value = {"_id": 1, "old": 5, "taken": 1, "x.y": 2, "gone": {"a": 1, "b": {"c": 2}}, "nothing": None}
    given = record(value, 17, timestamp=1000, timestamp_type=TimestampType.CREATE_TIME)
    sink(
        [given],
        **{
            "post.processor.chain": ",".join(f"{SINK}.processor.{name}" for name in chain),
            "field.renamer.mapping": '[{"oldName": "value.old", "newName": "new"}]',
            "field.renamer.regexp": r'[{"regexp": "^value\\.x.*$", "pattern": "\\.", "replace": "_"}]',
            "value.projection.type": "BlockList",
            "value.projection.list": "gone.*",
        },
    )
    assert content(documents) == [
        {
            "_id": 1,
            "new": 5,
            "taken": 1,
            "x_y": 2,
            "gone": {"b": {"c": 2}},
            "topic-partition-offset": "orders-0-0",
            "CREATE_TIME": 1000,
        }
    ]


def test_namespaces_by_fields(sink: Sink, documents: Documents) -> None:
    given = records(
        [
            {"_id": 1, "to": {"c": "one"}},
            {"_id": 2, "to": {"c": "two"}},
            {"_id": 3},
            {"_id": 1, "to": {"c": "one"}, "again": 1},
        ]
    )
    props = {
        "namespace.mapper": f"{SINK}.namespace.mapping.FieldPathNamespaceMapper",
        "namespace.mapper.value.collection.field": "to.c",
    }
    sink(given, **props)
    assert [found.get("again") for found in content(documents, "one")] == [1]
    assert [found["_id"] for found in content(documents, "two")] == [2]
    assert [found["_id"] for found in content(documents)] == [3]
    ((refused, _),) = sink(given, tolerate=True, **props, **{"namespace.mapper.error.if.invalid": "true"})
    assert refused.value == {"_id": 3}


def test_overrides_of_a_topic_with_dots(sink: Sink, documents: Documents) -> None:
    given = [record({"_id": 1}, topic="a.b"), record({"_id": 2}, topic="other")]
    sink(given, **{"topic.override.a.b.collection": "mine", "collection": "all"})
    assert [found["_id"] for found in content(documents, "mine")] == [1]
    assert [found["_id"] for found in content(documents, "all")] == [2]


def test_time_series(sink: Sink, documents: Documents) -> None:
    props = {
        "timeseries.timefield": "at",
        "timeseries.metafield": "sensor",
        "timeseries.granularity": "seconds",
        "timeseries.expire.after.seconds": "800000000",
        "timeseries.timefield.auto.convert": "true",
    }
    given = records(
        [
            {"at": "2024-01-02T03:04:05.678Z", "sensor": 1},
            {"at": 1_600_000_000_000, "sensor": 1},
            {"at": "soon", "sensor": 1},
        ]
    )
    ((refused, error),) = sink(given, tolerate=True, **props)
    assert refused.offset == 2
    assert "is not a date of the form" in str(error)
    (options,) = (found["options"] for found in documents.list_collections(filter={"name": "orders"}))
    assert options["timeseries"]["timeField"] == "at"
    assert options["expireAfterSeconds"] == 800000000
    assert [found["at"] for found in documents.orders.find(sort=[("at", 1)])] == [
        _naive("2020-09-13T12:26:40"),
        _naive("2024-01-02T03:04:05.678"),
    ]


def test_a_collection_that_is_no_time_series_is_refused(sink: Sink, documents: Documents) -> None:
    documents.create_collection("orders")
    with pytest.raises(ConnectError, match="is there and is no time series"):
        sink([record({"at": 1})], **{"timeseries.timefield": "at", "timeseries.timefield.auto.convert": "true"})


@pytest.mark.parametrize("ordered", ["true", "false"])
def test_one_refused_document_of_a_bulk_is_given_up_alone(ordered: str, sink: Sink, documents: Documents) -> None:
    documents.orders.create_index("n", unique=True)
    documents.orders.insert_one({"_id": "there", "n": 5})
    given = records([{"_id": n, "n": n} for n in range(10)])
    ((refused, error),) = sink(given, tolerate=True, **{"bulk.write.ordered": ordered})
    assert refused == given[5]
    assert "v=1, code=11000, message=E11000 duplicate key" in str(error)
    assert documents.orders.count_documents({}) == 10


def test_refusals_in_transactions_concern_one_record_each(sink: Sink, documents: Documents) -> None:
    documents.create_collection("orders", validator={"ok": True})
    given = records([{"_id": n, "ok": n % 7 != 3} for n in range(40)])
    reported = sink(given, tolerate=True, delivery="exactly-once")
    assert [refused.offset for refused, _ in reported] == [3, 10, 17, 24, 31, 38]
    assert documents.orders.count_documents({}) == 34
    stored = documents["sluice_offsets"].find_one({"offset": {"$exists": True}})
    assert stored == {"_id": {"connector": "documents", "topic": "orders", "partition": 0}, "offset": 40}


def test_inserts_of_documents_that_are_there_already_count_as_written(sink: Sink, documents: Documents) -> None:
    props = {
        "writemodel.strategy": f"{_MODELS}.InsertOneDefaultStrategy",
        "document.id.strategy": f"{_IDS}.KafkaMetaDataStrategy",
    }
    given = records([{"n": n} for n in range(4)])
    sink(given[:2], **props)
    assert sink(given, **props) == []
    changed = [record({"n": "other"}, offset=0)]
    ((refused, _),) = sink(changed, tolerate=True, **props)
    assert refused == changed[0]
    assert [found["n"] for found in content(documents)] == [0, 1, 2, 3]


def test_a_view_as_the_target_fails_the_task_whatever_is_tolerated(sink: Sink, documents: Documents) -> None:
    documents.create_collection("orders", viewOn="others", pipeline=[])
    for delivery in ("at-least-once", "exactly-once"):
        with pytest.raises(ConnectError, match=r"is a view.* correct the collection"):
            sink(records([{"_id": 1}, {"_id": 2}]), tolerate=True, delivery=delivery)


def test_a_batch_that_is_too_large_for_one_transaction_is_divided(sink: Sink, documents: Documents) -> None:
    given = records([{"_id": number, "text": secrets.token_hex(500_000)} for number in range(80)])
    assert sink(given, delivery="exactly-once") == []
    assert documents.orders.count_documents({}) == len(given)


def test_own_tolerance_wins_over_that_of_the_framework(sink: Sink, documents: Documents) -> None:
    given = records([17, {"_id": 1}])
    with pytest.raises(ConnectError):
        sink(given, tolerate=True, **{"mongo.errors.tolerance": "none"})
    assert sink(given, **{"mongo.errors.tolerance": "data"}) == []
    assert [found["_id"] for found in content(documents)] == [1]


def test_an_outage_is_waited_for(own_mongodb: MongoServer) -> None:
    props = {
        "name": "s",
        "connection.uri": f"{own_mongodb.uri}&serverSelectionTimeoutMS=200",
        "database": "d",
        "topics": "orders",
    }
    props |= {"writemodel.strategy": f"{_MODELS}.InsertOneDefaultStrategy"}
    run = SinkTaskRun(MongoSinkTask, props, TopicLog(records([{"n": n} for n in range(6)])))
    run.start(run.log.partitions)
    assert run.put(3) == 3
    with own_mongodb.down(), pytest.raises(RetriableError, match="Cannot write records"):
        run.put(3, timeout=0)
    assert run.put(3) == 3
    run.stop()
    with own_mongodb.client() as client:
        assert sorted(found["n"] for found in client["d"]["orders"].find()) == [0, 1, 2, 3, 4, 5]


def test_exactly_once_needs_a_replica_set(standalone_mongodb: MongoServer) -> None:
    props = {"name": "s", "connection.uri": standalone_mongodb.uri, "database": "d", "delivery": "exactly-once"}
    with pytest.raises(ConnectError, match="standalone server does not have"):
        run_sink(MongoSinkConnector, props, [record({"n": 1})])


def test_a_task_that_was_overtaken_writes_nothing(mongodb: MongoServer, documents: Documents) -> None:
    props = {
        "name": "s",
        "connection.uri": mongodb.uri,
        "database": documents.name,
        "delivery": "exactly-once",
        "topics": "orders",
    }
    log = TopicLog(records([{"n": n} for n in range(6)]))
    zombie, other = SinkTaskRun(MongoSinkTask, props, log), SinkTaskRun(MongoSinkTask, props, log)
    zombie.start(log.partitions)
    zombie.put(2)
    other.start(log.partitions)
    other.put(4)
    zombie.put(2)
    assert documents.orders.count_documents({}) == 6
    zombie.put(10)
    other.put(10)
    assert sorted(found["n"] for found in documents.orders.find()) == [0, 1, 2, 3, 4, 5]
    for run in (zombie, other):
        run.task.stop()


def test_a_transaction_that_a_killed_task_left_is_ended(mongodb: MongoServer, documents: Documents) -> None:
    props = {"name": "s", "connection.uri": mongodb.uri, "database": documents.name, "delivery": "exactly-once"}
    log = TopicLog(records([{"_id": n} for n in range(4)]))
    killed = SinkTaskRun(MongoSinkTask, {**props, "topics": "orders"}, log)
    killed.start(log.partitions)
    killed.put(2)
    transactions = killed.task._transactions
    # What a kill before the commit leaves behind: the server would keep its locks for a minute.
    session = transactions._own_session()
    session.start_transaction()
    killed.task._client[documents.name]["orders"].insert_one({"_id": 2, "by": "killed"}, session=session)
    run = SinkTaskRun(MongoSinkTask, {**props, "topics": "orders"}, log)
    run.start(log.partitions)
    assert run.put(4, timeout=10) == 2
    assert [found.get("by") for found in content(documents)] == [None] * 4
    run.stop()
    killed.task._client.close()


@pytest.mark.growth
@pytest.mark.parametrize("delivery", ["at-least-once", *thorough("exactly-once")])
def test_many_refused_documents_cost_a_small_multiple(delivery: str, sink: Sink, documents: Documents) -> None:
    documents.orders.create_index("n", unique=True)
    documents.orders.insert_one({"_id": "there", "n": 1})

    def make(count: int) -> list[SinkRecord]:
        return records([{"_id": n, "n": 1} for n in range(count)])

    def run(given: list[SinkRecord]) -> None:
        assert len(sink(given, tolerate=True, delivery=delivery)) == len(given)
        documents.sluice_offsets.delete_many({})

    assert_grows_evenly(run, make, 100)


@pytest.mark.parametrize(
    ("handler", "events", "expected"),
    [
        (
            "mongodb.ChangeStreamHandler",
            [
                {"operationType": "insert", "documentKey": {"_id": 1}, "fullDocument": {"_id": 1, "a": 1, "b": 2}},
                {
                    "operationType": "update",
                    "documentKey": {"_id": 1},
                    "updateDescription": {"updatedFields": {"a": 2}, "removedFields": ["b"]},
                },
                {"operationType": "insert", "documentKey": {"_id": 2}, "fullDocument": {"_id": 2}},
                {"operationType": "delete", "documentKey": {"_id": 2}},
                {"operationType": "drop"},
            ],
            [{"_id": 1, "a": 2}],
        ),
        (
            "debezium.mongodb.ChangeStreamHandler",
            [
                ('{"id": "1"}', {"op": "c", "after": '{"_id": 1, "a": 1}'}),
                (
                    '{"id": "1"}',
                    {
                        "op": "u",
                        "after": None,
                        "updateDescription": {
                            "updatedFields": '{"a": 5}',
                            "removedFields": None,
                            "truncatedArrays": None,
                        },
                    },
                ),
                ('{"id": "2"}', {"op": "r", "after": '{"_id": 2}'}),
                ('{"id": "2"}', {"op": "d", "after": None}),
                ('{"id": "2"}', None),
            ],
            [{"_id": 1, "a": 5}],
        ),
        (
            "debezium.rdbms.postgres.PostgresHandler",
            [
                ('{"id": 1}', {"op": "c", "before": None, "after": {"id": 1, "name": "a"}}),
                ('{"id": 1}', {"op": "u", "before": None, "after": {"id": 1, "name": "b"}}),
                ('{"id": 2}', {"op": "r", "before": None, "after": {"id": 2, "name": "c"}}),
                ('{"id": 2}', {"op": "d", "before": {"id": 2}, "after": None}),
                ('{"id": 2}', None),
                (None, {"ddl": "CREATE TABLE t"}),
            ],
            [{"_id": {"id": 1}, "name": "b"}],
        ),
        (
            "qlik.rdbms.RdbmsHandler",
            [
                ('{"id": 1}', {"message": {"headers": {"operation": "INSERT"}, "data": {"id": 1, "name": "a"}}}),
                (
                    '{"id": 1}',
                    {
                        "message": {
                            "headers": {"operation": "UPDATE"},
                            "data": {"id": 1, "name": "b"},
                            "beforeData": {"id": 1, "name": "a"},
                        }
                    },
                ),
                ('{"id": 2}', {"message": {"headers": {"operation": "REFRESH"}, "data": {"id": 2}}}),
                ('{"id": 2}', {"message": {"headers": {"operation": "DELETE"}, "data": {"id": 2}, "beforeData": None}}),
            ],
            [{"_id": {"id": 1}, "id": 1, "name": "b"}],
        ),
    ],
)
def test_change_events_are_applied(
    handler: str, events: list[Any], expected: list[dict[str, Any]], sink: Sink, documents: Documents
) -> None:
    sink(records(events), **{"change.data.capture.handler": f"{_CDC}.{handler}"})
    assert content(documents) == expected
