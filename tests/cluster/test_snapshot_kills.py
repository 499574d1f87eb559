"""Snapshots while workers and tasks are killed: each row is read once, and the latest states agree.

The kinds of snapshots come one after the other: the first one, an incremental one, and one for which the stream waits.
Signals are sent by REST.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
import requests
from confluent_kafka import Consumer, KafkaError, TopicPartition

from equipment.binlog_capture import binlog_props
from equipment.brokers.topics import create_topic
from equipment.change_data import capture_props
from equipment.proofs import thorough
from equipment.row_changes import RowChanges, RowWriter, SqlRowWriter
from equipment.servers.lease import Database
from equipment.servers.mongodb import MongoServer, database_name
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.processes import descendants
from equipment.workers.small_spark import SMALL_SPARK, prepare_spark

KILLS: Final = int(os.environ.get("SLUICE_CDC_KILLS", "0"))
"""How many kills the snapshots of each kind suffer; without the variable one each."""
ROWS: Final = 10_000 + 1_500 * KILLS
CHANGED: Final = 1_000
"""Rows below this number are changed while they are read."""
EVERY: Final = frozenset(range(ROWS))
UNCHANGED: Final = frozenset(range(CHANGED, ROWS))
PATIENCE: Final = 120.0
NAME: Final = "snapshot"
pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(600 + 180 * KILLS)]

Message = tuple[int, dict[str, Any] | None]
"""The key of a record, and the event if it is no tombstone."""


class Table(Protocol):
    """A table of ``ROWS`` rows, as a database has it."""

    name: str
    kinds: tuple[str, ...]
    """The kinds of snapshots that are killed."""

    victims: tuple[str, ...]
    """What is killed."""

    config: dict[str, str]

    def writer(self) -> RowWriter:
        """Connect for changes."""

    def rows(self) -> dict[int, int]:
        """Return the versions of the rows, by their keys."""

    def state(self, after: Any) -> int:
        """Return the version of a row, as an event has it."""


class SqlTable:
    """The table of PostgreSQL, MySQL or MariaDB."""

    kinds = ("first", "incremental", "blocking")
    victims: tuple[str, ...] = ("task", "worker")

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute("CREATE TABLE t (id int PRIMARY KEY, version int NOT NULL)")
        for begin in range(0, ROWS, 5_000):
            values = ", ".join(f"({key}, 1)" for key in range(begin, min(begin + 5_000, ROWS)))
            database.execute(f"INSERT INTO t VALUES {values}")
        if database.product == "postgresql":
            database.execute("ANALYZE t")
            self.name = "public.t"
            self.config = capture_props(database)
        else:
            self.name = f"{database.name}.t"
            self.config = binlog_props(database)
        names = {"postgresql": "postgresql.Postgres", "mysql": "mysql.MySql", "mariadb": "mariadb.MariaDb"}
        self.config |= {
            "connector.class": f"io.debezium.connector.{names[database.product]}Connector",
            "table.include.list": self.name,
        }

    def writer(self) -> RowWriter:
        return SqlRowWriter(self._database)

    def rows(self) -> dict[int, int]:
        return dict(self._database.rows("SELECT id, version FROM t"))

    def state(self, after: Any) -> int:
        return int(after["version"])


class SparkTable(SqlTable):
    """The table of PostgreSQL, whose first snapshot is read by executors of Spark, in two pieces with another table."""

    kinds = ("first",)
    victims = ("task", "worker", "java", "python")

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        database.execute(
            "CREATE TABLE u (id int PRIMARY KEY, version int NOT NULL)", "INSERT INTO u SELECT * FROM t", "ANALYZE u"
        )
        self.config |= {
            "table.include.list": "public.[tu]",
            "engine": "spark",
            "engine.poll.interval.ms": "100",
            "engine.commit.interval.ms": "500",
            "max.batch.size": "500",
            "tasks.max": "2",
            **{key: value for key, value in SMALL_SPARK.items() if "extraJavaOptions" not in key},
        }


class DocumentTable:
    """The collection of MongoDB: its first snapshot may tell older states again, and there are no blocking ones."""

    kinds = ("incremental",)
    victims = ("task", "worker")

    def __init__(self, server: MongoServer) -> None:
        self._server = server
        self._database = database_name()
        self.name = f"{self._database}.t"
        with server.client() as client:
            client[self._database]["t"].insert_many({"_id": key, "version": 1} for key in range(ROWS))
        self.config = {
            "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
            "mongodb.connection.string": server.uri,
            "database.include.list": self._database,
            "snapshot.mode": "no_data",
            "cursor.max.await.time.ms": "100",
        }

    def writer(self) -> RowWriter:
        return DocumentWriter(self._server, self._database)

    def rows(self) -> dict[int, int]:
        with self._server.client() as client:
            return {each["_id"]: each["version"] for each in client[self._database]["t"].find()}

    def state(self, after: Any) -> int:
        return int(json.loads(after)["version"])


class DocumentWriter:
    """Replaces documents: such a change tells the document as it was then."""

    def __init__(self, server: MongoServer, database: str) -> None:
        self._client = server.client()
        self._collection = self._client[database]["t"]

    def put(self, key: int, version: int) -> None:
        self._collection.replace_one({"_id": key}, {"version": version}, upsert=True)

    def delete(self, key: int) -> None:
        self._collection.delete_one({"_id": key})

    def close(self) -> None:
        self._client.close()


class Reader:
    """Reads what is committed to a topic of one partition."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {"enable.partition.eof": True, "enable.auto.commit": False, "fetch.wait.max.ms": 20, "log_level": 0}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, **settings})
        self._partition = TopicPartition(topic, 0, 0)
        self._consumer.assign([self._partition])
        self._is_at_end = False
        self.read: list[tuple[Any, Any]] = []

    def look(self) -> list[tuple[Any, Any]]:
        """Read to the end; return the keys and values so far."""
        # The end is told each time that it was reached, and more may have come since.
        while (message := self._consumer.poll(0.02 if self._is_at_end else PATIENCE)) is not None:
            self._is_at_end = message.error() is not None
            if self._is_at_end:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                continue
            key, value = message.key(), message.value()
            self.read.append((key and json.loads(key), value and json.loads(value)))
        assert self._is_at_end, f"{self._partition.topic} could not be read to its end"
        return self.read

    def end(self) -> int:
        """Return where the topic ends, with what is not committed."""
        return int(self._consumer.get_watermark_offsets(self._partition, timeout=10)[1])

    def close(self) -> None:
        self._consumer.close()


class Flow:
    """A worker with a connector that captures the table, exactly once, and what it has published."""

    def __init__(self, table: Table, bootstrap: str, topic: str, folder: Path) -> None:
        self.table = table
        topics = (f"{topic}.{table.name}", f"{topic}.told")
        for each in topics:
            create_topic(bootstrap, each)
        self._changes, self._told = (Reader(bootstrap, each) for each in topics)
        self.worker = DistributedWorker(folder, bootstrap, exactly_once_source_support="enabled")
        self.worker.start()
        config = {"max.batch.size": "50"} | table.config
        config |= {
            "topic.prefix": topic,
            "key.converter": "JsonConverter",
            "value.converter": "JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
            "snapshot.max.threads": "2",
            "incremental.snapshot.chunk.size": "500",
            "notification.enabled.channels": "sink",
            "notification.sink.topic.name": topics[1],
            "exactly.once.support": "required",
            "restart.policy": "on-failure",
            "restart.backoff.ms": "100",
            "restart.backoff.max.ms": "1000",
            "restart.limit": "1000",
        }
        answer = requests.put(f"{self.worker.url()}connectors/{NAME}/config", json=config, timeout=60)
        assert answer.ok, answer.text

    def messages(self) -> list[Message]:
        """What was committed so far, in order."""
        return [(int(key["id"]), value) for key, value in self._changes.look()]

    def read(self, begin: int) -> Counter[int]:
        """Return how often each row was read by snapshots, from a message on."""
        return Counter(key for key, event in self.messages()[begin:] if event is not None and event["op"] == "r")

    def completed(self) -> int:
        """How many snapshots were completed."""
        return self.told("COMPLETED")

    def close(self) -> None:
        self.worker.close()
        self._changes.close()
        self._told.close()

    def kill(self, victim: str) -> None:
        if victim == "worker":
            self.worker.kill()
            self.worker.start()
            return
        pid = self.worker.task_pid(NAME)
        with suppress(ProcessLookupError, IndexError):
            os.kill(pid if victim == "task" else below(pid, victim)[-1], signal.SIGKILL)

    def kill_within(self, kind: str, chance: random.Random, most: int) -> int:
        """Have a snapshot read, and kill while rows are read, each time after some more; return how many kills.

        The snapshot may be over before all of them: rows are read while this test waits for its turn.
        """
        completed, begin = self.completed(), len(self.messages())
        if kind != "first":
            self.send(kind)
        kills = 0
        while kills < most and self.is_reading(completed, chance.randrange(200, 1_500)):
            victim = chance.choice(self.table.victims) if KILLS else self.table.victims[kills % len(self.table.victims)]
            kills += 1
            print(f"{kind} {kills} of {most}: {victim}", flush=True)
            self.kill(victim)
        wait_until(f"the {kind} snapshot is completed", lambda: self.completed() > completed, PATIENCE)
        # The commit of a transaction may be seen on one topic before the other.
        wait_until("each row is read", lambda: self.read(begin).keys() >= UNCHANGED, PATIENCE)
        assert not [key for key, count in self.read(begin).items() if count > 1], "a row was read twice"
        return kills

    def is_reading(self, completed: int, more: int) -> bool:
        """Wait until some more records were written, committed or not; return whether the snapshot is not over."""
        wanted = self._changes.end() + more
        wait_until("rows come", lambda: self._changes.end() >= wanted or self.completed() > completed, PATIENCE)
        return self.completed() == completed

    def kill_after_the_answer(self) -> bool:
        """Kill the task as soon as it has a signal; return whether the next one knows the signal."""
        started, begin, pid = self.told("STARTED"), len(self.messages()), self.worker.task_pid(NAME)
        self.send("incremental")
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        wait_until("another task", lambda: self.worker.task_pid(NAME) not in (None, pid), PATIENCE)
        # Once that takes signals, what the first one has left is committed or not.
        self.signal("log", {"message": "up"})
        if self.told("STARTED") == started:
            assert not self.read(begin), "rows of a snapshot that was forgotten"
            return False
        wait_until("it is completed", lambda: self.completed() == self.told("STARTED"), PATIENCE)
        wait_until("each row is read", lambda: self.read(begin).keys() == EVERY, PATIENCE)
        return True

    def told(self, kind: str) -> int:
        """How many notifications of a kind there were."""
        return sum(value["type"] == kind for _, value in self._told.look())

    def send(self, kind: str) -> None:
        """Have the table read, as soon as the task runs again."""
        self.signal("execute-snapshot", {"type": kind, "data-collections": [self.table.name]})

    def signal(self, kind: str, data: dict[str, Any]) -> None:
        """Send a signal by REST, as soon as the task runs again."""

        def is_taken() -> bool:
            body = {"type": kind, "data": data}
            answer = requests.post(f"{self.worker.url()}connectors/{NAME}/signals", json=body, timeout=60)
            assert answer.status_code in (202, 400, 409), answer.text
            return answer.status_code == 202

        wait_until("the signal is taken", is_taken, PATIENCE)


def below(pid: int, name: str) -> list[int]:
    """Return the processes of a name that a task has started; those of executors are the last ones."""
    return [each for each in descendants(pid) if Path(f"/proc/{each}/comm").read_text().startswith(name)]


@pytest.fixture(params=thorough("postgresql", "mysql", "mariadb", "mongodb", "spark"))
def table(request: pytest.FixtureRequest) -> Table:
    given = request.getfixturevalue({"postgresql": "captured", "spark": "captured"}.get(request.param, request.param))
    if request.param == "spark":
        prepare_spark()
        return SparkTable(given)
    return DocumentTable(given) if isinstance(given, MongoServer) else SqlTable(given)


@pytest.fixture
def flow(table: Table, bootstrap: str, topic: str, tmp_path: Path) -> Iterator[Flow]:
    made = Flow(table, bootstrap, topic, tmp_path / "worker")
    yield made
    made.close()


def test_kills_in_snapshots_lose_no_row_and_read_none_twice(flow: Flow) -> None:
    seed = int(os.environ.get("SLUICE_CDC_SEED", random.randrange(1 << 32)))
    print(f"SLUICE_CDC_SEED={seed}")
    chance = random.Random(seed)
    load = RowChanges(flow.table.writer, random.Random(seed + 1), CHANGED, 0.02)
    try:
        for kind in flow.table.kinds:
            kills = flow.kill_within(kind, chance, KILLS or 1)
            while kind != "first" and kills < (KILLS or 1):
                kills += flow.kill_within(kind, chance, (KILLS or 1) - kills)
            assert kills, f"the {kind} snapshot was over before it could be killed"
            print(f"{kind}: {kills} kills", flush=True)
    finally:
        load.close()
    rows = flow.table.rows()
    wait_until("the rest has come", lambda: latest(flow.messages(), flow.table) == rows, PATIENCE)
    read = flow.read(0)
    assert {read[key] for key in UNCHANGED} == {flow.completed()}, "a snapshot has not read each row once"


def test_a_signal_is_known_or_forgotten_as_a_whole_if_the_task_is_killed_after_the_answer(flow: Flow) -> None:
    if isinstance(flow.table, SparkTable):
        pytest.skip("executors take no signals by REST")
    if "first" in flow.table.kinds:
        wait_until("the first snapshot is completed", lambda: flow.completed() == 1, PATIENCE)
        wait_until("each row is read", lambda: flow.read(0).keys() == EVERY, PATIENCE)
    known = [flow.kill_after_the_answer() for _ in range(KILLS or 3)]
    print(f"{sum(known)} of {len(known)} signals were known after the kill", flush=True)
    flow.send("incremental")
    first = "first" in flow.table.kinds
    wait_until("the last one is completed", lambda: flow.completed() == sum(known) + 1 + first, PATIENCE)
    wait_until("each row is read once more", lambda: set(flow.read(0).values()) == {flow.completed()}, PATIENCE)


def latest(messages: list[Message], table: Table) -> dict[int, int]:
    """Return the latest state of each row; none follows a newer one."""
    state: dict[int, int] = {}
    newest: dict[int, int] = {}
    for key, event in messages:
        if event is None or event["after"] is None:
            state.pop(key, None)
            continue
        version = table.state(event["after"])
        assert version >= newest.get(key, 0), f"an older state of {key} follows a newer one"
        newest[key] = state[key] = version
    return state
