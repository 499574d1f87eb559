"""Transactions that are larger than what memory the task is to take: what it takes is printed beside their size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from connect.source import SourceConnector, SourceTask
from connect.testing import StoredOffsets, run_source
from connect.testing.contexts import SourceTaskTestContext
from connectors.cdc.postgresql import PostgresConnector
from equipment.binlog_capture import binlog_connector, binlog_props, own_server
from equipment.change_data import capture_props
from equipment.servers.lease import Database

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

ROWS: Final = 150_000
BYTES: Final = 1_000
MOST_BYTES: Final = 40_000_000
_PAGE_BYTES: Final = os.sysconf("SC_PAGESIZE")


class Case:
    """A database of one product, and the connector that captures it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.connector: type[SourceConnector[Any]]
        if database.product == "postgresql":
            self.connector, self.props = PostgresConnector, capture_props(database, max_batch_size=500)
        else:
            self.connector, self.props = binlog_connector(database), binlog_props(database, max_batch_size=500)

    def write(self) -> None:
        """Write all rows in one transaction of one statement."""
        if self.database.product == "postgresql":
            numbers = f"SELECT * FROM generate_series(2, {ROWS}) AS n"
        else:
            ten = "SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION "
            ten += "SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9"
            places = " JOIN ".join(f"({ten}) AS t{place}" for place in range(6))
            value = " + ".join(f"t{place}.d * {10**place}" for place in range(6))
            numbers = f"SELECT n FROM (SELECT {value} AS n FROM {places}) AS many WHERE n BETWEEN 2 AND {ROWS}"
        self.database.execute(f"INSERT INTO large SELECT n, repeat('x', {BYTES}) FROM ({numbers}) AS numbers")


@pytest.fixture(params=["postgresql", "mysql", "mariadb"])
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    if request.param == "postgresql":
        yield Case(request.getfixturevalue("captured"))
    else:
        with own_server(request.param) as database:
            yield Case(database)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * _PAGE_BYTES


def test_memory_does_not_grow_with_a_transaction(case: Case) -> None:
    case.database.execute("CREATE TABLE large (id int PRIMARY KEY, name text)", "INSERT INTO large VALUES (1, 'first')")
    offsets = StoredOffsets()
    assert len(run_source(case.connector, case.props, offsets=offsets, until=bool, timeout=120)) == 1
    case.write()
    task: SourceTask[Any] = case.connector.task_class(
        case.connector.config_class.parse(case.props), SourceTaskTestContext(offsets)
    )
    task.start()
    try:
        seen, before = 0, resident_bytes()
        most = before
        while seen < ROWS - 1:
            seen += len(list(task.poll() or ()))
            most = max(most, resident_bytes())
    finally:
        task.stop()
    grown = most - before
    print(f"{case.database.product}: {grown / 1e6:.0f} MB more for a transaction of {ROWS * BYTES / 1e6:.0f} MB")
    assert seen == ROWS - 1
    assert grown < MOST_BYTES < ROWS * BYTES
