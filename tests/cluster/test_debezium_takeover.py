"""A connector of Debezium's on a Java cluster is continued by ours under load, and the other way round.

The offsets come over: no change is lost, none is skipped, and after stops without a kill none comes twice.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from pymongo.database import Database as MongoDatabase

from connect.errors import ConnectError
from connect.internals.jvm.home import sluice_home
from equipment.brokers.topics import read_so_far
from equipment.scrapes import Scrape
from equipment.servers.lease import Database
from equipment.servers.mongodb import MongoServer, database_name
from equipment.waiting import wait_until
from equipment.workers.cluster import LONG_SESSIONS
from equipment.workers.debezium import resolve_debezium
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_connect import JavaConnect
from equipment.workers.standalone import PATIENT
from worker.embedded.ports import HOST

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(300)]

JSON: Final = {"": "org.apache.kafka.connect.json.JsonConverter", ".schemas.enable": "false"}
CLASSES: Final = {
    "postgresql": "io.debezium.connector.postgresql.PostgresConnector",
    "mariadb": "io.debezium.connector.mariadb.MariaDbConnector",
    "mysql": "io.debezium.connector.mysql.MySqlConnector",
    "mongodb": "io.debezium.connector.mongodb.MongoDbConnector",
}
ROWS_EACH: Final = 300
"""What each worker sees at least."""


class Table:
    """The table of a relational database."""

    def __init__(self, database: Database) -> None:
        self.product, self.name = database.product, database.name
        self.database = database
        self.schema = "public" if database.product == "postgresql" else database.name
        database.execute("CREATE TABLE orders (id int PRIMARY KEY, note varchar(40))")

    @contextmanager
    def changing(self) -> Iterator[Callable[[int], None]]:
        """Give the function that inserts three rows, changes the first of them and deletes the second."""
        with closing(self.database.connect()) as connection, closing(connection.cursor()) as cursor:

            def change(first: int) -> None:
                rows = ", ".join(f"({number}, 'row {number}')" for number in range(first, first + 3))
                cursor.execute(f"INSERT INTO orders VALUES {rows}")
                cursor.execute(f"UPDATE orders SET note = 'changed' WHERE id = {first}")
                cursor.execute(f"DELETE FROM orders WHERE id = {first + 1}")

            yield change

    def config(self, bootstrap: str, prefix: str) -> dict[str, str]:
        """Return the keys of the connection, as Debezium's own guides have them."""
        database = self.database
        common = {
            "database.hostname": HOST,
            "database.port": str(database.port),
            "database.user": database.user,
            "database.password": database.password,
            "table.include.list": f"{self.schema}.orders",
        }
        if database.product == "postgresql":
            return common | {
                "database.dbname": database.name,
                "plugin.name": "pgoutput",
                "slot.name": database.name,
                "publication.name": database.name,
                "publication.autocreate.mode": "filtered",
            }
        return common | {
            "database.server.id": str(5000 + database.port % 1000),
            "database.include.list": database.name,
            "schema.history.internal.kafka.bootstrap.servers": bootstrap,
            "schema.history.internal.kafka.topic": f"{prefix}-history",
        }

    @staticmethod
    def key(row: Any) -> int:
        """Return the key in a row of an event."""
        return int(row["id"])


class Collection:
    """The collection of MongoDB, which keeps documents as they were before a change."""

    product = "mongodb"

    def __init__(self, server: MongoServer, documents: MongoDatabase[dict[str, Any]]) -> None:
        self.name = self.schema = documents.name
        self._uri, self._documents = server.uri, documents
        documents.create_collection("orders", changeStreamPreAndPostImages={"enabled": True})

    @contextmanager
    def changing(self) -> Iterator[Callable[[int], None]]:
        """Give the function that inserts three documents, changes the first of them and deletes the second."""
        orders = self._documents["orders"]

        def change(first: int) -> None:
            orders.insert_many([{"_id": number, "note": f"row {number}"} for number in range(first, first + 3)])
            orders.update_one({"_id": first}, {"$set": {"note": "changed"}})
            orders.delete_one({"_id": first + 1})

        yield change

    def config(self, bootstrap: str, prefix: str) -> dict[str, str]:
        """Return the keys of the connection; a snapshot here has no one moment, so there is none."""
        return {
            "mongodb.connection.string": self._uri,
            "collection.include.list": f"{self.name}.orders",
            "capture.mode": "change_streams_update_full_with_pre_image",
            "snapshot.mode": "no_data",
        }

    @staticmethod
    def key(row: Any) -> int:
        """Return the id in a document of an event."""
        return int(json.loads(row)["_id"])


class Load(threading.Thread):
    """Inserts, changes and deletes rows until it is told to stop; every third row is inserted with two others."""

    def __init__(self, captured: Table | Collection) -> None:
        super().__init__(daemon=True)
        self._captured = captured
        self._ended = threading.Event()
        self.inserted = 0

    def run(self) -> None:
        with self._captured.changing() as change:
            while not self._ended.is_set():
                change(self.inserted)
                self.inserted += 3
                self._ended.wait(0.005)

    def stop(self) -> None:
        """End after the statements at hand."""
        self._ended.set()
        self.join(30)

    def changes(self) -> list[tuple[str, int]]:
        """Return the changes of all rows, each as operation and key."""
        groups = range(0, self.inserted, 3)
        return [
            change
            for first in groups
            for change in (("c", first), ("c", first + 1), ("c", first + 2), ("u", first), ("d", first + 1))
        ]


class Capture:
    """The configuration of the connector, and what it has sent."""

    def __init__(self, captured: Table | Collection, bootstrap: str, prefix: str) -> None:
        self._captured, self._bootstrap, self._prefix = captured, bootstrap, prefix

    def config(self) -> dict[str, str]:
        """Return a configuration as Debezium's own guides have it."""
        return self._captured.config(self._bootstrap, self._prefix) | {
            "connector.class": CLASSES[self._captured.product],
            "topic.prefix": self._prefix,
            **{f"{part}.converter{key}": value for part in ("key", "value") for key, value in JSON.items()},
        }

    def changes(self) -> list[tuple[str, int]]:
        """Return the changes that were sent so far, each as operation and key."""
        topic = f"{self._prefix}.{self._captured.schema}.orders"
        values = [json.loads(value) for value in read_so_far(self._bootstrap, topic) if value is not None]
        return [(event["op"], self._captured.key(event["after"] or event["before"])) for event in values]


@pytest.fixture
def props(bootstrap: str, topic: str) -> dict[str, str]:
    """The worker properties of both: one group, the same topics."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": topic,
        **{f"{kind}.storage.topic": f"{topic}-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "offset.storage.partitions": "2",
        "status.storage.partitions": "2",
        "offset.flush.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "0",
        **{f"{part}.converter{key}": value for part in ("key", "value") for key, value in JSON.items()},
    }


@pytest.fixture(params=["postgresql", "mariadb", "mysql", "mongodb"])
def captured(request: pytest.FixtureRequest) -> Iterator[Table | Collection]:
    """A database with an empty table."""
    if request.param != "mongodb":
        yield Table(request.getfixturevalue(request.param))
        return
    server: MongoServer = request.getfixturevalue("mongodb")
    with server.client() as client:
        yield Collection(server, client[database_name()])


@pytest.fixture
def load(captured: Table | Collection) -> Iterator[Load]:
    """Changes of the table, from now on."""
    load = Load(captured)
    load.start()
    yield load
    load.stop()


@pytest.mark.thorough
def test_ours_continues_debezium_under_load_and_debezium_continues_ours(
    captured: Table | Collection,
    load: Load,
    props: Mapping[str, str],
    bootstrap: str,
    topic: str,
    tmp_path: Path,
) -> None:
    capture = Capture(captured, bootstrap, topic)
    try:
        jars = resolve_debezium(captured.product)
    except ConnectError as error:
        pytest.skip(f"no Debezium here: {error}")
    classes = sluice_home() / "tests" / "connect"
    java = JavaConnect(tmp_path / "java", jars, props, classes=classes)
    ours = DistributedWorker(tmp_path / "ours", bootstrap, **{**props, **PATIENT, **LONG_SESSIONS})
    try:
        java.start().create("orders", capture.config())
        wait_for_more(capture, 0)
        java.stop()
        seen = len(capture.changes())
        ours.start()
        wait_for_more(capture, seen)
        assert ours.terminate() == 0, ours.log()
        seen = len(capture.changes())
        java.start()
        wait_for_more(capture, seen)
        load.stop()
        sent = load.changes()
        wait_until("everything has come", lambda: capture.changes()[-1] == sent[-1], seconds=60)
        check_that_all_came_once(of_each_row(capture.changes()), of_each_row(sent))
    finally:
        java.close()
        ours.close()


@pytest.mark.thorough
def test_debeziums_own_connector_runs_in_a_jvm_of_ours(
    captured: Table | Collection,
    load: Load,
    props: Mapping[str, str],
    bootstrap: str,
    topic: str,
    tmp_path: Path,
) -> None:
    capture = Capture(captured, bootstrap, topic)
    try:
        jars = resolve_debezium(captured.product)
    except ConnectError as error:
        pytest.skip(f"no Debezium here: {error}")
    plugin = tmp_path / "plugins" / "debezium"
    plugin.mkdir(parents=True)
    for jar in jars.plugin:
        shutil.copy(jar, plugin)
    heap = {"java.plugins.jvm.options": "-Xmx512m", "plugin.path": str(plugin.parent)}
    ours = DistributedWorker(tmp_path / "ours", bootstrap, **{**props, **PATIENT, **LONG_SESSIONS, **heap})
    try:
        url = f"{ours.start().url()}connectors/{topic}/config"
        created = requests.put(url, json={**capture.config(), "engine": "java"}, timeout=90)
        assert created.status_code == 201, created.text
        # A snapshot that is not over when it is stopped is taken again.
        wait_until("it streams", lambda: sum(kind != "r" for kind, _ in capture.changes()) > ROWS_EACH, seconds=120)
        assert ours.status(topic)["connector"]["version"].endswith(".Final")
        asked = ("MilliSecondsBehindSource", "TotalNumberOfEventsSeen", "Connected", "QueueRemainingCapacity")
        place = {"name": capture.config()["topic.prefix"], "context": "streaming"}

        def are_served() -> bool:
            found = Scrape(ours.get("metrics").text)
            tables = {labels["table"] for labels in found.labels("debezium_metrics_RowsScanned")}
            named = [found.named(f"debezium_metrics_{attribute}", **place) for attribute in asked]
            return bool(tables) and all(named)

        wait_until("what dashboards ask for is served", are_served, seconds=90)
        assert ours.terminate() == 0, ours.log()
        seen = len(capture.changes())
        ours.start()
        wait_for_more(capture, seen)
        load.stop()
        sent = load.changes()
        wait_until("everything has come", lambda: capture.changes()[-1] == sent[-1], seconds=60)
        check_that_all_came_once(of_each_row(capture.changes()), of_each_row(sent))
    finally:
        ours.close()


def wait_for_more(capture: Capture, seen: int) -> None:
    """Wait until the worker at hand has sent its part."""
    wait_until("changes have come", lambda: len(capture.changes()) > seen + ROWS_EACH, seconds=90)


def check_that_all_came_once(came: Mapping[int, list[str]], sent: Mapping[int, list[str]]) -> None:
    """Compare the operations on each row; one that the snapshot has read shows only those after it, if it was there.

    Without a snapshot, the three rows during which the stream began are left out, and those before them.
    """
    last_read = max((key for key, operations in came.items() if operations[0] == "r"), default=-1)
    begins = 0 if last_read >= 0 else (min(came) // 3 + 1) * 3
    for key, operations in sent.items():
        if key < begins:
            continue
        found = came.get(key, [])
        if found[:1] == ["r"]:
            assert found[1:] == operations[len(operations) - len(found) + 1 :]
        elif found or key > last_read:
            assert found == operations
        else:
            assert operations[-1] == "d"


def of_each_row(changes: list[tuple[str, int]]) -> dict[int, list[str]]:
    """Return the operations on each row, in order."""
    found: dict[int, list[str]] = {}
    for operation, key in changes:
        found.setdefault(key, []).append(operation)
    return found
