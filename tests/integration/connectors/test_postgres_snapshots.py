"""Incremental snapshots of PostgreSQL beside its stream: under load, after kills, by every channel of signals."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from connect.data import SourceRecord
from connect.errors import ConnectError
from connect.source import Signal
from connect.testing import StoredOffsets, run_source, running_source
from connectors.cdc.postgresql import PostgresConnector
from equipment.brokers.topics import create_topic
from equipment.change_data import capture_props
from equipment.proofs import thorough, thorough_rows
from equipment.servers.lease import Database

pytestmark = pytest.mark.integration

TABLE = "CREATE TABLE t (a int, b text, version bigint NOT NULL, note text, PRIMARY KEY (a, b))"
SIGNALS = "CREATE TABLE signals (id text PRIMARY KEY, type text NOT NULL, data text)"
SECONDS = 60.0


class Load:
    """Transactions that insert, change, move and delete rows; every change has a version of its own."""

    def __init__(self, database: Database, seed: int, pause: float = 0.0) -> None:
        self._database = database
        self._chance = random.Random(seed)
        self._version = 1000
        self._pause = pause
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stops.set()
        self._thread.join()

    def _run(self) -> None:
        with closing(self._database.connect()) as connection, closing(connection.cursor()) as cursor:
            while not self._stops.wait(self._pause):
                cursor.execute("BEGIN")
                for _ in range(self._chance.randint(1, 5)):
                    self._change(cursor)
                cursor.execute("ROLLBACK" if self._chance.random() < 0.1 else "COMMIT")

    def _change(self, cursor: Any) -> None:
        self._version += 1
        key = self._chance.randrange(400), self._chance.choice("xyz")
        match self._chance.choice(["put", "put", "put", "delete", "move"]):
            case "put":
                cursor.execute(
                    "INSERT INTO t VALUES (%s, %s, %s) ON CONFLICT (a, b) DO UPDATE SET version = excluded.version",
                    (*key, self._version),
                )
            case "delete":
                cursor.execute("DELETE FROM t WHERE a = %s AND b = %s", key)
            case "move":
                cursor.execute(
                    "UPDATE t SET a = a + 1000, version = %s WHERE a = %s AND b = %s AND NOT EXISTS "
                    "(SELECT FROM t WHERE a = %s AND b = %s)",
                    (self._version, *key, key[0] + 1000, key[1]),
                )


def rows_of(database: Database) -> dict[tuple[Any, ...], int]:
    return {(a, b): version for a, b, version in database.rows("SELECT a, b, version FROM t")}


def latest(records: Sequence[SourceRecord]) -> dict[tuple[Any, ...], int]:
    """Return the latest state of each row, having checked that no older state follows a newer one."""
    state: dict[tuple[Any, ...], int] = {}
    newest: dict[tuple[Any, ...], int] = {}
    for record in records:
        if not record.topic.endswith(".t"):
            continue
        key = tuple(record.key.values())
        after = record.value["after"] if record.value is not None else None
        if after is None:
            state.pop(key, None)
            continue
        assert after["version"] >= newest.get(key, 0), f"an older state of {key} follows a newer one"
        newest[key] = state[key] = after["version"]
    return state


def read_keys(records: Sequence[SourceRecord]) -> list[tuple[Any, ...]]:
    """Return the keys of the rows that an incremental snapshot has read."""
    return [
        tuple(record.key.values())
        for record in records
        if record.value is not None and "source" in record.value and record.value["source"]["snapshot"] == "incremental"
    ]


def props_of(database: Database, **more: Any) -> dict[str, str]:
    return capture_props(
        database,
        **{"snapshot_mode": "no_data", "table_include_list": "public[.]t", "max_batch_size": 100}
        | {"incremental_snapshot_chunk_size": 50, "signal_data_collection": "public.signals"}
        | {"notification_enabled_channels": "sink", "notification_sink_topic_name": "told"}
        | more,
    )


def told(records: Sequence[SourceRecord]) -> list[str]:
    return [record.value["type"] for record in records if record.topic == "told"]


def has_ended(records: Sequence[SourceRecord]) -> bool:
    return "COMPLETED" in told(records) or "ABORTED" in told(records)


def filled(database: Database, rows: int = 400) -> None:
    database.execute(
        TABLE,
        SIGNALS,
        f"INSERT INTO t SELECT i, (ARRAY['x','y','z'])[1 + i % 3], 1 FROM generate_series(0, {rows - 1}) i",
    )


def signal(database: Database, kind: str = "execute-snapshot", **data: Any) -> None:
    given = data or {"data-collections": ["public.t"], "type": "incremental"}
    text = json.dumps(given).replace("'", "''")
    database.execute(f"INSERT INTO signals VALUES (gen_random_uuid(), '{kind}', '{text}')")


def begun(database: Database, props: dict[str, str], offsets: StoredOffsets) -> None:
    """Have the slot made, so that everything later is streamed."""
    with running_source(PostgresConnector, props, offsets) as (task,):
        deadline = time.monotonic() + SECONDS
        while not database.rows("SELECT FROM pg_replication_slots WHERE database = current_database() AND active"):
            task.poll()
            assert time.monotonic() < deadline


@contextmanager
def caught_up(database: Database) -> Iterator[Callable[[Sequence[SourceRecord]], bool]]:
    """Give a function that tells whether a last change has arrived."""
    database.execute("INSERT INTO t VALUES (-1, 'end', 9999999)")
    yield lambda records: any(record.key == {"a": -1, "b": "end"} for record in records)


@pytest.mark.parametrize("seed", [1])
def test_under_load_the_topic_ends_with_the_rows_of_the_table(captured: Database, seed: int) -> None:
    filled(captured)
    props, offsets = props_of(captured), StoredOffsets()
    begun(captured, props, offsets)
    with Load(captured, seed):
        signal(captured)
        records = run_source(PostgresConnector, props, offsets=offsets, until=has_ended, timeout=SECONDS)
    with caught_up(captured) as is_caught_up:
        records += run_source(PostgresConnector, props, offsets=offsets, until=is_caught_up, timeout=SECONDS)
    assert latest(records) == rows_of(captured)
    keys = read_keys(records)
    assert len(keys) == len(set(keys)) > 100
    assert told(records)[:3] == ["SKIPPED", "STARTED", "DATA_COLLECTIONS_RESOLVED"]
    assert [kind for kind in told(records) if kind != "SKIPPED"][-2:] == ["TABLE_SCAN_COMPLETED", "COMPLETED"]


@pytest.mark.parametrize("seed", [1, *thorough(2, 3, 4, 5)])
def test_a_task_that_is_killed_after_any_record_goes_on_after_it(captured: Database, seed: int) -> None:
    chance = random.Random(seed)
    filled(captured)
    props, offsets = props_of(captured), StoredOffsets()
    begun(captured, props, offsets)
    topic: list[SourceRecord] = []
    with Load(captured, seed, pause=0.05):
        signal(captured)
        while not has_ended(topic):
            topic += until_killed(props, offsets, chance.randint(1, 250))
    with caught_up(captured) as is_caught_up:
        while not is_caught_up(topic):
            topic += until_killed(props, offsets, chance.randint(100, 400))
    assert latest(topic) == rows_of(captured)
    keys = read_keys(topic)
    assert len(keys) == len(set(keys)) > 100


def until_killed(props: dict[str, str], offsets: StoredOffsets, count: int) -> list[SourceRecord]:
    """Run until there are so many records, or nothing comes; return those whose offsets were stored before the kill.

    As with exactly-once support, those after them are no part of the topic.
    """
    own = StoredOffsets([(partition, offset) for partition, offset in offsets.items()])
    records: list[SourceRecord] = []
    deadline = time.monotonic() + 1.5
    with running_source(PostgresConnector, props, own) as (task,):
        while len(records) < count and time.monotonic() < deadline:
            records += task.poll()
    kept = records[:count]
    if len(records) >= count:
        offsets.keep(kept)
    else:
        for partition, offset in own.items():
            offsets.put(partition, offset)
    return kept


def test_only_what_is_asked_for_is_read(captured: Database) -> None:
    filled(captured, 200)
    captured.execute(
        "CREATE TABLE keyless (n int NOT NULL, code int NOT NULL)", "ALTER TABLE keyless REPLICA IDENTITY FULL"
    )
    captured.execute("INSERT INTO keyless SELECT i, i * 2 FROM generate_series(1, 120) i")
    props = props_of(captured, table_include_list="public[.](t|keyless)")
    offsets = StoredOffsets()
    begun(captured, props, offsets)
    condition = {"data-collection": "public.t", "filter": "a % 10 = 7 AND b <> '%'"}
    signal(captured, **{"data-collections": ["public.t"], "additional-conditions": [condition]})
    records = run_source(PostgresConnector, props, offsets=offsets, until=has_ended, timeout=SECONDS)
    assert sorted(a for a, _ in read_keys(records)) == list(range(7, 200, 10))
    signal(captured, **{"data-collections": ["public.keyless"], "surrogate-key": "code"})
    records = run_source(PostgresConnector, props, offsets=offsets, until=has_ended, timeout=SECONDS)
    found = [record.value["after"]["n"] for record in records if record.topic == "srv.public.keyless"]
    assert found == list(range(1, 121))
    signal(captured, **{"data-collections": ["public.keyless"]})
    records = run_source(PostgresConnector, props, offsets=offsets, until=has_ended, timeout=SECONDS)
    statuses = [record.value["additional_data"].get("status") for record in records if record.topic == "told"]
    assert "NO_PRIMARY_KEY" in statuses


def test_a_snapshot_is_paused_resumed_and_stopped_by_rest(captured: Database) -> None:
    filled(captured)
    props, offsets = props_of(captured, incremental_snapshot_chunk_size=20), StoredOffsets()
    with running_source(PostgresConnector, props, offsets) as (task,):
        poll_until(task, lambda: task.task._capture is not None and task.task._capture.stream is not None)
        with pytest.raises(ConnectError, match="No captured table has a name that matches none"):
            task.task.take_signal(Signal("s", "execute-snapshot", {"data-collections": ["none"]}))
        task.task.take_signal(Signal("s", "execute-snapshot", {"data-collections": ["public[.]t"]}))
        poll_until(task, lambda: len(read_keys(task.records)) >= 60)
        task.task.take_signal(Signal("p", "pause-snapshot", {}))
        poll_until(task, lambda: "PAUSED" in told(task.records))
        read = len(read_keys(task.records))
        captured.execute("INSERT INTO t VALUES (5000, 'x', 5)")
        poll_until(task, lambda: any(record.key == {"a": 5000, "b": "x"} for record in task.records))
        assert len(read_keys(task.records)) <= read + 20
        task.task.take_signal(Signal("r", "resume-snapshot", {}))
        poll_until(task, lambda: len(read_keys(task.records)) >= read + 60)
        task.task.take_signal(Signal("x", "stop-snapshot", {"data-collections": ["public.t"]}))
        poll_until(task, lambda: "ABORTED" in told(task.records))
        assert len(read_keys(task.records)) < 400
    ((_, offset),) = offsets.items()
    assert not [key for key in offset if key.startswith("incremental_snapshot")]


def poll_until(task: Any, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        task.poll()
        assert time.monotonic() < deadline


def test_signals_come_by_a_file_and_by_a_topic(captured: Database, bootstrap: str, topic: str, tmp_path: Path) -> None:
    filled(captured, 60)
    path = tmp_path / "signals"
    create_topic(bootstrap, topic)
    props = props_of(captured, signal_enabled_channels="file,kafka", signal_file=path, signal_poll_interval_ms=100)
    props |= {"signal.kafka.topic": topic, "signal.kafka.bootstrap.servers": bootstrap}
    text = json.dumps({"type": "execute-snapshot", "data": {"data-collections": ["public.t"]}})
    offsets = StoredOffsets()
    with running_source(PostgresConnector, props, offsets) as (task,):
        poll_until(task, lambda: task.task._capture is not None and task.task._capture.stream is not None)
        path.write_text(text + "\n")
        poll_until(task, lambda: has_ended(task.records))
        assert len(read_keys(task.records)) == 60
        captured.execute("INSERT INTO t VALUES (5000, 'x', 5)")
        poll_until(task, lambda: path.stat().st_size == 0)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, text.encode(), b"another")
    producer.produce(topic, text.encode(), b"srv")
    producer.flush(30)
    with running_source(PostgresConnector, props, offsets) as (task,):
        poll_until(task, lambda: task.task._signals._kafka.is_open)
        producer.produce(topic, text.encode(), b"srv")
        producer.flush(30)
        poll_until(task, lambda: has_ended(task.records))
        assert len(read_keys(task.records)) == 61
    ((_, offset),) = offsets.items()
    assert offset["incremental_snapshot_signal_offset"] == 3


# -- the first snapshot --------------------------------------------------------------------------------------------


def initial(database: Database, **more: Any) -> dict[str, str]:
    return props_of(database, snapshot_mode="initial", table_include_list="public[.](t|u|keyless|none)", **more)


def tables_of_all_kinds(database: Database, rows: int = 400) -> None:
    filled(database, rows)
    database.execute(
        "CREATE TABLE u (id bigint PRIMARY KEY, version bigint)",
        f"INSERT INTO u SELECT i, i FROM generate_series(1, {rows}) i",
        "CREATE TABLE keyless (n int)",
        "INSERT INTO keyless SELECT i FROM generate_series(1, 50) i",
        "CREATE TABLE none (id int PRIMARY KEY)",
        "ANALYZE",
    )


def rows_read(records: Sequence[SourceRecord], table: str) -> list[Any]:
    """Return the keys, or the rows without key, that a snapshot or what went on with it has read."""
    found = [record for record in records if record.topic == f"srv.public.{table}" and record.value is not None]
    read = [record for record in found if record.value["op"] == "r"]
    return [tuple((record.key or record.value["after"]).values()) for record in read]


def test_the_first_snapshot_reads_each_row_once_with_markers_and_notifications(captured: Database) -> None:
    tables_of_all_kinds(captured)
    props, offsets = initial(captured, snapshot_max_threads=3), StoredOffsets()
    records = run_source(PostgresConnector, props, offsets=offsets, until=has_ended, timeout=SECONDS)
    assert sorted(rows_read(records, "t")) == sorted(rows_of(captured))
    assert sorted(rows_read(records, "u")) == [(number,) for number in range(1, 401)]
    assert sorted(rows_read(records, "keyless")) == [(number,) for number in range(1, 51)]
    markers = [record.value["source"]["snapshot"] for record in records if "source" in (record.value or {})]
    assert (markers[0], markers[-1]) == ("first", "last")
    assert sorted(marker for marker in markers if marker != "true") == sorted(
        ["first", "last", *["first_in_data_collection"] * 2, *["last_in_data_collection"] * 2]
    )
    kinds = told(records)
    assert kinds[:2] == ["STARTED", "DATA_COLLECTIONS_RESOLVED"]
    assert (kinds.count("IN_PROGRESS"), kinds.count("TABLE_SCAN_COMPLETED"), kinds[-1]) == (3, 4, "COMPLETED")
    ((_, offset),) = offsets.items()
    assert not [key for key in offset if key.startswith("incremental_snapshot")]
    last = next(record for record in records if (record.value or {}).get("source", {}).get("snapshot") == "last")
    assert (last.source_offset["snapshot_completed"], last.source_offset["last_snapshot_record"]) == (True, True)


@pytest.mark.parametrize(("seed", "threads"), [(2, 3), *thorough_rows((1, 1), (3, 2), (4, 3))])
def test_a_first_snapshot_that_is_killed_goes_on_where_it_was(captured: Database, seed: int, threads: int) -> None:
    chance = random.Random(seed)
    tables_of_all_kinds(captured)
    props = initial(captured, snapshot_max_threads=threads, max_batch_size=60)
    offsets = StoredOffsets()
    topic: list[SourceRecord] = []
    with Load(captured, seed, pause=0.05):
        # Before the rows without key are all there, a snapshot that is killed begins anew.
        topic += until_killed_between_polls(
            props, offsets, 100, lambda records: len(rows_read(records, "keyless")) == 50
        )
        for _ in range(4):
            topic += until_killed_between_polls(props, offsets, chance.randint(100, 300))
    with caught_up(captured) as is_caught_up:
        while not (is_caught_up(topic) and "COMPLETED" in told(topic)):
            topic += until_killed_between_polls(props, offsets, 1000)
    assert latest(topic) == rows_of(captured)
    for table in ("t", "u"):
        keys = rows_read(topic, table)
        assert len(keys) == len(set(keys)), "a row was read twice"
    assert sorted(rows_read(topic, "u")) == [(number,) for number in range(1, 401)]
    assert set(rows_read(topic, "keyless")) == {(number,) for number in range(1, 51)}
    assert read_keys(topic), "the kills came too late to interrupt the snapshot"


def until_killed_between_polls(
    props: dict[str, str],
    offsets: StoredOffsets,
    count: int,
    has_needed: Callable[[Sequence[SourceRecord]], bool] = lambda records: True,
) -> list[SourceRecord]:
    """Run until there are so many records or nothing comes. Each poll is a transaction, as for exactly once.

    Run on, for a minute, until what is needed is among them.
    """
    records: list[SourceRecord] = []
    deadline = time.monotonic() + 1.5
    with running_source(PostgresConnector, props, offsets) as (task,):
        while len(records) < count and time.monotonic() < deadline:
            records += task.poll()
        while not has_needed(records) and time.monotonic() < deadline + 60:
            records += task.poll()
    return records


def test_a_large_table_is_read_in_pieces_by_several_sessions(captured: Database) -> None:
    captured.execute(
        "CREATE TABLE u (id text PRIMARY KEY, version bigint) WITH (autovacuum_enabled = false)",
        "INSERT INTO u SELECT md5(i::text), i FROM generate_series(1, 60000) i",
        "ANALYZE",
        "UPDATE pg_class SET reltuples = 1000000 WHERE relname = 'u'",
    )
    props, offsets = initial(captured, snapshot_max_threads=3, max_batch_size=2000), StoredOffsets()
    with running_source(PostgresConnector, props, offsets) as (task,):
        poll_until(task, lambda: len(task.records) > 1000)
        state = {key for key in dict(offsets.items()[0][1]) if key.startswith("incremental_snapshot")}
        assert {"incremental_snapshot_collections", "incremental_snapshot_maximum_key"} <= state
        assert task.task._capture.snapshot.piece_count == 3
        poll_until(task, lambda: has_ended(task.records))
        read = rows_read(task.records, "u")
        assert (len(read), len(set(read))) == (60_000, 60_000)
