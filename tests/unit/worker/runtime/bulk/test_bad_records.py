"""Records that loads leave out: what is written, what was written before, and what ends the task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pytest

from connect.data import TopicPartition
from connect.errors import ConnectError, DataError
from connect.internals.chain.raw_records import RawRecord
from connect.internals.chain.tolerance import ErrorCounts, ErrorPolicy, Failure, Stage, Tolerance
from connect.offset_set import OffsetSet
from worker.runtime.bulk.bad_records import BadRecords
from worker.runtime.dead_letters.loads import OffsetDigest, Position, not_written

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
Bad = Mapping[TopicPartition, OffsetSet]


class Queue:
    """A dead letter queue with transactions of ``size`` records, which a test may have die in one of them."""

    def __init__(self, size: int = 100) -> None:
        self.size = size
        self.written: list[tuple[int, int]] = []
        self.positions: dict[TopicPartition, Position] = {}
        self.dies_after: int | None = None
        self._open: list[tuple[int, int]] = []

    def begin(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Position]:
        self._open = []
        return {tp: self.positions[tp] for tp in partitions if tp in self.positions}

    def report(self, failure: Failure) -> None:
        assert failure.raw is not None
        if self.dies_after is not None and len(self.written) + len(self._open) >= self.dies_after:
            raise SystemExit
        self._open.append((failure.raw.partition, failure.raw.offset))

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    @property
    def is_due(self) -> bool:
        return len(self._open) >= self.size

    def commit(self, positions: Mapping[TopicPartition, Position]) -> None:
        self.written += self._open
        self.positions |= positions if self._open else {}
        self._open = []

    def flush(self) -> None:
        self._open = []


def failures(asked: Bad) -> Iterator[Failure]:
    for (topic, partition), offsets in asked.items():
        for offset in offsets:
            raw = RawRecord(topic, partition, offset, None, "CreateTime", None, b"", ())
            yield Failure(Stage.VALUE_CONVERTER, "c", DataError("bad"), raw=raw)


def load(queue: Queue, bad: Mapping[TopicPartition, Sequence[int]], policy: ErrorPolicy | None = None) -> ErrorCounts:
    counts = ErrorCounts()
    policy = policy or ErrorPolicy(tolerates_errors=True)
    tolerance = Tolerance(policy, [queue], lambda _: True, counts=counts)
    left_out = BadRecords(tolerance, queue, tells=False)  # type: ignore[arg-type]
    left_out.leave_out({tp: OffsetSet.of(offsets) for tp, offsets in bad.items()}, failures)
    return counts


BAD = {T0: [3, 5, 6, 9], T1: [1, 2]}
ALL = [(0, 3), (0, 5), (0, 6), (0, 9), (1, 1), (1, 2)]


def test_all_are_written_with_their_positions() -> None:
    queue = Queue()
    assert load(queue, BAD).total_records_skipped == 6
    assert queue.written == ALL
    assert queue.positions[T0] == Position(3, 10, str(OffsetDigest([3, 5, 6, 9])))


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("died", range(7))
def test_a_load_that_is_made_again_writes_what_was_not_written(size: int, died: int) -> None:
    queue = Queue(size)
    queue.dies_after = died
    try:
        load(queue, BAD)
    except SystemExit:
        assert len(queue.written) <= died
    queue.dies_after = None
    assert load(queue, BAD).total_records_skipped == 6
    assert sorted(queue.written) == ALL
    load(queue, {T0: [11], T1: [4]})
    assert sorted(queue.written) == sorted([*ALL, (0, 11), (1, 4)])


def test_a_load_with_other_bad_records_writes_all_of_its_own() -> None:
    queue = Queue()
    load(queue, {T0: [3, 5]})
    load(queue, {T0: [3, 4, 5]})
    assert queue.written == [(0, 3), (0, 5), (0, 3), (0, 4), (0, 5)]
    load(queue, {T0: [2]})
    assert queue.written[-1] == (0, 2)


def test_a_load_that_goes_further_writes_what_is_beyond() -> None:
    queue = Queue()
    load(queue, {T0: [3, 5]})
    load(queue, {T0: [3, 5, 8]})
    assert queue.written == [(0, 3), (0, 5), (0, 8)]


@pytest.mark.parametrize(("policy", "written"), [(ErrorPolicy(), 1), (ErrorPolicy(True, tolerance_limit=4), 5)])
def test_the_record_that_ends_the_task_is_written_and_once(policy: ErrorPolicy, written: int) -> None:
    queue = Queue()
    for _ in range(3):
        with pytest.raises(ConnectError, match="Tolerance exceeded"):
            load(queue, BAD, policy)
        assert queue.written == ALL[:written]


def test_without_anybody_to_tell_they_are_only_counted() -> None:
    counts = ErrorCounts()
    tolerance = Tolerance(ErrorPolicy(tolerates_errors=True, tolerance_rate=5), [], lambda _: True, counts=counts)
    left_out = BadRecords(tolerance, None, tells=False)
    left_out.leave_out({T0: OffsetSet.of([1, 2, 3])}, lambda asked: pytest.fail(str(asked)))
    assert counts.total_records_skipped == 3
    with pytest.raises(ConnectError, match=r"errors\.tolerance\.rate=5"):
        left_out.leave_out({T0: OffsetSet.of([4, 5, 6])}, lambda asked: pytest.fail(str(asked)))
    left_out.leave_out({}, lambda asked: pytest.fail(str(asked)))


@pytest.mark.parametrize("metadata", [None, "", "somebody's", "x:y"])
def test_what_somebody_else_has_put_there_is_no_position(metadata: str | None) -> None:
    assert Position.read(5, metadata) is None
    assert not_written(OffsetSet.of([1]), Position.read(5, metadata)) == OffsetSet.of([1])


def test_a_position_survives_kafka() -> None:
    position = Position(3, 10, "abc")
    assert Position.read(position.end, position.metadata) == position
