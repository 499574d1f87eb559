"""Fixtures of the tests of the MongoDB connectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from pymongo.database import Database

from connect.data import SinkRecord
from connect.testing import run_sink
from connect.testing.contexts import ErrantRecords
from connectors.mongodb import MongoSinkConnector
from equipment.servers.mongodb import MongoServer, database_name


@pytest.fixture
def documents(mongodb: MongoServer) -> Iterator[Database[dict[str, Any]]]:
    """A database of one's own."""
    with mongodb.client() as client:
        name = database_name()
        yield client[name]
        client.drop_database(name)


@pytest.fixture
def sink(
    mongodb: MongoServer, documents: Database[dict[str, Any]]
) -> Callable[..., list[tuple[SinkRecord, Exception]]]:
    """Runs the sink over records and returns those that it gave up."""

    def run(
        records: Sequence[SinkRecord], *, tolerate: bool = False, **props: str
    ) -> list[tuple[SinkRecord, Exception]]:
        errant: ErrantRecords[SinkRecord] = ErrantRecords(tolerate=tolerate)
        given = {
            "name": "documents",
            "connection.uri": mongodb.uri,
            "database": documents.name,
            "errors.tolerance": "all" if tolerate else "none",
            **{key.replace("__", "."): value for key, value in props.items()},
        }
        run_sink(MongoSinkConnector, given, records, errant_records=errant)
        return errant.reported

    return run
