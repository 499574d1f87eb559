"""How source offsets are read and written for the tasks of a worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from worker.messages.messages import CommitOffsets, OffsetsCommitted, OffsetsRead, ReadOffsets
from worker.stores.offset.service import OffsetService
from worker.stores.offset.store import OffsetKey, OffsetStore, offset_key

DEADLINE = 10.0


class Kept(OffsetStore):
    """Keeps offsets in memory, and counts how often it is asked."""

    def __init__(self) -> None:
        self.values: dict[OffsetKey, bytes | None] = {}
        self.looks = 0
        self.fails = False

    def get(self, keys: Sequence[OffsetKey]) -> list[bytes | None]:
        self.looks += 1
        if self.fails:
            raise OSError("no broker")
        return [self.values.get(key) for key in keys]

    def put(self, values: Mapping[OffsetKey, bytes | None]) -> None:
        self.values |= values

    def items(self) -> Mapping[OffsetKey, bytes]:
        return {key: value for key, value in self.values.items() if value is not None}


@pytest.fixture
def store() -> Kept:
    return Kept()


@pytest.fixture
def service(store: Kept) -> Iterator[OffsetService]:
    """It is not started yet: what is asked waits."""
    service = OffsetService(store)
    yield service
    service.close()


def test_what_many_tasks_ask_at_once_is_read_at_once(service: OffsetService, store: Kept) -> None:
    """After what was to be written by then, and each of them is told its own."""
    kept = service.submit(CommitOffsets(0, [({"f": 3}, {"at": 30}), ({"f": 4}, {"at": 40})]), "c")
    asked = [service.submit(ReadOffsets(number, [{"f": number}, {"f": number + 1}]), "c") for number in range(500)]
    other = service.submit(ReadOffsets(7, [{"f": 3}]), "other")
    service.start()
    assert kept.result(DEADLINE) == OffsetsCommitted(0, None)
    answers = [answer.result(DEADLINE) for answer in asked]
    assert answers[2:5] == [
        OffsetsRead(2, [None, {"at": 30}], None),
        OffsetsRead(3, [{"at": 30}, {"at": 40}], None),
        OffsetsRead(4, [{"at": 40}, None], None),
    ]
    assert all(answer == OffsetsRead(number, [None, None], None) for number, answer in enumerate(answers[5:], 5))
    assert other.result(DEADLINE) == OffsetsRead(7, [None], None)
    assert store.looks == 1


def test_who_cannot_be_answered_is_told_and_the_others_are_answered(service: OffsetService, store: Kept) -> None:
    store.values[offset_key("c", {"f": 1})] = b"{"
    broken, asked = (service.submit(ReadOffsets(number, [{"f": number}]), "c") for number in (1, 2))
    service.start()
    answer = broken.result(DEADLINE)
    assert isinstance(answer, OffsetsRead)
    assert answer.error
    assert asked.result(DEADLINE) == OffsetsRead(2, [None], None)
    store.fails = True
    failed = service.submit(ReadOffsets(3, [{"f": 3}]), "c")
    assert failed.result(DEADLINE) == OffsetsRead(3, [], "no broker")
