"""Counters and gauges of a task, under Kafka Connect's names, and its active topics (KIP-158)."""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from itertools import chain
from typing import Any, Final, TypeAlias

from connect.internals.chain.tolerance import ErrorCounts
from connect.measurement import Measurement
from connect.source import SourceTask
from worker.messages import messages
from worker.metrics.snapshot import COMMIT
from worker.runtime.reports import ReportPace
from worker.runtime.timings import RATE, Rates, Timings

__all__ = ["ActiveTopics", "OwnMeasurements", "TaskMetrics", "measurements_of", "remaining_gauges"]


class ActiveTopics:
    """Reports each topic to the worker on first use, and again if it is still used five seconds later.

    So a topic that a user has removed from the active ones comes back if records still use it.
    """

    def __init__(
        self,
        send: Callable[[messages.ActiveTopics], None],
        *,
        enabled: bool,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send = send
        self._enabled = enabled
        self._now = now
        self._reported: set[str] = set()
        self._forget_at = 0.0

    def see(self, topics: Iterable[str]) -> None:
        """Report those of these topics that were not reported in the last seconds."""
        if not self._enabled:
            return
        if (now := self._now()) >= self._forget_at:
            self._reported.clear()
            self._forget_at = now + _AGAIN_SECONDS
        if new := set(topics) - self._reported:
            self._reported |= new
            self._send(messages.ActiveTopics(sorted(new)))


logger = logging.getLogger(__name__)
_MOST_OWN: Final = 5000
_AGAIN_SECONDS: Final = 5.0
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_RUNTIMES: Final = frozenset({"connector", "task"})
_Series: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]


class TaskMetrics:
    """The counters and gauges of one task, and its ``timings``. Used by the task's thread alone.

    ``cpu`` returns the CPU seconds of the task; ``tell`` is called with each report.
    """

    def __init__(
        self,
        send: Callable[[messages.Metrics | messages.Unchanged], None],
        errors: ErrorCounts,
        cpu: Callable[[], float] = time.process_time,
        pace: ReportPace | None = None,
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        self._send = send
        self._tell = tell
        self._pace = pace or ReportPace()
        self._cpu = cpu
        self._errors = errors
        self._rates = Rates(time.monotonic())
        self._counters: Counter[str] = Counter()
        self._gauges: dict[str, float] = {}
        self._seen: object = None
        self._sent: messages.Metrics | None = None
        self._own = OwnMeasurements()
        self.timings = Timings(time.monotonic())

    @property
    def next_report(self) -> float:
        """When the next report is due, by :func:`time.monotonic`."""
        return self._pace.next_report

    def count(self, name: str, amount: int) -> None:
        """Add to a counter."""
        self._counters[name] += amount
        self._pace.counted(amount)

    def gauge(self, name: str, value: float | None) -> None:
        """Set a gauge, or remove it: ``None`` is unknown."""
        if value is None:
            self._gauges.pop(name, None)
        else:
            self._gauges[name] = value

    def gauges(self, values: Mapping[str, float]) -> None:
        """Set several gauges."""
        self._gauges |= values

    def own(self, measurements: Iterable[Measurement]) -> None:
        """Set the measurements of the plugin; former ones that are missing are removed."""
        self._own.take(measurements)

    def report_soon(self) -> None:
        """Let the next report follow soon, since something has changed that is not counted."""
        self._pace.counted(1)

    def due(self) -> bool:
        """Return whether a report is due; gauges that are costly to compute are set only then."""
        return self._pace.due()

    def report(self) -> None:
        """Send everything to the worker. While little moves, the next report is due later."""
        now = time.monotonic()
        values, histograms = self.values(), self.timings.histograms()
        # Decaying rates and means are no reason to report often, nor are the commits of a task that moves nothing.
        seen = (
            {name: value for name, value in values.items() if not name.endswith(RATE)},
            {name: kept for name, kept in histograms.items() if name != COMMIT},
        )
        rates = self._rates.look(now, self._counters)
        self._gauges |= rates
        report = messages.Metrics(values | rates, self.timings.values(now), dict(histograms), self._own.changes())
        self._pace.reported(changed=seen != self._seen or bool(report.own))
        self._seen = seen
        cpu = self._cpu()
        pause = max(0.0, self.next_report - now)
        is_new = report != self._sent
        self._send(replace(report, cpu=cpu, pause=pause) if is_new else messages.Unchanged(cpu, pause))
        self._sent = replace(report, own=[])
        self._tell()

    def values(self) -> dict[str, float]:
        """Return all counters and gauges."""
        errors: Mapping[str, int | str] = asdict(self._errors)
        counts = {name: value for name, value in errors.items() if isinstance(value, int)}
        named = {name.replace("_", "-"): float(value) for name, value in counts.items() if value}
        return {**{name: float(value) for name, value in self._counters.items()}, **self._gauges, **named}


class OwnMeasurements:
    """The measurements of a plugin, of which only changes are sent. For one thread (I9: at most 5,000)."""

    def __init__(self) -> None:
        self._reported: dict[_Series, Measurement] = {}
        self._now: dict[_Series, Measurement] = {}
        self._is_warned = False

    def take(self, measurements: Iterable[Measurement]) -> None:
        """Set all measurements. Those with invalid names are left out, with a warning."""
        self._now = {}
        for each in measurements:
            if len(self._now) >= _MOST_OWN or not _is_named_well(each):
                self._warn(each.name)
                continue
            self._now[each.name, each.labels] = each

    def changes(self) -> list[tuple[str, list[str], str, float | None]]:
        """Return the changes since the last call."""
        changed: list[tuple[str, list[str], str, float | None]] = [
            (name, list(chain(*labels)), each.help, float(each.value))
            for (name, labels), each in self._now.items()
            if self._reported.get((name, labels)) != each
        ]
        changed += [
            (name, list(chain(*labels)), "", None) for name, labels in self._reported if (name, labels) not in self._now
        ]
        self._reported = self._now
        return changed

    def _warn(self, name: str) -> None:
        if not self._is_warned:
            self._is_warned = True
            logger.warning(
                "The measurement %r is left out, and perhaps others. Names and labels may have lower-case letters, "
                "digits and underscores, the labels connector and task are reserved, the help has to be one line, "
                "and a task may have at most %d measurements.",
                name,
                _MOST_OWN,
            )


def _is_named_well(each: Measurement) -> bool:
    labels = {label for label, _ in each.labels}
    names = all(_NAME.fullmatch(name) for name in (each.name, *labels))
    return names and len(labels) == len(each.labels) and not labels & _RUNTIMES and each.help.isprintable()


def remaining_gauges(task: SourceTask[Any]) -> dict[str, float]:
    """Return the gauges of what a source task has left to read; none if the task raises an error."""
    try:
        return {f"source-remaining-{unit}": float(amount) for unit, amount in task.remaining().items()}
    except Exception as error:
        logger.warning("The task failed to report what remains to be read: %s", error)
        return {}


def measurements_of(task: SourceTask[Any]) -> list[Measurement]:
    """Return the measurements of a source task; none if the task raises an error."""
    try:
        return list(task.measurements())
    except Exception as error:
        logger.warning("The task failed to report its measurements: %s", error)
        return []
