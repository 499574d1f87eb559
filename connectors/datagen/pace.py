"""The pace of a task: when each record is due."""

from __future__ import annotations

import random
from typing import Final

__all__ = ["Pace"]

_MOST_BEHIND: Final = 1.0


class Pace:
    """Spaces records by random intervals of up to ``max_interval_ms``, as if the task waited before each.

    Records that became due while others were being sent come together, so that short intervals keep their average. A
    delay of more than a second, because the task was paused or Kafka too slow, is not caught up with.
    """

    def __init__(self, max_interval_ms: int, now: float) -> None:
        self._seconds = max_interval_ms / 1000
        self._random = random.Random()  # noqa: S311 - it spreads records in time
        self._due = now + self._interval()

    def due(self, now: float, most: int) -> int:
        """Return the number of records to generate now, at most ``most``, and count them as generated."""
        if self._seconds <= 0:
            return most
        self._due = max(self._due, now - _MOST_BEHIND)
        count = 0
        while count < most and self._due <= now:
            self._due += self._interval()
            count += 1
        return count

    def wait(self, now: float) -> float:
        """Return the seconds until the next record."""
        return max(0.0, self._due - now)

    def _interval(self) -> float:
        return self._seconds * self._random.random()
