"""Incremental snapshots beside a stream, of databases that stream transactions before or after others see them."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest

from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.incremental import Chunk, ChunkRow, IncrementalSnapshots
from connect.kits.cdc.incremental_state import BlockingRequest, Collection, IncrementalState
from connect.kits.cdc.notifications import Notification, SnapshotNotifications

SCHEMA: Any = None
"""The rows of these tests need none."""


@dataclass
class Database:
    """A table of numbers by key. Transactions are in the log by their numbers, and others see them later.

    Those that touch no common key may be seen in another order than that of the log.
    """

    rows: dict[int, int] = field(default_factory=dict)
    log: list[dict[int, int | None]] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)

    def commit(self, changes: dict[int, int | None]) -> None:
        self.log.append(changes)

    def show(self, choose: Callable[[list[int]], int] = min) -> None:
        """Let others see one more transaction."""
        waiting = [xid for xid in range(len(self.log)) if xid not in self.seen]
        free = [
            xid for xid in waiting if not any(self.log[xid].keys() & self.log[it].keys() for it in waiting if it < xid)
        ]
        if free:
            xid = choose(free[:4])
            self.seen.add(xid)
            for key, value in self.log[xid].items():
                if value is None:
                    self.rows.pop(key, None)
                else:
                    self.rows[key] = value

    def final(self) -> dict[int, int]:
        while len(self.seen) < len(self.log):
            self.show()
        return dict(self.rows)


class Reader:
    """Reads chunks when it is told to."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.asked: list[tuple[Future[Chunk], Collection, int]] = []
        self.fails: list[Exception] = []

    def read(self, collection: Collection, rows: int) -> Future[Chunk]:
        future: Future[Chunk] = Future()
        self.asked.append((future, collection, rows))
        return future

    def work(self) -> None:
        for future, collection, rows in self.asked:
            if self.fails:
                future.set_exception(self.fails.pop())
                continue
            future.set_result(self._chunk(collection, rows))
        self.asked = []

    def _chunk(self, collection: Collection, rows: int) -> Chunk:
        database, seen = self.database, frozenset(self.database.seen)
        high = max(seen, default=-1) + 1
        until = collection.until or ((max(database.rows),) if database.rows else None)
        after = collection.after[0] if collection.after else -1
        keys = sorted(key for key in database.rows if until is not None and after < key <= until[0])[:rows]
        chunk = [ChunkRow((key, database.rows[key]), (key,), key) for key in keys]
        is_last = len(keys) < rows or (until is not None and keys[-1] == until[0])
        return Chunk(SCHEMA, chunk, until, is_last, lambda xid: xid in seen, lambda position: position >= high)


class Consumer:
    """What a consumer has: the latest state of each row, and how many it was told of."""

    def __init__(self, snapshots: IncrementalSnapshots, database: Database) -> None:
        self.snapshots = snapshots
        self.database = database
        self.state: dict[int, int] = {}
        self.read: list[int] = []
        self.position = 0
        self.offset: dict[str, Any] = {}
        self.newest: dict[int, int] = {}

    def _tell(self, key: int, value: int) -> None:
        assert value >= self.newest.get(key, 0), "an older state follows a newer one"
        self.newest[key] = self.state[key] = value

    def stream(self) -> None:
        """Take the next transaction of the log, which is there before others see it."""
        if self.position >= len(self.database.log):
            return
        xid = self.position
        self.snapshots.began(xid)
        for key, value in self.database.log[xid].items():
            if self.snapshots.watched() == "t":
                self.snapshots.touched([key], xid)
            if value is None:
                self.state.pop(key, None)
            else:
                self._tell(key, value)
        self.position += 1

    def look(self) -> None:
        """Take what is due between two transactions."""
        for row in self.snapshots.due(self.position):
            key, value = row.raw
            self._tell(key, value)
            self.read.append(key)
            self.offset = row.state.to_offset()


def started(database: Database, rows: int = 3) -> tuple[IncrementalSnapshots, Reader, list[Notification]]:
    told: list[Notification] = []
    reader = Reader(database)
    notifications = SnapshotNotifications("srv")
    snapshots = IncrementalSnapshots(IncrementalState(), reader, rows, told.append, notifications, retry_seconds=0.0)
    return snapshots, reader, told


@pytest.mark.parametrize("seed", range(100))
def test_the_latest_states_agree_whatever_comes_in_between(seed: int) -> None:
    chance = random.Random(seed)
    database = Database(dict.fromkeys(range(0, 40, 2), 0))
    snapshots, reader, _ = started(database)
    consumer = Consumer(snapshots, database)
    snapshots.add([Collection("t")], "s")
    value = 0
    for _ in range(600):
        match chance.choice(["commit", "show", "show", "stream", "stream", "look", "read"]):
            case "commit" if len(database.log) < 150:
                value += 1
                keys = chance.sample(range(45), chance.randint(1, 3))
                database.commit({key: None if chance.random() < 0.3 else value for key in keys})
            case "show":
                database.show(chance.choice)
            case "stream":
                consumer.stream()
            case "look":
                consumer.look()
            case "read":
                reader.work()
    final = database.final()
    while snapshots.state.is_running or consumer.position < len(database.log):
        consumer.stream()
        consumer.look()
        reader.work()
    assert consumer.state == final
    assert len(consumer.read) == len(set(consumer.read)), "a row was read twice"


@pytest.mark.parametrize("seed", range(20))
def test_a_kill_after_any_row_goes_on_after_it(seed: int) -> None:
    chance = random.Random(seed)
    database = Database(dict.fromkeys(range(20), 0))
    snapshots, reader, _ = started(database)
    consumer = Consumer(snapshots, database)
    snapshots.add([Collection("t")], "s")
    while len(consumer.read) < chance.randint(1, 15):
        consumer.look()
        reader.work()
    stored = chance.randint(1, len(consumer.read))
    kept = consumer.read[:stored]
    snapshots, reader, _ = started(database)
    again = Consumer(snapshots, database)
    snapshots.state = IncrementalState((Collection("t", after=(kept[-1],), until=(19,)),), "s")
    snapshots.state = IncrementalState.of(snapshots.state.to_offset())
    while snapshots.state.is_running:
        again.look()
        reader.work()
    assert kept + again.read == list(range(20))


def test_notifications_tell_the_course() -> None:
    database = Database({1: 1, 2: 2, 3: 3, 4: 4})
    snapshots, reader, told = started(database)
    consumer = Consumer(snapshots, database)
    snapshots.add([Collection("t")], "sig-1")
    while snapshots.state.is_running:
        consumer.look()
        reader.work()
    assert [(each.id, each.type) for each in told] == [
        ("sig-1", kind)
        for kind in ("STARTED", "DATA_COLLECTIONS_RESOLVED", "IN_PROGRESS", "IN_PROGRESS", "TABLE_SCAN_COMPLETED")
    ] + [("sig-1", "COMPLETED")]
    assert told[2].additional_data == {
        "current_collection_in_progress": "t",
        "data_collections": "t",
        "last_processed_key": "3",
        "maximum_key": "4",
        "rows_scanned": "3",
        "chunk_index": "1",
        "connector_name": "srv",
    }
    assert (told[4].additional_data["total_rows_scanned"], told[4].additional_data["status"]) == ("4", "SUCCEEDED")
    assert {each.aggregate_type for each in told} == {"Incremental Snapshot"}


def test_a_paused_snapshot_reads_nothing_until_it_is_resumed_and_a_stopped_one_never() -> None:
    database = Database(dict.fromkeys(range(10), 0))
    snapshots, reader, told = started(database)
    consumer = Consumer(snapshots, database)
    snapshots.add([Collection("t"), Collection("u")], "s")
    consumer.look()
    reader.work()
    snapshots.pause()
    for _ in range(5):
        consumer.look()
        reader.work()
    assert consumer.read == [0, 1, 2]
    assert IncrementalState.of(snapshots.state.to_offset()).paused
    snapshots.resume()
    consumer.look()
    assert snapshots.stop(lambda table: table == "t") == ["t"]
    assert [each.table for each in snapshots.state.collections] == ["u"]
    assert snapshots.stop(lambda _: True) == ["u"]
    reader.work()
    consumer.look()
    assert (consumer.read, snapshots.state.is_running) == ([0, 1, 2], False)
    assert [each.type for each in told if each.type != "IN_PROGRESS"][2:] == [
        "PAUSED",
        "RESUMED",
        "TABLE_SCAN_COMPLETED",
        "TABLE_SCAN_COMPLETED",
        "ABORTED",
    ]


def test_a_table_that_cannot_be_read_is_left_out_and_a_passing_error_is_tried_again() -> None:
    database = Database({1: 1})
    snapshots, reader, told = started(database)
    consumer = Consumer(snapshots, database)
    snapshots.add([Collection("bad"), Collection("t")], "s")
    reader.fails = [RetriableError("busy"), ConnectError("It has no key.")]
    while snapshots.state.is_running:
        consumer.look()
        reader.work()
    assert consumer.read == [1]
    statuses = [each.additional_data.get("status") for each in told if each.type == "TABLE_SCAN_COMPLETED"]
    assert statuses == ["NO_PRIMARY_KEY", "SUCCEEDED"]


def test_more_changes_than_can_be_remembered_have_the_chunk_read_again() -> None:
    database = Database(dict.fromkeys(range(3), 0))
    snapshots, reader, _ = started(database)
    consumer = Consumer(snapshots, database)
    snapshots.add([Collection("t")], "s")
    consumer.look()
    snapshots.truncated(0)
    reader.work()
    consumer.look()
    assert consumer.read == []
    while snapshots.state.is_running:
        reader.work()
        consumer.look()
    assert consumer.read == [0, 1, 2]


KEYS: list[tuple[Hashable, ...]] = [(1,), (5_000_000_000, "a"), ("é\0😀", True, 1.5, b"\0\1", None)]


@pytest.mark.parametrize("key", KEYS)
def test_states_survive_the_offset(key: tuple[Any, ...]) -> None:
    state = IncrementalState(
        (
            Collection("public.t", "id > 5", "", key, key),
            Collection("public.u", "", "code", key, None),
        ),
        "s",
        paused=True,
        signal_offset=7,
    )
    assert IncrementalState.of(state.to_offset()) == state
    assert IncrementalState.of(IncrementalState(signal_offset=3).to_offset()) == IncrementalState(signal_offset=3)


def test_a_state_of_debeziums_is_taken_over() -> None:
    # What Java 17 serializes for new Object[] {1, 2}.
    one_and_two = (
        "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c020000787000000002737200116a6176612e6c61"
        "6e672e496e746567657212e2a0a4f781873802000149000576616c7565787200106a6176612e6c616e672e4e756d62657286ac951d0b94"
        "e08b0200007870000000017371007e000200000002"
    )
    offset = {
        "incremental_snapshot_collections": '[{"incremental_snapshot_collections_id":"public.t",'
        '"incremental_snapshot_collections_additional_condition":null,'
        '"incremental_snapshot_collections_surrogate_key":null}]',
        "incremental_snapshot_correlation_id": "sig-1",
        "incremental_snapshot_maximum_key": one_and_two,
        "incremental_snapshot_primary_key": "aced000570",
    }
    state = IncrementalState.of(offset)
    assert state == IncrementalState((Collection("public.t", until=(1, 2)),), "sig-1")
    assert state.to_offset()["incremental_snapshot_maximum_key"] == one_and_two


@pytest.mark.parametrize("text", ["zz", "aced0005", "aced000575", "[]", "aced000573720001"])
def test_a_state_that_cannot_be_read_is_told_with_the_remedy(text: str) -> None:
    offset = {"incremental_snapshot_collections": '[{"incremental_snapshot_collections_id":"t"}]'}
    with pytest.raises(ConnectError, match="Delete the keys that begin with incremental_snapshot"):
        IncrementalState.of(offset | {"incremental_snapshot_primary_key": text})
    with pytest.raises(ConnectError, match="Delete the keys that begin with incremental_snapshot"):
        IncrementalState.of({"incremental_snapshot_collections": "{"})


def test_rows_wait_until_the_stream_has_passed_what_they_see() -> None:
    database = Database({1: 0, 2: 0})
    snapshots, reader, _ = started(database)
    consumer = Consumer(snapshots, database)
    for value in range(1, 4):
        database.commit({1: value})
        database.show()
    snapshots.add([Collection("t")], "s")
    consumer.look()
    reader.work()
    for _ in range(2):
        consumer.stream()
        consumer.look()
    assert (consumer.read, consumer.state) == ([], {1: 2})
    assert snapshots.waits_for_position
    consumer.stream()
    consumer.look()
    assert (consumer.read, consumer.state) == ([1, 2], {1: 3, 2: 0})


def test_blocking_snapshots_are_kept_in_offsets_until_nothing_is_left_of_them() -> None:
    database = Database({1: 1})
    snapshots, _, _ = started(database)
    range_of_keys = Collection("t", "n > 3", after=(1, "a"), until=(9, "z"))
    snapshots.ask_blocking("s1", [Collection("u"), Collection("t", "n > 3")])
    snapshots.ask_blocking("s2", [Collection("v")])
    snapshots.leave_of_blocking([range_of_keys])
    kept = IncrementalState.of(snapshots.state.to_offset())
    assert kept.blocking == (BlockingRequest("s1", (range_of_keys,)), BlockingRequest("s2", (Collection("v"),)))
    assert not kept.is_running
    snapshots.leave_of_blocking([])
    assert snapshots.blocking == BlockingRequest("s2", (Collection("v"),))
    snapshots.leave_of_blocking([])
    assert (snapshots.blocking, snapshots.state.to_offset()) == (None, {})
