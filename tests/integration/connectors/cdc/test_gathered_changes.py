"""Changes that follow others at once are gathered for a moment, so that many small transactions take few polls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from connect.source import SourceConnector, SourceTask
from connect.testing import StoredOffsets, run_source
from connect.testing.contexts import SourceTaskTestContext
from connectors.cdc.postgresql import PostgresConnector
from equipment.binlog_capture import binlog_connector, binlog_props
from equipment.change_data import capture_props
from equipment.proofs import thorough
from equipment.servers.lease import Database
from equipment.waiting import wait_until

pytestmark = pytest.mark.integration

PARTITION = {"server": "srv"}
LONGEST = 0.01
"""Seconds for which changes may be gathered."""


class WaitingContext(SourceTaskTestContext):
    """Knows what the last poll has asked to wait for, and how long."""

    asked: tuple[tuple[int, ...], float] | None = None

    def poll_when_readable(self, descriptors: Collection[int], seconds: float) -> None:
        self.asked = tuple(descriptors), seconds
        super().poll_when_readable(descriptors, seconds)


@contextmanager
def started(
    connector: type[SourceConnector[Any]], props: Mapping[str, str], context: WaitingContext
) -> Iterator[SourceTask[Any]]:
    """A task that streams."""
    task_class: Any = connector.task_class
    task = task_class(task_class.config_class.parse(props), context)
    try:
        task.start()
        yield task
    finally:
        task.stop()


@pytest.mark.parametrize("product", ["captured", "mariadb", *thorough("mysql")])
def test_after_changes_the_next_ones_are_gathered(product: str, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(product)
    if product == "captured":
        connector: type[SourceConnector[Any]] = PostgresConnector
        props = capture_props(database, max_batch_size=3)
    else:
        connector, props = binlog_connector(database), binlog_props(database, max_batch_size=3)
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (0)")
    offsets = StoredOffsets()
    run_source(connector, props, offsets=offsets, until=bool, timeout=60)
    context = WaitingContext(offsets)
    with started(connector, props, context) as task:
        database.execute("INSERT INTO t VALUES (1)")
        wait_until("the change comes", lambda: list(task.poll() or ()))
        assert context.asked is not None
        descriptors, seconds = context.asked
        assert not descriptors
        assert 0 < seconds <= LONGEST
        # More than a poll takes is not waited for.
        wait_until("there is nothing more", lambda: not list(task.poll() or ()))
        database.execute("INSERT INTO t VALUES (2), (3), (4), (5), (6)")

        def full() -> bool:
            context.asked = None
            return len(list(task.poll() or ())) >= 3

        wait_until("a poll is full", full)
        assert context.asked is None
