"""Source offsets that may be committed: those whose records, and all records before them, Kafka has acknowledged.

Submissions are queued by source partition, so that a stuck one holds back only the offsets of its own partition
(invariant I1).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from connect.data import Offset, SourceRecord

__all__ = ["Receipt", "SentRecords", "Submission", "SubmittedRecords"]

_TIDY: Final = 1000


@dataclass(slots=True, eq=False)
class Receipt:
    """The offsets of a batch's records on their topic, as far as they are acknowledged.

    ``reported`` lists them in the order of the records, except those at the indices ``unsent``, of which no report
    comes.
    """

    topic: str
    source_offsets: Sequence[Offset]
    reported: list[int | None] = field(default_factory=list)
    unsent: Collection[int] = ()

    @property
    def offsets(self) -> Sequence[int | None]:
        """The offset of each record; ``None`` if unknown, as for a refused record."""
        if not self.unsent:
            return self.reported
        reported = iter(self.reported)
        return [None if place in self.unsent else next(reported, None) for place in range(len(self.source_offsets))]


@dataclass(slots=True, eq=False)
class Submission:
    """Consecutive records of one source partition: how many are not yet acknowledged, and the offset after them.

    ``records`` is set for a task that wants to know which records were acknowledged, ``receipts`` for one that wants
    their offsets; ``born`` is the time of the first record, in seconds since 1970.
    """

    partition: Offset
    offset: Offset
    remaining: int
    records: Sequence[SourceRecord] = ()
    born: float = 0.0
    receipts: list[Receipt] | None = None

    @property
    def is_reported(self) -> bool:
        """Whether the task is notified when all records are acknowledged."""
        return bool(self.records) or self.receipts is not None


class SubmittedRecords:
    """The submissions of a task that are not yet committed. Used by the task's thread only.

    Of consecutive acknowledged submissions only the newest is kept (invariant I9): between two commits there may be
    millions, if a source alternates between partitions or returns records one by one.
    """

    def __init__(self) -> None:
        self._queues: dict[bytes, deque[Submission]] = {}
        self._until_tidy = _TIDY

    def __len__(self) -> int:
        """Return the number of submissions kept."""
        return sum(map(len, self._queues.values()))

    def submit(self, key: bytes, submission: Submission) -> None:
        """Register records that are about to be sent; ``key`` identifies their source partition."""
        self._queues.setdefault(key, deque()).append(submission)
        self._until_tidy -= 1
        if not self._until_tidy:
            self._tidy()

    def committable(self) -> dict[bytes, Submission]:
        """Remove and return the newest submission of each source partition up to which everything is acknowledged."""
        ready: dict[bytes, Submission] = {}
        for key, queue in list(self._queues.items()):
            while queue and queue[0].remaining == 0:
                ready[key] = queue.popleft()
            if not queue:
                del self._queues[key]
        return ready

    def _tidy(self) -> None:
        """Drop submissions superseded by an acknowledged successor. The more remain, the later this is done again."""
        for key, queue in self._queues.items():
            reported = [one for one, after in pairwise(queue) if one.remaining or after.remaining]
            self._queues[key] = deque([*reported, queue[-1]])
        self._until_tidy = max(_TIDY, len(self))


class SentRecords:
    """Counts the acknowledged and in-flight records of a task. Used by the task's thread only.

    Each submission counts down its own acknowledgements, so nothing needs to be done here for each record.
    """

    def __init__(self) -> None:
        self._handed_over = 0
        self._given_up = 0
        self._open: deque[Submission] = deque()
        self._completed: list[float] = []
        self._until_tidy = _TIDY

    def begin(self, submission: Submission) -> None:
        """Register a submission whose records are about to be sent."""
        self._handed_over += submission.remaining
        if submission.remaining:
            self._open.append(submission)
        self._until_tidy -= 1
        if not self._until_tidy:
            self._tidy()

    def give_up(self) -> None:
        """Stop waiting for a record that Kafka refused and that is skipped."""
        self._given_up += 1

    def discard(self) -> None:
        """Forget the records in flight, which are discarded with their transaction."""
        self._given_up += self.under_way()
        self._open.clear()

    def completed(self) -> list[float]:
        """Return the ``born`` times of the submissions completely acknowledged since the last call.

        A submission acknowledged before an older one may be reported later.
        """
        while self._open and not self._open[0].remaining:
            self._completed.append(self._open.popleft().born)
        completed, self._completed = self._completed, []
        return completed

    def under_way(self) -> int:
        """Return how many records are in flight: handed to the producer, and neither acknowledged nor given up."""
        self._tidy()
        return sum(submission.remaining for submission in self._open)

    def acknowledged(self) -> int:
        """Return how many records Kafka has acknowledged so far."""
        return self._handed_over - self._given_up - self.under_way()

    def _tidy(self) -> None:
        """Drop completed submissions. The more remain, the later this is done again (invariant I9)."""
        self._completed += [submission.born for submission in self._open if not submission.remaining]
        self._open = deque(submission for submission in self._open if submission.remaining)
        self._until_tidy = max(_TIDY, len(self._open))
