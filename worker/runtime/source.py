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
import time
from collections.abc import Iterator
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
from worker.runtime.tolerance import Failure, Stage, StopRequested, Tolerance, class_name
from worker.stores.offset import check_offset, offset_key
from worker.supervisor import messages

__all__ = ["SourceLoop", "SourceTaskRuntimeContext"]

logger = logging.getLogger(__name__)
_IDLE: Final = 0.01
_RETRY: Final = 1.0
_SLICE: Final = 0.5
_OF_THE_RECORD: Final = frozenset(
    {
        KafkaError._BAD_MSG,
        KafkaError._INVALID_ARG,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.POLICY_VIOLATION,
        KafkaError.RECORD_LIST_TOO_LARGE,
    }
)


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
        self._delivery = Delivery(clients.source_producer(), self._refused, control.is_stopping)
        self._submitted = SubmittedRecords()
        self._metrics = TaskMetrics(control.send, tolerance.counts)
        self._active = ActiveTopics(control.send, enabled=assembly.worker.topic_tracking_enable)
        self._tells_records = type(task).commit_record is not SourceTask.commit_record
        self._untold: list[Submission] = []
        self._committer = OffsetCommitter(
            control,
            self._submitted,
            tolerance.flush,
            task.commit,
            interval=assembly.worker.offset_flush_interval_ms / 1000,
            timeout=self._flush_timeout,
        )

    def run(self) -> None:
        """Move records until the worker says stop; an error that is not tolerated is raised after a last commit."""
        try:
            self._move()
        except StopRequested:
            logger.info("Stopping with records under way; they will be read again.")
        except BaseException:
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
            for batch in batches or ():
                self._send(batch)
            if batches == [] and self._until_drained and self._task.drained():
                self._drain()
                return
            if not batches:
                self._delivery.serve(_IDLE)
            self._serve()

    def _serve(self) -> None:
        """What is to be done between two polls, and while there are none."""
        self._delivery.serve()
        self._tell_records()
        self._committer.advance()
        if self._metrics.due():
            self._report()

    def _poll(self) -> list[SourceBatch] | None:
        """The batches of one poll; ``None`` if it came to nothing and is to be made again."""
        records: list[SourceRecord] = []
        batches: list[SourceBatch] = []
        try:
            polled = self._task.poll()
            if isinstance(polled, SourceBatch):
                batches = [polled]
            else:
                for record in polled or ():
                    records.append(record)  # noqa: PERF402 - what a generator gave before it failed is to be kept
        except RetriableError as error:
            logger.warning("The source asks to be polled again later: %s", error)
            if not records:
                self._wait(error.retry_after or _RETRY)
                return None
        batches += SourceBatch.from_records(records)
        runs = [run for batch in batches if len(batch) for run in _by_source_partition(batch)]
        self._metrics.count("source-record-poll-total", sum(map(len, runs)))
        return runs

    def _send(self, batch: SourceBatch) -> None:
        """Send a batch of one source partition; its offset is that of its last record, sent or left out."""
        encoded = self._chain.process(batch)
        partition, offset = batch.source_partitions[0], batch.source_offsets[-1]
        submission = Submission(partition, offset, sum(map(len, encoded)), list(batch) if self._tells_records else ())
        if partition:
            check_offset(offset)
            self._submitted.submit(offset_key(self._connector, partition), submission)
        if self._tells_records:
            self._untold.append(submission)
        for part in encoded:
            self._ensure_topic(part.topic)
            self._active.see((part.topic,))
            self._delivery.send(part, submission)
            self._metrics.count("source-record-write-total", len(part))

    def _ensure_topic(self, topic: str) -> None:
        while True:
            try:
                self._topics.ensure(topic)
            except RetriableError as error:
                logger.warning("Topic %s cannot be looked up and will be again: %s", topic, error)
                if not self._control.wait_unless_stopped(error.retry_after or _RETRY):
                    raise StopRequested from error
            else:
                return

    def _wait(self, seconds: float) -> None:
        """Wait as :meth:`Control.wait`, and see to what is under way meanwhile."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and self._control.wait(min(left, _SLICE)):
            self._serve()

    def _tell_records(self) -> None:
        """Tell the task of what is acknowledged, in whatever order that came about: one partition may be stuck."""
        if all(submission.remaining for submission in self._untold):
            return
        told = [submission for submission in self._untold if not submission.remaining]
        self._untold = [submission for submission in self._untold if submission.remaining]
        for submission in told:
            for record in submission.records:
                self._tell(record)
            submission.records = ()

    def _tell(self, record: SourceRecord) -> None:
        try:
            self._task.commit_record(record)
        except Exception:
            # The record is on its topic: nothing is wrong with it, and its offset may be committed.
            logger.exception("The task's commit_record failed")

    def _refused(self, topic: str, error: KafkaError) -> None:
        """Leave out a record if it alone is at fault; what is wrong with the producer or topic fails the task (I4)."""
        failure = ConnectError(
            f"Kafka did not take a record for topic {topic}: {error.str()}. If it is too large, raise "
            "producer.override.max.request.size and the topic's max.message.bytes."
        )
        if error.fatal() or error.code() not in _OF_THE_RECORD:
            raise failure
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
            self._serve()
            self._control.wait_for_command(_SLICE)
        if not self._control.stopping:
            self._control.send(messages.Resumed())

    def _drain(self) -> None:
        while not self._delivery.flush(_SLICE):
            if self._control.is_stopping():
                return
        self._tell_records()
        while not self._committer.finish():
            if not self._control.wait_unless_stopped(_RETRY):
                return
        self._report()
        self._control.send(messages.Drained())
        while not self._control.stopping:
            self._control.wait_for_command()

    def _finish(self) -> None:
        """Wait for what is under way and commit it; what cannot be committed will be read again."""
        if not self._delivery.flush(self._flush_timeout):
            logger.warning("Kafka has not acknowledged all records yet; if it does not, they will be read again.")
        self._commit_last()

    def _commit_last(self) -> None:
        self._tell_records()
        if not self._committer.finish():
            logger.warning("The last offsets could not be committed; their records will be read again.")
        self._report()

    def _finish_after_failure(self) -> None:
        """Commit what is acknowledged. What was refused since the failure stays unacknowledged, and comes again."""
        for step in (lambda: self._delivery.flush(self._flush_timeout), self._commit_last):
            try:
                step()
            except Exception as error:
                logger.warning("After the failure: %s", error)


def _by_source_partition(batch: SourceBatch) -> Iterator[SourceBatch]:
    if isinstance(batch.source_partitions, Constant):
        yield batch
        return
    start = 0
    for _, run in groupby(batch.source_partitions):
        stop = start + sum(1 for _ in run)
        yield batch.slice(start, stop)
        start = stop
