"""The loop of a source task: poll, transform and convert, send, and commit what Kafka has acknowledged.

=================================================  ==============================================================
kill -9 here                                       then
=================================================  ==============================================================
before or during the send                          the records are read again: nothing is lost
after Kafka's acknowledgement, before the commit   the records are read and sent again: doubled, at most those of
                                                   one ``offset.flush.interval.ms``
after the commit                                   reading continues after them
=================================================  ==============================================================
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from confluent_kafka import KafkaError

from connect.data import Constant, SourceBatch, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.source import SourceTask, TransactionContext
from worker.runtime.active_topics import ActiveTopics
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients
from worker.runtime.control import Control
from worker.runtime.delivery import Delivery
from worker.runtime.metrics import TaskMetrics
from worker.runtime.offsets import OffsetCommitter, WorkerOffsetReader
from worker.runtime.submitted import Submission, SubmittedRecords
from worker.runtime.tolerance import Failure, Stage, Tolerance, class_name
from worker.stores.offset import offset_key
from worker.supervisor import messages

__all__ = ["SourceLoop", "SourceTaskRuntimeContext"]

logger = logging.getLogger(__name__)
_IDLE: Final = 0.01
_RETRY: Final = 1.0
_FLUSH_SLICE: Final = 0.5


class SourceTaskRuntimeContext:
    """What a source task is given of the runtime; see :class:`connect.source.SourceTaskContext`."""

    def __init__(self, control: Control, tolerance: Tolerance, task_class: str) -> None:
        self._control = control
        self._tolerance = tolerance
        self._task_class = task_class
        self.offset_storage_reader = WorkerOffsetReader(control)
        self.errant_record_reporter = self
        self.transaction_context: TransactionContext | None = None

    def wait(self, seconds: float) -> bool:
        """Wait, unless the task is stopped or paused first."""
        return self._control.wait(seconds)

    def report(self, record: SourceRecord, error: Exception) -> None:
        """Give up on a record that cannot be understood."""
        self._tolerance.give_up(Failure(Stage.TASK_POLL, self._task_class, error, record=record))


class SourceLoop:
    """Runs one source task until it is told to stop. Everything happens in the thread that calls :meth:`run`."""

    def __init__(
        self,
        assembly: Assembly,
        control: Control,
        clients: Clients,
        task: SourceTask[Any],
        tolerance: Tolerance,
    ):
        self._control = control
        self._task = task
        self._tolerance = tolerance
        self._connector = assembly.config.name
        self._until_drained = assembly.config.runs_until_drained
        self._flush_timeout = assembly.worker.offset_flush_timeout_ms / 1000
        self._chain = assembly.source_chain(tolerance)
        self._topics = clients.topic_creator()
        self._delivery = Delivery(clients.source_producer(), self._refused)
        self._submitted = SubmittedRecords()
        self._metrics = TaskMetrics(control.send, tolerance.counts)
        self._active = ActiveTopics(control.send, enabled=assembly.worker.topic_tracking_enable)
        self._tells_records = type(task).commit_record is not SourceTask.commit_record
        self._untold: deque[tuple[Submission, Sequence[SourceRecord]]] = deque()
        self._committer = OffsetCommitter(
            control,
            self._submitted,
            tolerance.flush,
            task.commit,
            lambda reason: logger.warning("Offsets were not committed and will be with the next: %s", reason),
            interval=assembly.worker.offset_flush_interval_ms / 1000,
            timeout=self._flush_timeout,
        )

    def run(self) -> None:
        """Move records until the worker says stop; an error that is not tolerated is raised after a last commit."""
        try:
            self._move()
        except Exception:
            self._finish_after_failure()
            raise
        self._finish()

    def close(self) -> None:
        """Release the plugins."""
        self._chain.close()

    def _move(self) -> None:
        while not self._control.stopping:
            if not self._control.poll():
                self._pause()
                continue
            batches = self._poll()
            for batch in batches:
                self._send(batch)
            if not batches:
                if self._until_drained and self._task.drained():
                    self._drain()
                    return
                self._delivery.serve(_IDLE)
            self._tell_records()
            self._committer.advance()
            if self._metrics.due():
                self._report()

    def _poll(self) -> list[SourceBatch]:
        try:
            polled = self._task.poll()
        except RetriableError as error:
            logger.warning("The source asks to be polled again later: %s", error)
            self._control.wait(error.retry_after or _RETRY)
            return []
        if polled is None:
            return []
        batches = [polled] if isinstance(polled, SourceBatch) else SourceBatch.from_records(polled)
        runs = [run for batch in batches if len(batch) for run in _by_source_partition(batch)]
        self._metrics.count("source-record-poll-total", sum(map(len, runs)))
        return runs

    def _send(self, batch: SourceBatch) -> None:
        """Send a batch of one source partition; its offset is that of its last record, sent or left out."""
        encoded = self._chain.process(batch)
        partition, offset = batch.source_partitions[0], batch.source_offsets[-1]
        submission = Submission(partition, offset, sum(map(len, encoded)))
        if partition:
            self._submitted.submit(offset_key(self._connector, partition), submission)
        if self._tells_records:
            self._untold.append((submission, list(batch)))
        for part in encoded:
            self._ensure_topic(part.topic)
            self._active.see((part.topic,))
            self._delivery.send(part, submission)
            self._metrics.count("source-record-write-total", len(part))

    def _ensure_topic(self, topic: str) -> None:
        while not self._control.stopping:
            try:
                self._topics.ensure(topic)
            except RetriableError as error:
                logger.warning("Topic %s cannot be looked up and will be again: %s", topic, error)
                self._control.wait_for_command(error.retry_after or _RETRY)
            else:
                return

    def _tell_records(self) -> None:
        while self._untold and self._untold[0][0].remaining == 0:
            for record in self._untold.popleft()[1]:
                self._task.commit_record(record)

    def _refused(self, topic: str, error: KafkaError) -> None:
        failure = ConnectError(
            f"Kafka did not take a record for topic {topic}: {error.str()}. If it is too large, raise "
            "producer.override.max.request.size and the topic's max.message.bytes."
        )
        self._tolerance.give_up(Failure(Stage.KAFKA_PRODUCE, class_name(self._task), failure))

    def _report(self) -> None:
        self._active.forget()
        self._metrics.gauge("source-record-active-count", self._submitted.pending())
        self._metrics.report()

    def _pause(self) -> None:
        if self._control.stopping:
            return
        self._finish()
        self._control.send(messages.Paused())
        while self._control.paused and not self._control.stopping:
            self._control.wait_for_command()
        if not self._control.stopping:
            self._control.send(messages.Resumed())

    def _drain(self) -> None:
        while not self._delivery.flush(_FLUSH_SLICE):
            self._control.poll()
            if self._control.stopping:
                return
        self._tell_records()
        while not self._committer.finish():
            if self._control.stopping:
                return
        self._report()
        self._control.send(messages.Drained())
        while not self._control.stopping:
            self._control.wait_for_command()

    def _finish(self) -> None:
        """Wait for what is under way and commit it; what cannot be committed will be read again."""
        self._delivery.flush(self._flush_timeout)
        self._tell_records()
        if not self._committer.finish():
            logger.warning("The last offsets could not be committed; their records will be read again.")
        self._report()

    def _finish_after_failure(self) -> None:
        try:
            self._finish()
        except Exception as error:
            logger.warning("The last offsets could not be committed after the failure: %s", error)


def _by_source_partition(batch: SourceBatch) -> Iterator[SourceBatch]:
    if isinstance(batch.source_partitions, Constant):
        yield batch
        return
    start = 0
    for _, run in groupby(batch.source_partitions):
        stop = start + sum(1 for _ in run)
        yield batch.slice(start, stop)
        start = stop
