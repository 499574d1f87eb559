"""How fast counters grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

__all__ = ["RATE", "Rates"]

_LEAST: Final = 1.0
_RATE_SECONDS: Final = 10.0
_COUNT: Final = "-total"
RATE: Final = "-rate"
"""How the name of a rate ends."""


class Rates:
    """How fast counters grow, per second, over the last ten seconds or as long as they were looked at."""

    def __init__(self, now: float) -> None:
        self._samples: deque[tuple[float, dict[str, int]]] = deque([(now, {})])

    def look(self, now: float, counters: Mapping[str, int]) -> dict[str, float]:
        """The rate of each counter, ``x-rate`` of ``x-total``, at this moment."""
        self._samples.append((now, dict(counters)))
        while len(self._samples) > 2 and self._samples[1][0] <= now - _RATE_SECONDS:
            self._samples.popleft()
        since, before = self._samples[0]
        seconds = max(now - since, _LEAST)
        return {
            name.removesuffix(_COUNT) + RATE: round((count - before.get(name, 0)) / seconds, 3)
            for name, count in counters.items()
            if name.endswith(_COUNT)
        }
