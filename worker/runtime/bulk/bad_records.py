"""Records that a bulk sink's loads leave out: counted, logged and written to the dead letter queue (I4)."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from connect.bulk import FailuresOf
from connect.data import TopicPartition
from connect.errors import ConnectError
from connect.internals.chain.tolerance import Failure, Tolerance
from connect.offset_set import OffsetSet
from worker.runtime.dead_letters.loads import LoadDeadLetters, OffsetDigest, Position, not_written

__all__ = ["BadRecords"]

logger = logging.getLogger(__name__)


class BadRecords:
    """Gives up the bad records of loads, by ``errors.*``.

    ``tells`` is whether each is logged, ``queue`` the dead letter queue. Without either, the errors of single records
    are not needed, and the records are only counted.
    """

    def __init__(self, tolerance: Tolerance, queue: LoadDeadLetters | None, *, tells: bool) -> None:
        self._tolerance = tolerance
        self._queue = queue
        self._tells = tells

    def leave_out(self, bad: Mapping[TopicPartition, OffsetSet], failures: FailuresOf) -> None:
        """See :meth:`connect.bulk.BulkSinkTaskContext.leave_out`."""
        bad = {tp: offsets for tp, offsets in bad.items() if len(offsets)}
        if not bad:
            return
        if self._queue is None:
            self._without_queue(bad, failures)
            return
        positions = self._queue.begin(bad)
        rest = {tp: not_written(offsets, positions.get(tp)) for tp, offsets in bad.items()}
        written = sum(map(len, bad.values())) - sum(map(len, rest.values()))
        if written:
            logger.info("%d dead letters of this load were written by an earlier attempt.", written)
        self._tolerance.leave_out(written)
        self._write(self._queue, _Progress(bad, rest), {tp: left for tp, left in rest.items() if len(left)}, failures)

    def _without_queue(self, bad: Mapping[TopicPartition, OffsetSet], failures: FailuresOf) -> None:
        if not self._tells:
            self._tolerance.leave_out(sum(map(len, bad.values())))
            return
        for failure in failures(bad):
            self._tolerance.give_up(failure)

    def _write(
        self,
        queue: LoadDeadLetters,
        progress: _Progress,
        rest: Mapping[TopicPartition, OffsetSet],
        failures: FailuresOf,
    ) -> None:
        for failure in failures(rest) if rest else ():
            try:
                self._tolerance.give_up(failure)
            except ConnectError:
                if queue.is_open:
                    # The record that ends the task is written to the queue too, and only once, however often the task
                    # is restarted.
                    progress.take(failure)
                    queue.commit(progress.positions)
                raise
            progress.take(failure)
            if queue.is_due:
                queue.commit(progress.positions)
        queue.commit(progress.positions)


class _Progress:
    """How far the bad records of a load are written, by partition."""

    def __init__(self, bad: Mapping[TopicPartition, OffsetSet], rest: Mapping[TopicPartition, OffsetSet]) -> None:
        self.positions: dict[TopicPartition, Position] = {}
        self._firsts: dict[TopicPartition, int] = {}
        self._digests: dict[TopicPartition, OffsetDigest] = {}
        for tp, offsets in bad.items():
            self._firsts[tp] = next(iter(offsets))
            begin = next(iter(rest[tp]), 2**63 - 1)
            self._digests[tp] = OffsetDigest(offsets.between(0, begin))

    def take(self, failure: Failure) -> None:
        assert failure.raw is not None
        tp, offset = TopicPartition(failure.raw.topic, failure.raw.partition), failure.raw.offset
        self._digests[tp].add(offset)
        self.positions[tp] = Position(self._firsts[tp], offset + 1, str(self._digests[tp]))
