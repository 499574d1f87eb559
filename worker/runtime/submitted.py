"""Which source offsets may be committed: those whose records, and all before them, Kafka has acknowledged.

Submissions wait in one queue a source partition, so that one that is stuck holds back the offsets of its own
partition only (invariant I1).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from connect.data import SourceRecord
from worker.stores.offset import Offset

__all__ = ["Submission", "SubmittedRecords"]


@dataclass(slots=True, eq=False)
class Submission:
    """Some records in a row of one source partition: how many are not acknowledged yet, and the offset after them.

    ``records`` are there for a task that is told what became of them.
    """

    partition: Offset
    offset: Offset
    remaining: int
    records: Sequence[SourceRecord] = ()


class SubmittedRecords:
    """The submissions of a task that are not committed yet. Used by the task's thread alone."""

    def __init__(self) -> None:
        self._queues: dict[bytes, deque[Submission]] = {}

    def submit(self, key: bytes, submission: Submission) -> None:
        """Take note of records that are about to be sent; ``key`` stands for their source partition."""
        self._queues.setdefault(key, deque()).append(submission)

    def committable(self) -> dict[bytes, Submission]:
        """The newest submission of each source partition up to which all is acknowledged; they are then forgotten."""
        ready: dict[bytes, Submission] = {}
        for key, queue in list(self._queues.items()):
            while queue and queue[0].remaining == 0:
                ready[key] = queue.popleft()
            if not queue:
                del self._queues[key]
        return ready

    def pending(self) -> int:
        """How many records are not acknowledged yet."""
        return sum(submission.remaining for queue in self._queues.values() for submission in queue)
