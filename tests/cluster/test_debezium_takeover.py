"""A connector of Debezium's on a Java cluster is continued by ours under load, and the other way round.

The offsets come over: no change is lost, none is skipped, and after stops without a kill none comes twice.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from connect.errors import ConnectError
from connect.internals.jvm.home import sluice_home
from equipment.brokers.topics import read_so_far
from equipment.proofs import thorough
from equipment.servers.lease import Database
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
}
ROWS_EACH: Final = 300
"""What each worker sees at least."""


class Load(threading.Thread):
    """Inserts, changes and deletes rows until it is told to stop; every third row is inserted with two others."""

    def __init__(self, database: Database) -> None:
        super().__init__(daemon=True)
        self._database = database
        self._ended = threading.Event()
        self.inserted = 0

    def run(self) -> None:
        with closing(self._database.connect()) as connection, closing(connection.cursor()) as cursor:
            while not self._ended.is_set():
                first = self.inserted
                rows = ", ".join(f"({number}, 'row {number}')" for number in range(first, first + 3))
                cursor.execute(f"INSERT INTO orders VALUES {rows}")
                cursor.execute(f"UPDATE orders SET note = 'changed' WHERE id = {first}")
                cursor.execute(f"DELETE FROM orders WHERE id = {first + 1}")
                self.inserted = first + 3
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

    def __init__(self, database: Database, bootstrap: str, prefix: str) -> None:
        self._database, self._bootstrap, self._prefix = database, bootstrap, prefix
        self._class = CLASSES[database.product]
        self._schema = "public" if database.product == "postgresql" else database.name

    def config(self) -> dict[str, str]:
        """Return a configuration as Debezium's own guides have it."""
        database = self._database
        common = {
            "connector.class": self._class,
            "database.hostname": HOST,
            "database.port": str(database.port),
            "database.user": database.user,
            "database.password": database.password,
            "topic.prefix": self._prefix,
            "table.include.list": f"{self._schema}.orders",
            **{f"{part}.converter{key}": value for part in ("key", "value") for key, value in JSON.items()},
        }
        if database.product == "postgresql":
            own = {
                "database.dbname": database.name,
                "plugin.name": "pgoutput",
                "slot.name": database.name,
                "publication.name": database.name,
                "publication.autocreate.mode": "filtered",
            }
        else:
            own = {
                "database.server.id": str(5000 + database.port % 1000),
                "database.include.list": database.name,
                "schema.history.internal.kafka.bootstrap.servers": self._bootstrap,
                "schema.history.internal.kafka.topic": f"{self._prefix}-history",
            }
        return common | own

    def changes(self) -> list[tuple[str, int]]:
        """Return the changes that were sent so far, each as operation and key."""
        topic = f"{self._prefix}.{self._schema}.orders"
        values = [json.loads(value) for value in read_so_far(self._bootstrap, topic) if value is not None]
        return [(event["op"], (event["after"] or event["before"])["id"]) for event in values]


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


@pytest.fixture(params=["postgresql", *thorough("mariadb", "mysql")])
def captured(request: pytest.FixtureRequest) -> Database:
    """A database with an empty table."""
    found: Database = request.getfixturevalue(request.param)
    found.execute("CREATE TABLE orders (id int PRIMARY KEY, note varchar(40))")
    return found


@pytest.fixture
def load(captured: Database) -> Iterator[Load]:
    """Changes of the table, from now on."""
    load = Load(captured)
    load.start()
    yield load
    load.stop()


def test_ours_continues_debezium_under_load_and_debezium_continues_ours(
    captured: Database,
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


def wait_for_more(capture: Capture, seen: int) -> None:
    """Wait until the worker at hand has sent its part."""
    wait_until("changes have come", lambda: len(capture.changes()) > seen + ROWS_EACH, seconds=90)


def check_that_all_came_once(came: Mapping[int, list[str]], sent: Mapping[int, list[str]]) -> None:
    """Compare the operations on each row; one that the snapshot has read shows only those after it, if it was there."""
    last_read = max((key for key, operations in came.items() if operations[0] == "r"), default=-1)
    for key, operations in sent.items():
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
