"""The connectors of MongoDB keep the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest

from connect.data import SinkRecord
from connect.testing import SinkConnectorTests
from connect.testing.samples import sink_records
from connectors.mongodb import MongoSinkConnector
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
