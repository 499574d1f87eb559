"""The JDBC source on files of SQLite."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from connect.data import Schema, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.testing import StoredOffsets, run_source, running_source
from connect.testing.contexts import ConnectorTestContext
from connect.testing.props import connector_props
from connectors.jdbc import JdbcSourceConfig, JdbcSourceConnector
from equipment.waiting import wait_until

Run = Callable[..., None]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
def execute(file: Path) -> Run:
    def run(*statements: str) -> None:
        with closing(sqlite3.connect(file)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()

    run()
    return run


def props_of(file: Path, **options: str) -> dict[str, str]:
    keys = {name.replace("_", "."): value for name, value in options.items()}
    return {"connection.url": f"jdbc:sqlite:{file}", "poll.interval.ms": "1", "mode": "incrementing", **keys}


def read(file: Path, offsets: StoredOffsets | None = None, **options: str) -> list[SourceRecord]:
    return run_source(JdbcSourceConnector, props_of(file, **options), offsets=offsets)


def test_times_are_read_and_compared_whichever_way_they_are_written(file: Path, execute: Run) -> None:
    execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, at DATETIME NOT NULL, day DATE)",
        "INSERT INTO t (at, day) VALUES ('2024-01-01T01:00:00+02:00', '2024-02-29'), (1704063600001, 0),"
        " ('2024-01-01 01:00:00.0015', '1970-01-02T00:00')",
    )
    options = {"mode": "timestamp", "timestamp_column_name": "at", "db_timezone": "+02:00"}
    first = dt.datetime(2023, 12, 31, 23, tzinfo=dt.UTC)
    records = read(file, **options)
    assert [(record.value["at"] - first).microseconds for record in records] == [0, 1000, 1500]
    assert [record.value["day"] for record in records] == [
        dt.date(2024, 2, 29),
        dt.date(1970, 1, 1),
        dt.date(1970, 1, 2),
    ]


def test_a_value_that_its_column_does_not_allow_is_reported(file: Path, execute: Run) -> None:
    execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INT)", "INSERT INTO t (n) VALUES (1), ('word'), (NULL), (1.5), (2)"
    )
    props = props_of(file)
    with running_source(JdbcSourceConnector, props, StoredOffsets(), tolerate_errors=True) as (task,):
        wait_until("all is read", lambda: (task.poll(), task.at_end)[1])
        reported = task.context.errant_record_reporter.reported
    assert [record.value for record in task.records] == [{"id": 1, "n": 1}, {"id": 3, "n": None}, {"id": 5, "n": 2}]
    assert [(record.value, record.source_offset) for record, _ in reported] == [
        ("(2, 'word')", {"incrementing": 2}),
        ("(4, 1.5)", {"incrementing": 4}),
    ]


def test_keys_are_structs_of_the_primary_key(file: Path, execute: Run) -> None:
    execute(
        "CREATE TABLE t (n INT NOT NULL, b TEXT NOT NULL, a INT NOT NULL, PRIMARY KEY (a, b))",
        "INSERT INTO t VALUES (1, 'x', 2)",
    )
    (record,) = read(file, key_columns="auto", incrementing_column_name="n")
    assert list(record.key.items()) == [("a", 2), ("b", "x")]
    assert record.key_schema is Schema.struct({"a": Schema.int64(), "b": Schema.string()}, name="t.Key")
    assert record.value_schema is not None
    assert record.value_schema.name == "t"


def test_a_dropped_table_does_not_disturb_the_others(file: Path, execute: Run) -> None:
    execute("CREATE TABLE a (id INTEGER PRIMARY KEY)", "CREATE TABLE b (id INTEGER PRIMARY KEY)")
    with running_source(JdbcSourceConnector, props_of(file), StoredOffsets()) as (task,):
        wait_until("all is read", lambda: (task.poll(), task.at_end)[1])
        execute("DROP TABLE a", "INSERT INTO b DEFAULT VALUES")
        wait_until("the other is read", lambda: (task.poll(), task.records)[1])
    assert [record.topic for record in task.records] == ["b"]


def test_a_locked_file_is_tried_again(file: Path, execute: Run) -> None:
    execute("CREATE TABLE a (id INTEGER PRIMARY KEY)", "INSERT INTO a DEFAULT VALUES")
    props = props_of(file, connection_timeout="0.01", query_retry_attempts="1")
    with (
        running_source(JdbcSourceConnector, props, StoredOffsets()) as (task,),
        closing(sqlite3.connect(file, isolation_level=None)) as other,
    ):
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(RetriableError, match=r"Cannot read table a in .*a.db: database is locked"):
            task.task.poll()
        other.execute("COMMIT")
        assert wait_until("the row is read", task.poll)
        other.execute("INSERT INTO a DEFAULT VALUES")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ConnectError, match=r"retried query\.retry\.attempts=1 times"):
            wait_until("it gives up", lambda: (_poll_quietly(task.task.poll), None)[1])


def _poll_quietly(poll: Callable[[], object]) -> None:
    try:
        poll()
    except RetriableError:
        return


@pytest.mark.parametrize(
    ("statements", "options", "reason"),
    [
        (["CREATE TABLE a (id INT)"], {}, "Table a has no auto-increment columns"),
        (["CREATE TABLE a (id INT)"], {"incrementing_column_name": "id"}, "incrementing column id of a may be null"),
        (["CREATE TABLE a (id INT)"], {"incrementing_column_name": "no"}, "a has no column no; its columns are id"),
        (
            ["CREATE TABLE a (id INTEGER PRIMARY KEY, at TIMESTAMP)"],
            {"mode": "timestamp", "timestamp_column_name": "at"},
            "timestamp columns at of a may all be null",
        ),
        (
            ["CREATE TABLE a (id INTEGER PRIMARY KEY)"],
            {"incrementing_column_mapping": "b:id"},
            "No regular expressions in incrementing.column.mapping match table a",
        ),
        (
            ["CREATE TABLE a (id TEXT NOT NULL)", "INSERT INTO a VALUES ('x')"],
            {"incrementing_column_name": "id"},
            "incrementing column id has the value 'x'",
        ),
        ([], {"query": "SELECT 1 FROM nowhere", "mode": "bulk", "topic_prefix": "t"}, "no such table: nowhere"),
    ],
)
def test_what_cannot_be_read_fails_the_task(
    file: Path, execute: Run, statements: list[str], options: dict[str, str], reason: str
) -> None:
    execute(*statements)
    with (
        running_source(JdbcSourceConnector, props_of(file, **options), StoredOffsets()) as (task,),
        pytest.raises(ConnectError, match=reason),
    ):
        wait_until("it fails", lambda: (task.task.poll(), None)[1])


def test_a_file_that_is_not_there_fails_the_connector(file: Path) -> None:
    context = ConnectorTestContext()
    config = JdbcSourceConfig.parse(connector_props(JdbcSourceConnector, props_of(file)))
    connector = JdbcSourceConnector(config, context)
    connector.start()
    try:
        wait_until("the connector fails", lambda: context.errors)
        assert f"File {file} does not exist" in str(context.errors[0])
        assert connector.task_configs(1) == []
    finally:
        connector.stop()
    assert not file.exists()


def test_timestamp_initial_is_where_reading_begins(file: Path, execute: Run) -> None:
    execute("CREATE TABLE t (at TIMESTAMP NOT NULL)", "INSERT INTO t VALUES (1000), (2000), (4102444800000)")
    options = {"mode": "timestamp", "timestamp_column_name": "at"}
    assert [record.source_offset["timestamp"] for record in read(file, **options)] == [1000, 2000]
    assert [record.source_offset["timestamp"] for record in read(file, timestamp_initial="1000", **options)] == [2000]
    assert read(file, timestamp_initial="-1", **options) == []


@pytest.mark.parametrize("mode", ["timestamp", "timestamp+incrementing"])
def test_reading_goes_on_from_the_first_start_though_that_read_nothing(file: Path, execute: Run, mode: str) -> None:
    execute("CREATE TABLE t (id INTEGER PRIMARY KEY, at TIMESTAMP NOT NULL)", "INSERT INTO t VALUES (1, 1000)")
    options = {"mode": mode, "timestamp_column_name": "at", "timestamp_initial": "-1"}
    offsets = StoredOffsets()
    assert read(file, offsets, **options) == []
    execute("INSERT INTO t VALUES (2, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER))")
    assert [record.value["id"] for record in read(file, offsets, **options)] == [2]


@pytest.mark.parametrize("mode", ["timestamp", "timestamp+incrementing"])
def test_rows_whose_time_cannot_be_read_are_reported(file: Path, execute: Run, mode: str) -> None:
    execute(
        "CREATE TABLE ev (id INTEGER PRIMARY KEY, at TIMESTAMP NOT NULL)",
        "INSERT INTO ev (at) VALUES ('2024-01-05 10:00:00'), ('01/06/2024 11:00'), ('2024-1-7 12:00:00'),"
        " (1704715200.5), (''), (x'00'), (9223372036854775807), ('2024-01-09 10:00:00')",
    )
    props = props_of(file, mode=mode, timestamp_column_name="at", incrementing_column_name="id")
    with running_source(JdbcSourceConnector, props, StoredOffsets(), tolerate_errors=True) as (task,):
        wait_until("all is read", lambda: (task.poll(), task.at_end)[1])
        wait_until("it polls again", lambda: (task.poll(), task.at_end)[1])
    assert [record.value["id"] for record in task.records] == [1, 8]
    reported = [record.value for record, _ in task.context.errant_record_reporter.reported]
    assert [text.partition(",")[0] for text in reported] == ["(2", "(3", "(4", "(5", "(6", "(7"]
    with (
        running_source(JdbcSourceConnector, props, StoredOffsets()) as (strict,),
        pytest.raises(ConnectError, match="01/06/2024 11:00"),
    ):
        wait_until("it fails", lambda: (strict.poll(), None)[1])


def test_rows_before_1970_are_told_once(file: Path, execute: Run, caplog: pytest.LogCaptureFixture) -> None:
    execute(
        "CREATE TABLE ev (id INTEGER PRIMARY KEY, at TIMESTAMP NOT NULL)",
        "INSERT INTO ev (at) VALUES ('1970-01-01 00:00:00'), ('1969-07-20 20:17:00'), ('2024-01-09 10:00:00')",
    )
    records = read(file, mode="timestamp", timestamp_column_name="at")
    assert [record.value["id"] for record in records] == [3]
    told = [each.getMessage() for each in caplog.records if "1970-01-01" in each.getMessage()]
    assert told == [
        "There are rows in table ev with a time at or before 1970-01-01, where reading begins. They are not read: "
        "copy them once with mode=bulk."
    ]


DST_TIMES = (
    "'2024-03-31 01:50'", "'2024-03-31 02:30'", "'2024-03-31 03:10'", "1711847400000",
    "'2024-10-27 02:50'", "'2024-10-27 02:10'", "'2024-10-27 03:00'",
)  # fmt: skip
"""The number is 2024-03-31 03:10 in Berlin, too."""


@pytest.mark.parametrize("mode", ["timestamp", "timestamp+incrementing"])
def test_no_row_is_lost_around_changes_of_the_clock(file: Path, execute: Run, mode: str) -> None:
    execute(
        "CREATE TABLE dst (id INTEGER PRIMARY KEY, at TIMESTAMP NOT NULL)",
        *(f"INSERT INTO dst (at) VALUES ({time})" for time in DST_TIMES),
    )
    options = {"mode": mode, "timestamp_column_name": "at", "db_timezone": "Europe/Berlin", "batch_max_rows": "1"}
    options["incrementing_column_name"] = "id"
    every = [record.value["id"] for record in read(file, **options)]
    assert every == [1, 2, 3, 4, 6, 5, 7]
    for count in range(1, 8):
        offsets = StoredOffsets()
        run_source(
            JdbcSourceConnector,
            props_of(file, **options),
            offsets=offsets,
            until=lambda records, count=count: len(records) >= count,
        )
        rest = [record.value["id"] for record in read(file, offsets, **options)]
        # Rows of the hour that comes twice are read again, and with a time alone those that share the last one's.
        again = {5: 4, 6: 4, 3: 2 if mode == "timestamp" else 3}.get(count, count)
        assert rest == every[again:]


def test_rows_with_unreadable_times_come_after_the_others(file: Path, execute: Run) -> None:
    """So those are published, though the first of these fails the task."""
    execute(
        "CREATE TABLE ev (id INTEGER PRIMARY KEY, at TIMESTAMP NOT NULL)",
        "INSERT INTO ev (at) VALUES ('bad'), ('2024-01-05'), ('2024-01-06'), ('worse'), ('2024-01-07')",
    )
    props = props_of(file, mode="timestamp", timestamp_column_name="at", batch_max_rows="1")
    offsets = StoredOffsets()
    for expected in ([2, 3, 5], []):
        with (
            running_source(JdbcSourceConnector, props, offsets) as (task,),
            pytest.raises(ConnectError, match="'bad'"),
        ):
            wait_until("it fails", lambda task=task: (task.poll(), None)[1])
        assert [record.value["id"] for record in task.records] == expected


def test_new_rows_with_unreadable_times_are_reported_alone(file: Path, execute: Run) -> None:
    execute(
        "CREATE TABLE ev (id INTEGER PRIMARY KEY, at TIMESTAMP NOT NULL)",
        "INSERT INTO ev (at) VALUES ('a'), ('b'), ('c')",
    )
    props = props_of(file, mode="timestamp", timestamp_column_name="at", batch_max_rows="2")
    with running_source(JdbcSourceConnector, props, StoredOffsets(), tolerate_errors=True) as (task,):
        reported = task.context.errant_record_reporter.reported

        def told_after(statement: str | None) -> list[str]:
            if statement is not None:
                execute(statement)
            before = len(reported)
            for _ in range(2):
                wait_until("all is read", lambda: (task.poll(), task.at_end)[1])
            return [record.value for record, _ in reported[before:]]

        assert told_after(None) == ["(1, 'a')", "(2, 'b')", "(3, 'c')"]
        assert told_after("INSERT INTO ev (at) VALUES ('d')") == ["(4, 'd')"]
        assert told_after("UPDATE ev SET at = 'x' WHERE id = 1") == ["(1, 'x')", "(2, 'b')", "(3, 'c')", "(4, 'd')"]
        assert told_after("DELETE FROM ev") == []
        assert told_after("INSERT INTO ev VALUES (1, 'x')") == ["(1, 'x')"]


@pytest.mark.parametrize(
    ("statement", "transforms", "expected"),
    [
        ("CREATE TABLE orders (id INTEGER PRIMARY KEY)", "", ["orders"]),
        ("CREATE TABLE orders (id INTEGER PRIMARY KEY)", "route", ["Order Details", "orders"]),
        ("SELECT 1", "", ["Order Details"]),
    ],
)
def test_a_table_whose_name_is_no_topic_name_does_not_fail_the_others(
    file: Path, execute: Run, caplog: pytest.LogCaptureFixture, statement: str, transforms: str, expected: list[str]
) -> None:
    execute('CREATE TABLE "Order Details" (id INTEGER PRIMARY KEY)', statement)
    props = {**props_of(file, topic_prefix="nw-", table_poll_interval_ms="1"), "transforms": transforms}
    props |= {"transforms.route.type": "RegexRouter"} if transforms else {}
    context = ConnectorTestContext()
    connector = JdbcSourceConnector(JdbcSourceConfig.parse(connector_props(JdbcSourceConnector, props)), context)
    connector.start()
    try:
        wait_until("the tables are known", lambda: connector.task_configs(1))
        (config,) = connector.task_configs(1)
        assert [name for name, *_ in json.loads(config["tables"])] == expected
        execute("CREATE TABLE more (id INTEGER PRIMARY KEY)")
        wait_until("another table is seen", lambda: "more" in connector.task_configs(1)[0]["tables"])
    finally:
        connector.stop()
    assert context.errors == []
    told = [text for each in caplog.records if "Order Details" in (text := each.getMessage()) and "topic would" in text]
    assert len(told) == (1 if "orders" in statement else 2)
    assert "its topic would be 'nw-Order Details'" in told[0]
    assert "RegexRouter" in told[0]
