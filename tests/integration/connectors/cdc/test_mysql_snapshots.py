"""Snapshots of MySQL and MariaDB on real servers: the first one, and incremental ones."""

from __future__ import annotations

import itertools
import json
import random
import threading
from contextlib import closing
from typing import Any, Final

import pytest

from connect.data import SourceRecord
from connect.testing import StoredOffsets, run_source
from connect.testing.contexts import SourceTaskTestContext
from connectors.cdc.mysql.session import connected
from equipment.binlog_capture import (
    ORDERS,
    PARTITION,
    binlog_connector,
    binlog_props,
    own_server,
    read,
    rows,
    run,
    streaming,
    until_settled,
)
from equipment.proofs import thorough
from equipment.servers.lease import Database
from equipment.waiting import wait_until

pytestmark = pytest.mark.integration

SIGNALS: Final = "CREATE TABLE signals (id varchar(64) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"


def test_limits_of_time_of_the_server_do_not_end_a_snapshot(db: Database) -> None:
    limits = {
        "mysql": ["max_execution_time"],
        "mariadb": ["max_statement_time", "idle_transaction_timeout", "idle_readonly_transaction_timeout"],
    }[db.product]
    config = binlog_connector(db).config_class.parse(binlog_props(db))
    run(db, *(f"SET GLOBAL {name} = 86400" for name in limits))
    try:
        session = connected(config)
        found = [session.rows(f"SELECT @@SESSION.{name} AS seconds")[0]["seconds"] for name in limits]
        session.close()
    finally:
        run(db, *(f"SET GLOBAL {name} = 0" for name in limits))

    assert found == [0] * len(limits)


@pytest.mark.parametrize("locking", ["minimal", *thorough("extended", "none")])
def test_between_snapshot_and_stream_there_is_no_gap_and_no_row_twice(db: Database, locking: str) -> None:
    run(db, ORDERS, "INSERT INTO orders VALUES " + ", ".join(f"({-number}, 'old')" for number in range(1, 2000)))
    end, written = threading.Event(), []

    def write() -> None:
        with closing(db.connect()) as connection, closing(connection.cursor()) as cursor:
            while not end.wait(0.002):
                cursor.execute("INSERT INTO orders VALUES (%s, 'new')", (len(written),))
                written.append(len(written))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until("rows are written", lambda: len(written) > 20, 30)
        found = read(
            db,
            StoredOffsets(),
            lambda records: len(rows(records)) > 2100,
            snapshot_locking_mode=locking,
            max_batch_size=100,
        )
    finally:
        end.set()
        writer.join()

    ids = [number for _, number in rows(found)]
    assert len(ids) == len(set(ids))
    assert sorted(number for number in ids if number < 0) == list(range(-1999, 0))
    new = [number for number in ids if number >= 0]
    assert new == list(range(len(new)))


@pytest.mark.parametrize("product", thorough("mariadb", "mysql"))
def test_a_stop_does_not_wait_for_the_lock_of_a_snapshot(product: str) -> None:
    """The lock would be waited for by the hour; a task that is resumed then begins anew."""
    with own_server(product) as db, closing(db.connect()) as holder, closing(holder.cursor()) as cursor:
        run(db, ORDERS, "INSERT INTO orders VALUES (1, 'a')")
        cursor.execute("LOCK TABLES orders WRITE")
        props = binlog_props(db, snapshot_lock_timeout_ms=3_600_000)
        connector = binlog_connector(db)
        task = connector.task_class(connector.config_class.parse(props), SourceTaskTestContext())
        task.start()
        try:
            waiting = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'FLUSH TABLES%'"
            wait_until("the lock is waited for", lambda: not task.poll() and db.rows(waiting)[0][0] == 1, 120)
        finally:
            task.stop()
        wait_until("nobody waits", lambda: not [each for each in threading.enumerate() if "view" in each.name], 120)
        cursor.execute("UNLOCK TABLES")
        assert rows(read(db, StoredOffsets())) == [("r", 1)]


@pytest.mark.parametrize("db", ["mariadb", *thorough("mysql")], indirect=True)
def test_the_modes_of_snapshots(db: Database) -> None:
    run(db, ORDERS, "INSERT INTO orders VALUES (1, 'a')")

    def found(offsets: StoredOffsets, mode: str) -> list[tuple[str, Any]]:
        return rows(read(db, offsets, until_settled(db, offsets), snapshot_mode=mode))

    initial, always, never, only = StoredOffsets(), StoredOffsets(), StoredOffsets(), StoredOffsets()
    assert found(initial, "initial") == [("r", 1)]
    assert found(always, "always") == [("r", 1)]
    assert found(never, "no_data") == []
    assert found(only, "initial_only") == [("r", 1)]
    run(db, "INSERT INTO orders VALUES (2, 'b')")
    assert found(initial, "initial") == [("c", 2)]
    assert found(always, "always") == [("r", 1), ("r", 2)]
    assert found(never, "no_data") == [("c", 2)]
    assert rows(read(db, only, lambda _: True, snapshot_mode="initial_only")) == []


def test_a_snapshot_that_was_cut_off_goes_on_beside_the_stream(db: Database) -> None:
    run(db, ORDERS, "CREATE TABLE pairs (id int, b varchar(9), PRIMARY KEY (b, id))")
    run(db, "INSERT INTO orders VALUES " + ", ".join(f"({number}, 'x')" for number in range(1300)))
    run(db, "INSERT INTO pairs VALUES (1, 'a'), (2, 'a'), (1, 'b')")
    offsets = StoredOffsets()
    cut = read(db, offsets, lambda records: len(records) >= 1100, max_batch_size=100)
    run(db, "UPDATE orders SET name = 'new' WHERE id IN (3, 1200)", "DELETE FROM orders WHERE id = 1299")

    is_settled = until_settled(db, offsets)
    rest = read(db, offsets, lambda records: is_settled(records) and not _is_reading(offsets), max_batch_size=100)

    count = len(cut)
    assert 1100 <= count < 1299
    assert rows(cut) == [("r", number) for number in range(count)]
    reads = [record.value for record in rest if record.value is not None and record.value["op"] == "r"]
    again = [row["after"]["id"] for row in reads if row["source"]["table"] == "orders"]
    # Those that were not read come as they are now.
    assert again == list(range(count, 1299))
    assert next(row["after"]["name"] for row in reads if row["after"]["id"] == 1200) == "new"
    pairs = [row["after"] for row in reads if row["source"]["table"] == "pairs"]
    assert pairs == [{"id": 1, "b": "a"}, {"id": 2, "b": "a"}, {"id": 1, "b": "b"}]
    assert {("u", 3), ("u", 1200), ("d", 1299)} <= set(rows(rest))


def _is_reading(offsets: StoredOffsets) -> bool:
    return any(key.startswith("incremental") for key in offsets.offset(PARTITION) or {})


@pytest.mark.parametrize("db", ["mariadb", *thorough("mysql")], indirect=True)
def test_a_snapshot_of_a_table_without_a_key_begins_anew(db: Database) -> None:
    run(db, "CREATE TABLE orders (id int)", f"INSERT INTO orders VALUES {', '.join(f'({n})' for n in range(9))}")
    offsets, whole = StoredOffsets(), [("r", number) for number in range(9)]
    cut = rows(read(db, offsets, lambda records: len(records) >= 2, max_batch_size=2))
    assert 2 <= len(cut) < 9
    assert cut == whole[: len(cut)]

    assert rows(read(db, offsets, lambda records: len(records) >= 9)) == whole


@pytest.mark.parametrize("db", ["mariadb", *thorough("mysql")], indirect=True)
def test_statements_of_ones_own_choose_the_rows_and_an_include_list_the_tables(db: Database) -> None:
    run(db, ORDERS, "CREATE TABLE other (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
    run(db, "INSERT INTO other VALUES (3)")
    table = f"{db.name}.orders"
    props = binlog_props(db, snapshot_include_collection_list=table, snapshot_select_statement_overrides=table)
    props[f"snapshot.select.statement.overrides.{table}"] = f"SELECT * FROM {table} WHERE id = 2"
    offsets = StoredOffsets()

    found = run_source(binlog_connector(db), props, offsets=offsets, until=until_settled(db, offsets), timeout=30)

    assert rows(found) == [("r", 2)]


def signal(database: Database, number: int, kind: str, **data: Any) -> None:
    """Insert a signal."""
    with closing(database.connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("INSERT INTO signals VALUES (%s, %s, %s)", (f"s{number}", kind, json.dumps(data)))


def test_an_incremental_snapshot_reads_the_rows_beside_the_stream(db: Database) -> None:
    values = ", ".join(f"({number}, 'old')" for number in range(100))
    run(db, ORDERS, SIGNALS, f"INSERT INTO orders VALUES {values}")
    props = {
        "snapshot_mode": "no_data",
        "signal_data_collection": f"{db.name}.signals",
        "table_include_list": f"{db.name}.orders",
        "incremental_snapshot_chunk_size": 7,
        "notification_enabled_channels": "sink",
        "notification_sink_topic_name": "told",
    }
    offsets = streaming(db, **props)
    signal(db, 1, "execute-snapshot", **{"data-collections": [f"{db.name}.orders"]})
    run(db, "UPDATE orders SET name = 'new' WHERE id = 99", "DELETE FROM orders WHERE id = 98")

    def is_completed(records: list[SourceRecord]) -> bool:
        return any(record.topic == "told" and record.value["type"] == "COMPLETED" for record in records)

    # Cut off twice, it goes on where it was.
    found = read(db, offsets, lambda records: _reads(records) >= 20, max_batch_size=10, **props)
    found += read(db, offsets, lambda records: _reads(records) >= 20, max_batch_size=10, **props)
    found += read(db, offsets, is_completed, **props)

    events = [record for record in found if record.topic.endswith("orders") and record.value is not None]
    order = [(record.value["op"], record.value["after"]) for record in events]
    read_rows = [after for operation, after in order if operation == "r"]
    assert [after["id"] for after in read_rows] == [number for number in range(100) if number != 98]
    assert read_rows[-1] == {"id": 99, "name": "new"}
    assert all(record.topic in (f"srv.{db.name}.orders", "told") for record in found)
    markers = {record.value["source"]["snapshot"] for record in events}
    assert markers == {"incremental", "false"}
    assert not any(key.startswith("incremental") for key in offsets.offset(PARTITION) or {})


def _reads(records: list[SourceRecord]) -> int:
    return sum(record.value is not None and record.value.get("op") == "r" for record in records)


@pytest.mark.parametrize("db", ["mariadb", *thorough("mysql")], indirect=True)
def test_rows_that_change_while_they_are_read_end_in_their_last_state(db: Database) -> None:
    """A consumer that keeps the last event of each key has what the table has."""
    count = 600
    values = ", ".join(f"({number}, '0')" for number in range(count))
    run(db, ORDERS, SIGNALS, f"INSERT INTO orders VALUES {values}")
    props = {
        "snapshot_mode": "no_data",
        "signal_data_collection": f"{db.name}.signals",
        "incremental_snapshot_chunk_size": 20,
        "notification_enabled_channels": "sink",
        "notification_sink_topic_name": "told",
    }
    offsets = streaming(db, **props)
    end = threading.Event()

    def write() -> None:
        chance = random.Random(7)
        with closing(db.connect()) as connection, closing(connection.cursor()) as cursor:
            for number in itertools.count(1):
                if end.wait(0.001):
                    break
                key = chance.randrange(count)
                if chance.random() < 0.2:
                    cursor.execute("DELETE FROM orders WHERE id = %s", (key,))
                else:
                    cursor.execute("REPLACE INTO orders VALUES (%s, %s)", (key, str(number)))
            cursor.execute("REPLACE INTO orders VALUES (%s, 'last')", (count,))

    signal(db, 1, "execute-snapshot", **{"data-collections": [f"{db.name}.orders"]})
    writer = threading.Thread(target=write)
    writer.start()
    state: dict[int, Any] = {}
    seen = {"completed": False, "last": False}

    def keep(records: list[SourceRecord]) -> bool:
        for record in records:
            if record.topic == "told" and record.value["type"] == "COMPLETED":
                seen["completed"] = True
                end.set()
            elif record.topic.endswith("orders") and record.value is not None:
                state[record.key["id"]] = record.value["after"]
                seen["last"] |= record.key["id"] == count
        records.clear()
        return seen["completed"] and seen["last"]

    try:
        read(db, offsets, keep, **props)
    finally:
        end.set()
        writer.join()
    rows_left = {key: after["name"] for key, after in state.items() if after is not None}
    assert rows_left == dict(db.rows("SELECT id, name FROM orders"))
