"""Debezium's sink on a real server: events of tables and of collections are applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bson.int64 import Int64
from pymongo.database import Database

from connect.config import Config
from connect.data import SinkRecord
from connect.errors import ConnectError
from connect.testing import run_sink
from connect.testing.contexts import ErrantRecords
from connectors.mongodb import MongoDbSinkConfig, MongoDbSinkConnector
from equipment.mongodb_records import records
from equipment.servers.mongodb import MongoServer

pytestmark = pytest.mark.integration

Apply = Callable[..., list[tuple[SinkRecord, Exception]]]
Documents = Database[dict[str, Any]]
TOPIC = "shop.public.orders"
ROWS = {"connector": "postgresql", "db": "shop", "table": "orders"}
DOCUMENTS = {"connector": "mongodb", "db": "shop", "collection": "orders"}


@pytest.fixture
def apply(mongodb: MongoServer, documents: Documents) -> Apply:
    """Runs the sink over pairs of keys and events, and returns the records that it gave up."""

    def run(pairs: list[Any], **props: str) -> list[tuple[SinkRecord, Exception]]:
        errant: ErrantRecords[SinkRecord] = ErrantRecords(tolerate=True)
        given = {
            "name": "changes",
            "mongodb.connection.string": mongodb.uri,
            "sink.database": documents.name,
            **{key.replace("_", "."): value for key, value in props.items()},
        }
        run_sink(MongoDbSinkConnector, given, records(pairs, topic=TOPIC), errant_records=errant)
        return errant.reported

    return run


def row(op: str, after: Any, before: Any = None) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": ROWS}


def content(documents: Documents, collection: str = "shop_public_orders") -> list[dict[str, Any]]:
    return list(documents[collection].find({}, sort=[("_id", 1)]))


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_changes_of_rows(delivery: str, apply: Apply, documents: Documents) -> None:
    changes = [
        ({"id": 1}, row("c", {"id": 1, "n": 1})),
        ({"id": 2}, row("r", {"id": 2, "n": 2})),
        ({"id": 1}, row("u", {"id": 1, "n": 3}, {"id": 1, "n": 1})),
        ({"id": 2}, row("d", None, {"id": 2, "n": 2})),
        ({"id": 2}, None),
    ]
    assert apply(changes, delivery=delivery) == []
    assert content(documents) == [{"_id": {"id": Int64(1)}, "n": Int64(3)}]


def test_changes_of_documents(apply: Apply, documents: Documents) -> None:
    def change(op: str, **parts: Any) -> dict[str, Any]:
        return {"op": op, "source": DOCUMENTS, **parts}

    changes = [
        ({"id": '"a"'}, change("c", after='{"_id": "a", "n": 1, "gone": true}')),
        ({"id": "2"}, change("r", after='{"_id": 2, "n": 2}')),
        ({"id": '"a"'}, change("u", updateDescription={"updatedFields": '{"n": 3}', "removedFields": ["gone"]})),
        ({"id": "2"}, change("d", after=None)),
        ({"id": "2"}, None),
    ]
    assert apply(changes) == []
    assert content(documents) == [{"_id": "a", "n": 3}]


def test_a_deleted_row_whose_key_is_called_id_is_none_of_mongodb(apply: Apply, documents: Documents) -> None:
    assert apply([({"id": "x"}, row("c", {"id": "x", "n": 1})), ({"id": "x"}, row("d", None))]) == []
    assert content(documents) == []


def test_collections_are_named_by_the_source(apply: Apply, documents: Documents) -> None:
    apply([({"id": 1}, row("c", {"n": 1})), ({"id": 1}, None)], collection_name_format="${source.db}-${source.table}")
    assert content(documents, "shop-orders") == [{"_id": {"id": Int64(1)}, "n": Int64(1)}]


def test_what_is_no_event_concerns_its_record_alone(apply: Apply, documents: Documents) -> None:
    refused = apply([({"id": 1}, {"n": 1}), ({"id": 2}, row("t", None)), ({"id": 3}, row("c", {"n": 3}))])
    assert [record.offset for record, _ in refused] == [0, 1]
    assert content(documents) == [{"_id": {"id": Int64(3)}, "n": Int64(3)}]
    (_, error), *_ = apply([({"id": 1}, row("c", {"n": 1}))], collection_name_format="${source.none}")
    assert "The event has no text source.none, which collection.name.format names" in str(error)


@pytest.mark.parametrize(
    ("props", "told"),
    [
        ({"collection.name.format": "${table}"}, r"\$\{table\} is not known: use \$\{topic\} or a field of the source"),
        (
            {"field.exclude.list": "t:secret"},
            "field.exclude.list: fields are removed by the transformation ReplaceField",
        ),
        ({"truncate.enabled": "true"}, "truncations are not applied"),
        ({"column.naming.strategy": "com.example.Mine"}, "Java's classes cannot run here"),
        ({"mongodb.connection.string": "http://x"}, "mongodb.connection.string"),
        ({"batch.size": "0"}, "batch.size"),
    ],
)
def test_mistakes_are_told_with_what_to_do(props: dict[str, str], told: str) -> None:
    config: type[Config] = MongoDbSinkConfig
    with pytest.raises(ConnectError, match=told) as caught:
        config.parse({"mongodb.connection.string": "mongodb://me:s3cret@h", "sink.database": "d", **props})
    assert "s3cret" not in str(caught.value)
