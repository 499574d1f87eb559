"""What a mirror writes down of where its records lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest

from connect.data import TopicPartition
from connectors.mirror.records import OffsetSync
from connectors.mirror.run_records import StoredRuns
from connectors.mirror.runs import Generation, Run
from connectors.mirror.source.journal import JournalTopics, OffsetJournal, in_step, is_other

ONE, OTHER = UUID(int=1), UUID(int=2)
PLACE = TopicPartition("t", 3)
TOPICS = JournalTopics("syncs", "runs")


class Written:
    """Takes records in the place of a producer; while it is ``full`` it takes none."""

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes, bytes | None]] = []
        self.full = False

    def produce(
        self, topic: str, value: bytes | None, key: bytes, partition: int, on_delivery: Callable[..., None]
    ) -> None:
        assert partition == 0
        if self.full:
            raise BufferError
        self.records.append((topic, key, value))
        on_delivery(None, None)

    def poll(self, seconds: float) -> int:
        return int(seconds)

    def flush(self, seconds: float) -> int:
        return 0 * int(seconds)

    def syncs(self) -> list[tuple[int, int]]:
        found = [OffsetSync.decode(key, value) for topic, key, value in self.records if topic == "syncs"]
        return [(sync.upstream, sync.downstream) for sync in found]

    def stored(self) -> StoredRuns:
        stored = StoredRuns()
        for topic, key, value in self.records:
            if topic == "runs":
                stored.read(key, value)
        return stored


@pytest.mark.parametrize(
    ("upstream", "downstream", "stretches"),
    [
        ([], [], []),
        ([5, 6, 7], [0, 1, 2], [(5, 0, 3)]),
        ([5, 6, 8], [0, 1, 2], [(5, 0, 2), (8, 2, 1)]),
        ([5, 6, 7], [0, 2, 3], [(5, 0, 1), (6, 2, 2)]),
        ([5, 6, 7], [0, None, 1], [(5, 0, 1), (7, 1, 1)]),
        ([5, 6, 7], [2, 1, 4], [(5, 2, 1), (6, 1, 1), (7, 4, 1)]),
        ([5, 6, 7, 8], [0, 2, 1, 3], [(5, 0, 1), (6, 2, 1), (7, 1, 1), (8, 3, 1)]),
        ([5, 6], [None, None], []),
    ],
)
def test_stretches_are_those_in_which_both_go_on_by_one(
    upstream: Sequence[int], downstream: Sequence[int | None], stretches: list[tuple[int, int, int]]
) -> None:
    assert list(in_step(upstream, downstream)) == stretches


@pytest.mark.parametrize(("stored", "now", "other"), [(ONE, OTHER, True), (ONE, ONE, False), (None, ONE, False)])
def test_a_topic_is_another_only_if_both_ids_are_known(stored: UUID | None, now: UUID | None, other: bool) -> None:
    assert is_other(stored, now) is other
    assert is_other(now, stored) is other


def _journal(written: Any) -> OffsetJournal:
    return OffsetJournal(written, TOPICS, 100)


def test_a_journal_goes_on_where_another_has_ended() -> None:
    written = Written()
    first = _journal(written)
    first.open(PLACE, StoredRuns(), Generation(ONE, None)).resume(0)
    first.acknowledged(PLACE, range(250), list(range(250)))
    assert written.syncs() == [(0, 0), (101, 101), (202, 202)]
    first.close()
    assert written.syncs()[3:] == [(249, 249)]
    # The topic of the target is known only now: it is the same one.
    second = _journal(written)
    second.open(PLACE, written.stored(), Generation(ONE, OTHER)).resume(250)
    second.acknowledged(PLACE, [250, 260], [250, 251])
    second.close()
    found = written.stored().runs(*PLACE)
    assert found is not None
    assert (found.generation, found.runs) == (Generation(ONE, OTHER), (Run(0, 0, 251, 0), Run(260, 251, 1, 251)))
    # Both topics are others.
    third = _journal(written)
    assert third.open(PLACE, written.stored(), Generation(OTHER, ONE)).runs == ()


def test_what_has_found_no_room_is_written_later() -> None:
    written = Written()
    journal = _journal(written)
    journal.open(PLACE, StoredRuns(), Generation()).resume(0)
    written.full = True
    journal.acknowledged(PLACE, [0, 1], [0, 1])
    assert written.records == []
    written.full = False
    journal.close()
    found = written.stored().runs(*PLACE)
    assert found is not None
    assert found.runs == (Run(0, 0, 2, 0),)


def test_nothing_is_said_of_what_surrounds_a_record_whose_place_is_not_known() -> None:
    written = Written()
    journal = _journal(written)
    runs = journal.open(PLACE, StoredRuns(), Generation())
    journal.acknowledged(PLACE, [0, 1, 2, 3], [0, None, 1, None])
    journal.acknowledged(PLACE, [4], [2])
    assert runs.runs == (Run(0, 0, 1, 0), Run(2, 1, 1, 2), Run(4, 2, 1, 4))
