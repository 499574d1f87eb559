"""Debezium's connector is taken over in the midst of transactions, and given back, while rows are copied all the time.

Both workers belong to one cluster by name: they have the same topics of configurations and offsets, and take turns.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import requests

from connect.errors import ConnectError
from equipment.brokers.topics import create_topic, read_topic
from equipment.change_data import capture_props
from equipment.servers.lease import Database
from equipment.waiting import wait_until
from equipment.workers.debezium import resolve_debezium
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_connect import JavaConnect, JavaConnectJars

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(600)]

PATIENCE: Final = 180.0
ROWS: Final = 200
"""In each COPY: its rows share a few positions in the log."""


@pytest.fixture(scope="module")
def debezium() -> JavaConnectJars:
    try:
        return resolve_debezium("postgresql")
    except ConnectError as error:
        pytest.skip(f"no Debezium here: {error}")


class Copies:
    """Copies rows into the table until it is closed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._end = threading.Event()
        self.last = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        with self._database.connect() as connection:
            while not self._end.wait(0.1):
                with connection.cursor().copy("COPY t FROM STDIN") as copy:
                    for number in range(self.last + 1, self.last + ROWS + 1):
                        copy.write_row((number,))
                self.last += ROWS


@pytest.fixture
def copies(captured: Database) -> Iterator[Copies]:
    captured.execute("CREATE TABLE t (id int PRIMARY KEY)")
    made = Copies(captured)
    yield made
    made.close()


def test_no_row_is_lost_between_them(
    captured: Database, copies: Copies, bootstrap: str, debezium: JavaConnectJars, tmp_path: Path
) -> None:
    name = f"turns-{captured.name}"
    topic = f"{captured.name}.public.t"
    create_topic(bootstrap, topic)
    (tmp_path / "java").mkdir()
    storage = {
        f"{kind}.storage.{key}": value
        for kind in ("config", "offset", "status")
        for key, value in {"topic": f"{name}-{kind}", "replication.factor": "1"}.items()
    }
    shared = {"bootstrap.servers": bootstrap, "group.id": name, "offset.flush.interval.ms": "200", **storage}
    java = JavaConnect(tmp_path / "java", debezium, shared)
    ours = DistributedWorker(tmp_path / name, bootstrap, offset_flush_interval_ms="200")

    def sent() -> list[int]:
        return [json.loads(message.key() or b"")["id"] for message in read_topic(bootstrap, topic)]

    def goes_on(who: str) -> None:
        before = len(sent())
        wait_until(f"{who} goes on", lambda: len(sent()) > before + 4 * ROWS, PATIENCE)

    try:
        java.start()
        config = capture_props(captured) | {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "tasks.max": "1",
            "topic.prefix": captured.name,
            "max.batch.size": "64",
            "max.queue.size": "128",
            "poll.interval.ms": "5",
            **{f"{kind}.converter": "org.apache.kafka.connect.json.JsonConverter" for kind in ("key", "value")},
            **{f"{kind}.converter.schemas.enable": "false" for kind in ("key", "value")},
        }
        requests.put(f"{java.url}connectors/capture/config", json=config, timeout=60).raise_for_status()
        for _ in range(2):
            goes_on("Debezium")
            java.stop()
            ours.start()
            goes_on("Sluice")
            ours.terminate()
            java.start()
        copies.close()
        wait_until("all is sent", lambda: len(sent()) >= copies.last, PATIENCE)
    finally:
        java.close()
        ours.close()

    # Nothing is lost or passed over. What comes again was sent by Java's worker after the last offset that it stored:
    # if it does not end in time, it is killed.
    found = sent()
    assert list(dict.fromkeys(found)) == list(range(1, copies.last + 1))
    print(f"{len(found)} rows, {len(found) - copies.last} of them again")
