"""Counters and gauges of a task, under Kafka Connect's names, and the topics that it uses (KIP-158)."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from connect.chain.tolerance import ErrorCounts
from connect.source import SourceTask
from worker.runtime.rates import Rates
from worker.runtime.timings import Timings
from worker.supervisor.messages import messages

__all__ = ["ActiveTopics", "TaskMetrics", "remaining_gauges"]


class ActiveTopics:
    """Tells the worker of each topic when it is used first, and again after :meth:`forget`.

    So the topics of a connector that were reset come back with the next records.
    """

    def __init__(self, send: Callable[[messages.ActiveTopics], None], *, enabled: bool) -> None:
        self._send = send
        self._enabled = enabled
        self._told: set[str] = set()

    def see(self, topics: Iterable[str]) -> None:
        """Note that records of these topics have passed."""
        if self._enabled and (new := set(topics) - self._told):
            self._told |= new
            self._send(messages.ActiveTopics(sorted(new)))

    def forget(self) -> None:
        """Tell of every topic again that is used from now on."""
        self._told.clear()


logger = logging.getLogger(__name__)
_INTERVAL: Final = 1.0
_AT_REST: Final = 5.0


class TaskMetrics:
    """The counters and gauges of one task, and its ``timings``. Used by the task's thread alone."""

    def __init__(self, send: Callable[[messages.Metrics], None], errors: ErrorCounts) -> None:
        self._send = send
        self._errors = errors
        self._rates = Rates(time.monotonic())
        self._counters: Counter[str] = Counter()
        self._gauges: dict[str, float] = {}
        self.next_report = 0.0
        """When the next report is due, by :func:`time.monotonic`."""
        self._last: messages.Metrics | None = None
        self._rests = False
        self.timings = Timings(time.monotonic())

    def count(self, name: str, amount: int) -> None:
        """Add to a counter. What has rested reports soon again."""
        self._counters[name] += amount
        if self._rests:
            self._rests = False
            self.next_report = min(self.next_report, time.monotonic() + _INTERVAL)

    def gauge(self, name: str, value: float | None) -> None:
        """Set a gauge, or remove it: ``None`` is unknown."""
        if value is None:
            self._gauges.pop(name, None)
        else:
            self._gauges[name] = value

    def gauges(self, values: Mapping[str, float]) -> None:
        """Set several gauges."""
        self._gauges |= values

    def due(self) -> bool:
        """Whether it is time to report again; gauges that cost something are set only then."""
        return time.monotonic() >= self.next_report

    def report(self) -> None:
        """Send everything to the worker. While nothing changes, the next report is due later."""
        now = time.monotonic()
        self._gauges |= self._rates.look(now, self._counters)
        report = messages.Metrics(self.values(), self.timings.values(now), dict(self.timings.histograms()))
        self._rests = report == self._last
        self.next_report = now + (_AT_REST if self._rests else _INTERVAL)
        self._last = report
        self._send(report)

    def values(self) -> dict[str, float]:
        """Everything counted and measured so far."""
        errors: Mapping[str, int] = asdict(self._errors)
        named = {name.replace("_", "-"): float(value) for name, value in errors.items() if value}
        return {**{name: float(value) for name, value in self._counters.items()}, **self._gauges, **named}


def remaining_gauges(task: SourceTask[Any]) -> dict[str, float]:
    """The gauges of what a source task has left to read. A task that cannot tell goes on all the same."""
    try:
        return {f"source-remaining-{unit}": float(amount) for unit, amount in task.remaining().items()}
    except Exception as error:
        logger.warning("The task does not tell what remains: %s", error)
        return {}
