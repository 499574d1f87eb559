"""The boundaries of an exactly-once source's transactions (KIP-618): the decisions, without a producer.

======================  ==========================================================================================
``transaction.boundary``  a transaction ends
======================  ==========================================================================================
``poll``                after every batch that the task polls
``interval``            after this many milliseconds, at the end of a batch or while there are none
``connector``           where the task says, through its :class:`~connect.source.TransactionContext`
======================  ==========================================================================================
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from connect.data import SourceRecord
from connect.errors import ConnectError

__all__ = [
    "Boundary",
    "ConnectorBoundary",
    "Ending",
    "IntervalBoundary",
    "PollBoundary",
    "TransactionRequests",
    "portions",
]


class Ending(enum.Enum):
    """How a transaction ends."""

    COMMIT = "commit"
    ABORT = "abort"


class Boundary(Protocol):
    """Decides where transactions end. ``now`` are seconds of a monotonic clock."""

    @property
    def cuts_batches(self) -> bool:
        """Whether a transaction has to end within the next batch."""

    def after_record(self, record: SourceRecord) -> Ending | None:
        """Return how the transaction ends after this record of a batch, if it does."""

    def after_batch(self, now: float) -> Ending | None:
        """Return how it ends after a batch."""

    def while_idle(self, now: float) -> Ending | None:
        """Return how it ends while the source has no records."""

    def at_end(self, now: float) -> Ending | None:
        """Return how it ends when the task stops; with ``None`` its records are read again."""


@dataclass(frozen=True, slots=True)
class PollBoundary:
    """Each batch is a transaction."""

    cuts_batches: bool = False

    def after_record(self, record: SourceRecord) -> Ending | None:  # noqa: ARG002
        """``None``: batches are not divided."""
        return None

    def after_batch(self, now: float) -> Ending | None:  # noqa: ARG002
        """Commit after every batch."""
        return Ending.COMMIT

    def while_idle(self, now: float) -> Ending | None:  # noqa: ARG002
        """``None``: no transaction is open."""
        return None

    def at_end(self, now: float) -> Ending | None:  # noqa: ARG002
        """Commit: an open transaction consists of complete batches."""
        return Ending.COMMIT


@dataclass(slots=True)
class IntervalBoundary:
    """A transaction ends with the first batch that ends after ``interval`` seconds."""

    interval: float
    began: float
    cuts_batches: bool = False

    def after_record(self, record: SourceRecord) -> Ending | None:  # noqa: ARG002
        """``None``: batches are not divided."""
        return None

    def after_batch(self, now: float) -> Ending | None:
        """Commit at the end of the interval."""
        if now - self.began < self.interval:
            return None
        self.began = now
        return Ending.COMMIT

    def while_idle(self, now: float) -> Ending | None:
        """Commit at the end of the interval. Java leaves it open until the next batch, so that it may time out."""
        return self.after_batch(now)

    def at_end(self, now: float) -> Ending | None:  # noqa: ARG002
        """Commit: an open transaction consists of complete batches."""
        return Ending.COMMIT


@dataclass(slots=True)
class TransactionRequests:
    """The :class:`~connect.source.TransactionContext` of a task, which keeps requests until their records come."""

    _batch: set[Ending] = field(default_factory=set)
    _records: dict[str, list[tuple[SourceRecord, Ending]]] = field(default_factory=dict)

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """End the transaction after ``record``, or after the batch that is polled next."""
        self._ask(record, Ending.COMMIT)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Discard the transaction after ``record``, or after the batch that is polled next."""
        self._ask(record, Ending.ABORT)

    @property
    def of_records(self) -> bool:
        """Whether an end after some record was requested."""
        return bool(self._records)

    def take_record(self, record: SourceRecord) -> Ending | None:
        """Return the requested end after this record, once."""
        asked = self._records.pop(_place(record), [])
        endings = {ending for other, ending in asked if other is record or other == record}
        if left := [item for item in asked if not (item[0] is record or item[0] == record)]:
            self._records[_place(record)] = left
        return _only(endings, "record")

    def take_batch(self) -> Ending | None:
        """Return the requested end after the batch, once."""
        endings, self._batch = self._batch, set()
        return _only(endings, "batch")

    def _ask(self, record: SourceRecord | None, ending: Ending) -> None:
        if record is None:
            self._batch.add(ending)
        else:
            self._records.setdefault(_place(record), []).append((record, ending))


@dataclass(frozen=True, slots=True)
class ConnectorBoundary:
    """A transaction ends where the task requests it."""

    requests: TransactionRequests

    @property
    def cuts_batches(self) -> bool:
        """Whether an end after some record was requested."""
        return self.requests.of_records

    def after_record(self, record: SourceRecord) -> Ending | None:
        """Return the end that was requested for this record."""
        return self.requests.take_record(record)

    def after_batch(self, now: float) -> Ending | None:  # noqa: ARG002
        """Return the end that was requested for the batch."""
        return self.requests.take_batch()

    def while_idle(self, now: float) -> Ending | None:  # noqa: ARG002
        """``None``: a request is for the next batch."""
        return None

    def at_end(self, now: float) -> Ending | None:
        """Return the end that was requested for the batch; what the task has not ended is read again, as in Java."""
        return self.after_batch(now)


def portions(
    records: Sequence[SourceRecord], boundary: Boundary
) -> Iterator[tuple[Sequence[SourceRecord], Ending | None]]:
    """Yield the records of a batch, cut where a transaction ends, each part with that end; the last may have none."""
    start = 0
    for place, record in enumerate(records, 1):
        ending = boundary.after_record(record)
        if ending is not None:
            yield records[start:place], ending
            start = place
    if start < len(records):
        yield records[start:], None


def _place(record: SourceRecord) -> str:
    return str((record.topic, record.source_partition, record.source_offset))


def _only(endings: set[Ending], what: str) -> Ending | None:
    if len(endings) > 1:
        raise ConnectError(
            f"The task requested a commit and an abort of the transaction after the same {what}; request one of them."
        )
    return next(iter(endings), None)
