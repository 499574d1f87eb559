"""The loop of a source task: poll, transform and convert, send, and commit what Kafka has acknowledged.

=================================================  ==============================================================
kill -9 here                                       then
=================================================  ==============================================================
before or during the send                          the records are read again: nothing is lost
after Kafka's acknowledgement, before the commit   the records are read and sent again: doubled, at most those of
                                                   one ``offset.flush.interval.ms``
after the commit                                   reading continues after them
with a larger share in the config topic, before     whoever starts the task next has the larger share; see
the task has taken it, or while it does            :mod:`worker.stores.config.generations` for what is exactly once
told to stop, before the last poll is sent          what only :meth:`SourceTask.last_poll` has is lost
=================================================  ==============================================================

This is at least once; see :mod:`worker.runtime.source.exactly_once` for transactions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from connect.data import Offset, SourceBatch, SourceRecord
from connect.errors import ConnectError, MissingError, RetriableError
from connect.internals.chain.source import by_source_partition
from connect.internals.chain.tolerance import Failure, Stage, StopRequested, Tolerance
from connect.internals.delivery.delivery import PRODUCER_FAILURES, Delivery, kafka_error
from connect.internals.delivery.submissions import Receipt, Refusal, SentRecords, Submission
from connect.internals.kafka.auth.rights import PRODUCER, explained, on_topic
from connect.internals.plugins import class_name
from connect.source import Signal, SourceTask
from worker.messages import messages
from worker.metrics.snapshot import POLL
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients
from worker.runtime.control import Control
from worker.runtime.metrics import AMOUNTS, ActiveTopics, TaskMetrics, amount_gauges, measurements_of
from worker.runtime.source.commits import SourceCommits, WatchedTask
from worker.runtime.source.guarantee import Guarantee
from worker.runtime.source.transactions import Ending, portions
from worker.runtime.waits import Waits
from worker.runtime.watch import CHAIN

__all__ = ["SourceLoop", "SourceTaskRuntimeContext"]

logger = logging.getLogger(__name__)
_IDLE: Final = 0.01
_RETRY: Final = 1.0
_SLICE: Final = 0.5
_AT_REST: Final = 30.0
"""After this many seconds without a record, the task's clients are closed."""
_PAUSED: Final = "The connector is paused. Resume it, and send the signal again."
_PORTION: Final = 1000
_PORTION_SECONDS: Final = 1.0
_LEAST_ACKNOWLEDGED: Final = 0.02
_MOST_ACKNOWLEDGED: Final = 0.1


@dataclass(frozen=True, slots=True)
class _PollDue:
    """When a task wants to be polled again."""

    descriptors: Collection[int]
    until: float


class SourceTaskRuntimeContext:
    """Gives a source task its part of the runtime; see :class:`connect.source.SourceTaskContext`."""

    def __init__(self, control: Control, tolerance: Tolerance, task_class: str, guarantee: Guarantee) -> None:
        self._control = control
        self._tolerance = tolerance
        self._task_class = task_class
        self.offset_storage_reader = guarantee.reader
        self.errant_record_reporter = self
        self.transaction_context = guarantee.transaction_context
        self._due_poll: _PollDue | None = None
        self._passed: list[tuple[Offset, Offset]] = []

    def wait(self, seconds: float) -> bool:
        """Wait, until the task is stopped or paused at the latest."""
        return self._control.wait(seconds)

    def poll_when_readable(self, descriptors: Collection[int], seconds: float) -> None:
        """Remember when the task wants to be polled again."""
        self._due_poll = _PollDue(tuple(descriptors), time.monotonic() + seconds)

    def wake(self) -> None:
        """End the wait for the next poll."""
        self._control.wake()

    def take_due_poll(self) -> _PollDue | None:
        """Return when the last poll wanted the next, once."""
        due, self._due_poll = self._due_poll, None
        return due

    def pass_offset(self, partition: Offset, offset: Offset) -> None:
        """Remember an offset that no record has."""
        self._passed.append((partition, offset))

    def take_passed(self) -> list[tuple[Offset, Offset]]:
        """Return the offsets that were passed since the last call."""
        passed, self._passed = self._passed, []
        return passed

    def report(self, record: SourceRecord, error: Exception) -> None:
        """Give up a record that the task cannot parse."""
        self._tolerance.give_up(Failure(Stage.TASK_POLL, self._task_class, error, record=record))


class SourceLoop:
    """Runs one source task until it is told to stop. Everything happens in the thread that calls :meth:`run`."""

    def __init__(
        self,
        assembly: Assembly,
        control: Control,
        clients: Clients,
        task: SourceTask[Any],
        context: SourceTaskRuntimeContext,
        tolerance: Tolerance,
        guarantee: Guarantee,
        waits: Waits,
    ):
        self._assembly = assembly
        self._control = control
        self._task = task
        self._context = context
        self._tolerance = tolerance
        self._waits = waits
        self._until_drained = assembly.config.runs_until_drained
        self._chain = assembly.source_chain(tolerance)
        self._topics = clients.topic_creator()
        self._sent, self._written = SentRecords(), 0
        self._delivery = Delivery(
            guarantee.producer,
            self._refused,
            control.is_stopping,
            clients.batch_limits(),
            self._sent,
            resends=guarantee.resends,
            keeps_order=guarantee.keeps_order,
        )
        self._metrics = TaskMetrics(control.send, tolerance.counts, control.cpu, tell=tolerance.tell)
        self._timings = self._metrics.timings
        self._polled_at = 0.0
        self._active = ActiveTopics(control.send, enabled=assembly.worker.topic_tracking_enable)
        watched = WatchedTask(task, control.watch)
        self._tells_records = type(task).commit_record is not SourceTask.commit_record
        self._measures = type(task).measurements is not SourceTask.measurements
        self._polls_last = type(task).last_poll is not SourceTask.last_poll
        self._tells_offsets = type(task).delivered is not SourceTask.delivered
        self._reader = guarantee.reader
        self._rest_clients = (guarantee.rest, clients.rest)
        self._rests_at = time.monotonic() + _AT_REST
        self._commits: SourceCommits = guarantee.commits(watched, self._delivery, tolerance.flush, self._metrics)

    def run(self) -> None:
        """Move records until the worker sends a stop. Raises an error that is not tolerated, after a last commit."""
        try:
            self._telling(self._move)
        except StopRequested:
            logger.info("Stopping with records under way; they will be read again.")
        except BaseException:
            self._commits.fail()
            self._report()
            raise
        self._telling(self._finish)

    def _telling(self, step: Callable[[], None]) -> None:
        """Turn a permanent failure of the producer into the error that explains it."""
        try:
            step()
        except PRODUCER_FAILURES as error:
            raise self._commits.failure(kafka_error(error)) from error

    def close(self) -> None:
        """Release the plugins and the offset reader."""
        self._chain.close()
        self._reader.close()

    def _move(self) -> None:
        while not self._control.stopping:
            if not self._control.poll():
                self._pause()
                continue
            self._take_config()
            self._take_signals()
            polled = time.monotonic()
            batches = self._poll()
            if batches:
                self._timings.took(POLL, time.monotonic() - polled)
            self._send_polled(batches or ())
            if batches == [] and self._until_drained and self._drained():
                self._drain()
                return
            wanted = self._context.take_due_poll()
            if wanted is not None:
                self._await(wanted)
            elif not batches:
                # A task that has waited itself is polled again at once; others must not be polled in a busy loop.
                self._delivery.serve(max(0.0, polled + _IDLE - time.monotonic()))
            self._serve()
        if self._polls_last:
            self._send_last(self._poll_last())

    def _send_last(self, polled: Sequence[tuple[SourceBatch, Ending | None]]) -> None:
        """Send the records of the last poll in portions: a task that stops does not wait for a full producer."""
        for batch, ending in polled:
            for start in range(0, len(batch), _PORTION):
                self._delivery.flush(_PORTION_SECONDS)
                portion = batch.slice(start, start + _PORTION)
                self._send_polled([(portion, ending if start + _PORTION >= len(batch) else None)])

    def _send_polled(self, batches: Sequence[tuple[SourceBatch, Ending | None]]) -> None:
        """Send what a poll has returned, and take note of the offsets that it passed."""
        for batch, ending in batches:
            self._send(batch)
            if ending is not None:
                self._commits.end(ending)
        for partition, offset in self._context.take_passed():
            self._commits.passed(Submission(partition, offset, 0))
        if batches:
            self._commits.batch_sent()

    def _await(self, wanted: _PollDue) -> None:
        """Wait until the task wants to be polled or a command arrives, and do what is due meanwhile."""
        patience = _LEAST_ACKNOWLEDGED
        while self._control.poll() and not (self._control.has_config or self._control.has_signals):
            self._serve()
            now = time.monotonic()
            left = wanted.until - now
            if left <= 0:
                return
            if left > _MOST_ACKNOWLEDGED and self._sent.under_way():
                # The client delivers acknowledgements when it is polled. If the task is polled soon, that suffices.
                self._delivery.serve(min(left, patience))
                patience = min(2 * patience, _MOST_ACKNOWLEDGED)
                left = 0.0
            due = min(self._metrics.next_report, self._commits.next_look) - now
            if self._control.wait_for_poll(wanted.descriptors, max(0.0, min(left, due))):
                return

    def _serve(self) -> None:
        """Do what is due between two polls, and while there are none."""
        self._delivery.serve()
        if born := self._sent.completed():
            now = time.time()
            for at in born:
                self._timings.late(now - at)
        self._commits.serve()
        if self._metrics.due():
            self._report()
        if time.monotonic() >= self._rests_at and not self._sent.under_way():
            self._rests_at = time.monotonic() + _AT_REST
            for rest in self._rest_clients:
                rest()

    def _poll_last(self) -> list[tuple[SourceBatch, Ending | None]]:
        """Return the batches of the last poll, which is not repeated if it fails."""
        records: list[SourceRecord] = []
        batches: list[SourceBatch] = []
        try:
            with self._control.watch.call("last_poll"):
                batches = self._taken("last_poll", self._task.last_poll(), records)
        except RetriableError as error:
            logger.warning("The source could not be polled for the last time: %s", error)
        return self._counted(batches, records)

    def _poll(self) -> list[tuple[SourceBatch, Ending | None]] | None:
        """Return the batches of a poll, each of one source partition, with the end of a transaction after it, if any.

        ``None`` if the poll failed and has to be repeated.
        """
        records: list[SourceRecord] = []
        batches: list[SourceBatch] = []
        try:
            with self._control.watch.call("poll"):
                batches = self._taken("poll", self._task.poll(), records)
        except MissingError as error:
            self._waits.on(str(error))
            if not records:
                self._wait(error.retry_after or _RETRY)
                return None
        except RetriableError as error:
            logger.warning("The source asks to be polled again later: %s", error)
            if not records:
                self._wait(error.retry_after or _RETRY)
                return None
        else:
            self._waits.over()
        return self._counted(batches, records)

    def _taken(self, method: str, polled: object, records: list[SourceRecord]) -> list[SourceBatch]:
        """Return the batch that was polled, if any; records are added one by one: those before a failure stay."""
        if isinstance(polled, SourceBatch):
            return [polled]
        if not isinstance(polled, Iterable | None):
            raise self._gave(method, polled)
        for record in polled or ():
            if not isinstance(record, SourceRecord):
                raise self._gave(method, record)
            records.append(record)
        return []

    def _counted(
        self, batches: list[SourceBatch], records: list[SourceRecord]
    ) -> list[tuple[SourceBatch, Ending | None]]:
        """Return what was polled as batches of one source partition each, with the ends of transactions within them."""
        self._polled_at = time.time()
        if polled_records := len(records) + sum(map(len, batches)):
            self._metrics.count("source-record-poll-total", polled_records)
            self._timings.size("batch-size", polled_records)
        if self._commits.boundary.cuts_batches:
            records = [*(record for batch in batches for record in batch), *records]
            cut = portions(records, self._commits.boundary)
            return [item for part, ending in cut for item in _ended(SourceBatch.from_records(part), ending)]
        return _ended(batches + SourceBatch.from_records(records), None)

    def _gave(self, method: str, polled: object) -> ConnectError:
        """Return the error for a poll that did not return records."""
        given = "one SourceRecord" if isinstance(polled, SourceRecord) else f"a {type(polled).__name__}"
        return ConnectError(
            f"{method} of {class_name(self._task)} returned {given}; it has to return records (SourceRecord) in a "
            "list, a batch (SourceBatch) or nothing."
        )

    def _take_config(self) -> None:
        """Let the task go on with a new configuration, if there is one; a task that cannot is started again with it."""
        if (given := self._control.take_config()) is None:
            return
        config = self._assembly.task_config(given)
        with self._control.watch.call("reconfigure"):
            takes = self._task.reconfigure(config)
        if takes:
            self._task.config = config
            logger.info("The task goes on with a larger share.")
        else:
            self._control.decline()

    def _take_signals(self) -> None:
        """Hand the task the signals of users; one that it refuses does it no harm."""
        for signal in self._control.take_signals():
            refused = None
            try:
                with self._control.watch.call("take_signal"):
                    self._task.take_signal(Signal(signal.id, signal.type, signal.data))
            except ConnectError as error:
                refused = self._assembly.redaction.redacted(str(error))
            self._control.answer_signal(signal, refused)

    def _drained(self) -> bool:
        with self._control.watch.call("drained"):
            return self._task.drained()

    def _send(self, batch: SourceBatch) -> None:
        """Send a batch of one source partition; its offset is that of its last record, sent or left out."""
        with self._control.watch.call(CHAIN):
            encoded = self._chain.process(batch)
        partition, offset = batch.source_partitions[0], batch.source_offsets[-1]
        records = list(batch) if self._tells_records else ()
        receipts: list[Receipt] | None = [] if self._tells_offsets else None
        submission = Submission(partition, offset, sum(map(len, encoded)), records, self._born(batch), receipts)
        self._rests_at = time.monotonic() + _AT_REST
        self._commits.begin(submission, [part.topic for part in encoded])
        self._sent.begin(submission)
        for part in encoded:
            self._ensure_topic(part.topic)
            self._active.see((part.topic,))
            self._delivery.send(part, submission)
        self._commits.sent(submission)

    def _born(self, batch: SourceBatch) -> float:
        """Return the time of a batch: the timestamp of its first record, or of the poll, in seconds since 1970."""
        timestamp = batch.timestamps[0]
        return self._polled_at if timestamp is None or timestamp < 0 else timestamp / 1000

    def _ensure_topic(self, topic: str) -> None:
        while True:
            try:
                self._topics.ensure(topic)
            except RetriableError as error:
                logger.warning("Topic %s cannot be looked up yet; trying again: %s", topic, error)
                if not self._control.wait_unless_stopped(error.retry_after or _RETRY):
                    raise StopRequested from error
            else:
                return

    def _wait(self, seconds: float) -> None:
        """Wait like :meth:`Control.wait`, and serve what is under way meanwhile."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and self._control.wait(min(left, _SLICE)):
            self._serve()

    def _refused(self, refusal: Refusal) -> None:
        """Leave out a record that is itself at fault; errors of the producer or topic fail the task (I4)."""
        error, record = refusal.error, refusal.record
        reason = explained(error, PRODUCER, on_topic(record.topic, "Write"))
        failure = ConnectError(f"Kafka did not take a record for topic {record.topic}: {reason}.{refusal.remedy}")
        of_record = refusal.is_of_record
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise failure from KafkaException(error)
        if (fatal := self._commits.refusal(error, sent=refusal.sent, of_record=of_record)) is not None:
            raise fatal from KafkaException(error)
        if not of_record:
            raise failure
        # It is no longer known which record of its batch this was, so it has no source offset.
        read = SourceRecord(record.topic, record.value, source_partition=refusal.submission.partition)
        self._tolerance.give_up(Failure(Stage.KAFKA_PRODUCE, class_name(self._task), failure, read, record))

    def _report(self) -> None:
        under_way = self._sent.under_way()
        self._metrics.gauge("source-record-active-count", under_way)
        self._timings.size("source-record-active-count", under_way)
        written = self._sent.acknowledged()
        self._metrics.count("source-record-write-total", written - self._written)
        self._written = written
        with self._control.watch.call("remaining"):
            self._metrics.replace(AMOUNTS, amount_gauges(self._task))
        if self._measures:
            with self._control.watch.call("measurements"):
                self._metrics.own(measurements_of(self._task))
        self._metrics.report()

    def _pause(self) -> None:
        if self._control.stopping:
            return
        self._commits.pause()
        self._report()
        self._control.send(messages.Paused())
        while self._control.paused and not self._control.stopping:
            self._serve()
            for signal in self._control.take_signals():
                self._control.answer_signal(signal, _PAUSED)
            self._control.wait_for_command(_SLICE)
        if not self._control.stopping:
            self._control.send(messages.Resumed())

    def _drain(self) -> None:
        while not self._commits.finish():
            if not self._control.wait_unless_stopped(_RETRY):
                return
        self._report()
        self._control.takes_configs = False
        self._control.refuse_signals("The connector has come to its end.")
        if self._control.take_config() is not None:
            self._control.decline()
        self._control.send(messages.Drained())
        while not self._control.stopping:
            self._control.wait_for_command()

    def _finish(self) -> None:
        """Wait for the records under way and commit them; what cannot be committed will be read again."""
        self._commits.finish()
        self._report()


def _ended(batches: Sequence[SourceBatch], ending: Ending | None) -> list[tuple[SourceBatch, Ending | None]]:
    """Return the batches by source partition; the transaction ends after the last as given."""
    runs: list[tuple[SourceBatch, Ending | None]] = [
        (run, None) for batch in batches if len(batch) for run in by_source_partition(batch)
    ]
    if runs:
        runs[-1] = runs[-1][0], ending
    return runs
