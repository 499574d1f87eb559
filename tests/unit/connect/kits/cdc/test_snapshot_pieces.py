"""Pieces of a snapshot: markers, what is left after each record, and readers that fail, wait and are ended."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from connect.kits.cdc.incremental_state import Collection, IncrementalState
from connect.kits.cdc.snapshots.pieces import MarkedRow, Piece, PieceRows, Progress
from connect.kits.cdc.snapshots.readers import SnapshotReaders
from connect.kits.cdc.snapshots.run import rows_of_table
from equipment.waiting import wait_until


def keyed(table: str, after: int | None = None, until: int = 9) -> Piece:
    return Piece(table, Collection(table, after=None if after is None else (after,), until=(until,)))


def rows(piece: int, *keys: int, is_last: bool = False) -> PieceRows:
    return PieceRows(piece, [((key,), (key,)) for key in keys], is_last)


def markers(sent: list[MarkedRow]) -> list[tuple[str, int, str]]:
    return [(row.table, row.raw[0], row.marker) for row in sent]


def test_markers_are_those_of_debezium() -> None:
    progress = Progress([keyed("full"), keyed("nopk"), keyed("orders"), keyed("two")])
    sent = progress.take(rows(0, 1, is_last=True))
    sent += progress.take(rows(1, 1, is_last=True))
    sent += progress.take(rows(2, 1, 2))
    sent += progress.take(rows(2, 3, is_last=True))
    sent += progress.take(rows(3, 1, is_last=True))
    assert markers(sent) == [
        ("full", 1, "first"),
        ("nopk", 1, "last_in_data_collection"),
        ("orders", 1, "first_in_data_collection"),
        ("orders", 2, "true"),
        ("orders", 3, "last_in_data_collection"),
        ("two", 1, "last"),
    ]


@pytest.mark.parametrize("empty_at_the_end", [False, True])
def test_one_row_is_first_last_of_all_whatever_is_empty(empty_at_the_end: bool) -> None:
    progress = Progress([keyed("a"), keyed("b")])
    full, empty = (0, 1) if empty_at_the_end else (1, 0)
    sent = []
    for piece in range(2):
        sent += progress.take(rows(piece, *([5] if piece == full else []), is_last=True))
    assert [row.marker for row in sent] == ["last"]
    assert progress.is_read
    assert (progress.tables_left, progress.state()) == (0, None)
    assert progress.rows[f"{'ab'[empty]}"] == 0


def test_what_is_left_is_that_after_the_rows_to_be_sent() -> None:
    progress = Progress([keyed("a", None, 5), keyed("a", 5, 9), keyed("b")])
    progress.take(rows(0, 1, 2, 3))
    assert progress.state() == IncrementalState(
        (Collection("a", after=(2,), until=(5,)), Collection("a", after=(5,), until=(9,)), Collection("b", until=(9,))),
        "initial-snapshot",
    )
    progress.take(rows(1, 6, is_last=True))
    state = progress.state()
    assert state is not None
    assert [(each.after, each.until) for each in state.collections] == [((3,), (5,)), ((5,), (9,)), (None, (9,))]
    progress.take(rows(0, 4, is_last=True))
    state = progress.state()
    assert state is not None
    assert [(each.table, each.after) for each in state.collections] == [("a", (3,)), ("b", None)]


def test_nothing_can_be_told_while_a_table_without_key_is_read() -> None:
    progress = Progress([Piece("nokey", None), keyed("a")])
    progress.take(PieceRows(0, [((1,), None), ((2,), None)], is_last=False))
    progress.take(rows(1, 1, 2))
    assert progress.state() is None
    progress.take(PieceRows(0, [], is_last=True))
    assert progress.state() is None, "its last row is still held back"
    progress.take(rows(1, 3, is_last=True))
    assert progress.is_read


@pytest.mark.parametrize("seed", range(30))
def test_what_was_sent_and_what_is_left_make_the_whole_at_any_moment(seed: int) -> None:
    chance = random.Random(seed)
    pieces = [keyed("a", None, 9), keyed("a", 9, 19), keyed("b", None, 9), keyed("c", None, 9)]
    left = {
        number: list(range(10 * (number % 2 if number < 2 else 0), 10 * (number % 2 if number < 2 else 0) + 10))
        for number in range(4)
    }
    progress = Progress(pieces)
    sent: list[MarkedRow] = []
    while left:
        piece = chance.choice(list(left))
        count = chance.randint(0, 4)
        taken, left[piece] = left[piece][:count], left[piece][count:]
        is_last = not left[piece]
        if is_last:
            del left[piece]
        sent += progress.take(rows(piece, *taken, is_last=is_last))
        state = progress.state()
        rest = (
            []
            if state is None
            else [
                (each.table, key)
                for each in state.collections
                for key in range(20)
                if (each.after or (-1,))[0] < key <= (each.until or (0,))[0]
            ]
        )
        whole = [("a", key) for key in range(20)] + [(table, key) for table in "bc" for key in range(10)]
        assert sorted([(row.table, row.raw[0]) for row in sent] + rest) == sorted(whole)
    assert [row.marker for row in sent].count("first") == [row.marker for row in sent].count("last") == 1
    assert sent[-1].marker == "last"


class Reader:
    """Reads numbers, and fails at piece 3."""

    opened = 0
    closed = 0

    def __init__(self) -> None:
        Reader.opened += 1

    def read(self, piece: int) -> Iterator[tuple[tuple[Any, ...], None]]:
        if piece == 3:
            raise RuntimeError("gone")
        yield from (((piece, b"x" * 400_000), None) for _ in range(5))

    def cancel(self) -> None:
        pass

    def close(self) -> None:
        Reader.closed += 1


class StuckReader(Reader):
    """Waits for a database that does not answer, until it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.cancelled = threading.Event()

    def read(self, piece: int) -> Iterator[tuple[tuple[Any, ...], None]]:
        assert self.cancelled.wait(30)
        raise RuntimeError("cancelled")
        yield

    def cancel(self) -> None:
        self.cancelled.set()


def test_readers_hand_rows_over_in_bounded_batches_and_tell_failures() -> None:
    woken = threading.Event()
    readers = SnapshotReaders(3, Reader, 2, woken.set)
    found: list[PieceRows] = []
    while sum(each.is_last for each in found) < 3:
        assert woken.wait(30)
        while (taken := readers.take()) is not None:
            found.append(taken)
    readers.close()
    assert max(len(each.rows) for each in found) == 3
    assert sum(len(each.rows) for each in found) == 15
    failing = SnapshotReaders(4, Reader, 2, lambda: None)
    with pytest.raises(RuntimeError, match="gone"):
        while True:
            failing.take()
    failing.close()
    wait_until("the readers are closed", lambda: Reader.opened == Reader.closed)


@pytest.mark.parametrize("kind", [Reader, StuckReader])
def test_readers_can_be_ended_whatever_they_wait_for(kind: type[Reader]) -> None:
    readers = SnapshotReaders(3, kind, 3, lambda: None)
    readers.close()
    wait_until("the readers are closed", lambda: Reader.opened == Reader.closed)


@pytest.mark.parametrize(
    ("estimated", "read", "is_read", "rows"),
    [
        (100, 40, False, 100),
        (100, 140, False, 140),
        (100, 90, True, 90),
        (0, 0, False, 0),
        (0, 5, False, None),
        (-1, 0, False, None),
        (-1, 7, True, 7),
    ],
)
def test_the_rows_of_a_table_are_known_or_not(estimated: int, read: int, is_read: bool, rows: int | None) -> None:
    assert rows_of_table(estimated, read, is_read=is_read) == rows
