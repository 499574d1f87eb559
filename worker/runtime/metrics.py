"""What a task counts, under the names of Kafka Connect's task metrics, and its way to the worker."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Final

from worker.runtime.tolerance import ErrorCounts
from worker.supervisor import messages

__all__ = ["TaskMetrics"]

_INTERVAL: Final = 1.0


class TaskMetrics:
    """The counters and gauges of one task. Used by the task's thread alone."""

    def __init__(self, send: Callable[[messages.Metrics], None], errors: ErrorCounts) -> None:
        self._send = send
        self._errors = errors
        self._counters: Counter[str] = Counter()
        self._gauges: dict[str, float] = {}
        self._due = 0.0

    def count(self, name: str, amount: int) -> None:
        """Add to a counter."""
        self._counters[name] += amount

    def gauge(self, name: str, value: float) -> None:
        """Set a gauge."""
        self._gauges[name] = value

    def due(self) -> bool:
        """Whether it is time to report again; gauges that cost something are set only then."""
        return time.monotonic() >= self._due

    def report(self) -> None:
        """Send everything to the worker."""
        self._due = time.monotonic() + _INTERVAL
        self._send(messages.Metrics(self.values()))

    def values(self) -> dict[str, float]:
        """Everything counted and measured so far."""
        errors: Mapping[str, int] = asdict(self._errors)
        named = {name.replace("_", "-"): float(value) for name, value in errors.items() if value}
        return {**{name: float(value) for name, value in self._counters.items()}, **self._gauges, **named}
