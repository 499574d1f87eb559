"""Rates, means and maxima of the last seconds: how fast counters grow, and how long the parts of a task's work take.

All of them are recorded once a batch or once a call, never once a record.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Mapping
from typing import Final

from worker.metrics.snapshot import BOUNDS, COMMIT, LATENCY

__all__ = ["RATE", "Rates", "Timings", "Window"]

_WINDOW: Final = 30.0
_LEAST: Final = 1.0
_RATE_SECONDS: Final = 10.0
_COUNT: Final = "-total"
RATE: Final = "-rate"
"""The suffix of the name of a rate."""


class Rates:
    """How fast counters grow, per second, over the last ten seconds or since the first look."""

    def __init__(self, now: float) -> None:
        self._samples: deque[tuple[float, dict[str, int]]] = deque([(now, {})])

    def look(self, now: float, counters: Mapping[str, int]) -> dict[str, float]:
        """Return the current rate of each counter: ``x-rate`` of ``x-total``."""
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


class Window:
    """The mean and the maximum of the values of the last thirty seconds, as of each look."""

    __slots__ = ("_count", "_greatest", "_looks", "_total")

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int, float, float]] = deque()
        self._count, self._total, self._greatest = 0, 0.0, 0.0

    def add(self, value: float) -> None:
        """Add a value."""
        self._count += 1
        self._total += value
        self._greatest = max(self._greatest, value)

    def look(self, now: float) -> tuple[float, float] | None:
        """Return the mean and the maximum; ``None`` without values."""
        if self._count:
            self._looks.append((now, self._count, self._total, self._greatest))
            self._count, self._total, self._greatest = 0, 0.0, 0.0
        while self._looks and self._looks[0][0] <= now - _WINDOW:
            self._looks.popleft()
        if not self._looks:
            return None
        count = sum(look[1] for look in self._looks)
        return sum(look[2] for look in self._looks) / count, max(look[3] for look in self._looks)


class Timings:
    """Counters, sizes and durations for scrapes, under Kafka Connect's names. Used by the task's thread alone."""

    def __init__(self, now: float) -> None:
        self._rates = Rates(now)
        self._counters: Counter[str] = Counter()
        self._gauges: dict[str, float] = {}
        self._sizes: dict[str, Window] = {}
        self._times: dict[str, Window] = {}
        self._commits = Window()
        self._histograms: dict[str, list[float]] = {}

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter."""
        self._counters[name] += amount

    def gauge(self, name: str, value: float) -> None:
        """Set a gauge."""
        self._gauges[name] = value

    def size(self, name: str, value: float) -> None:
        """Add a size to a window."""
        window = self._sizes.get(name)
        if window is None:
            window = self._sizes[name] = Window()
        window.add(value)

    def took(self, name: str, seconds: float) -> None:
        """Add a duration to a window and a histogram; ``name`` is one of :mod:`worker.metrics.snapshot`."""
        window = self._times.get(name)
        if window is None:
            window = self._times[name] = Window()
        window.add(seconds)
        self._fill(name, seconds)

    def late(self, seconds: float) -> None:
        """Add the age of the first record of a delivered batch; 0 if clocks differ so that it is negative."""
        self._fill(LATENCY, max(0.0, seconds))

    def committed(self, seconds: float) -> None:
        """Add a successful commit of offsets and its duration."""
        self.took(COMMIT, seconds)
        self._commits.add(1.0)

    def not_committed(self) -> None:
        """Add a failed commit of offsets."""
        self._commits.add(0.0)

    def values(self, now: float) -> dict[str, float]:
        """Return the counters with their rates, the gauges, and the means and maxima of the last thirty seconds."""
        counts = {name: float(count) for name, count in self._counters.items()}
        values = {**counts, **self._rates.look(now, self._counters), **self._gauges}
        for windows, end in ((self._sizes, ""), (self._times, "-time-ms")):
            for name, window in windows.items():
                if (seen := window.look(now)) is not None:
                    scale = 1000.0 if end else 1.0
                    values[f"{name}-avg{end}"], values[f"{name}-max{end}"] = seen[0] * scale, seen[1] * scale
        if (commits := self._commits.look(now)) is not None:
            values["offset-commit-success-percentage"] = commits[0]
            values["offset-commit-failure-percentage"] = 1.0 - commits[0]
        return values

    def histograms(self) -> Mapping[str, list[float]]:
        """Return the histograms by name: the sum of all seconds, then the counts of the buckets."""
        return {name: list(kept) for name, kept in self._histograms.items()}

    def _fill(self, name: str, seconds: float) -> None:
        kept = self._histograms.get(name)
        if kept is None:
            kept = self._histograms[name] = [0.0] * (len(BOUNDS[name]) + 2)
        kept[0] += seconds
        kept[1 + bisect_left(BOUNDS[name], seconds)] += 1.0
