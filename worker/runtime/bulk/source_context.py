"""The runtime context of a bulk source task: offsets, topics, and the counts of published records."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from connect.bulk import Progress
from connect.bulk_source import KafkaSettings, ReachedOffsets
from connect.errors import RetriableError
from connect.internals.chain.tolerance import ErrorPolicy, Failure, Tolerance
from connect.internals.crash import crash_point
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.bulk.loads import Loads
from worker.runtime.bulk.transactions import BulkSourceTransactions
from worker.runtime.clients import Clients
from worker.runtime.control import Control
from worker.runtime.metrics import ActiveTopics, TaskMetrics
from worker.runtime.offsets.offsets import OffsetWriter, WorkerOffsetCopy, WorkerOffsetWriter
from worker.runtime.offsets.topic import TopicOffsetWriter
from worker.runtime.source.guarantee import offset_reader
from worker.stores.offset.store import check_offset

__all__ = ["BulkSourceTaskRuntimeContext"]

logger = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 1.0


class BulkSourceTaskRuntimeContext:
    """Gives a bulk source task its part of the runtime; see :class:`connect.bulk_source.BulkSourceTaskContext`.

    Crash point: offsets are stored after Kafka has acknowledged the records; after a kill between the two, those
    records are published again (invariants I1 and I3).
    """

    def __init__(
        self,
        assembly: Assembly,
        control: Control,
        clients: Clients,
        tolerance: Tolerance,
        loads: Loads,
        metrics: TaskMetrics,
        task: int,
    ) -> None:
        self._assembly = assembly
        self._clients = clients
        self._control = control
        self._tolerance = tolerance
        self._loads = loads
        self._metrics = metrics
        self._topics = clients.topic_creator()
        self._limits = clients.batch_limits()
        self._active = ActiveTopics(control.send, enabled=assembly.worker.topic_tracking_enable)
        self._writer = _offset_writer(assembly, control, clients)
        self._patience = assembly.worker.offset_flush_timeout_ms / 1000
        self.connector_name = assembly.config.name
        self.connector_properties: Mapping[str, str] = assembly.effective_props()
        self.producer_settings = KafkaSettings(
            clients.source_producer_java_properties(), clients.source_producer_settings()
        )
        self.error_policy: ErrorPolicy = assembly.config.error_policy
        self.offset_storage_reader = offset_reader(assembly, control, task, self._end_lost)
        self._copy = WorkerOffsetCopy(control).keep if assembly.dedicated_offsets_topic else _not_kept
        self._in_transactions = False

    @cached_property
    def transactions(self) -> BulkSourceTransactions | None:
        """The transactions of the connector; making them fences the former process of the task."""
        if not self._assembly.supports_exactly_once:
            return None
        transactions = BulkSourceTransactions(self._assembly, self._control, self._clients)
        self._in_transactions = True
        return transactions

    def _end_lost(self, partitions: Sequence[int]) -> None:
        if self._in_transactions and self.transactions is not None:
            self.transactions.end_lost(partitions)

    def create_topics(self, topics: Iterable[str]) -> Mapping[str, int | None]:
        """Create missing topics. Return the largest batch that each accepts."""
        limits: dict[str, int | None] = {}
        for topic in topics:
            self._ensure(topic)
            limits[topic] = self._limits.of(topic)
        return limits

    def _ensure(self, topic: str) -> None:
        while True:
            try:
                self._topics.ensure(topic)
            except RetriableError as error:
                logger.warning("Topic %s cannot be looked up yet; trying again: %s", topic, error)
                if not self._control.wait(error.retry_after or _RETRY_SECONDS):
                    raise
            else:
                return

    def published(self, read: int, written: Mapping[str, int]) -> None:
        """Count the records read and written."""
        self._metrics.count("source-record-poll-total", read)
        self._metrics.count("source-record-write-total", sum(written.values()))
        self._active.see(written)

    def give_up(self, failures: Iterable[Failure]) -> None:
        """Report records that are left out, one by one."""
        for failure in failures:
            self._tolerance.give_up(failure)

    def commit(self, offsets: ReachedOffsets) -> None:
        """Make reports durable, then store the offsets, and wait until they are."""
        pairs = _pairs(offsets)
        for partition, offset in pairs:
            check_offset(partition)
            check_offset(offset or {})
        self._tolerance.flush()
        if not pairs:
            return
        crash_point("before-offset-commit")
        begun, timings = time.monotonic(), self._metrics.timings
        if self._in_transactions and self.transactions is not None:
            self.transactions.commit(pairs)
            self._copy(pairs)
        else:
            self._writer.begin(pairs)
            error = self._outcome(begun + self._patience)
            if error is not None:
                timings.not_committed()
                raise RetriableError(f"The source offsets were not stored: {error}")
        timings.committed(time.monotonic() - begun)

    def committed(self, offsets: ReachedOffsets) -> None:
        """Update the worker's copy of the offsets that a slot has stored, if it has one."""
        if offsets:
            self._copy(_pairs(offsets))

    def _outcome(self, deadline: float) -> str | None:
        """Return why the offsets are not stored; ``None`` if they are."""
        while (written := self._writer.outcome()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return f"nothing was heard of them within {self._patience:g} s"
            self._writer.wait(left)
        return written.error

    def progress(self, progress: Progress) -> None:
        """Record the progress of the load."""
        self._loads.tell(progress)

    def wait(self, seconds: float) -> bool:
        """Wait, until the task is stopped or paused at the latest."""
        return self._control.wait(seconds)

    def stopping(self) -> bool:
        """Return whether the task has to stop or pause."""
        return not self._control.poll()

    def close(self) -> None:
        """Release the offset reader."""
        self.offset_storage_reader.close()


def _pairs(offsets: ReachedOffsets) -> messages.OffsetPairs:
    return [(dict(partition), None if offset is None else dict(offset)) for partition, offset in offsets]


def _not_kept(pairs: messages.OffsetPairs) -> None:
    """Do nothing: the worker itself has the offsets."""


def _offset_writer(assembly: Assembly, control: Control, clients: Clients) -> OffsetWriter:
    """Return the writer of the connector's offsets: to the worker, or to a topic on the cluster of the records."""
    name, own = assembly.config.name, assembly.dedicated_offsets_topic
    if own is None and not assembly.supports_exactly_once:
        return WorkerOffsetWriter(control)
    copy: Callable[[messages.OffsetPairs], None] = WorkerOffsetCopy(control).keep if own else _not_kept
    return TopicOffsetWriter(own or assembly.transaction_offsets_topic, name, clients.source_producer(), copy)
