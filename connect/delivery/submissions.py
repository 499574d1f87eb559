"""The source offsets that may be committed: those whose records, and all before them, Kafka has acknowledged.

Submissions wait in one queue a source partition, so that one that is stuck holds back the offsets of its own
partition only (invariant I1).
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
    """Where records of one batch lie on their topic, as far as that is acknowledged.

    ``told`` has them in the order of the records, but of those at the places ``unsent``, of which nothing is heard.
    """

    topic: str
    source_offsets: Sequence[Offset]
    told: list[int | None] = field(default_factory=list)
    unsent: Collection[int] = ()

    @property
    def offsets(self) -> Sequence[int | None]:
        """The offset of each record; ``None`` if it is not known, such as that of one that was refused."""
        if not self.unsent:
            return self.told
        told = iter(self.told)
        return [None if place in self.unsent else next(told, None) for place in range(len(self.source_offsets))]


@dataclass(slots=True, eq=False)
class Submission:
    """Some records in a row of one source partition: how many are not acknowledged yet, and the offset after them.

    ``records`` are there for a task that is told what became of them, ``receipts`` for one that is told where they lie;
    ``born`` is the time of the first of them, in seconds since 1970.
    """

    partition: Offset
    offset: Offset
    remaining: int
    records: Sequence[SourceRecord] = ()
    born: float = 0.0
    receipts: list[Receipt] | None = None

    @property
    def is_told(self) -> bool:
        """Whether the task is told when all is acknowledged."""
        return bool(self.records) or self.receipts is not None


class SubmittedRecords:
    """The submissions of a task that are not committed yet. Used by the task's thread alone.

    Of those in a row that are acknowledged only the newest is kept (invariant I9): between two commits there may be
    millions, if a source mixes its partitions or gives its records one by one.
    """

    def __init__(self) -> None:
        self._queues: dict[bytes, deque[Submission]] = {}
        self._until_tidy = _TIDY

    def __len__(self) -> int:
        """How many submissions are kept."""
        return sum(map(len, self._queues.values()))

    def submit(self, key: bytes, submission: Submission) -> None:
        """Take note of records that are about to be sent; ``key`` stands for their source partition."""
        self._queues.setdefault(key, deque()).append(submission)
        self._until_tidy -= 1
        if not self._until_tidy:
            self._tidy()

    def committable(self) -> dict[bytes, Submission]:
        """The newest submission of each source partition up to which all is acknowledged; they are then forgotten."""
        ready: dict[bytes, Submission] = {}
        for key, queue in list(self._queues.items()):
            while queue and queue[0].remaining == 0:
                ready[key] = queue.popleft()
            if not queue:
                del self._queues[key]
        return ready

    def _tidy(self) -> None:
        """Forget those whose successor, acknowledged too, says more. The more remain, the later it is done again."""
        for key, queue in self._queues.items():
            told = [one for one, after in pairwise(queue) if one.remaining or after.remaining]
            self._queues[key] = deque([*told, queue[-1]])
        self._until_tidy = max(_TIDY, len(self))


class SentRecords:
    """Counts the records of a task that Kafka has acknowledged, and those under way. Used by the task's thread alone.

    What is acknowledged is counted down in each submission, so nothing is to be done here for each record.
    """

    def __init__(self) -> None:
        self._handed_over = 0
        self._given_up = 0
        self._open: deque[Submission] = deque()
        self._completed: list[float] = []
        self._until_tidy = _TIDY

    def begin(self, submission: Submission) -> None:
        """Note that its records are about to be sent."""
        self._handed_over += submission.remaining
        if submission.remaining:
            self._open.append(submission)
        self._until_tidy -= 1
        if not self._until_tidy:
            self._tidy()

    def give_up(self) -> None:
        """Wait no more for a record that Kafka did not take and that is left out."""
        self._given_up += 1

    def discard(self) -> None:
        """Forget the records under way, which are discarded with their transaction."""
        self._given_up += self.under_way()
        self._open.clear()

    def completed(self) -> list[float]:
        """The births of the submissions that Kafka has acknowledged whole since the last call.

        One that was acknowledged before an older one may be told later.
        """
        while self._open and not self._open[0].remaining:
            self._completed.append(self._open.popleft().born)
        completed, self._completed = self._completed, []
        return completed

    def under_way(self) -> int:
        """How many records are handed to the producer, and neither acknowledged nor given up."""
        self._tidy()
        return sum(submission.remaining for submission in self._open)

    def acknowledged(self) -> int:
        """How many records Kafka has acknowledged so far."""
        return self._handed_over - self._given_up - self.under_way()

    def _tidy(self) -> None:
        """Forget what is done with. The more remains, the later it is done again (invariant I9)."""
        self._completed += [submission.born for submission in self._open if not submission.remaining]
        self._open = deque(submission for submission in self._open if submission.remaining)
        self._until_tidy = max(_TIDY, len(self._open))
