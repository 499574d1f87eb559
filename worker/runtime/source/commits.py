"""Commits of source offsets after the records are acknowledged: at least once.

The other way, in one transaction with the records, is :mod:`worker.runtime.source.exactly_once`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from confluent_kafka import KafkaError

from connect.data import SourceRecord
from connect.errors import ConnectError
from connect.internals.delivery.delivery import Delivery
from connect.internals.delivery.submissions import Submission, SubmittedRecords
from connect.internals.kafka.auth.rights import PRODUCER, explained, on_topics
from connect.source import Delivered, SourceTask
from worker.messages import messages
from worker.runtime.offsets.offsets import OffsetCommitter
from worker.runtime.source.transactions import Boundary, Ending, PollBoundary
from worker.runtime.watch import Watch
from worker.stores.offset.store import check_offset, offset_key

__all__ = ["AtLeastOnce", "SourceCommits", "ToldTask", "tell_records"]

logger = logging.getLogger(__name__)


class SourceCommits(Protocol):
    """Commits the offsets of records that a delivery sends. Used by the task's thread alone."""

    @property
    def boundary(self) -> Boundary:
        """The boundary that decides where a transaction ends within a batch."""

    def begin(self, submission: Submission, topics: Iterable[str]) -> None:
        """Prepare for sending records to these topics."""

    def sent(self, submission: Submission) -> None:
        """Note that all of them were given to the producer."""

    def passed(self, submission: Submission) -> None:
        """Commit an offset without records, after everything sent before it."""

    def end(self, ending: Ending) -> None:
        """End the transaction within a batch."""

    def batch_sent(self) -> None:
        """Note that all records of a poll are sent."""

    def serve(self) -> None:
        """Do whatever is due between two polls."""

    @property
    def next_look(self) -> float:
        """When to call :meth:`serve` at the latest, by :func:`time.monotonic`."""

    def refusal(self, error: KafkaError, *, sent: bool, of_record: bool) -> ConnectError | None:
        """The error that fails the task because a record was refused, after it was ``sent`` or before.

        ``None`` leaves the record to the task's tolerance. ``of_record`` says whether the record alone is at fault.
        """

    def failure(self, error: KafkaError) -> ConnectError:
        """The error that fails the task because the producer has failed for good."""

    def finish(self) -> bool:
        """Commit what can be committed, since the task stops. Returns whether that is everything."""

    def pause(self) -> bool:
        """Commit what can be committed, since the task pauses. Returns whether that is everything."""

    def fail(self) -> None:
        """Clean up after a failure."""


class ToldTask:
    """The methods of a source task that are called after acknowledgements, watched for hangs."""

    def __init__(self, task: SourceTask[Any], watch: Watch) -> None:
        self._task = task
        self._watch = watch

    def commit(self, stored: messages.OffsetPairs) -> None:
        """See :meth:`connect.source.SourceTask.stored` and :meth:`connect.source.SourceTask.commit`."""
        if stored:
            with self._watch.call("stored"):
                self._task.stored([(partition, offset) for partition, offset in stored if offset is not None])
        with self._watch.call("commit"):
            self._task.commit()

    def commit_record(self, record: SourceRecord) -> None:
        """See :meth:`connect.source.SourceTask.commit_record`."""
        with self._watch.call("commit_record"):
            self._task.commit_record(record)

    def delivered(self, delivered: Delivered) -> None:
        """See :meth:`connect.source.SourceTask.delivered`."""
        with self._watch.call("delivered"):
            self._task.delivered(delivered)


class AtLeastOnce:
    """Commits the offsets of acknowledged records at intervals. After a kill the rest is read and sent again."""

    boundary: Boundary = PollBoundary()

    def __init__(
        self,
        connector: str,
        task: ToldTask,
        delivery: Delivery,
        submitted: SubmittedRecords,
        committer: OffsetCommitter,
        *,
        patience: float,
    ) -> None:
        self._connector = connector
        self._task = task
        self._delivery = delivery
        self._submitted = submitted
        self._committer = committer
        self._patience = patience
        self._untold: list[Submission] = []
        self._topics: tuple[str, ...] = ()

    def begin(self, submission: Submission, topics: Iterable[str]) -> None:
        """Note the records."""
        self._topics = tuple(topics) or self._topics
        if submission.partition:
            check_offset(submission.offset)
            self._submitted.submit(offset_key(self._connector, submission.partition), submission)
        if submission.is_told:
            self._untold.append(submission)

    def sent(self, submission: Submission) -> None:
        """Do nothing: acknowledgements follow."""

    def passed(self, submission: Submission) -> None:
        """Commit it after the earlier records of its partition."""
        self.begin(submission, ())

    def end(self, ending: Ending) -> None:
        """Do nothing: there are no transactions."""

    def batch_sent(self) -> None:
        """Do nothing: acknowledgements follow."""

    def serve(self) -> None:
        """Tell the task which records are acknowledged, and commit if that is due."""
        self._tell_records()
        self._committer.advance()

    @property
    def next_look(self) -> float:
        """When the next commit is due, or the current one may have ended."""
        return self._committer.next_look

    def refusal(self, error: KafkaError, *, sent: bool, of_record: bool) -> ConnectError | None:  # noqa: ARG002
        """``None``: each record stands alone."""
        return None

    def failure(self, error: KafkaError) -> ConnectError:
        """The producer has to be made again."""
        told = explained(error, PRODUCER, *on_topics(self._topics, "Write"))
        return ConnectError(f"The task's producer has failed: {told}. Restart the task.")

    def finish(self) -> bool:
        """Wait for the records under way and commit their offsets."""
        complete = self._delivery.flush(self._patience)
        if not complete:
            logger.warning(
                "Kafka has not acknowledged all records yet; those that it does not acknowledge will be read again."
            )
        return self._commit_last() and complete

    def pause(self) -> bool:
        """Commit as at the end."""
        return self.finish()

    def fail(self) -> None:
        """Commit acknowledged records. Those refused since the failure stay unacknowledged, and come again."""
        steps: tuple[Callable[[], bool], ...] = (lambda: self._delivery.flush(self._patience), self._commit_last)
        for step in steps:
            try:
                step()
            except Exception as error:
                logger.warning("The last offsets could not be committed after the failure: %s", error)

    def _commit_last(self) -> bool:
        self._tell_records()
        complete = self._committer.finish()
        if not complete:
            logger.warning("The last offsets could not be committed; their records will be read again.")
        return complete

    def _tell_records(self) -> None:
        """Tell the task of acknowledged records, in the order of acknowledgement: one partition may be stuck."""
        if all(submission.remaining for submission in self._untold):
            return
        told = [submission for submission in self._untold if not submission.remaining]
        self._untold = [submission for submission in self._untold if submission.remaining]
        tell_records(self._task, told)


def tell_records(task: ToldTask, submissions: Iterable[Submission]) -> None:
    """Tell a task of records that are on their topics or left out. Errors that it raises are only logged."""
    for submission in submissions:
        for record in submission.records:
            try:
                task.commit_record(record)
            except Exception:
                # The record is on its topic: nothing is wrong with it, and its offset may be committed.
                logger.exception("The task's commit_record failed")
        submission.records = ()
        for receipt in submission.receipts or ():
            try:
                task.delivered(Delivered(submission.partition, receipt.source_offsets, receipt.topic, receipt.offsets))
            except Exception:
                logger.exception("The task's delivered failed")
        submission.receipts = None
