"""The JDBC source around the changes of the clock in ``db.timezone``: no row is lost, wherever reading stops."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import pytest

from connect.data import SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.testing import StoredOffsets, run_source, running_source
from connectors.jdbc import JdbcSourceConnector
from equipment.proofs import thorough
from equipment.servers.lease import Database
from equipment.waiting import wait_until

GAPS = {
    "Europe/Berlin": (
        "2024-03-31 01:50",
        "2024-03-31 02:30",
        "2024-03-31 02:40",
        "2024-03-31 03:10",
        "2024-03-31 04:00",
    ),
    "America/New_York": (
        "2024-03-10 01:50",
        "2024-03-10 02:00",
        "2024-03-10 02:59",
        "2024-03-10 03:10",
        "2024-03-10 05:00",
    ),
    "Australia/Lord_Howe": (
        "2024-10-06 01:50",
        "2024-10-06 02:00",
        "2024-10-06 02:29",
        "2024-10-06 02:35",
        "2024-10-06 03:00",
    ),
}
TWICE = {
    "Europe/Berlin": ("2024-10-27 01:50", "2024-10-27 02:50", "2024-10-27 02:10", "2024-10-27 03:00"),
    "America/New_York": ("2024-11-03 00:50", "2024-11-03 01:59", "2024-11-03 01:00", "2024-11-03 02:00"),
    "Australia/Lord_Howe": ("2024-04-07 01:20", "2024-04-07 01:50", "2024-04-07 01:30", "2024-04-07 02:00"),
}
MODES = ("timestamp", "timestamp+incrementing")


def props_of(database: Database, mode: str, zone: str) -> dict[str, str]:
    keys = {"mode": mode, "timestamp.column.name": "at", "incrementing.column.name": "id", "db.timezone": zone}
    return {"topic.prefix": "", "poll.interval.ms": "1", "batch.max.rows": "1", **database.props, **keys}


def create(database: Database) -> None:
    kind = "timestamp" if database.product == "postgresql" else "datetime"
    database.execute(f"CREATE TABLE dst (id int PRIMARY KEY, at {kind} NOT NULL)")


def insert(database: Database, times: Sequence[str], first: int = 1) -> None:
    database.execute(*(f"INSERT INTO dst VALUES ({first + place}, '{time}')" for place, time in enumerate(times)))


def ids(records: Sequence[SourceRecord]) -> list[int]:
    return [record.value["id"] for record in records]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("zone", [*list(GAPS)[:1], *thorough(*list(GAPS)[1:])])
def test_times_that_the_clock_skips_are_read_once(database: Database, zone: str, mode: str) -> None:
    create(database)
    insert(database, GAPS[zone])
    props, offsets, found = props_of(database, mode, zone), StoredOffsets(), []
    for _ in GAPS[zone]:
        records = run_source(
            JdbcSourceConnector, props, offsets=offsets, until=lambda records: len(records) > 0, timeout=60
        )
        found += ids(records)
    assert found == [1, 2, 3, 4, 5]
    assert run_source(JdbcSourceConnector, props, offsets=offsets, timeout=60) == []


@pytest.mark.parametrize("mode", MODES)
def test_the_last_row_with_a_skipped_time_does_not_come_again(database: Database, mode: str) -> None:
    create(database)
    insert(database, GAPS["Europe/Berlin"][:3])
    props = props_of(database, mode, "Europe/Berlin")
    offsets = StoredOffsets()
    with running_source(JdbcSourceConnector, props, offsets) as (task,):
        for _ in range(3):
            wait_until("all is read", lambda: (task.poll(), task.at_end)[1], 60)
        assert ids(task.records) == [1, 2, 3]
        insert(database, GAPS["Europe/Berlin"][3:], first=4)
        wait_until("the rest is read", lambda: (task.poll(), len(task.records) >= 5)[1], 60)
    assert ids(task.records) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("zone", [*list(TWICE)[:1], *thorough(*list(TWICE)[1:])])
def test_an_hour_that_comes_twice_is_read_from_its_first_pass(database: Database, zone: str, mode: str) -> None:
    """By a task that goes on, each row once; the second pass is the one whose rows have earlier times."""
    before, first, second, after = TWICE[zone]
    create(database)
    insert(database, [before, first, first])
    props = props_of(database, mode, zone)
    with running_source(JdbcSourceConnector, props, StoredOffsets()) as (task,):
        for _ in range(3):
            wait_until("all is read", lambda: (task.poll(), task.at_end)[1], 60)
        assert ids(task.records) == [1, 2, 3]
        insert(database, [second, first], first=4)
        for _ in range(3):
            wait_until("the second pass is read", lambda: (task.poll(), task.at_end)[1], 60)
        assert ids(task.records) == [1, 2, 3, 4, 5]
        insert(database, [after], first=6)
        for _ in range(3):
            wait_until("the rest is read", lambda: (task.poll(), task.at_end)[1], 60)
    assert ids(task.records) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("zone", [*list(TWICE)[:1], *thorough(*list(TWICE)[1:])])
@pytest.mark.parametrize("count", [1, 4, *thorough(2, 3, 5)])
def test_after_a_stop_only_rows_of_that_hour_come_again(database: Database, zone: str, mode: str, count: int) -> None:
    before, first, second, after = TWICE[zone]
    create(database)
    insert(database, [before, first, first, second, after])
    props, offsets = props_of(database, mode, zone), StoredOffsets()
    stopped = run_source(
        JdbcSourceConnector, props, offsets=offsets, until=lambda records: len(records) >= count, timeout=60
    )
    assert ids(stopped) == [1, 4, 2, 3, 5][:count]
    rest = run_source(JdbcSourceConnector, props, offsets=offsets, timeout=60)
    in_hour = [] if count == 5 else [4, 2, 3]
    assert ids(rest) == [*in_hour, *([] if count == 5 else [5])]


@pytest.mark.parametrize("mode", MODES)
def test_a_row_of_the_second_pass_is_read_after_a_restart(database: Database, mode: str) -> None:
    before, first, second, after = TWICE["Europe/Berlin"]
    create(database)
    insert(database, [before, first])
    props, offsets = props_of(database, mode, "Europe/Berlin"), StoredOffsets()
    assert ids(run_source(JdbcSourceConnector, props, offsets=offsets, timeout=60)) == [1, 2]
    insert(database, [second], first=3)
    assert ids(run_source(JdbcSourceConnector, props, offsets=offsets, timeout=60)) == [3, 2]
    insert(database, [after], first=4)
    assert ids(run_source(JdbcSourceConnector, props, offsets=offsets, timeout=60)) == [3, 2, 4]
    assert run_source(JdbcSourceConnector, props, offsets=offsets, timeout=60) == []


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("mode", MODES)
def test_a_row_with_a_bad_date_passes_no_other(mariadb: Database, mode: str, count: int) -> None:
    """Its time is not known, so the row before it is where reading goes on."""
    mariadb.execute(
        "SET SESSION sql_mode = ''",
        "CREATE TABLE dst (id int PRIMARY KEY, at datetime NOT NULL)",
        "INSERT INTO dst VALUES (1, '2023-12-31 10:00:00'), (9, '2024-01-00 10:00:00')",
    )
    props, offsets = props_of(mariadb, mode, "UTC"), StoredOffsets()
    with running_source(JdbcSourceConnector, props, offsets, tolerate_errors=True) as (task,):
        for _ in range(3):
            wait_until("all is read", lambda: (task.poll(), task.at_end)[1], 60)
        reported = task.context.errant_record_reporter.reported
        assert [record.value for record, _ in reported] == ["(9, '2024-01-00 10:00:00')"]
        (bad,) = (record for record, _ in reported)
        for record in (task.records[0], bad)[:count]:
            offsets.put(record.source_partition, record.source_offset)
    assert ids(task.records) == [1]
    # Another transaction commits late: its number is smaller than that of the row with the bad date.
    mariadb.execute("INSERT INTO dst VALUES (3, '2023-12-31 10:00:00'), (4, '2024-02-01 00:00:00')")
    found = run_source(JdbcSourceConnector, props, offsets=offsets, tolerate_errors=True, timeout=60)
    assert ids(found) == ([3, 4] if mode == "timestamp+incrementing" else [4])


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_task_stops_in_the_midst_of_a_result(mariadb: Database) -> None:
    create(mariadb)
    insert(mariadb, ["2024-01-01"] * 100)
    props = props_of(mariadb, "timestamp+incrementing", "UTC")
    found = run_source(JdbcSourceConnector, props, until=lambda records: len(records) >= 2, timeout=60)
    gc.collect()
    assert ids(found) == [1, 2]


def test_a_column_that_is_gone_fails_the_task_at_once(database: Database) -> None:
    """In a query, whose columns the source does not know."""
    database.execute("CREATE TABLE ren (id int PRIMARY KEY, a int)", "INSERT INTO ren VALUES (1, 2)")
    props = {
        **props_of(database, "incrementing", "UTC"),
        "query": "SELECT * FROM (SELECT id, a FROM ren) t",
        "topic.prefix": "asked",
    }
    with running_source(JdbcSourceConnector, props, StoredOffsets()) as (task,):
        wait_until("the row is read", task.poll, 60)
        database.execute("ALTER TABLE ren RENAME COLUMN a TO b")
        with pytest.raises(ConnectError, match="Cannot read the query") as told:
            wait_until("it fails", lambda: (task.poll(), None)[1], 60)
    assert not isinstance(told.value, RetriableError)
