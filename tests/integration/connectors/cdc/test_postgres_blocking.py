"""Blocking snapshots of PostgreSQL: the seam with the stream, kills, every channel of signals, and what goes wrong."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from connect.data import SourceRecord
from connect.errors import ConnectError
from connect.source import Signal
from connect.testing import StoredOffsets, running_source
from connectors.cdc.postgresql import PostgresConnector
from equipment.brokers.topics import create_topic
from equipment.change_data import capture_props
from equipment.proofs import thorough
from equipment.servers.lease import Database

pytestmark = pytest.mark.integration

SECONDS: Final = 120.0
ROWS: Final = 500
SIGNALS: Final = "CREATE TABLE signals (id text PRIMARY KEY, type text NOT NULL, data text)"
BLOCKING: Final = {"data-collections": ["public[.](t|keyless)"], "type": "blocking"}


def props_of(database: Database, **more: Any) -> dict[str, str]:
    given = {"snapshot_mode": "no_data", "table_include_list": "public[.](t|keyless)", "max_batch_size": 50}
    given |= {"signal_data_collection": "public.signals", "snapshot_max_threads": 2}
    given |= {"notification_enabled_channels": "sink", "notification_sink_topic_name": "told"}
    return capture_props(database, **(given | more))


@pytest.fixture
def filled(captured: Database) -> Database:
    """Rows with a key and without."""
    captured.execute(
        "CREATE TABLE t (id int PRIMARY KEY, version bigint NOT NULL)",
        "CREATE TABLE keyless (n int NOT NULL)",
        SIGNALS,
        f"INSERT INTO t SELECT i, 0 FROM generate_series(1, {ROWS}) i",
    )
    return captured


@contextmanager
def streaming(props: dict[str, str], offsets: StoredOffsets) -> Iterator[Any]:
    with running_source(PostgresConnector, props, offsets) as (task,):
        poll_until(task, lambda: task.task._capture is not None and task.task._capture.stream is not None)
        yield task


def poll_until(task: Any, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        task.poll()
        assert time.monotonic() < deadline


def signal(database: Database, **data: Any) -> None:
    text = json.dumps(data).replace("'", "''")
    database.execute(f"INSERT INTO signals VALUES ('blocking-' || gen_random_uuid(), 'execute-snapshot', '{text}')")


def told(records: Sequence[SourceRecord]) -> list[str]:
    return [record.value["type"] for record in records if record.topic == "told"]


def events(records: Sequence[SourceRecord], table: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the operations on a table, each with the row after it, or before a deletion."""
    values = [record.value for record in records if record.topic == f"srv.public.{table}" and record.value is not None]
    return [(value["op"], value["after"] or value["before"]) for value in values]


class Load:
    """Transactions that change rows with a key, and insert rows without one, until the end."""

    def __init__(self, database: Database, seed: int) -> None:
        self._database, self._chance = database, random.Random(seed)
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(2)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        with closing(self._database.connect()) as connection, closing(connection.cursor()) as cursor:
            for version in range(1, 1_000_000):
                if self._ends.wait(0.002):
                    return
                key = self._chance.randrange(ROWS // 2) * 2 + number + 1
                cursor.execute("BEGIN")
                cursor.execute("UPDATE t SET version = %s WHERE id = %s", (version, key))
                cursor.execute("INSERT INTO keyless VALUES (%s)", (2 * version + number,))
                cursor.execute("COMMIT")


def test_the_rows_have_exactly_what_was_streamed_before_them(filled: Database) -> None:
    offsets = StoredOffsets()
    with streaming(props_of(filled), offsets) as task:
        with Load(filled, 1):
            poll_until(task, lambda: len(events(task.records, "keyless")) > 50)
            signal(filled, **BLOCKING)
            poll_until(task, lambda: "COMPLETED" in told(task.records))
            read = len(events(task.records, "keyless"))
            poll_until(task, lambda: len(events(task.records, "keyless")) > read + 50)
        filled.execute("INSERT INTO keyless VALUES (-1)")
        poll_until(task, lambda: events(task.records, "keyless")[-1][1] == {"n": -1})
        records = task.records
    keyless = events(records, "keyless")
    operations = "".join(operation for operation, _ in keyless)
    assert set(operations.replace("r", "", operations.count("r"))) == {"c"}
    before = [row["n"] for operation, row in keyless[: operations.index("r")]]
    rows = [row["n"] for operation, row in keyless if operation == "r"]
    assert sorted(rows) == sorted(before)
    assert operations[operations.index("r") :].startswith("r" * len(rows)), "the stream did not wait"
    assert sorted(row["n"] for operation, row in keyless if operation == "c") == sorted(
        number for (number,) in filled.rows("SELECT n FROM keyless")
    )
    assert last_versions(records) == dict(filled.rows("SELECT id, version FROM t"))
    assert sorted(row["id"] for operation, row in events(records, "t") if operation == "r") == list(range(1, ROWS + 1))
    assert told(records)[-7:] == [
        "STARTED",
        "DATA_COLLECTIONS_RESOLVED",
        *["IN_PROGRESS", "TABLE_SCAN_COMPLETED"] * 2,
        "COMPLETED",
    ] or sorted(told(records)[-7:]) == sorted(
        ["STARTED", "DATA_COLLECTIONS_RESOLVED", "COMPLETED", *["IN_PROGRESS", "TABLE_SCAN_COMPLETED"] * 2]
    )
    identities = {record.value["id"][:9] for record in records if record.topic == "told"} - {"SKIPPED"}
    assert "blocking-" in identities
    ((_, offset),) = offsets.items()
    assert "blocking_snapshots" not in offset


def last_versions(records: Sequence[SourceRecord]) -> dict[int, int]:
    """Return the last version of each row; none follows a newer one."""
    found: dict[int, int] = {}
    for _, row in events(records, "t"):
        assert row["version"] >= found.get(row["id"], 0), "an older state follows a newer one"
        found[row["id"]] = row["version"]
    return found


@pytest.mark.parametrize("seed", [1, *thorough(2, 3, 4, 5)])
def test_a_task_that_is_killed_in_it_reads_what_is_left_while_the_stream_waits_again(
    filled: Database, seed: int
) -> None:
    chance = random.Random(seed)
    filled.execute("CREATE TABLE plain (n int)", "INSERT INTO plain SELECT i FROM generate_series(1, 30) i")
    props = props_of(filled, max_batch_size=20, table_include_list="public[.](t|keyless|plain)")
    offsets = StoredOffsets()
    with streaming(props, offsets):
        pass
    signal(filled, **BLOCKING | {"data-collections": ["public[.]plain", "public.t"]})
    topic: list[SourceRecord] = []
    with Load(filled, seed):
        while "COMPLETED" not in told(topic):
            topic += killed(props, offsets, rows_or_end(chance.randint(60, 200)))
    filled.execute("INSERT INTO keyless VALUES (-1)")
    topic += killed(props, offsets, lambda records: ("c", {"n": -1}) in events(records, "keyless"))
    assert last_versions(topic) == dict(filled.rows("SELECT id, version FROM t"))
    read = [row["id"] for operation, row in events(topic, "t") if operation == "r"]
    assert sorted(read) == list(range(1, ROWS + 1)), "each row is read once"
    assert {row["n"] for _, row in events(topic, "plain")} == set(range(1, 31))
    assert told(topic).count("STARTED") > 1, "the kills came too late to interrupt the snapshot"


def rows_or_end(count: int) -> Callable[[Sequence[SourceRecord]], bool]:
    """Return a condition: so many rows were read, or the snapshot is over."""

    def holds(records: Sequence[SourceRecord]) -> bool:
        read = sum(record.value is not None and record.value.get("op") == "r" for record in records)
        return read >= count or "COMPLETED" in told(records)

    return holds


def killed(
    props: dict[str, str], offsets: StoredOffsets, until: Callable[[Sequence[SourceRecord]], bool]
) -> list[SourceRecord]:
    """Run until a condition holds. Each poll is a transaction, as for exactly once."""
    with running_source(PostgresConnector, props, offsets) as (task,):
        poll_until(task, lambda: until(task.records))
        return list(task.records)


def test_conditions_and_statements_choose_rows_and_bad_ones_stop_nothing(filled: Database) -> None:
    filled.execute("INSERT INTO keyless SELECT i FROM generate_series(1, 30) i")
    conditions = [
        {"data-collection": "public.t", "filter": "id % 100 = 7"},
        {"data-collection": "public.keyless", "filter": "SELECT n FROM public.keyless WHERE n < 4"},
    ]
    with streaming(props_of(filled), StoredOffsets()) as task:
        source = task.task
        with pytest.raises(ConnectError, match="surrogate-key is for incremental snapshots"):
            source.take_signal(Signal("s", "execute-snapshot", BLOCKING | {"surrogate-key": "id"}))
        source.take_signal(Signal("s1", "execute-snapshot", BLOCKING | {"additional-conditions": conditions}))
        poll_until(task, lambda: "COMPLETED" in told(task.records))
        assert sorted(row["id"] for _, row in events(task.records, "t")) == list(range(7, ROWS, 100))
        assert sorted(row["n"] for _, row in events(task.records, "keyless")) == [1, 2, 3]
        bad = {"data-collection": "public.t", "filter": "no_column = 1"}
        source.take_signal(Signal("s2", "execute-snapshot", BLOCKING | {"additional-conditions": [bad]}))
        poll_until(task, lambda: "ABORTED" in told(task.records))
        filled.execute("INSERT INTO t VALUES (9999, 1)")
        poll_until(task, lambda: ("c", {"id": 9999, "version": 1}) in events(task.records, "t"))


@pytest.mark.thorough
def test_a_transaction_that_is_open_for_long_delays_it_and_not_the_stream(filled: Database) -> None:
    with streaming(props_of(filled), StoredOffsets()) as task, closing(filled.connect()) as connection:
        cursor = connection.cursor()
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO t VALUES (-5, 1)")
        task.task.take_signal(Signal("s", "execute-snapshot", BLOCKING))
        poll_until(task, lambda: task.task._capture.is_blocked)
        filled.execute("INSERT INTO t VALUES (-6, 1)")
        poll_until(task, lambda: ("c", {"id": -6, "version": 1}) in events(task.records, "t"))
        assert "STARTED" not in told(task.records)
        cursor.execute("COMMIT")
        poll_until(task, lambda: "COMPLETED" in told(task.records))
        operations = events(task.records, "t")
        assert operations.index(("c", {"id": -5, "version": 1})) < operations.index(("r", {"id": -5, "version": 1}))


def test_signals_come_by_a_file_and_by_a_topic(filled: Database, bootstrap: str, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "signals"
    create_topic(bootstrap, topic)
    props = props_of(filled, signal_enabled_channels="file,kafka", signal_file=path, signal_poll_interval_ms=100)
    props |= {"signal.kafka.topic": topic, "signal.kafka.bootstrap.servers": bootstrap}
    text = json.dumps({"type": "execute-snapshot", "data": BLOCKING})
    with streaming(props, StoredOffsets()) as task:
        poll_until(task, lambda: task.task._signals._kafka.is_open)
        path.write_text(text + "\n")
        poll_until(task, lambda: told(task.records).count("COMPLETED") == 1)
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(topic, text.encode(), b"srv")
        producer.flush(30)
        poll_until(task, lambda: told(task.records).count("COMPLETED") == 2)
        assert len(events(task.records, "t")) == 2 * ROWS
