"""The loop of a sink task: consume, convert and transform, put, and commit what the task says is durable.

==========================================  ========================================================================
kill -9 here                                then
==========================================  ========================================================================
before or during ``put``                    the records are consumed again
after ``put``, before ``flush``             the records are consumed again: doubled in a target that has them already,
                                            unless the task keeps its offsets beside its data
after ``flush``, before the commit          the same (invariant I2: offsets follow the data, never lead it)
after the commit                            consuming continues after them
==========================================  ========================================================================
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException

from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.sink import ErrantRecordReporter, SinkTask
from worker.connector_config import SinkConnectorConfig
from worker.runtime.active_topics import ActiveTopics
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients
from worker.runtime.consume import Message, by_topic, next_offsets
from worker.runtime.control import Control
from worker.runtime.ends import EndOffsets, lag
from worker.runtime.metrics import TaskMetrics
from worker.runtime.records import ConsumedBatch
from worker.runtime.tolerance import Failure, Stage, Tolerance
from worker.supervisor import messages

__all__ = ["SinkLoop", "SinkTaskRuntimeContext"]

logger = logging.getLogger(__name__)
_POLL: Final = 0.1
_PAUSED_POLL: Final = 0.5
_RETRY: Final = 1.0
_FATAL: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError._AUTHENTICATION,
        KafkaError._AUTO_OFFSET_RESET,
    }
)


class SinkTaskRuntimeContext:
    """What a sink task is given of the runtime; see :class:`connect.sink.SinkTaskContext`."""

    def __init__(self, control: Control, tolerance: Tolerance, task_class: str, *, reports: bool) -> None:
        self._control = control
        self._tolerance = tolerance
        self._task_class = task_class
        self.errant_record_reporter: ErrantRecordReporter | None = self if reports else None
        self.assignment: set[TopicPartition] = set()
        self.rewinds: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        self.commit_requested = False
        self.retry_after: float | None = None
        self.consumed: ConsumedBatch | None = None

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue from these offsets."""
        self.rewinds.update(offsets)

    def timeout(self, seconds: float) -> None:
        """Put again after so long."""
        self.retry_after = seconds

    def pause(self, *partitions: TopicPartition) -> None:
        """Stop consuming these partitions."""
        self._check(partitions)
        self.paused |= set(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Consume these partitions again."""
        self._check(partitions)
        self.paused -= set(partitions)

    def request_commit(self) -> None:
        """Commit offsets soon."""
        self.commit_requested = True

    def wait(self, seconds: float) -> bool:
        """Wait, unless the task is stopped or paused first."""
        return self._control.wait(seconds)

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Give up on a record that cannot be written."""
        raw = self.consumed.find(record.original_partition, record.original_offset) if self.consumed else None
        if raw is None:
            raise ConnectError(
                f"Record {record.original_offset} of {record.origin} was reported after put had returned, when its "
                "bytes are gone; report records from within put."
            ) from error
        self._tolerance.give_up(Failure(Stage.TASK_PUT, self._task_class, error, record=record, raw=raw))

    def _check(self, partitions: Collection[TopicPartition]) -> None:
        if strange := set(partitions) - self.assignment:
            raise ConnectError(f"The task has no partition {min(strange)}; pause and resume only its assignment.")


@dataclass(frozen=True, slots=True)
class _Pending:
    """A batch to be put, what it was made of, and the offsets that are delivered once it is."""

    batch: SinkBatch | None
    consumed: ConsumedBatch
    offsets: Mapping[TopicPartition, int]


class SinkLoop:
    """Runs one sink task until it is told to stop. Everything, rebalances too, happens in the thread of :meth:`run`."""

    def __init__(
        self,
        assembly: Assembly,
        control: Control,
        clients: Clients,
        task: SinkTask[Any],
        context: SinkTaskRuntimeContext,
        tolerance: Tolerance,
    ) -> None:
        config = assembly.config
        assert isinstance(config, SinkConnectorConfig)
        self._config = config
        self._control = control
        self._task = task
        self._context = context
        self._tolerance = tolerance
        self._chain = assembly.sink_chain(tolerance)
        self._consumer: Consumer = clients.sink_consumer()
        self._batch_size = clients.max_poll_records
        self._is_cooperative = clients.sink_is_cooperative
        self._only_topic = config.topics[0] if len(config.topics) == 1 else None
        self._interval = assembly.worker.offset_flush_interval_ms / 1000
        self._commit_due = time.monotonic() + self._interval
        self._delivered: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._at_end: dict[TopicPartition, int] = {}
        self._pending: list[_Pending] = []
        self._consumer_paused: set[TopicPartition] = set()
        self._assigned_once = False
        self._ends: EndOffsets | None = None
        self._failure: Exception | None = None
        self._metrics = TaskMetrics(control.send, tolerance.counts)
        self._active = ActiveTopics(control.send, enabled=assembly.worker.topic_tracking_enable)

    def run(self) -> None:
        """Move records until the worker says stop."""
        config = self._config
        topics = list(config.topics) or [f"^{config.topics_regex}"]
        self._consumer.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)
        try:
            self._move()
            self._commit(closing=True)
        finally:
            self._close_all()

    def close(self) -> None:
        """Leave the group and release the plugins."""
        self._consumer.close()
        self._chain.close()

    def _move(self) -> None:
        while not self._control.stopping:
            if not self._control.poll():
                self._pause()
                continue
            if self._control.draining and self._is_drained():
                self._drain()
                return
            self._take(self._consume(_POLL))
            self._deliver()
            self._apply_context()
            if self._context.commit_requested or time.monotonic() >= self._commit_due:
                self._commit(closing=False)
            if self._metrics.due():
                self._report()

    # -- consuming -----------------------------------------------------------------------------------------------

    def _consume(self, seconds: float) -> list[Message]:
        """The next messages; while a batch waits to be put again all partitions are paused, so there are none."""
        found: list[Message] = self._consumer.consume(self._batch_size, timeout=seconds)
        if self._failure is not None:
            raise self._failure
        errors = [message for message in found if message.error() is not None]
        if not errors:
            return found
        for message in errors:
            self._hear(message, message.error())
        return [message for message in found if message.error() is None]

    def _hear(self, message: Message, error: KafkaError) -> None:
        """What the client says beside records. It retries by itself; only what it cannot get over fails the task."""
        if error.code() == KafkaError._PARTITION_EOF:
            self._at_end[TopicPartition(message.topic(), message.partition())] = message.offset()
        elif error.fatal() or error.code() in _FATAL:
            raise KafkaException(error)
        else:
            logger.warning("The consumer reports: %s", error.str())

    def _take(self, found: Sequence[Message]) -> None:
        for batch in by_topic(found, self._only_topic):
            offsets = next_offsets(batch)
            if not offsets.keys() <= self._context.assignment:
                # A rebalance took a partition away in the middle of consuming: its new owner delivers those.
                keep = [m for m in found if TopicPartition(m.topic(), m.partition()) in self._context.assignment]
                self._take(keep)
                return
            self._active.see(tp.topic for tp in offsets)
            self._metrics.count("sink-record-read-total", len(batch))
            converted = self._chain.process(batch)
            self._pending += [_Pending(part, batch, {}) for part in converted]
            self._pending.append(_Pending(None, batch, offsets))

    def _deliver(self) -> None:
        if not self._pending:
            if self._context.retry_after is not None:
                self._put(None)
            return
        while self._pending:
            pending = self._pending[0]
            self._context.consumed = pending.consumed
            if pending.batch is not None and not self._put(pending.batch):
                return
            assignment = self._context.assignment
            self._delivered |= {tp: offset for tp, offset in pending.offsets.items() if tp in assignment}
            del self._pending[0]
        self._resume_after_retry()

    def _put(self, batch: SinkBatch | None) -> bool:
        context = self._context
        try:
            if batch is not None:
                self._task.put(batch)
                self._metrics.count("sink-record-send-total", len(batch))
        except RetriableError as error:
            logger.warning("The sink asks for the same records again later: %s", error)
            self._pause_for_retry()
            self._control.wait(error.retry_after or context.retry_after or _RETRY)
            return False
        context.retry_after = None
        return True

    def _pause_for_retry(self) -> None:
        self._set_paused(set(self._context.assignment))

    def _resume_after_retry(self) -> None:
        self._set_paused(set(self._context.paused))

    def _set_paused(self, paused: set[TopicPartition]) -> None:
        newly, no_longer = paused - self._consumer_paused, self._consumer_paused - paused
        if newly:
            self._consumer.pause(_client_partitions(newly))
        if no_longer & self._context.assignment:
            self._consumer.resume(_client_partitions(no_longer & self._context.assignment))
        self._consumer_paused = paused

    def _apply_context(self) -> None:
        """Do what the task asked its context for: rewinds, and partitions paused or resumed."""
        if self._context.rewinds:
            self._rewind()
        if not self._pending and self._context.paused != self._consumer_paused:
            self._resume_after_retry()

    def _rewind(self) -> None:
        rewinds, self._context.rewinds = self._context.rewinds, {}
        for partition, offset in rewinds.items():
            if partition in self._context.assignment:
                self._consumer.seek(confluent_kafka.TopicPartition(*partition, offset))
                self._delivered[partition] = offset

    # -- committing ----------------------------------------------------------------------------------------------

    def _commit(self, *, closing: bool, partitions: Collection[TopicPartition] | None = None) -> None:
        """Commit what the task says is durable (invariant I2).

        A task that cannot flush while it runs is rewound to what was committed last; while it closes, its partitions
        are consumed again by their next owner.
        """
        self._commit_due = time.monotonic() + self._interval
        self._context.commit_requested = False
        current = {tp: offset for tp, offset in self._delivered.items() if partitions is None or tp in partitions}
        try:
            self._tolerance.flush()
            wanted = self._task.pre_commit(current)
        except Exception as error:
            logger.warning(
                "The sink could not make its records durable; they will be put again: %s",
                error,
                exc_info=True,
            )
            if not closing:
                self._rewind_to_committed()
            return
        self._commit_offsets(self._checked(wanted, current))

    def _checked(
        self, wanted: Mapping[TopicPartition, int] | None, current: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        checked: dict[TopicPartition, int] = {}
        for partition, offset in (wanted or {}).items():
            if partition not in current or offset > current[partition]:
                logger.warning("The sink wants to commit %s at %d, which it was not given; ignored", partition, offset)
            elif self._committed.get(partition) != offset:
                checked[partition] = offset
        return checked

    def _commit_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        if not offsets:
            return
        try:
            client = [confluent_kafka.TopicPartition(*tp, offset) for tp, offset in offsets.items()]
            self._consumer.commit(offsets=client, asynchronous=False)
        except KafkaException as error:
            # Nothing is lost: the offsets go with the next commit, or the records are consumed again.
            logger.warning("Offsets were not committed and will be with the next: %s", error)
        else:
            self._committed |= offsets

    def _rewind_to_committed(self) -> None:
        """Go back to what is committed, which may be nothing yet: then to where the partition was entered."""
        assignment = sorted(self._context.assignment)
        self._pending.clear()
        for partition in self._consumer.committed(_client_partitions(assignment), timeout=10):
            tp = TopicPartition(partition.topic, partition.partition)
            offset = partition.offset if partition.offset >= 0 else confluent_kafka.OFFSET_BEGINNING
            self._consumer.seek(confluent_kafka.TopicPartition(*tp, offset))
            self._delivered.pop(tp, None)

    # -- rebalances; called by the client from within consume -------------------------------------------------------

    def _on_assign(self, consumer: Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        added = [TopicPartition(partition.topic, partition.partition) for partition in partitions]
        try:
            self._assigned_once = True
            self._context.assignment |= set(added)
            if added:
                self._task.open(added)
            rewinds = self._context.rewinds
            starts = [
                confluent_kafka.TopicPartition(*tp, rewinds.pop(tp, confluent_kafka.OFFSET_INVALID)) for tp in added
            ]
            if self._is_cooperative:
                consumer.incremental_assign(starts)
            else:
                consumer.assign(starts)
        except Exception as error:
            self._failure = error

    def _on_revoke(self, _consumer: Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        revoked = [TopicPartition(partition.topic, partition.partition) for partition in partitions]
        try:
            self._commit(closing=True, partitions=revoked)
            self._drop(revoked)
        except Exception as error:
            self._failure = error

    def _on_lost(self, _consumer: Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        """The group went on without this task: it may commit nothing for them any more (invariant I6)."""
        try:
            self._drop([TopicPartition(partition.topic, partition.partition) for partition in partitions])
        except Exception as error:
            self._failure = error

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        gone = set(partitions)
        self._context.assignment -= gone
        self._context.paused -= gone
        self._consumer_paused -= gone
        for state in (self._delivered, self._committed, self._at_end, self._context.rewinds):
            for partition in gone:
                state.pop(partition, None)
        if gone:
            self._task.close(partitions)

    def _close_all(self) -> None:
        if self._context.assignment:
            self._task.close(sorted(self._context.assignment))
            self._context.assignment.clear()

    # -- pausing, draining, reporting --------------------------------------------------------------------------------

    def _pause(self) -> None:
        """Stay in the group, but fetch nothing."""
        if self._control.stopping:
            return
        self._commit(closing=False)
        self._pause_for_retry()
        self._control.send(messages.Paused())
        while self._control.paused and not self._control.stopping:
            self._take(self._consume(0))
            self._pause_for_retry()
            self._control.wait_for_command(_PAUSED_POLL)
        if not self._control.stopping:
            self._resume_after_retry()
            self._control.send(messages.Resumed())

    def _is_drained(self) -> bool:
        if not self._assigned_once or self._pending:
            return False
        if self._ends is None:
            self._ends = EndOffsets(self._consumer)
        return self._ends.reached(self._context.assignment, self._positions())

    def _positions(self) -> dict[TopicPartition, int]:
        """The next offset of each partition; at its end that is past control records, which are never delivered."""
        return self._at_end | {tp: max(offset, self._at_end.get(tp, 0)) for tp, offset in self._delivered.items()}

    def _drain(self) -> None:
        self._commit(closing=False)
        self._report()
        self._control.send(messages.Drained())
        while not self._control.stopping:
            self._consume(0)
            self._control.wait_for_command(_PAUSED_POLL)

    def _report(self) -> None:
        self._active.forget()
        self._metrics.gauge("sink-record-lag", lag(self._consumer, self._positions()))
        self._metrics.gauge("partition-count", len(self._context.assignment))
        self._metrics.report()


def _client_partitions(partitions: Collection[TopicPartition]) -> list[confluent_kafka.TopicPartition]:
    return [confluent_kafka.TopicPartition(*partition) for partition in sorted(partitions)]
