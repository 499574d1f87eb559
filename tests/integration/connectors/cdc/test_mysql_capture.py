"""The MySQL and MariaDB connectors on real servers: positions, snapshots, changed tables, lost logs, checks."""

from __future__ import annotations

import datetime as dt
import threading
import time
import tracemalloc
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

import pytest
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent

from connect.data import SourceRecord
from connect.errors import ConnectError
from connect.testing import StoredOffsets, run_source
from connect.testing.contexts import SourceTaskTestContext
from connectors.cdc.mysql import MariaDbConfig, MySqlConfig, MySqlTask
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
    until_settled,
)
from equipment.proofs import thorough
from equipment.servers.lease import Database
from equipment.waiting import wait_until

pytestmark = pytest.mark.integration


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


# -- positions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("product", ["mariadb", *thorough("mysql")])
@pytest.mark.parametrize("metadata", [*thorough(False), True], ids=["plain", "transactions"])
def test_a_task_goes_on_exactly_after_the_offset_of_any_record(product: str, *, metadata: bool) -> None:
    """On a server of its own, since the transactions of all databases are told."""
    with own_server(product) as db:
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


@pytest.mark.parametrize("product", ["mariadb", *thorough("mysql")])
def test_an_offset_of_debezium_within_a_transaction_is_gone_on_with(product: str) -> None:
    """On a server of its own: the transaction has to be the next in the log."""
    with own_server(product) as db:
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
        replica = replicate(source, copy)
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
    read(database, offsets, until_settled(database, offsets))
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
