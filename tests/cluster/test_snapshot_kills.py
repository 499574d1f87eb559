"""Snapshots of PostgreSQL while workers and tasks are killed: each row is read once, and the latest states agree."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from confluent_kafka import Consumer, TopicPartition

from equipment.brokers.topics import create_topic, read_topic
from equipment.change_data import capture_props
from equipment.servers.lease import Database
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker

KILLS: Final = int(os.environ.get("SLUICE_CDC_KILLS", "0"))
"""How many kills each of the two snapshots suffers; without the variable one each."""
ROWS: Final = 10_000
CHANGED: Final = 1_000
"""Rows below this number are changed while they are read."""
PATIENCE: Final = 120.0
NAME: Final = "snapshot"
pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(600 + 60 * KILLS)]


class Load:
    """Changes rows until it is closed, each time to a greater version."""

    def __init__(self, database: Database, chance: random.Random) -> None:
        self._database = database
        self._chance = chance
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        version = 1
        with closing(self._database.connect()) as connection, closing(connection.cursor()) as cursor:
            while not self._end.wait(0.02):
                version += 1
                key = self._chance.randrange(CHANGED)
                if self._chance.random() < 0.2:
                    cursor.execute("DELETE FROM t WHERE id = %s", (key,))
                    continue
                cursor.execute(
                    "INSERT INTO t VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET version = excluded.version",
                    (key, version),
                )


class Flow:
    """A worker with a connector that captures the table t, exactly once."""

    def __init__(self, database: Database, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.topic = f"{database.name}.public.t"
        self.notifications = f"{database.name}.told"
        for topic in (self.topic, self.notifications):
            create_topic(bootstrap, topic)
        self._ends = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends", "log_level": 0})
        self.worker = DistributedWorker(folder, bootstrap, exactly_once_source_support="enabled")
        self.worker.start()
        config = capture_props(database) | {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "topic.prefix": database.name,
            "key.converter": "JsonConverter",
            "value.converter": "JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
            "table.include.list": "public.t",
            "max.batch.size": "200",
            "snapshot.max.threads": "2",
            "incremental.snapshot.chunk.size": "500",
            "notification.enabled.channels": "sink",
            "notification.sink.topic.name": self.notifications,
            "exactly.once.support": "required",
            "restart.policy": "on-failure",
            "restart.backoff.ms": "100",
            "restart.limit": "1000",
        }
        answer = requests.put(f"{self.worker.url()}connectors/{NAME}/config", json=config, timeout=60)
        assert answer.ok, answer.text

    def messages(self) -> list[tuple[int, dict[str, Any] | None]]:
        """The committed records, in order: the key, and the event if it is no tombstone."""
        read = read_topic(self.bootstrap, self.topic)
        return [
            (json.loads(each.key())["id"], None if each.value() is None else json.loads(each.value())) for each in read
        ]

    def _end(self) -> int:
        return int(self._ends.get_watermark_offsets(TopicPartition(self.topic, 0), timeout=10)[1])

    def close(self) -> None:
        self.worker.close()
        self._ends.close()

    def completed(self) -> int:
        """How many snapshots were completed."""
        told = read_topic(self.bootstrap, self.notifications)
        return sum(json.loads(each.value())["type"] == "COMPLETED" for each in told)

    def kill(self, victim: str) -> None:
        if victim == "worker":
            self.worker.kill()
            self.worker.start()
            return
        with suppress(ProcessLookupError):
            os.kill(self.worker.task_pid(NAME), signal.SIGKILL)

    def kill_in_the_midst(self, chance: random.Random) -> None:
        """Kill while rows are read, each time after some more."""
        for number in range(KILLS or 1):
            before = self._end()
            more = chance.randrange(200, 1_500)
            wait_until("rows come", lambda before=before, more=more: self._end() > before + more, PATIENCE)
            victim = chance.choice(["task", "worker"]) if KILLS else "task"
            print(f"{number + 1}: {victim}", flush=True)
            self.kill(victim)

    def send(self, kind: str, **data: Any) -> None:
        """Send a signal, as soon as the task runs again."""

        def is_taken() -> bool:
            body = {"type": kind, "data": {name.replace("_", "-"): value for name, value in data.items()}}
            answer = requests.post(f"{self.worker.url()}connectors/{NAME}/signals", json=body, timeout=60)
            assert answer.status_code in (202, 400, 409), answer.text
            return answer.status_code == 202

        wait_until("the signal is taken", is_taken, PATIENCE)


@pytest.fixture
def flow(captured: Database, bootstrap: str, tmp_path: Path) -> Iterator[Flow]:
    captured.execute(
        "CREATE TABLE t (id int PRIMARY KEY, version int NOT NULL)",
        f"INSERT INTO t SELECT i, 1 FROM generate_series(0, {ROWS - 1}) i",
        "ANALYZE",
    )
    made = Flow(captured, bootstrap, tmp_path / "worker")
    yield made
    made.close()


def test_kills_in_snapshots_lose_no_row_and_read_none_twice(flow: Flow, captured: Database) -> None:
    seed = int(os.environ.get("SLUICE_CDC_SEED", random.randrange(1 << 32)))
    print(f"SLUICE_CDC_SEED={seed}")
    chance = random.Random(seed)
    load = Load(captured, random.Random(seed + 1))
    try:
        flow.kill_in_the_midst(chance)
        wait_until("the snapshot is completed", lambda: flow.completed() == 1, PATIENCE)
        first = len(flow.messages())
        flow.send("execute-snapshot", data_collections=["public.t"])
        flow.kill_in_the_midst(chance)
        wait_until("the incremental snapshot is completed", lambda: flow.completed() == 2, PATIENCE)
    finally:
        load.close()
    rows = dict(captured.rows("SELECT id, version FROM t"))
    wait_until("the rest has come", lambda: latest(flow.messages()) == rows, PATIENCE)
    messages = flow.messages()
    for part in (messages[:first], messages[first:]):
        read = Counter(key for key, event in part if event is not None and event["op"] == "r")
        assert not [key for key, count in read.items() if count > 1], "a row was read twice"
        assert {key for key in range(CHANGED, ROWS) if not read[key]} == set(), "a row was not read"


def latest(messages: list[tuple[int, dict[str, Any] | None]]) -> dict[int, int]:
    """Return the latest state of each row; none follows a newer one."""
    state: dict[int, int] = {}
    newest: dict[int, int] = {}
    for key, event in messages:
        if event is None or event["after"] is None:
            state.pop(key, None)
            continue
        version = event["after"]["version"]
        assert version >= newest.get(key, 0), f"an older state of {key} follows a newer one"
        newest[key] = state[key] = version
    return state
