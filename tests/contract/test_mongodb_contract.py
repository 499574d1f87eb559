"""The connectors of MongoDB keep the contract."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest
from bson.binary import Binary
from bson.int64 import Int64
from bson.objectid import ObjectId

from connect.data import SinkRecord, SourceRecord
from connect.testing import SinkConnectorTests, SourceConnectorTests
from connect.testing.samples import sink_records
from connectors.cdc.mongodb import MongoDbConnector
from connectors.mongodb import MongoDbSinkConnector, MongoSinkConnector, MongoSourceConnector
from equipment.servers.mongodb import MongoServer, database_name


class TestMongoSink(SinkConnectorTests):
    """The sink, at least once."""

    connector_class = MongoSinkConnector

    @pytest.fixture
    def name(self) -> str:
        return database_name()

    @pytest.fixture
    def props(self, mongodb: MongoServer, name: str) -> Mapping[str, str]:
        return {
            "name": "documents",
            "connection.uri": f"{mongodb.uri}&serverSelectionTimeoutMS=300&connectTimeoutMS=300",
            "database": name,
            "collection": "target",
        }

    @pytest.fixture
    def records(self) -> Sequence[SinkRecord]:
        return sink_records([{"number": number} for number in range(12)], partitions=2)

    def expected(self, record: SinkRecord) -> Any:
        return record.value["number"]

    @pytest.fixture
    def written(self, mongodb: MongoServer, name: str) -> Callable[[], Iterable[Any]]:
        def read() -> list[Any]:
            with mongodb.client() as client:
                return [found["number"] for found in client[name]["target"].find()]

        return read

    @pytest.fixture
    def outage(self, mongodb: MongoServer) -> AbstractContextManager[object]:
        return mongodb.down()


class TestDebeziumSink(TestMongoSink):
    """The sink of Debezium's events."""

    connector_class = MongoDbSinkConnector

    @pytest.fixture
    def props(self, mongodb: MongoServer, name: str) -> Mapping[str, str]:
        return {
            "name": "changes",
            "mongodb.connection.string": f"{mongodb.uri}&serverSelectionTimeoutMS=300&connectTimeoutMS=300",
            "sink.database": name,
            "collection.name.format": "target",
        }

    @pytest.fixture
    def records(self) -> Sequence[SinkRecord]:
        events = [{"op": "c", "after": {"number": number}, "source": {"table": "t"}} for number in range(12)]
        return sink_records(events, partitions=2)

    def expected(self, record: SinkRecord) -> Any:
        return record.value["after"]["number"]


class TestExactMongoSink(TestMongoSink):
    """The sink, exactly once."""

    exactly_once = True

    @pytest.fixture
    def props(self, mongodb: MongoServer, name: str) -> Mapping[str, str]:
        return {
            "name": "documents",
            "connection.uri": f"{mongodb.uri}&serverSelectionTimeoutMS=300&connectTimeoutMS=300",
            "database": name,
            "collection": "target",
            "delivery": "exactly-once",
        }


class TestMongoSource(SourceConnectorTests):
    """The source, of a copy and of the changes after it."""

    connector_class = MongoSourceConnector

    @pytest.fixture(params=["latest", "copy_existing"])
    def props(self, mongodb: MongoServer, request: pytest.FixtureRequest) -> Mapping[str, str]:
        name = database_name()
        with mongodb.client() as client:
            database = client[name]
            start = client.admin.command("hello")["operationTime"].time + 1
            if request.param == "copy_existing":
                database["b"].insert_many([{"_id": key} for key in (1, 2.5, "text", ObjectId())])
                database["a"].insert_many([{"_id": key} for key in ({"x": 1}, False, Binary(b"1"), Int64(5), 7)])
            else:
                while client.admin.command("hello")["operationTime"].time < start:
                    database["a"].insert_one({"before": True})
                    time.sleep(0.05)
                database["a"].insert_many([{"_id": n} for n in range(5)])
                database["a"].update_one({"_id": 1}, {"$set": {"n": 1}})
                database["a"].replace_one({"_id": 1}, {"n": 2})
                database["a"].delete_one({"_id": 1})
                database["a"].drop()
        return {
            "name": "changes",
            "connection.uri": f"{mongodb.uri}&serverSelectionTimeoutMS=300",
            "database": name,
            "startup.mode": "timestamp" if request.param == "latest" else "copy_existing",
            "startup.mode.timestamp.start.at.operation.time": str(start),
            "pipeline": '[{"$match": {"fullDocument.before": null}}]',
            "poll.max.batch.size": "3",
            "poll.await.time.ms": "50",
        }


class TestMongoDbCapture(SourceConnectorTests):
    """The change data capture: a snapshot, and the changes after it."""

    connector_class = MongoDbConnector

    def identity(self, record: SourceRecord) -> Any:
        # Without the times of reading.
        return record.topic, record.key["id"], record.value["op"]

    @pytest.fixture
    def props(self, mongodb: MongoServer) -> Mapping[str, str]:
        name = database_name()
        with mongodb.client() as client:
            client[name]["b"].insert_many([{"_id": key} for key in (1, 2.5, "text", ObjectId())])
            client[name]["a"].insert_many([{"_id": key} for key in ({"x": 1}, False, Binary(b"1"), Int64(5), 7)])
        return {
            "name": "capture",
            "topic.prefix": "p",
            "mongodb.connection.string": mongodb.uri,
            "mongodb.server.selection.timeout.ms": "300",
            "database.include.list": name,
            "max.batch.size": "3",
            "cursor.max.await.time.ms": "50",
        }
