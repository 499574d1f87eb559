"""Exactly-once source tasks (KIP-618): records and their offsets are one transaction.

=====================================================  ==========================================================
kill -9 here (the name is that of the crash point)     then
=====================================================  ==========================================================
``before-produce``: a transaction is begun             nothing of it was sent; its records are read again
``after-produce``: records are sent, no offset is      the next process of the task aborts the transaction when it
                                                       starts: nobody has read its records, and they come again
``after-offsets``: records and offsets are on the      the same
brokers, the commit is not asked for
while the commit is under way                          Kafka has decided it or not, for records and offsets alike;
                                                       the next process waits for that before it reads offsets
``after-commit``: Kafka has committed, the task is     reading continues after the records; ``commit_record`` and
not told                                               ``commit`` are not called for them
=====================================================  ==========================================================

Two processes of one task may live at once, when a worker is cut off or stopped and comes back: the younger fences the
elder before it reads the offsets, and the elder fails at its next call to Kafka (invariant I6). Consumers have to read
with ``isolation.level=read_committed``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from confluent_kafka import KafkaError

from connect.errors import ConnectError, RetriableError
from connect.internals.chain.tolerance import StopRequested
from connect.internals.crash import crash_point
from connect.internals.delivery.delivery import Delivery
from connect.internals.delivery.submissions import Submission
from worker.messages import messages
from worker.runtime.control import Control
from worker.runtime.metrics import TaskMetrics
from worker.runtime.offsets.offsets import Written, offset_pairs
from worker.runtime.offsets.topic import TopicOffsetWriter
from worker.runtime.source.commits import ToldTask, tell_records
from worker.runtime.source.producer import TransactionalProducer
from worker.runtime.source.transactions import Boundary, Ending
from worker.runtime.timings import Timings
from worker.stores.offset.store import check_offset, offset_key

__all__ = ["ExactlyOnce", "TransactionOffsets", "TransactionSizes"]

logger = logging.getLogger(__name__)
_SLICE: Final = 0.5
_RETRY: Final = 1.0
_OPEN: Final = 0.1
_CLOSED: Final = 0.5


class TransactionSizes:
    """The sizes of the transactions that were committed, under Kafka Connect's names."""

    def __init__(self, metrics: TaskMetrics) -> None:
        self._metrics = metrics
        self._sizes: list[int] = []

    def add(self, size: int) -> None:
        """Count one more, of this many records."""
        count, total, least, most = self._sizes or (0, 0, size, size)
        self._sizes = [count + 1, total + size, min(least, size), max(most, size)]
        count, total, least, most = self._sizes
        self._metrics.gauge("transaction-size-avg", total / count)
        self._metrics.gauge("transaction-size-min", least)
        self._metrics.gauge("transaction-size-max", most)


class TransactionOffsets:
    """The source offsets of a transaction, which are written to ``topic`` within it.

    ``on_commit`` receives them after the commit. After an abort they go with the next transaction.
    """

    def __init__(
        self,
        connector: str,
        topic: str,
        writer: TopicOffsetWriter,
        on_commit: Callable[[messages.OffsetPairs], None],
    ) -> None:
        self.topic = topic
        self._connector = connector
        self._writer = writer
        self._on_commit = on_commit
        self._submissions: dict[bytes, Submission] = {}
        self._written: messages.OffsetPairs = []

    def add(self, submission: Submission) -> None:
        """Add the offset of these records, if they have one."""
        if submission.partition:
            self._submissions[offset_key(self._connector, submission.partition)] = submission

    def write(self) -> None:
        """Send the offsets."""
        self._written = offset_pairs(self._submissions.values())
        self._writer.begin(self._written)

    def outcome(self) -> Written | None:
        """Whether they are acknowledged; ``None`` while that is unknown."""
        return self._writer.outcome()

    def committed(self) -> messages.OffsetPairs:
        """Note that Kafka has committed the offsets, pass them on, and return them."""
        self._submissions = {}
        self._on_commit(self._written)
        return self._written


class ExactlyOnce:
    """Commits records and offsets together, where ``boundary`` decides. Used by the task's thread alone.

    Offsets of records that were left out are committed with the next transaction that has records; none is made for
    them alone. So are offsets that the task has passed without records, but if there is no transaction within
    ``passing`` seconds, or when the task pauses or stops, they are committed alone. An abort is followed by a
    transaction of the offsets alone, as in Java: the records are discarded and do not come again.
    """

    def __init__(
        self,
        task: ToldTask,
        delivery: Delivery,
        control: Control,
        producer: TransactionalProducer,
        offsets: TransactionOffsets,
        boundary: Boundary,
        *,
        before_commit: Callable[[], None],
        sizes: TransactionSizes,
        timings: Timings,
        passing: float,
    ) -> None:
        self.boundary = boundary
        self._task = task
        self._control = control
        self._producer = producer
        self._delivery = delivery
        self._offsets = offsets
        self._before_commit = before_commit
        self._sizes = sizes
        self._timings = timings
        self._passing = passing
        self._passed_at: float | None = None
        """Since when an offset without records has been waiting for a commit."""
        self._untold: list[Submission] = []
        self._size = 0
        self._torn = False
        """Whether a part of the transaction is in progress, so that it cannot be committed as it is."""
        self._owes_offsets = False

    def begin(self, submission: Submission, topics: Iterable[str]) -> None:
        """Begin a transaction, if there are records to send."""
        if self._offsets.topic in topics:
            # Reading an offset would wait for the task's own transaction.
            raise ConnectError(
                "Source tasks may not produce to their own offsets topics when exactly-once support is enabled: "
                f"send the records to another topic than {self._offsets.topic}, or set offsets.storage.topic."
            )
        if submission.partition:
            check_offset(submission.offset)
        self._torn = True
        if submission.remaining:
            self._producer.begin()
            self._size += submission.remaining
        crash_point("before-produce")

    def sent(self, submission: Submission) -> None:
        """Commit the offset of these records with them."""
        self._torn = False
        self._offsets.add(submission)
        if submission.is_told:
            self._untold.append(submission)

    def passed(self, submission: Submission) -> None:
        """Commit the offset with the next transaction, or soon with its own."""
        check_offset(submission.offset)
        self._offsets.add(submission)
        if self._passed_at is None:
            self._passed_at = time.monotonic()

    def end(self, ending: Ending) -> None:
        """Commit or abort, as the task has requested."""
        if ending is Ending.ABORT:
            self._abort()
        self._commit()

    def batch_sent(self) -> None:
        """Commit or abort, if the boundary is here."""
        self._end(self.boundary.after_batch(time.monotonic()))

    def serve(self) -> None:
        """Commit if that is due."""
        now = time.monotonic()
        self._end(self.boundary.while_idle(now))
        if self._passed_at is not None and now >= self._passed_at + self._passing:
            self._commit_passed()

    @property
    def next_look(self) -> float:
        """Soon while a transaction is open, so that the boundary can end it."""
        return time.monotonic() + (_OPEN if self._producer.is_open else _CLOSED)

    def refusal(self, error: KafkaError, *, sent: bool, of_record: bool) -> ConnectError | None:
        """The error after a broker has refused a record, as in Java whatever ``errors.tolerance`` is."""
        if not of_record:
            return self._producer.failure(error)
        if not sent:
            return None
        return ConnectError(
            f"Kafka refused a record, and with it the transaction that it is in: {error.str()}. errors.tolerance=all "
            "leaves out only what the producer refuses before it is sent: set producer.override.max.request.size and "
            "producer.override.batch.size to no more than the max.message.bytes of the topic."
        )

    def failure(self, error: KafkaError) -> ConnectError:
        """The error after a younger process has fenced this one, or the transaction took too long."""
        return self._producer.failure(error)

    def finish(self) -> bool:
        """Commit what is complete, if the boundary allows it; the rest is aborted and read again."""
        try:
            if not self._torn:
                self._flush_reports()
                self._end(self.boundary.at_end(time.monotonic()))
                self._commit_passed()
        except StopRequested:
            logger.info("Stopping while a transaction cannot be committed; its records will be read again.")
        if not self._producer.is_open:
            return True
        if not self._torn:
            logger.warning("The task has not ended its last transaction; its records will be read again.")
        self._producer.give_up()
        return False

    def pause(self) -> bool:
        """Commit everything, as in Java: an open transaction would time out."""
        self._commit()
        self._commit_passed()
        return True

    def fail(self) -> None:
        """Discard the transaction: its records come again, with their offsets unchanged."""
        self._producer.give_up()

    def _end(self, ending: Ending | None) -> None:
        if ending is not None:
            self.end(ending)

    def _commit_passed(self) -> None:
        """Commit offsets without records, unless an open transaction will include them."""
        if self._passed_at is not None and not self._producer.is_open:
            self._owes_offsets = True
            self._commit()

    def _abort(self) -> None:
        if not self._producer.is_open:
            logger.warning("Ignoring request by task to abort transaction as the current transaction is empty")
            return
        self._producer.abort()
        self._delivery.forget()
        self._size = 0
        self._owes_offsets = True

    def _commit(self) -> None:
        if not self._producer.is_open and not self._owes_offsets:
            # All records were left out: their offsets wait for a transaction with records.
            self._flush_reports()
            self._tell_records()
            self._tell_committed([])
            return
        self._torn = True
        self._flush_reports()
        begun = time.monotonic()
        self._producer.begin()
        crash_point("after-produce")
        self._write_offsets()
        crash_point("after-offsets")
        self._producer.commit()
        crash_point("after-commit")
        self._timings.committed(time.monotonic() - begun)
        self._sizes.add(self._size)
        self._size, self._owes_offsets, self._torn = 0, False, False
        self._passed_at = None
        stored = self._offsets.committed()
        self._tell_records()
        self._tell_committed(stored)

    def _flush_reports(self) -> None:
        """Report the records that were left out before their offsets are passed (invariant I4)."""
        while True:
            try:
                self._before_commit()
            except RetriableError as error:
                logger.warning("The transaction is not committed yet: %s", error)
                if not self._control.wait_unless_stopped(_RETRY):
                    raise StopRequested from error
            else:
                return

    def _write_offsets(self) -> None:
        """Send the offsets, and wait until they and all records are acknowledged: only this shows which ones failed."""
        self._offsets.write()
        deadline: float | None = None
        while not self._delivery.flush(_SLICE) or (outcome := self._offsets.outcome()) is None:
            if self._control.is_stopping():
                deadline = deadline or time.monotonic() + self._producer.patience
                if time.monotonic() >= deadline:
                    raise StopRequested
        if outcome.error is not None:
            raise ConnectError(
                f"The source offsets could not be committed: {outcome.error}. The transaction is aborted, and its "
                "records are read again when the task is restarted."
            )

    def _tell_records(self) -> None:
        told, self._untold = self._untold, []
        tell_records(self._task, told)

    def _tell_committed(self, stored: messages.OffsetPairs) -> None:
        try:
            self._task.commit(stored)
        except Exception:
            # The commit has already happened, so nothing is wrong with the records.
            logger.exception("The task's commit failed")
