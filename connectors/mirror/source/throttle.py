"""How fast a task may read, in bytes a second."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Throttle"]


class Throttle:
    """A bucket that fills with ``rate`` bytes a second and holds as many. For one thread.

    What was read is taken out whole, so that the bucket may be overdrawn; until it is level nothing more is to be read.
    """

    def __init__(self, rate: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._left = float(rate)
        self._looked = clock()

    def take(self, amount: int) -> None:
        """Note that so many bytes were read."""
        self._fill()
        self._left -= amount

    def wait(self) -> float:
        """How many seconds to wait before anything is read; 0 if nothing is owed."""
        self._fill()
        return max(0.0, -self._left / self._rate)

    def _fill(self) -> None:
        now = self._clock()
        self._left = min(float(self._rate), self._left + (now - self._looked) * self._rate)
        self._looked = now
