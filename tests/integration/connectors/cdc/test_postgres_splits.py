"""The splits of PostgreSQL, as an engine has them read: drivers, their sessions and executors are killed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from connect.data import SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.testing import StoredOffsets, run_source
from connect.testing.contexts import ConnectorTestContext, SourceTaskTestContext
from connectors.cdc.postgresql import PostgresConnector, PostgresTask
from equipment.change_data import capture_props
from equipment.proofs import thorough
from equipment.row_changes import RowChanges, SqlRowWriter
from equipment.servers.lease import Database
from equipment.waiting import wait_until

pytestmark = pytest.mark.integration

KEYED = 600
KEYLESS = 200
CHANGED = 200
"""Rows below this number are changed while they are read."""
MARK = 1_000_000


class Driver:
    """Asks a connector for its splits, and has them read, until it is killed. What is committed is not lost."""

    def __init__(self, props: Mapping[str, str], offsets: StoredOffsets) -> None:
        self.offsets = offsets
        self.topic: list[SourceRecord] = []
        self._props = dict(props)
        self._begin()

    def _begin(self) -> None:
        config = PostgresConnector.config_class.parse(self._props)
        self._connector = PostgresConnector(config, ConnectorTestContext(self.offsets))
        self._connector.start()

    def kill(self) -> None:
        """Kill the driver: its connections are gone, and all that it knows."""
        self._connector.stop()
        self._begin()

    def close(self) -> None:
        self._connector.stop()

    def splits(self) -> Sequence[Mapping[str, Any]]:
        return self._connector.splits(3)

    def run(self, split: Mapping[str, str], batches: int | None = None) -> None:
        """Have an executor read a split: to its end, or until it is killed after so many batches are committed."""
        context = SourceTaskTestContext(self.offsets)
        task = PostgresTask(PostgresTask.config_class.parse(split), context)
        try:
            task.start()
            while batches is None or batches > 0:
                records = list(task.poll())
                self.topic += records
                self.offsets.keep(records)
                for partition, offset in context.take_passed():
                    self.offsets.put(partition, offset)
                if not records and task.drained():
                    return
                if records and batches is not None:
                    batches -= 1
        finally:
            task.stop()

    def load(self, chance: random.Random | None = None) -> bool:
        """Have the current splits read; an executor may be killed within each. Return whether there were any."""
        splits = self.splits()
        for split in splits:
            try:
                self.run(split, chance.randrange(4) if chance is not None and chance.random() < 0.5 else None)
            except RetriableError:
                break
        return bool(splits)

    def load_with_kills(self, keys: Sequence[int], chance: random.Random) -> bool:
        """Load with kills, and kill the driver at times; return whether all these rows are read."""
        self.load(chance)
        if chance.random() < 0.3:
            self.kill()
        return self.read("t").keys() >= set(keys)

    def read(self, table: str) -> Counter[int]:
        """Return how often each row of a table was read."""
        return Counter(
            record.value["after"]["id"]
            for record in self.topic
            if record.topic == f"srv.public.{table}" and record.value is not None and record.value["op"] == "r"
        )

    def has_all(self, key: int) -> bool:
        """Return whether the snapshot is over, and a row of the table with a key has come."""
        offset = self.offsets.offset({"server": "srv"}) or {}
        return "blocking_snapshots" not in offset and any(
            record.topic == "srv.public.t" and record.key == {"id": key} for record in self.topic
        )


@pytest.fixture
def props(captured: Database) -> dict[str, str]:
    captured.execute(
        "CREATE TABLE t (id int PRIMARY KEY, version int NOT NULL)",
        "CREATE TABLE keyless (id int, version int)",
        "CREATE TABLE nothing (id int PRIMARY KEY)",
        f"INSERT INTO t SELECT i, 1 FROM generate_series(0, {KEYED - 1}) i",
        f"INSERT INTO keyless SELECT i, 1 FROM generate_series(0, {KEYLESS - 1}) i",
        "ANALYZE",
    )
    return capture_props(captured, max_batch_size=50, slot_retry_delay_ms=20)


@pytest.fixture
def driver(props: dict[str, str]) -> Iterator[Driver]:
    made = Driver(props, StoredOffsets())
    yield made
    made.close()


def caught_up(driver: Driver, database: Database) -> None:
    """Have splits read until all that is written by now has come."""
    database.execute(f"INSERT INTO t VALUES ({MARK}, 1)")
    wait_until("all changes have come", lambda: (driver.load(), driver.has_all(MARK))[1], 60)


def latest(records: Sequence[SourceRecord]) -> dict[int, int]:
    """Return the latest state of each row; none follows a newer one."""
    state: dict[int, int] = {}
    newest: dict[int, int] = {}
    for record in records:
        if record.topic != "srv.public.t":
            continue
        key = record.key["id"]
        after = None if record.value is None else record.value["after"]
        if after is None:
            state.pop(key, None)
            continue
        assert after["version"] >= newest.get(key, 0), f"an older state of {key} follows a newer one"
        newest[key] = state[key] = after["version"]
    return state


def test_the_stream_goes_on_where_executors_have_read(driver: Driver, captured: Database) -> None:
    load = RowChanges(partial(SqlRowWriter, captured), random.Random(1), CHANGED, 0.002)
    try:
        wait_until("all rows are read", lambda: (driver.load(), len(driver.read("t")) >= KEYED - CHANGED)[1], 60)
    finally:
        load.close()
    caught_up(driver, captured)
    assert set(driver.read("t").values()) == {1}
    assert driver.read("keyless") == dict.fromkeys(range(KEYLESS), 1)
    assert latest(driver.topic) == dict(captured.rows("SELECT id, version FROM t"))


@pytest.mark.parametrize("seed", [1, *thorough(*range(2, 12))])
def test_no_row_is_lost_or_read_twice_whatever_is_killed(driver: Driver, captured: Database, seed: int) -> None:
    chance = random.Random(seed)
    unchanged = range(CHANGED, KEYED)
    load = RowChanges(partial(SqlRowWriter, captured), random.Random(seed + 1), CHANGED, 0.002)
    try:
        wait_until("all rows are read", lambda: driver.load_with_kills(unchanged, chance), 120)
    finally:
        load.close()
    caught_up(driver, captured)
    assert {driver.read("t")[key] for key in unchanged} == {1}
    assert driver.read("keyless").keys() == set(range(KEYLESS))
    assert latest(driver.topic) == dict(captured.rows("SELECT id, version FROM t"))


def test_a_session_that_is_ended_costs_the_view_and_no_row(driver: Driver, captured: Database) -> None:
    """The server ends the driver's session amid the pieces; executors see that their view is gone."""
    driver.load()
    split = next(each for each in driver.splits() if "keyless" not in each["capture.split"])
    driver.run(split, 2)
    sessions = f"FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = '{captured.name}'"
    assert captured.rows(f"SELECT pg_terminate_backend(pid) {sessions}"), "the driver's"
    wait_until("it has ended", lambda: not captured.rows(f"SELECT pid {sessions}"))
    with pytest.raises(RetriableError, match="The view of the snapshot is gone"):
        driver.run(split)
    caught_up(driver, captured)
    assert {driver.read("t")[key] for key in range(KEYED)} == {1}


def test_the_worker_goes_on_with_what_executors_have_left(
    driver: Driver, captured: Database, props: dict[str, str]
) -> None:
    driver.load()
    for split in driver.splits():
        driver.run(split, 2)
    # Of a table without a key, all rows come again.
    left = KEYED + KEYLESS - len(driver.read("t"))
    assert 0 < len(driver.read("t")) < KEYED
    assert 0 < len(driver.read("keyless")) < KEYLESS
    driver.close()
    captured.execute(f"INSERT INTO t VALUES ({MARK}, 1)")

    def is_whole(records: Sequence[SourceRecord]) -> bool:
        return sum(record.value is not None and record.value["op"] == "r" for record in records) >= left

    driver.topic += run_source(PostgresConnector, props, offsets=driver.offsets, until=is_whole, timeout=60)
    assert {driver.read("t")[key] for key in range(KEYED)} == {1}
    assert driver.read("keyless").keys() == set(range(KEYLESS))


def test_with_initial_only_nothing_follows_the_rows(captured: Database, props: dict[str, str]) -> None:
    driver = Driver(props | {"snapshot.mode": "initial_only"}, StoredOffsets())
    try:
        while driver.load():
            pass
        assert set(driver.read("t").values()) == set(driver.read("keyless").values()) == {1}
        driver.kill()
        assert not driver.load()
    finally:
        driver.close()
    assert not captured.rows("SELECT FROM pg_replication_slots WHERE database = current_database()")


def test_statements_of_the_user_are_left_to_the_worker(props: dict[str, str]) -> None:
    key = "snapshot.select.statement.overrides"
    driver = Driver(props | {key: "public.t", f"{key}.public.t": "SELECT * FROM t"}, StoredOffsets())
    try:
        with pytest.raises(ConnectError, match="set engine=worker"):
            driver.splits()
    finally:
        driver.close()
