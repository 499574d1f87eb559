"""The MySQL and MariaDB connectors on real servers: positions, snapshots, changed tables, lost logs, checks."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import random
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Final

import pytest
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent

from connect.data import SourceRecord
from connect.errors import ConnectError
from connect.testing import StoredOffsets, run_source
from connect.testing.contexts import SourceTaskTestContext
from connectors.cdc.mysql import MariaDbConfig, MySqlConfig, MySqlTask
from equipment.binlog_capture import binlog_connector, binlog_props
from equipment.proofs import thorough
from equipment.servers.killable import killable_server
from equipment.servers.lease import Database, new_database
from equipment.servers.products import MARIADB, MYSQL, Product
from equipment.waiting import wait_until

pytestmark = pytest.mark.integration

PARTITION: Final = {"server": "srv"}
ORDERS: Final = "CREATE TABLE orders (id int PRIMARY KEY, name varchar(50))"
PRODUCTS: Final[dict[str, Product]] = {"mysql": MYSQL, "mariadb": MARIADB}


@pytest.fixture(params=["mysql", "mariadb"])
def db(request: pytest.FixtureRequest) -> Database:
    """An empty database of either server."""
    found: Database = request.getfixturevalue(request.param)
    return found


@contextmanager
def own_server(product: str, *options: str) -> Iterator[Database]:
    """A database of a server that a test may change."""
    with killable_server(PRODUCTS[product], *options) as server:
        yield new_database(server.server).__enter__()


def run(database: Database, *statements: str) -> None:
    """Run statements on one connection."""
    with closing(database.connect()) as connection, closing(connection.cursor()) as cursor:
        for statement in statements:
            cursor.execute(statement)


def read(
    database: Database,
    offsets: StoredOffsets,
    until: Callable[[list[SourceRecord]], bool] = bool,
    **props: Any,
) -> list[SourceRecord]:
    """Return what a connector reads until a condition holds."""
    wanted = binlog_props(database, **props)
    return run_source(binlog_connector(database), wanted, offsets=offsets, until=until, timeout=60)


def streaming(database: Database, **props: Any) -> StoredOffsets:
    """Return the offsets of a connector that has read all there is."""
    offsets = StoredOffsets()
    read(database, offsets, lambda _: is_settled(database, offsets), **props)
    return offsets


def is_settled(database: Database, offsets: StoredOffsets) -> bool:
    """Return whether the offsets are those of the end of the log."""
    offset = offsets.offset(PARTITION)
    if offset is None or "snapshot" in offset:
        return False
    statement = "SHOW MASTER STATUS" if database.product == "mariadb" else "SHOW BINARY LOG STATUS"
    file, position = database.rows(statement)[0][:2]
    return (offset["file"], offset["pos"]) >= (file, position)


def shown(records: list[SourceRecord]) -> list[tuple[Any, ...]]:
    """Return what does not differ from run to run."""
    return [
        (record.topic, str(record.key), None if record.value is None else _of_value(record.value))
        for record in records
        if not record.topic.startswith("__debezium")
    ]


def _of_value(value: Mapping[str, Any]) -> tuple[Any, ...]:
    source = value.get("source") or {}
    place = (source.get("gtid"), source.get("pos"), source.get("row"))
    return value.get("op"), str(value.get("before")), str(value.get("after")), place, str(value.get("transaction"))


def rows(records: list[SourceRecord]) -> list[tuple[str, Any]]:
    return [
        (record.value["op"], (record.value["after"] or record.value["before"])["id"])
        for record in records
        if record.value is not None and "op" in record.value
    ]


# -- positions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("db", ["mariadb", *thorough("mysql")], indirect=True)
@pytest.mark.parametrize("metadata", [*thorough(False), True], ids=["plain", "transactions"])
def test_a_task_goes_on_exactly_after_the_offset_of_any_record(db: Database, *, metadata: bool) -> None:
    props = {"provide_transaction_metadata": metadata, "topic_prefix": "srv"}
    run(db, ORDERS, "CREATE TABLE other (id int PRIMARY KEY)", "INSERT INTO orders VALUES (0, 'before')")
    begun = streaming(db, **props)
    run(
        db,
        "INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "BEGIN",
        "INSERT INTO orders VALUES (4, 'd')",
        "UPDATE orders SET id = id + 100 WHERE id < 3",
        "INSERT INTO other VALUES (1), (2)",
        "DELETE FROM orders WHERE id > 2",
        "COMMIT",
        "INSERT INTO other VALUES (9)",
    )
    start = begun.items()

    def is_last(records: list[SourceRecord]) -> bool:
        ninth = [record for record in records if record.key == {"id": 9}]
        return bool(ninth) and (not metadata or records[-1].topic.endswith(".transaction"))

    everything = read(db, StoredOffsets(start), is_last, **props)

    for number in range(1, len(everything)):
        stored = StoredOffsets([(PARTITION, everything[number - 1].source_offset)])
        rest = read(db, stored, lambda records: shown(records[-1:]) == shown(everything[-1:]), **props)
        # A change of several records comes again as a whole if it was cut.
        again = len(rest) - (len(everything) - number)
        assert again in (range(1, 3) if _is_cut(everything, number) else [0]), number
        assert shown(rest) == shown(everything)[-len(rest) :]


def _is_cut(records: list[SourceRecord], number: int) -> bool:
    """Return whether the records before a number end within a change that makes several."""
    last, following = records[number - 1], records[number]
    if last.value is not None:
        return last.value.get("op") == "d"
    names = {header.key for header in last.headers}
    return "__debezium.newkey" in names and following.value is not None


def test_an_offset_of_debezium_within_a_transaction_is_gone_on_with(db: Database) -> None:
    run(db, ORDERS)
    begun = streaming(db).offset(PARTITION)
    assert begun is not None
    run(db, "INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c')", "INSERT INTO orders VALUES (4, 'd')")
    offset = {
        **{key: begun[key] for key in ("ts_sec", "file", "gtids")},
        "pos": begun["pos"] + (79 if db.product == "mysql" else 0),
        "server_id": 1,
        # BEGIN or, with MariaDB, the GTID, and the table map.
        "event": 2,
        "row": 2,
    }

    found = read(db, StoredOffsets([(PARTITION, offset)]), lambda records: len(records) == 2)

    assert rows(found) == [("c", 3), ("c", 4)]


@pytest.mark.thorough
def test_a_server_without_gtids_is_read_by_file_and_position() -> None:
    with own_server("mysql", "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF") as database:
        run(database, ORDERS)
        offsets = streaming(database)
        run(database, "INSERT INTO orders VALUES (1, 'a'), (2, 'b')", "FLUSH BINARY LOGS", "DELETE FROM orders")

        found = read(database, offsets, lambda records: len(records) == 6)

        assert rows(found) == [("c", 1), ("c", 2), ("d", 1), ("d", 2)]
        assert "gtids" not in found[-1].source_offset
        first = StoredOffsets([(PARTITION, found[0].source_offset)])
        assert rows(read(database, first, lambda records: len(records) == 5)) == [("c", 2), ("d", 1), ("d", 2)]


@pytest.mark.thorough
def test_a_failover_to_a_replica_goes_on_by_gtid() -> None:
    """Within a transaction too, whose events the replica logs in other pieces."""
    with own_server("mysql") as source, own_server("mysql", "--server-id=7", "--binlog-row-event-max-size=256") as copy:
        replica = Database(copy.server, source.name)
        run(
            copy,
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={source.port}, SOURCE_USER='sluice', "
            f"SOURCE_PASSWORD='{source.password}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
            "RESET BINARY LOGS AND GTIDS",
            "START REPLICA",
        )
        run(source, ORDERS)
        offsets = streaming(source)
        values = ", ".join(f"({number}, '{'x' * 40}')" for number in range(100))
        run(source, f"INSERT INTO orders VALUES {values}", "INSERT INTO orders VALUES (100, 'last')")
        found = read(source, offsets, lambda records: len(records) >= 50, max_batch_size=50)
        cut = StoredOffsets([(PARTITION, found[49].source_offset)])
        wait_until("the replica has all", lambda: _count(replica) == 101, 60)

        rest = read(replica, cut, lambda records: len(records) >= 51)

        assert rows(found[:50] + rest) == [("c", number) for number in range(101)]


def _count(database: Database) -> int:
    try:
        return int(database.rows("SELECT count(*) FROM orders")[0][0])
    except Exception:
        return -1


# -- snapshots ---------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("db", ["mariadb", *thorough("mysql")], indirect=True)
def test_the_modes_of_snapshots(db: Database) -> None:
    run(db, ORDERS, "INSERT INTO orders VALUES (1, 'a')")

    def found(offsets: StoredOffsets, mode: str) -> list[tuple[str, Any]]:
        return rows(read(db, offsets, lambda records: is_settled(db, offsets), snapshot_mode=mode))

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

    rest = read(db, offsets, lambda _: is_settled(db, offsets) and not _is_reading(offsets), max_batch_size=100)

    assert rows(cut) == [("r", number) for number in range(1100)]
    reads = [record.value for record in rest if record.value is not None and record.value["op"] == "r"]
    again = [row["after"]["id"] for row in reads if row["source"]["table"] == "orders"]
    # The rows since the last offset with progress come again, and those that were not read as they are now.
    assert again == list(range(1000, 1299))
    assert next(row["after"]["name"] for row in reads if row["after"]["id"] == 1200) == "new"
    pairs = [row["after"] for row in reads if row["source"]["table"] == "pairs"]
    assert pairs == [{"id": 1, "b": "a"}, {"id": 2, "b": "a"}, {"id": 1, "b": "b"}]
    assert {("u", 3), ("u", 1200), ("d", 1299)} <= set(rows(rest))


def _is_reading(offsets: StoredOffsets) -> bool:
    return any(key.startswith("incremental") for key in offsets.offset(PARTITION) or {})


@pytest.mark.parametrize("db", ["mariadb", *thorough("mysql")], indirect=True)
def test_a_snapshot_of_a_table_without_a_key_begins_anew(db: Database) -> None:
    run(db, "CREATE TABLE orders (id int)", "INSERT INTO orders VALUES (1), (2), (3)")
    offsets = StoredOffsets()
    assert rows(read(db, offsets, lambda records: len(records) >= 2, max_batch_size=2)) == [("r", 1), ("r", 2)]

    assert rows(read(db, offsets, lambda records: len(records) >= 3)) == [("r", 1), ("r", 2), ("r", 3)]


@pytest.mark.parametrize("db", ["mariadb", *thorough("mysql")], indirect=True)
def test_statements_of_ones_own_choose_the_rows_and_an_include_list_the_tables(db: Database) -> None:
    run(db, ORDERS, "CREATE TABLE other (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
    run(db, "INSERT INTO other VALUES (3)")
    table = f"{db.name}.orders"
    props = binlog_props(db, snapshot_include_collection_list=table, snapshot_select_statement_overrides=table)
    props[f"snapshot.select.statement.overrides.{table}"] = f"SELECT * FROM {table} WHERE id = 2"
    offsets = StoredOffsets()

    found = run_source(
        binlog_connector(db), props, offsets=offsets, until=lambda _: is_settled(db, offsets), timeout=30
    )

    assert rows(found) == [("r", 2)]


# -- tables that change ------------------------------------------------------------------------------------


def test_rows_logged_before_a_change_of_the_table_have_the_columns_of_then(db: Database) -> None:
    run(db, ORDERS)
    offsets = streaming(db)
    run(
        db,
        "INSERT INTO orders VALUES (1, 'a')",
        "ALTER TABLE orders ADD COLUMN extra int DEFAULT 7, RENAME COLUMN name TO title",
        "INSERT INTO orders VALUES (2, 'b', 8)",
        "ALTER TABLE orders DROP COLUMN title, MODIFY extra varchar(10)",
        "INSERT INTO orders VALUES (3, 'text')",
    )

    found = read(db, offsets, lambda records: len(records) == 3)

    assert [record.value["after"] for record in found] == [
        {"id": 1, "name": "a"},
        {"id": 2, "title": "b", "extra": 8},
        {"id": 3, "extra": "text"},
    ]


@pytest.mark.thorough
def test_a_log_without_names_is_read_if_the_catalog_is_proven_and_refused_otherwise() -> None:
    with own_server("mysql", "--binlog-row-metadata=MINIMAL") as database:
        run(database, ORDERS)
        offsets = streaming(database)
        run(database, "INSERT INTO orders VALUES (1, 'a')", "CREATE TABLE other (id int PRIMARY KEY)")
        assert rows(read(database, offsets)) == [("c", 1)]
        wait_until("the offset is at the end", lambda: bool(streaming_on(database, offsets)), 30)
        run(
            database,
            "INSERT INTO orders VALUES (2, 'b')",
            "ALTER TABLE orders CHANGE name title varchar(50)",
        )
        with pytest.raises(ConnectError, match="SET GLOBAL binlog_row_metadata = 'FULL'"):
            read(database, offsets)


def streaming_on(database: Database, offsets: StoredOffsets) -> bool:
    read(database, offsets, lambda _: is_settled(database, offsets))
    return True


def test_changes_of_rows_that_are_logged_as_statements_are_refused(db: Database) -> None:
    run(db, ORDERS)
    offsets = streaming(db)
    run(db, "SET SESSION binlog_format = 'STATEMENT'", "INSERT INTO orders VALUES (1, 'a')")

    with pytest.raises(ConnectError, match="SET GLOBAL binlog_format = 'ROW'"):
        read(db, offsets)


# -- logs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("product", ["mariadb", *thorough("mysql")])
def test_a_purged_log_is_told_and_a_new_snapshot_is_taken_only_if_it_is_wanted(product: str) -> None:
    with own_server(product) as database:
        run(database, ORDERS)
        offsets = streaming(database)
        stored = offsets.items()
        run(database, "INSERT INTO orders VALUES (1, 'a')", "FLUSH BINARY LOGS", "INSERT INTO orders VALUES (2, 'b')")
        last = database.rows("SHOW BINARY LOGS")[-1][0]
        # A log that a reader has only just left is not purged.
        wait_until("the log is purged", lambda: _purged(database, last), 30)

        with pytest.raises(ConnectError, match=r"snapshot\.mode=when_needed"):
            read(database, StoredOffsets(stored))

        again = read(database, StoredOffsets(stored), lambda records: len(records) == 2, snapshot_mode="when_needed")
        assert rows(again) == [("r", 1), ("r", 2)]


def _purged(database: Database, last: str) -> bool:
    run(database, f"PURGE BINARY LOGS TO '{last}'")
    return len(database.rows("SHOW BINARY LOGS")) == 1


@pytest.mark.thorough
def test_a_log_that_is_reset_while_nothing_is_read_is_told() -> None:
    with own_server("mysql") as database:
        run(database, ORDERS, "INSERT INTO orders VALUES (1, 'a')")
        offsets = streaming(database)
        run(database, "RESET BINARY LOGS AND GTIDS")

        with pytest.raises(ConnectError, match="does not continue where the connector stopped"):
            read(database, offsets)


@pytest.mark.parametrize("db", ["mariadb", *thorough("mysql")], indirect=True)
def test_two_readers_with_one_number_are_told_apart(db: Database) -> None:
    run(db, ORDERS)
    offsets = streaming(db)
    props = binlog_props(db)
    failures: list[Exception] = []

    def first() -> None:
        try:
            run_source(binlog_connector(db), props, offsets=offsets, until=lambda _: bool(failures), timeout=20)
        except (ConnectError, TimeoutError) as error:
            failures.append(error)

    reader = threading.Thread(target=first)
    reader.start()
    wait_until("the first reads", lambda: _is_replica(db, props["database.server.id"]), 20)
    second = StoredOffsets(offsets.items())
    deadline = time.monotonic() + 5
    run_source(
        binlog_connector(db),
        props,
        offsets=second,
        until=lambda _: bool(failures) or time.monotonic() > deadline,
        timeout=20,
    )
    reader.join()
    assert "database.server.id" in str(failures[0])


def _is_replica(database: Database, number: str) -> bool:
    statement = "SHOW SLAVE HOSTS" if database.product == "mariadb" else "SHOW REPLICAS"
    return any(str(row[0]) == number for row in database.rows(statement))


@pytest.mark.thorough
def test_a_large_transaction_takes_little_memory() -> None:
    """Compressed, so that the log has it as one event."""
    with own_server("mysql") as database:
        run(database, "CREATE TABLE orders (id int PRIMARY KEY AUTO_INCREMENT, name varchar(200))")
        offsets = streaming(database)
        run(
            database,
            "SET SESSION binlog_transaction_compression = ON",
            "BEGIN",
            "INSERT INTO orders (name) VALUES " + ", ".join([f"('{'x' * 200}')"] * 1000),
            *["INSERT INTO orders (name) SELECT name FROM orders LIMIT 20000"] * 6,
            "COMMIT",
        )
        total = int(database.rows("SELECT count(*) FROM orders")[0][0])
        props = binlog_props(database, max_batch_size=500)
        task = MySqlTask(MySqlConfig.parse(props), SourceTaskTestContext(offsets))
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
        assert peak < 8_000_000 < 200 * total


# -- checks ------------------------------------------------------------------------------------------------


def errors(database: Database, **props: Any) -> str:
    config = MariaDbConfig if database.product == "mariadb" else MySqlConfig
    values = config.validate(binlog_props(database, **props))
    return "\n".join(error for value in values for error in value.errors)


def test_a_right_that_lacks_is_told_with_the_statement_that_grants_it(db: Database) -> None:
    run(
        db,
        ORDERS,
        f"CREATE USER IF NOT EXISTS 'poor_{db.name}'@'%' IDENTIFIED BY 'secret'",
        f"GRANT SELECT ON {db.name}.* TO 'poor_{db.name}'@'%'",
    )
    try:
        found = errors(db, database_user=f"poor_{db.name}", database_password="secret")
        watches = "BINLOG MONITOR" if db.product == "mariadb" else "REPLICATION CLIENT"
        for right in ("REPLICATION SLAVE", watches, "RELOAD"):
            assert f"GRANT {right} ON *.* TO 'poor_{db.name}'" in found
        run(db, f"GRANT REPLICATION SLAVE, {watches}, RELOAD ON *.* TO 'poor_{db.name}'@'%'")
        assert errors(db, database_user=f"poor_{db.name}", database_password="secret") == ""
        poor = {"database_user": f"poor_{db.name}", "database_password": "secret"}
        run(db, "INSERT INTO orders VALUES (1, 'a')")
        assert rows(read(db, StoredOffsets(), **poor)) == [("r", 1)]
    finally:
        run(db, f"DROP USER 'poor_{db.name}'@'%'")


def test_what_is_wrong_with_the_server_or_the_configuration_is_told(db: Database) -> None:
    run(db, ORDERS)
    own = db.rows("SELECT @@server_id")[0][0]

    assert errors(db) == ""
    assert "is the number of the server itself" in errors(db, database_server_id=own)
    assert "None of the tables" in errors(db, table_include_list="nothing")
    assert "Access denied" in errors(db, database_password="wrong")
    assert "wrong" not in errors(db, database_password="wrong")
    assert "cannot be reached" in errors(db, database_port=1)
    other = MySqlConfig if db.product == "mariadb" else MariaDbConfig
    told = [error for value in other.validate(binlog_props(db)) for error in value.errors]
    assert any(("MySqlConnector" if db.product == "mysql" else "MariaDbConnector") in error for error in told)


def test_system_versioned_tables_are_refused(mariadb: Database) -> None:
    run(mariadb, f"{ORDERS} WITH SYSTEM VERSIONING")

    assert "table.exclude.list" in errors(mariadb)
    with pytest.raises(ConnectError, match=rf"{mariadb.name}\.orders out with table\.exclude\.list"):
        read(mariadb, StoredOffsets())


@pytest.mark.parametrize("db", ["mariadb", *thorough("mysql")], indirect=True)
def test_heartbeats_come_without_changes_and_run_their_statement(db: Database) -> None:
    run(db, ORDERS, "CREATE TABLE beats (id int PRIMARY KEY AUTO_INCREMENT)")

    found = read(
        db,
        StoredOffsets(),
        lambda records: sum(record.topic == "__debezium-heartbeat.srv" for record in records) == 3,
        heartbeat_interval_ms=100,
        table_exclude_list=f"{db.name}.beats",
        heartbeat_action_query=f"INSERT INTO {db.name}.beats () VALUES ()",
    )

    assert found[-1].key == {"serverName": "srv"}
    assert db.rows("SELECT count(*) FROM beats")[0][0] >= 2


# -- incremental snapshots ---------------------------------------------------------------------------------

SIGNALS: Final = "CREATE TABLE signals (id varchar(64) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"


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


# -- another reader ----------------------------------------------------------------------------------------

COMPARED: Final = {
    "a": ("bigint unsigned", "18446744073709551615"),
    "b": ("mediumint", "-8388608"),
    "c": ("decimal(30,12)", "-123456789.000000000001"),
    "d": ("varchar(300) character set latin1", "'é' "),
    "e": ("double", "-1.5e-10"),
    "f": ("datetime(4)", "'2024-02-29 23:59:59.1234'"),
    "g": ("date", "'1969-12-31'"),
    "h": ("enum('x','y')", "'y'"),
    "i": ("mediumblob", "x'00ff00'"),
    "j": ("year", "2155"),
    "k": ("char(10)", "'ab'"),
    "l": ("smallint", "NULL"),
}


@pytest.mark.filterwarnings("ignore:'db' is deprecated:DeprecationWarning")
def test_rows_are_those_that_another_reader_of_the_log_sees(db: Database) -> None:
    """By ``mysql-replication``, which shares no code with this connector."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COMPARED.items())
    run(db, f"CREATE TABLE orders (id int PRIMARY KEY, {columns})")
    offsets = streaming(db)
    start = offsets.offset(PARTITION)
    assert start is not None
    values = ", ".join(literal for _, literal in COMPARED.values())
    run(db, *(f"INSERT INTO orders VALUES ({number}, {values})" for number in range(3)))

    reader = BinLogStreamReader(
        connection_settings={"host": "127.0.0.1", "port": db.port, "user": db.user, "password": db.password},
        server_id=int(binlog_props(db)["database.server.id"]),
        log_file=start["file"],
        log_pos=start["pos"],
        resume_stream=True,
        only_events=[WriteRowsEvent],
        only_schemas=[db.name],
        blocking=True,
    )
    others: list[dict[str, Any]] = []
    with closing(reader):
        for event in reader:
            others += [row["values"] for row in event.rows]
            if len(others) == 3:
                break
    ours = [record.value["after"] for record in read(db, offsets, lambda records: len(records) == 3, **PRECISE)]

    for one, other in zip(ours, others, strict=True):
        at = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=one.pop("f"))
        day = dt.date(1970, 1, 1) + dt.timedelta(days=one.pop("g"))
        assert (at.replace(tzinfo=None), day) == (other.pop("f"), other.pop("g"))
        assert one == other


PRECISE: Final = {"bigint_unsigned_handling_mode": "precise"}
