"""The JDBC source on files of SQLite."""

from __future__ import annotations

import datetime as dt
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
