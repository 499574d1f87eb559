"""Distributed (XA) transactions on real servers: their changes come when they are committed, and only then."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any

import pytest

from connect.data import SourceRecord
from connect.errors import ConnectError
from connect.testing import StoredOffsets
from connect.testing.contexts import SourceTaskTestContext
from equipment.binlog_capture import (
    ORDERS,
    PARTITION,
    binlog_connector,
    binlog_props,
    own_server,
    read,
    replicate,
    rows,
    run,
    streaming,
)
from equipment.proofs import thorough
from equipment.servers.lease import Database
from equipment.waiting import wait_until

pytestmark = pytest.mark.integration


def prepare(db: Database, xid: str, *statements: str) -> None:
    run(db, f"XA START '{xid}'", *statements, f"XA END '{xid}'", f"XA PREPARE '{xid}'")


def up_to(last: int) -> Callable[[list[SourceRecord]], bool]:
    """Return a condition: the change of a row has come. MariaDB's log goes on after it, with its own events."""
    return lambda records: rows(records)[-1:] in ([("c", last)], [("r", last)])


def told(db: Database, offsets: StoredOffsets, last: int, **props: Any) -> list[tuple[str, Any]]:
    """Return the changes up to that of a row."""
    return rows(read(db, offsets, up_to(last), **props))


def pending(offsets: StoredOffsets) -> int:
    """Return how many transactions an offset tells to be prepared."""
    return len(json.loads((offsets.offset(PARTITION) or {}).get("xa_prepared", "[]")))


@pytest.mark.parametrize("db", ["mariadb", *thorough("mysql")], indirect=True)
def test_changes_come_when_they_are_committed(db: Database) -> None:
    run(db, ORDERS)
    offsets = streaming(db)
    one, two, three = (f"{db.name}-{number}" for number in range(3))
    prepare(db, one, "INSERT INTO orders VALUES (1, 'a')", "INSERT INTO orders VALUES (2, 'b')")
    prepare(db, two, "INSERT INTO orders VALUES (3, 'c')")
    run(db, "INSERT INTO orders VALUES (4, 'd')", f"XA COMMIT '{one}'", f"XA ROLLBACK '{two}'")
    run(
        db,
        f"XA START '{three}'",
        "DELETE FROM orders WHERE id = 1",
        f"XA END '{three}'",
        f"XA COMMIT '{three}' ONE PHASE",
    )
    run(db, "INSERT INTO orders VALUES (5, 'e')")

    assert told(db, offsets, 5) == [("c", 4), ("c", 1), ("c", 2), ("d", 1), ("c", 5)]
    assert pending(offsets) == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("product", "metadata"),
    [("mariadb", False), ("mariadb", True), ("mysql", False), ("mysql", True), ("files", False)],
)
def test_a_task_goes_on_after_any_record_whatever_is_prepared(product: str, *, metadata: bool) -> None:
    """The changes of what is prepared before the offset are read again, by GTIDs or by files."""
    options = ("--gtid-mode=OFF",) if product == "files" else ()
    props = {"provide_transaction_metadata": metadata, "topic_prefix": "srv"}
    with own_server("mysql" if product == "files" else product, *options) as db:
        run(db, ORDERS, "INSERT INTO orders VALUES (0, 'before')")
        offsets = streaming(db, **props)
        prepare(
            db, "a", "INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c')", "UPDATE orders SET id = 10 WHERE id = 1"
        )
        prepare(db, "b", "INSERT INTO orders VALUES (4, 'd')")
        run(db, "INSERT INTO orders VALUES (5, 'e')", "FLUSH BINARY LOGS", "INSERT INTO orders VALUES (6, 'f')")
        assert told(db, offsets, 6, **props) == [("c", 5), ("c", 6)]
        assert pending(offsets) == 2
        run(
            db,
            "XA COMMIT 'a'",
            "INSERT INTO orders VALUES (7, 'g')",
            "XA ROLLBACK 'b'",
            "INSERT INTO orders VALUES (8, 'h')",
        )

        def is_whole(records: list[SourceRecord]) -> bool:
            return up_to(8)(records) and (not metadata or records[-1].topic.endswith(".transaction"))

        wanted = [("c", 1), ("c", 2), ("c", 3), ("d", 1), ("c", 10), ("c", 7), ("c", 8)]
        everything = read(db, offsets, is_whole, **props)
        assert rows(everything) == wanted
        assert pending(offsets) == 0

        for number in range(1, len(everything) - 1):
            stored = StoredOffsets([(PARTITION, everything[number - 1].source_offset)])
            found = rows(read(db, stored, is_whole, **props))
            left = rows(everything[number:])
            # The two records of a changed key come again together.
            assert found in (left, [("d", 1), *left]), number
        ends = [record.value for record in everything if record.value is not None and "status" in record.value]
        assert [end["event_count"] for end in ends if end["status"] == "END"] == ([5, 1, 1] if metadata else [])


@pytest.mark.thorough
def test_what_is_prepared_comes_from_the_replica_where_it_is_committed_after_a_failover() -> None:
    """Some of it was read of the old source, and some of it not even prepared by the time of the offset."""
    with own_server("mysql") as source, own_server("mysql", "--server-id=7") as copy:
        replica = replicate(source, copy)
        run(source, ORDERS)
        offsets = streaming(source)
        prepare(source, "a", "INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
        prepare(source, "b", "INSERT INTO orders VALUES (3, 'c')")
        run(source, "INSERT INTO orders VALUES (4, 'd')")
        assert told(source, offsets, 4) == [("c", 4)]
        prepare(source, "c", "INSERT INTO orders VALUES (5, 'e')")
        run(source, "INSERT INTO orders VALUES (6, 'f')")
        wait_until("the replica has all", lambda: _has(replica, 6), 120)
        run(replica, "STOP REPLICA", "RESET REPLICA ALL")
        run(replica, "XA COMMIT 'a'", "XA ROLLBACK 'b'", "XA COMMIT 'c'", "INSERT INTO orders VALUES (7, 'g')")

        wanted = [("c", 6), ("c", 1), ("c", 2), ("c", 5), ("c", 7)]
        found = read(replica, offsets, up_to(7))
        assert rows(found) == wanted
        assert pending(offsets) == 0
        for number in range(1, len(found)):
            stored = StoredOffsets([(PARTITION, found[number - 1].source_offset)])
            assert told(replica, stored, 7) == wanted[number:], number


def _has(database: Database, key: int) -> bool:
    with suppress(Exception):
        return bool(database.rows(f"SELECT 1 FROM orders WHERE id = {key}"))
    return False


@pytest.mark.parametrize("db", ["mariadb", *thorough("mysql")], indirect=True)
def test_several_writers_at_once(db: Database) -> None:
    """What each of them has committed comes once; what it has rolled back never; the end agrees with the table."""
    run(db, ORDERS)
    offsets = streaming(db)
    kept: list[int] = []

    def write(writer: int) -> None:
        chance = random.Random(writer)
        with closing(db.connect()) as connection, closing(connection.cursor()) as cursor:
            for number in range(10):
                key, xid = writer * 100 + number * 3, f"{db.name}-{writer}-{number}"
                is_distributed, is_kept = chance.random() < 0.7, chance.random() < 0.7
                cursor.execute(f"XA START '{xid}'" if is_distributed else "BEGIN")
                cursor.execute(f"INSERT INTO orders VALUES ({key}, 'x'), ({key + 1}, 'y')")
                if is_distributed:
                    cursor.execute(f"XA END '{xid}'")
                    cursor.execute(f"XA PREPARE '{xid}'")
                end = "COMMIT" if is_kept else "ROLLBACK"
                cursor.execute(f"XA {end} '{xid}'" if is_distributed else end)
                if is_kept:
                    kept.extend((key, key + 1))

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(write, range(1, 5)))
    run(db, "INSERT INTO orders VALUES (9999, 'last')")
    found = told(db, offsets, 9999)

    assert sorted(found) == sorted(("c", key) for key in [*kept, 9999])
    assert pending(offsets) == 0
    assert sorted(key for (key,) in db.rows("SELECT id FROM orders")) == sorted([*kept, 9999])


@pytest.mark.parametrize("product", thorough("mariadb", "mysql"))
def test_what_was_prepared_before_a_snapshot_comes_once_it_is_committed(product: str) -> None:
    with own_server(product) as db:
        run(db, ORDERS, "INSERT INTO orders VALUES (0, 'old')")
        prepare(db, "a", "INSERT INTO orders VALUES (1, 'old')")
        run(db, "XA COMMIT 'a'")
        prepare(db, "a", "INSERT INTO orders VALUES (2, 'new')")
        prepare(db, "b", "INSERT INTO orders VALUES (3, 'never')")
        run(db, "FLUSH BINARY LOGS", "INSERT INTO orders VALUES (4, 'old')", "FLUSH BINARY LOGS")
        offsets = StoredOffsets()
        first = told(db, offsets, 4)
        run(db, "XA COMMIT 'a'", "XA ROLLBACK 'b'", "INSERT INTO orders VALUES (5, 'e')")

        assert sorted(first) == [("r", 0), ("r", 1), ("r", 4)]
        assert told(db, offsets, 5) == [("c", 2), ("c", 5)]


def purged(db: Database) -> bool:
    """Have all but the last file of the log removed; return whether nobody reads them any more."""
    run(db, f"PURGE BINARY LOGS TO '{db.rows('SHOW BINARY LOGS')[-1][0]}'")
    return len(db.rows("SHOW BINARY LOGS")) == 1


@pytest.mark.parametrize("product", thorough("mariadb", "mysql"))
def test_changes_that_were_purged_before_they_were_committed_are_told(product: str) -> None:
    with own_server(product) as db:
        run(db, ORDERS)
        offsets = streaming(db)
        prepare(db, "a", "INSERT INTO orders VALUES (1, 'a')")
        run(db, "FLUSH BINARY LOGS", "INSERT INTO orders VALUES (2, 'b')")
        assert told(db, offsets, 2) == [("c", 2)]
        wait_until("the log is purged", lambda: purged(db), 120)
        run(db, "XA COMMIT 'a'")
        known = offsets.items()

        with pytest.raises(ConnectError, match=r"transaction X'61',X'',1 is committed at .* purged"):
            told(db, offsets, 3)
        assert offsets.items() == known
        again = told(db, offsets, 2, snapshot_mode="when_needed")
        assert sorted(again) == [("r", 1), ("r", 2)]


@pytest.mark.parametrize("product", thorough("mariadb", "mysql"))
def test_a_large_prepared_transaction_takes_little_memory(product: str) -> None:
    with own_server(product) as db:
        run(db, "CREATE TABLE orders (id int PRIMARY KEY AUTO_INCREMENT, name varchar(400))")
        offsets = streaming(db)
        fills = ["INSERT INTO orders (name) SELECT name FROM orders LIMIT 20000"] * 6
        values = ", ".join([f"('{'x' * 400}')"] * 1000)
        prepare(db, "a", f"INSERT INTO orders (name) VALUES {values}", *fills)
        run(db, "XA COMMIT 'a'")
        total = int(db.rows("SELECT count(*) FROM orders")[0][0])
        connector = binlog_connector(db)
        config = connector.config_class.parse(binlog_props(db, max_batch_size=500))
        task = connector.task_class(config, SourceTaskTestContext(offsets))
        task.start()
        tracemalloc.start()
        try:
            seen = 0
            while seen < total:
                seen += len(list(task.poll() or ()))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            task.stop()
        assert seen == total
        assert peak < 16_000_000 < 400 * total
