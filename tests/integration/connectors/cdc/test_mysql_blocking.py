"""Blocking and parallel snapshots of MySQL and MariaDB: the seam with the stream, kills, and what goes wrong."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import pytest

from connect.data import SourceRecord
from connect.errors import ConnectError
from connect.source import Signal
from connect.testing import StoredOffsets, running_source
from equipment.binlog_capture import PARTITION, binlog_connector, binlog_props, run, streaming
from equipment.proofs import thorough
from equipment.servers.lease import Database

pytestmark = pytest.mark.integration

SECONDS: Final = 120.0
ROWS: Final = 500
SIGNALS: Final = "CREATE TABLE signals (id varchar(64) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"
ONE_SERVER: Final = pytest.mark.parametrize("db", ["mariadb", *thorough("mysql")], indirect=True)


def props_of(database: Database, **more: Any) -> dict[str, str]:
    given = {"snapshot_mode": "no_data", "table_include_list": f"{database.name}.(t|keyless)", "max_batch_size": 50}
    given |= {"signal_data_collection": f"{database.name}.signals", "snapshot_max_threads": 2}
    given |= {"notification_enabled_channels": "sink", "notification_sink_topic_name": "told"}
    return binlog_props(database, **(given | more))


def blocking(database: Database, **more: Any) -> dict[str, Any]:
    return {"data-collections": [f"{database.name}[.](t|keyless)"], "type": "blocking"} | more


@pytest.fixture
def filled(db: Database) -> Database:
    """Rows with a key and without."""
    values = ", ".join(f"({number}, 0)" for number in range(1, ROWS + 1))
    run(
        db,
        "CREATE TABLE t (id int PRIMARY KEY, version bigint NOT NULL)",
        "CREATE TABLE keyless (n int NOT NULL)",
        SIGNALS,
        f"INSERT INTO t VALUES {values}",
    )
    return db


@contextmanager
def running(database: Database, props: dict[str, str], offsets: StoredOffsets) -> Iterator[Any]:
    with running_source(binlog_connector(database), props, offsets) as (task,):
        yield task


def poll_until(task: Any, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        task.poll()
        assert time.monotonic() < deadline


def told(records: Sequence[SourceRecord]) -> list[str]:
    return [record.value["type"] for record in records if record.topic == "told"]


def events(records: Sequence[SourceRecord], table: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the operations on a table, each with the row after it."""
    values = [record.value for record in records if record.topic.endswith(f".{table}") and record.value is not None]
    return [(value["op"], value["after"]) for value in values]


def last_versions(records: Sequence[SourceRecord]) -> dict[int, int]:
    """Return the last version of each row; none follows a newer one."""
    found: dict[int, int] = {}
    for _, row in events(records, "t"):
        assert row["version"] >= found.get(row["id"], 0), "an older state follows a newer one"
        found[row["id"]] = row["version"]
    return found


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


@pytest.mark.parametrize("locking", ["minimal", *thorough("none")])
def test_the_rows_have_exactly_what_was_streamed_before_them(filled: Database, locking: str) -> None:
    if (filled.product, locking) == ("mysql", "none"):
        pytest.skip("without a lock MySQL needs a moment without a write")
    props = props_of(filled, snapshot_locking_mode=locking)
    offsets = streaming(filled, snapshot_mode="no_data")
    with running(filled, props, offsets) as task:
        with Load(filled, 1):
            poll_until(task, lambda: len(events(task.records, "keyless")) > 50)
            text = json.dumps(blocking(filled))
            run(filled, f"INSERT INTO signals VALUES ('blocking-1', 'execute-snapshot', '{text}')")
            poll_until(task, lambda: "COMPLETED" in told(task.records))
            read = len(events(task.records, "keyless"))
            poll_until(task, lambda: len(events(task.records, "keyless")) > read + 50)
        run(filled, "INSERT INTO keyless VALUES (-1)")
        poll_until(task, lambda: events(task.records, "keyless")[-1][1] == {"n": -1})
        records = task.records
    keyless = events(records, "keyless")
    operations = "".join(operation for operation, _ in keyless)
    rows = [row["n"] for operation, row in keyless if operation == "r"]
    assert operations[operations.index("r") :].startswith("r" * len(rows)), "the stream did not wait"
    assert sorted(rows) == sorted(row["n"] for _, row in keyless[: operations.index("r")])
    streamed = sorted(row["n"] for operation, row in keyless if operation == "c")
    assert streamed == sorted(number for (number,) in filled.rows("SELECT n FROM keyless"))
    assert last_versions(records) == dict(filled.rows("SELECT id, version FROM t"))
    assert sorted(row["id"] for operation, row in events(records, "t") if operation == "r") == list(range(1, ROWS + 1))
    assert sorted(told(records)) == sorted(
        ["STARTED", "DATA_COLLECTIONS_RESOLVED", "COMPLETED", *["IN_PROGRESS", "TABLE_SCAN_COMPLETED"] * 2]
    )
    assert {record.value["id"] for record in records if record.topic == "told"} == {"blocking-1"}
    assert "blocking_snapshots" not in (offsets.offset(PARTITION) or {})


@ONE_SERVER
@pytest.mark.parametrize("seed", [1, *thorough(2, 3)])
def test_a_task_that_is_killed_in_it_reads_what_is_left_while_the_stream_waits_again(
    filled: Database, seed: int
) -> None:
    chance = random.Random(seed)
    values = ", ".join(f"({number})" for number in range(1, 31))
    run(filled, "CREATE TABLE plain (n int)", f"INSERT INTO plain VALUES {values}")
    tables = f"{filled.name}.(t|keyless|plain)"
    props = props_of(filled, max_batch_size=20, table_include_list=tables)
    offsets = streaming(filled, snapshot_mode="no_data")
    text = json.dumps(blocking(filled, **{"data-collections": [f"{filled.name}.plain", f"{filled.name}.t"]}))
    run(filled, f"INSERT INTO signals VALUES ('blocking-1', 'execute-snapshot', '{text}')")
    topic: list[SourceRecord] = []
    with Load(filled, seed):
        while "COMPLETED" not in told(topic):
            count = chance.randint(60, 200)
            with running(filled, props, offsets) as task:
                poll_until(
                    task,
                    lambda task=task, count=count: _reads(task.records) >= count or "COMPLETED" in told(task.records),
                )
                topic += task.records
    run(filled, "INSERT INTO keyless VALUES (-1)")
    with running(filled, props, offsets) as task:
        poll_until(task, lambda: ("c", {"n": -1}) in events(task.records, "keyless"))
        topic += task.records
    assert last_versions(topic) == dict(filled.rows("SELECT id, version FROM t"))
    read = [row["id"] for operation, row in events(topic, "t") if operation == "r"]
    assert sorted(read) == list(range(1, ROWS + 1)), "each row is read once"
    assert {row["n"] for _, row in events(topic, "plain")} == set(range(1, 31))
    assert told(topic).count("STARTED") > 1, "the kills came too late to interrupt the snapshot"


def _reads(records: Sequence[SourceRecord]) -> int:
    return sum(record.value is not None and record.value.get("op") == "r" for record in records)


@ONE_SERVER
def test_conditions_and_statements_choose_rows_and_bad_ones_stop_nothing(filled: Database) -> None:
    run(filled, "INSERT INTO keyless VALUES (1), (2), (3), (4)")
    conditions = [
        {"data-collection": f"{filled.name}.t", "filter": "id % 100 = 7"},
        {"data-collection": f"{filled.name}.keyless", "filter": f"SELECT n FROM {filled.name}.keyless WHERE n < 4"},
    ]
    offsets = streaming(filled, snapshot_mode="no_data")
    with running(filled, props_of(filled), offsets) as task:
        poll_until(task, lambda: task.task._stream is not None)
        source = task.task
        with pytest.raises(ConnectError, match="surrogate-key is for incremental snapshots"):
            source.take_signal(Signal("s", "execute-snapshot", blocking(filled) | {"surrogate-key": "id"}))
        source.take_signal(Signal("s1", "execute-snapshot", blocking(filled, **{"additional-conditions": conditions})))
        poll_until(task, lambda: "COMPLETED" in told(task.records))
        assert sorted(row["id"] for _, row in events(task.records, "t")) == list(range(7, ROWS, 100))
        assert sorted(row["n"] for _, row in events(task.records, "keyless")) == [1, 2, 3]
        bad = [{"data-collection": f"{filled.name}.t", "filter": "no_column = 1"}]
        source.take_signal(Signal("s2", "execute-snapshot", blocking(filled, **{"additional-conditions": bad})))
        poll_until(task, lambda: "ABORTED" in told(task.records))
        run(filled, "INSERT INTO t VALUES (9999, 1)")
        poll_until(task, lambda: ("c", {"id": 9999, "version": 1}) in events(task.records, "t"))


@pytest.mark.thorough
@pytest.mark.parametrize("key", ["id int", "id varchar(20)"])
def test_large_tables_are_read_in_pieces_by_several_sessions_of_one_view(db: Database, key: str) -> None:
    count = 210_000
    run(
        db,
        f"CREATE TABLE t ({key} PRIMARY KEY, version bigint NOT NULL)",
        "CREATE TABLE digits (d int)",
        "INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
        "INSERT INTO t SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d + 100000 * f.d AS n, 0 "
        "FROM digits a, digits b, digits c, digits d, digits e, digits f "
        f"WHERE 10000 * e.d + 100000 * f.d < {count} ORDER BY n",
        "ANALYZE TABLE t",
    )
    props = props_of(
        db, snapshot_mode="initial", max_batch_size=2000, snapshot_max_threads=2, table_include_list=f"{db.name}.t"
    )
    offsets, ids, pieces = StoredOffsets(), list[int](), 0
    with running(db, props, offsets) as task:
        deadline = time.monotonic() + SECONDS
        is_completed = False
        while not is_completed:
            task.poll()
            ids += [int(row["id"]) for operation, row in events(task.records, "t") if operation == "r"]
            is_completed = "COMPLETED" in told(task.records)
            if (snapshot := task.task._snapshot) is not None and snapshot._run is not None:
                pieces = snapshot._run.piece_count
            task.records.clear()
            assert time.monotonic() < deadline
    assert len(ids) == len(set(ids)) == count
    assert pieces == 2
