"""Counters, gauges and rates of a task, under Kafka Connect's names, and its active topics (KIP-158).

They are reported less often while little moves, and so are the statistics of its Kafka clients.
"""

from __future__ import annotations

import logging
import os
import re
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from itertools import chain
from typing import Any, Final, TypeAlias

from connect.internals.chain.tolerance import ErrorCounts
from connect.internals.kafka.clients.statistics import ClientStatistics
from connect.measurement import Measurement
from connect.source import SourceTask
from worker.messages import messages
from worker.metrics.snapshot import BOUNDS, COMMIT, LATENCY

__all__ = [
    "AMOUNTS",
    "RATE",
    "ActiveTopics",
    "OwnMeasurements",
    "Rates",
    "ReportPace",
    "ReportedStatistics",
    "TaskMetrics",
    "Timings",
    "Window",
    "measurements_of",
]


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

    def replace(self, prefixes: tuple[str, ...], values: Mapping[str, float]) -> None:
        """Set gauges, and remove others whose names begin so: what is no longer told is no longer known."""
        kept = {name: value for name, value in self._gauges.items() if not name.startswith(prefixes)}
        self._gauges = {**kept, **values}

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


AMOUNTS: Final = ("source-remaining-", "source-total-")
"""What the names of :func:`amount_gauges` begin with."""


def amount_gauges(task: SourceTask[Any]) -> dict[str, float]:
    """Return the gauges of what a source task has to read, and of what is left; none if the task raises an error."""
    try:
        told = zip(AMOUNTS, (task.remaining(), task.total()), strict=True)
        return {f"{prefix}{unit}": float(amount) for prefix, amounts in told for unit, amount in amounts.items()}
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


_SOON_SECONDS: Final = 1.0
_LITTLE_MOVES: Final = 2.5
_AT_REST: Final = 5.0
_LONGEST_REST: Final = 160.0
_MOST_EARLY: Final = 0.6
"""The fraction of its pause by which a report may be early."""
_MANY: Final = 100
"""A task that counts this much between two reports sends the next one soon."""
_SELDOM_SECONDS: Final = 20.0
_MOST_SELDOM_SECONDS: Final = 160.0
_ALWAYS_MOVING: Final = frozenset(
    {
        *("incoming-byte-total", "outgoing-byte-total", "request-total", "response-total", "requests-in-flight"),
        *("request-latency-avg", "request-latency-max"),
    }
)
"""Values that change although no record moves, since even an idle client sends requests."""
_WITHOUT_CLIENT: Final = {"connection-count": 0.0, "requests-in-flight": 0.0}


class ReportPace:
    """Decides when the next report of a task is due: ``next_report``. Used by the task's thread alone.

    A report that is not due soon is moved to a moment at which the other tasks of this process report too. ``phase``
    shifts these moments, so that processes differ. Those of a longer pause are also those of the shorter ones, so a
    task at rest is never later than its pause.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, phase: float | None = None) -> None:
        self.next_report = 0.0
        self._now = now
        self._phase = os.getpid() % _LONGEST_REST if phase is None else phase
        self._counted = 0
        self._rests = False
        self._is_soon = False
        self._pause = _LITTLE_MOVES

    def due(self) -> bool:
        """Return whether a report is due."""
        return self._now() >= self.next_report

    def counted(self, amount: int) -> None:
        """Note that something was counted; a task that rested, or that moves much, reports soon."""
        self._counted += amount
        if not self._is_soon and (self._rests or self._counted >= _MANY):
            self._is_soon = True
            self.next_report = min(self.next_report, self._now() + _SOON_SECONDS)

    def reported(self, *, changed: bool) -> None:
        """Note that a report was made, and whether it differed from the one before it."""
        now, much = self._now(), self._counted >= _MANY
        self._counted, self._rests, self._is_soon = 0, not changed, much
        if much:
            self.next_report = now + _SOON_SECONDS
            return
        self._pause = _LITTLE_MOVES if changed else min(max(_AT_REST, 2 * self._pause), _LONGEST_REST)
        self.next_report = self._shared_moment(now + self._pause)

    def _shared_moment(self, at: float) -> float:
        """Return the last shared moment up to ``at``, or the next one if that is too soon."""
        moment = (at - self._phase) // self._pause * self._pause + self._phase
        return moment if at - moment < _MOST_EARLY * self._pause else moment + self._pause


class ReportedStatistics:
    """Reports the statistics of a Kafka client. Used by the task's thread alone."""

    def __init__(
        self, tell: Callable[[messages.ClientMetrics], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._now = now
        self._seen: ClientStatistics | None = None
        self._reported: ClientStatistics | None = None
        self._due = 0.0
        self._pause = _SELDOM_SECONDS

    def take(self, seen: ClientStatistics) -> None:
        """Report statistics: less and less often while only values change that always do, at last every 160 seconds."""
        self._seen = seen
        moves = self._reported is None or _of_records(seen) != _of_records(self._reported)
        if moves or self._now() >= self._due:
            self._pause = _SELDOM_SECONDS if moves else min(2 * self._pause, _MOST_SELDOM_SECONDS)
            self._reported, self._due = seen, self._now() + self._pause
            self._tell(messages.ClientMetrics(seen.kind, seen.client_id, seen.values, seen.lags))

    def rest(self) -> None:
        """Report that the client is closed for now."""
        if self._seen is not None:
            self.take(replace(self._seen, values={**self._seen.values, **_WITHOUT_CLIENT}))


def _of_records(seen: ClientStatistics) -> tuple[dict[str, float], list[tuple[str, int, int]]]:
    return {name: value for name, value in seen.values.items() if name not in _ALWAYS_MOVING}, seen.lags


_WINDOW: Final = 30.0
_LEAST_SECONDS: Final = 1.0
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
        seconds = max(now - since, _LEAST_SECONDS)
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
