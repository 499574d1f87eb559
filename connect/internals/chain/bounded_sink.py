"""A sink task that runs over a finite number of records, as in the executors of an engine such as Spark.

The task is run as a worker would run it, in one thread: partitions are opened when their first records arrive, a batch
is put again as long as the task asks for it, and records count as durable only after a flush (invariant I2). The one
thing that is impossible without a topic is to read a record again: a task that asks for that ends with
:class:`GoesBackError`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from connect.data import Constant, SinkBatch, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.raw_records import ConsumedBatch, next_offsets
from connect.internals.chain.sink_context import SinkContext, durable_offsets
from connect.internals.chain.tolerance import StopRequested
from connect.sink import SinkTask

__all__ = ["BoundedSink", "GoesBackError"]

logger = logging.getLogger(__name__)
_RETRY: Final = 1.0
_STEP: Final = 0.5
_PATIENCE_SECONDS: Final = 60.0


class GoesBackError(RetriableError):
    """The task wants to continue from offsets that have already been passed: the records have to be read again."""

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        places = ", ".join(f"{topic}-{number} from {at}" for (topic, number), at in sorted(offsets.items()))
        super().__init__(f"The task asks for records again: {places}")
        self.offsets = dict(offsets)


class BoundedSink:
    """Runs a sink task, already started, over the records of some ranges.

    ``process`` is the chain in front of the task. ``firsts`` are the first offsets of the ranges; a partition in
    ``settled`` continues from its first offset even if its target has an earlier one. While a task holds records back,
    it is asked to release them every ``interval`` seconds, and for up to ``patience`` seconds at the end.
    """

    def __init__(
        self,
        task: SinkTask[Any],
        context: SinkContext,
        process: Callable[[ConsumedBatch], list[SinkBatch]],
        firsts: Mapping[TopicPartition, int],
        settled: Collection[TopicPartition] = (),
        *,
        interval: float = 60.0,
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        self._task = task
        self._context = context
        self._process = process
        self._firsts = firsts
        self._settled = settled
        self._interval = interval
        self._patience = patience
        self._starts: dict[TopicPartition, int] = {}
        self._reached: dict[TopicPartition, int] = {}
        self._delivered: dict[TopicPartition, int] = {}
        self._flush_due = time.monotonic() + interval
        self._has_failed_to_flush = False
        self.flushed: dict[TopicPartition, int] = {}
        """The next offset of each partition after the records that are durable."""
        self.records = 0
        """The number of records that were put."""
        self.seconds = 0.0
        """The seconds that the task spent on them in ``put`` and ``flush``."""

    def take(self, consumed: ConsumedBatch) -> None:
        """Put records that follow those of earlier calls."""
        ends = next_offsets(consumed)
        self._open([tp for tp in ends if tp not in self._context.assignment])
        self._context.consumed = consumed
        for batch in self._process(consumed):
            self._put(batch)
        self._delivered |= ends
        self._context.consumed = None
        if self._context.commit_requested or time.monotonic() >= self._flush_due:
            self.flush()

    def finish(self) -> None:
        """Make the task write and flush everything it was given.

        If the task has asked to be called again, it is called before it is flushed. Raises
        :class:`~connect.errors.ConnectError` if it still holds records back although no more will come.
        """
        if self._delivered and self._context.asked_timeout() is not None:
            self._try(SinkBatch.empty(min(self._delivered).topic))
            self._rewind()
        self.flush()
        deadline, before = time.monotonic() + self._patience, self.flushed
        while late := [tp for tp, end in self._delivered.items() if self.flushed.get(tp, -1) < end]:
            if self.flushed != before:
                deadline, before = time.monotonic() + self._patience, self.flushed
            if time.monotonic() >= deadline:
                topic, number = late[0]
                raise ConnectError(
                    f"The task holds back records of {topic}-{number} even after a flush: it needs a stream that does "
                    "not end. Run the connector with engine=worker."
                )
            self._pass_time(late[0])
            self.flush()

    def flush(self) -> None:
        """Make the task flush what it was given so far, and store its durable offsets in ``flushed``.

        After a :class:`~connect.errors.RetriableError` everything since the last flush must be put again. Any other
        error of the task is final: it would come again.
        """
        self._flush_due, self._context.commit_requested = time.monotonic() + self._interval, False
        if not self._delivered or self._has_failed_to_flush:
            return
        begun = time.monotonic()
        # A task that has failed may have dropped what it held: that it has nothing left to flush proves nothing.
        self._has_failed_to_flush = True
        try:
            answer = self._task.pre_commit(dict(self._delivered))
        finally:
            self.seconds += time.monotonic() - begun
        durable = durable_offsets(self._task, answer)
        self._context.flush_published()
        self._has_failed_to_flush = False
        known = {tp: min(offset, self._delivered[tp]) for tp, offset in durable.items() if tp in self._delivered}
        self.flushed = {**self.flushed, **known}
        self._rewind()

    def close(self) -> None:
        """Close the partitions."""
        if self._context.assignment:
            self._task.close(sorted(self._context.assignment))
            self._context.assignment.clear()

    # -- the wishes of the task ----------------------------------------------------------------------------------

    def _open(self, partitions: Collection[TopicPartition]) -> None:
        if not partitions:
            return
        self._context.assignment |= set(partitions)
        self._reached |= {tp: self._firsts[tp] for tp in partitions}
        self._task.open(partitions)
        asked = self._context.rewinds
        late = [tp for tp, offset in asked.items() if tp in self._settled and offset < self._firsts.get(tp, 0)]
        self._context.rewinds = {tp: offset for tp, offset in asked.items() if tp not in late}
        self._rewind()

    def _put(self, batch: SinkBatch) -> None:
        batch = self._wanted(batch)
        while self._context.paused and (paused := self._context.paused.intersection(batch.origins)):
            self._pass_time(min(paused))
            self.flush()
        while len(batch) and not self._try(batch):
            batch = self._wanted(batch)
        if len(batch):
            self.records += len(batch)
            for tp, end in _ends(batch).items():
                self._reached[tp] = max(self._reached[tp], end)
        self._rewind()

    def _try(self, batch: SinkBatch) -> bool:
        """Put a batch. Return ``False``, after a pause, if the task wants the same batch again."""
        begun, again = time.monotonic(), 0.0
        try:
            self._task.put(batch)
        except RetriableError as error:
            logger.warning("The sink asked to be given the same records again later: %s", error)
            again = error.retry_after or self._context.asked_timeout() or _RETRY
        finally:
            self.seconds += time.monotonic() - begun
        if again:
            self._wait(again)
            self._rewind()
        return not again

    def _pass_time(self, tp: TopicPartition) -> None:
        """Wait for a moment and call the task with an empty batch."""
        self._wait(min(self._context.asked_timeout() or _STEP, _STEP))
        self._try(SinkBatch.empty(tp.topic))
        self._rewind()

    def _wait(self, seconds: float) -> None:
        if not self._context.wait(seconds):
            raise StopRequested

    def _wanted(self, batch: SinkBatch) -> SinkBatch:
        """Return the records of a batch that the task has not asked to skip."""
        starts = self._starts
        if not starts or not len(batch):
            return batch
        pairs = zip(batch.origins, batch.original_offsets, strict=True)
        kept = [place for place, (origin, offset) in enumerate(pairs) if offset >= starts.get(origin, 0)]
        return batch if len(kept) == len(batch) else batch.take(kept)

    def _rewind(self) -> None:
        """Skip the records that the task asked to skip."""
        rewinds, self._context.rewinds = self._context.rewinds, {}
        back = {tp: offset for tp, offset in rewinds.items() if offset < self._reached.get(tp, 0)}
        if back:
            raise GoesBackError(back)
        self._starts |= rewinds


def _ends(batch: SinkBatch) -> dict[TopicPartition, int]:
    """Return the offset after the last record of each partition."""
    partitions = batch.original_partitions
    if isinstance(partitions, Constant):
        return {TopicPartition(batch.original_topic, partitions.value): max(batch.original_offsets) + 1}
    ends: dict[int, int] = {}
    for partition, offset in zip(partitions, batch.original_offsets, strict=True):
        if offset >= ends.get(partition, 0):
            ends[partition] = offset + 1
    return {TopicPartition(batch.original_topic, partition): end for partition, end in ends.items()}
