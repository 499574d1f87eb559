"""A sink task that is run over records that end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pytest

from connect.config import Config
from connect.data import NO_HEADERS, Constant, SinkBatch, TimestampType, TopicPartition, ValueColumn
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.bounded_sink import BoundedSink, GoesBackError
from connect.internals.chain.raw_records import ConsumedBatch
from connect.internals.chain.sink_context import SinkContext
from connect.internals.chain.tolerance import ErrorPolicy, StopRequested, Tolerance
from connect.sink import SinkTask

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Nobody:
    """Publishes nothing."""

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        raise AssertionError(topic)

    def flush(self) -> None: ...


class Recording(SinkTask[Config]):
    """Keeps what it is given, and does what it is told before that."""

    def start(self) -> None:
        self.given: list[tuple[int, list[int]]] = []
        self.calls: list[str] = []
        self.on_open: Callable[[Collection[TopicPartition]], None] = lambda _: None
        self.on_put: Callable[[SinkBatch], None] = lambda _: None
        self.on_flush: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int] | None] = lambda at: at

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(f"open {named(partitions)}")
        self.on_open(partitions)

    def put(self, records: SinkBatch) -> None:
        self.calls.append(f"put {len(records)}")
        self.on_put(records)
        for partition, offset in zip(records.original_partitions, records.original_offsets, strict=True):
            self.given.append((partition, [offset]))

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Any:
        self.calls.append("flush")
        return self.on_flush(offsets)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(f"close {named(partitions)}")

    @property
    def offsets(self) -> list[int]:
        return [offset for _, (offset,) in self.given]


def named(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{number}" for topic, number in partitions)


class Run:
    """A task, what it asks of its runtime, and the run of both."""

    def __init__(
        self, firsts: Mapping[TopicPartition, int], settled: Collection[TopicPartition] = (), patience: float = 60.0
    ) -> None:
        self.waits: list[float] = []
        self.stops = False
        tolerance = Tolerance(ErrorPolicy(), [], self.wait)
        self.context = SinkContext(tolerance, "Recording", Nobody(), self.wait, reports=False)
        self.task = Recording(Config(), self.context)
        self.task.start()
        self.sink = BoundedSink(self.task, self.context, unchanged, firsts, settled, patience=patience)

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return not self.stops


def unchanged(batch: ConsumedBatch) -> list[SinkBatch]:
    """No converters and no transformations."""
    size = len(batch)
    headers = Constant(NO_HEADERS, size)
    kinds, keys, values = batch.timestamp_types, ValueColumn(batch.keys), ValueColumn(batch.values)
    places = batch.partitions, batch.timestamps, headers, batch.offsets, kinds
    return [SinkBatch(batch.topic, keys, values, *places, batch.topic, batch.partitions, batch.offsets)]


def records(offsets: Sequence[int], partition: int = 0) -> ConsumedBatch:
    size = len(offsets)
    kinds = Constant(TimestampType.CREATE_TIME, size)
    nothing: Constant[None] = Constant(None, size)
    return ConsumedBatch("t", nothing, [b"x"] * size, Constant(partition, size), offsets, nothing, kinds, nothing)


def times(count: int, error: Exception) -> Callable[[object], None]:
    left = [count]

    def fail(_: object) -> None:
        if left[0]:
            left[0] -= 1
            raise error

    return fail


def test_partitions_are_opened_as_they_come_and_everything_is_flushed_once_at_the_end() -> None:
    run = Run({T0: 5, T1: 0})
    run.sink.take(records(range(5, 8)))
    run.sink.take(records(range(8, 10)))
    run.sink.take(records([0, 1, 4], partition=1))
    run.sink.finish()
    run.sink.close()
    assert run.task.calls == ["open t-0", "put 3", "put 2", "open t-1", "put 3", "flush", "close t-0, t-1"]
    assert run.sink.flushed == {T0: 10, T1: 5}
    assert run.sink.records == 8


def test_a_batch_is_put_again_for_as_long_as_the_task_asks() -> None:
    run = Run({T0: 0})
    run.task.on_put = times(2, RetriableError("later", retry_after=7.0))
    run.sink.take(records(range(3)))
    assert run.task.offsets == [0, 1, 2]
    assert run.waits == [7.0, 7.0]
    run.task.on_put = times(1, RetriableError("later"))
    run.context.timeout(3.0)
    run.sink.take(records([3]))
    run.task.on_put = times(1, RetriableError("later"))
    run.sink.take(records([4]))
    assert run.waits[2:] == [3.0, 1.0]


def test_a_task_that_answers_with_no_offsets_is_told_what_to_return() -> None:
    run = Run({T0: 0})
    answer: Any = "all"
    run.task.on_flush = lambda at: answer
    run.sink.take(records([0]))
    with pytest.raises(ConnectError, match="returned a value of type str; it must return the offsets to commit"):
        run.sink.finish()


def test_waiting_ends_when_the_task_is_to_stop() -> None:
    run = Run({T0: 0})
    run.stops = True
    run.task.on_put = times(1, RetriableError("later"))
    with pytest.raises(StopRequested):
        run.sink.take(records([0]))


def test_records_below_the_offsets_of_the_target_are_left_out() -> None:
    run = Run({T0: 0})
    run.task.on_open = lambda partitions: run.context.offset(dict.fromkeys(partitions, 4))
    run.sink.take(records(range(3)))
    run.sink.take(records(range(3, 6)))
    run.sink.finish()
    assert run.task.offsets == [4, 5]
    assert run.sink.flushed == {T0: 6}


def test_a_task_that_goes_back_has_to_be_given_a_range_from_there() -> None:
    run = Run({T0: 10})
    run.task.on_open = lambda _: run.context.offset({T0: 4})
    with pytest.raises(GoesBackError, match="The task asks for records again: t-0 from 4") as told:
        run.sink.take(records([10]))
    assert told.value.offsets == {T0: 4}
    assert run.task.offsets == []


def test_of_a_settled_partition_an_earlier_offset_of_the_target_counts_for_nothing() -> None:
    run = Run({T0: 10}, settled=[T0])
    run.task.on_open = lambda _: run.context.offset({T0: 4})
    run.sink.take(records([10]))
    assert run.task.offsets == [10]
    with pytest.raises(GoesBackError):
        run.context.offset({T0: 10})
        run.sink.take(records([11]))


def test_a_partition_that_is_paused_waits_until_it_is_resumed() -> None:
    run = Run({T0: 0})
    run.sink.take(records([0]))
    run.context.pause(T0)
    seen: list[int] = []

    def resume_at_third(batch: SinkBatch) -> None:
        seen.append(len(batch))
        if len(seen) == 3:
            run.context.resume(T0)

    run.task.on_put = resume_at_third
    run.sink.take(records([1]))
    assert seen == [0, 0, 0, 1]
    assert run.task.offsets == [0, 1]


def test_a_commit_that_is_requested_is_a_flush() -> None:
    run = Run({T0: 0})
    run.task.on_put = lambda _: run.context.request_commit()
    run.sink.take(records([0]))
    assert run.task.calls == ["open t-0", "put 1", "flush"]
    assert run.sink.flushed == {T0: 1}


def test_a_flush_that_fails_has_all_records_put_again() -> None:
    run = Run({T0: 0})
    run.sink.take(records([0]))
    run.task.on_flush = times(1, RetriableError("the target is away"))
    with pytest.raises(RetriableError, match="the target is away"):
        run.sink.finish()
    assert run.sink.flushed == {}


def test_an_error_of_flush_that_is_not_retriable_is_final() -> None:
    """It would come again with each load, and a second flush that finds nothing to do proves nothing."""
    run = Run({T0: 0})
    run.sink.take(records([0]))
    run.task.on_flush = times(1, ValueError("the value is too long"))
    with pytest.raises(ValueError, match="the value is too long"):
        run.sink.finish()
    run.sink.flush()
    assert run.sink.flushed == {}


def test_the_end_waits_for_a_task_that_tells_by_itself_what_is_durable() -> None:
    run = Run({T0: 0})
    answers: list[Mapping[TopicPartition, int] | None] = [None, {}, {T0: 1}, {T0: 3}]
    run.task.on_flush = lambda _: answers.pop(0)
    run.sink.take(records(range(3)))
    run.sink.finish()
    assert run.sink.flushed == {T0: 3}
    assert run.task.calls == ["open t-0", "put 3", *["flush", "put 0"] * 3, "flush"]


def test_a_task_that_never_lets_go_is_told_of() -> None:
    run = Run({T0: 0}, patience=0.0)
    run.task.on_flush = lambda _: {}
    run.sink.take(records([0]))
    with pytest.raises(ConnectError, match=r"holds back records of t-0 .* engine=worker"):
        run.sink.finish()


def test_a_task_without_records_is_not_asked_for_anything() -> None:
    run = Run({T0: 0})
    run.sink.finish()
    run.sink.close()
    assert run.task.calls == []


def test_a_task_that_waits_for_time_to_pass_is_called_before_the_end() -> None:
    run = Run({T0: 0})
    run.task.on_put = lambda _: run.context.timeout(0.1)
    run.sink.take(records([0]))
    run.sink.finish()
    assert run.task.calls == ["open t-0", "put 1", "put 0", "flush"]
    assert run.waits == []
