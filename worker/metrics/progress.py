"""Logs the worker's progress while records move, and how far long work is."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, TypeAlias

from connect.internals.status_line import IN_PLACE, time_left
from worker.formatting import counted
from worker.metrics.work import Work

__all__ = ["Progress", "ProgressLines", "ProgressLog", "Run", "WorkPace"]

Seen: TypeAlias = tuple[dict[str, float], dict[str, Work]]
"""The totals of all tasks, and how far connectors are."""

logger = logging.getLogger(__name__)
_INTERVAL_SECONDS: Final = 2.0
_SECONDS_BETWEEN_LINES: Final = 60.0
"""Where nobody sits in front of it: a log that is kept."""
_FEW: Final = 3
"""Of so many connectors a line says how far they are, of others how many they are."""
_PACE_SECONDS: Final = 30.0
_READ: Final = "source-record-write-total"
_WRITTEN: Final = "sink-record-send-total"
_LAG: Final = "sink-record-lag"
_PARTITIONS: Final = "partition-count"
_SOURCES: Final = "source-record-"
_SINKS: Final = "sink-record-"


@dataclass(frozen=True, slots=True)
class Progress:
    """The counts of all tasks at one moment. ``lag`` is that of the sinks; unknown if one sink's lag is unknown.

    ``sources`` and ``sinks`` are whether there are any.
    """

    at: float
    read: float
    written: float
    lag: float | None
    sources: bool
    sinks: bool

    @classmethod
    def of(cls, totals: Mapping[str, float], at: float) -> Progress:
        """Create the counts from the totals of the metrics."""
        return cls(
            at,
            totals.get(_READ, 0.0),
            totals.get(_WRITTEN, 0.0),
            totals.get(_LAG),
            any(name.startswith(_SOURCES) for name in totals),
            _PARTITIONS in totals or any(name.startswith(_SINKS) for name in totals),
        )

    def line(self, before: Progress) -> str | None:
        """Return a line with the rates since ``before``, or ``None`` if nothing has moved.

        A total that falls because a task left this worker is not movement.
        """
        read, written = max(0.0, self.read - before.read), max(0.0, self.written - before.written)
        if not read and not written:
            return None
        seconds = max(self.at - before.at, 1e-9)
        halves = []
        if self.sources:
            halves.append(f"{counted(self.read, 'record')} read ({read / seconds:,.0f}/s)")
        if self.sinks:
            lag = f", lag {'unknown' if self.lag is None else f'{self.lag:,.0f}'}"
            count = f"{self.written:,.0f}" if halves else counted(self.written, "record")
            halves.append(f"{count} written ({written / seconds:,.0f}/s){lag}")
        return ", ".join(halves)


class Run:
    """Adds up what has moved since the worker began."""

    def __init__(self, begun: float) -> None:
        self._begun = begun
        self._ended = begun
        self._read = 0.0
        self._written = 0.0

    def add(self, before: Progress, now: Progress) -> None:
        """Add what has moved between two moments. Counts that leave with their task stay in the sum."""
        read, written = max(0.0, now.read - before.read), max(0.0, now.written - before.written)
        if read or written:
            self._read += read
            self._written += written
            self._ended = now.at

    def line(self) -> str | None:
        """Return the sums and the time that it took; ``None`` if nothing has moved.

        The time begins with the worker, and ends when the last record was counted.
        """
        halves = []
        if self._read:
            halves.append(f"{counted(self._read, 'record')} read")
        if self._written:
            halves.append(f"{self._written:,.0f} written" if halves else f"{counted(self._written, 'record')} written")
        return f"{', '.join(halves)} in {self._ended - self._begun:,.1f} s" if halves else None


class ProgressLines:
    """Chooses the moments that get a line: the first at which something has moved, and others ``seconds`` later."""

    def __init__(self, begun: float, seconds: float) -> None:
        self._seconds = seconds
        self._before = Progress.of({}, begun)
        self._last: float | None = None

    def line(self, now: Progress) -> str | None:
        """Return a line with the rates since the one before; ``None`` if it is not time, or nothing has moved."""
        if self._last is not None and now.at - self._last < self._seconds:
            return None
        line = now.line(self._before)
        self._before = now
        if line is not None:
            self._last = now.at
        return line


class WorkPace:
    """How fast the works of connectors go on, by what was done in the last half minute."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, Work]]] = {}

    def texts(self, at: float, works: Mapping[str, Work]) -> list[str]:
        """Return how far each work is, its rate and its remaining time, those first that take longest."""
        self._seen = {name: self._samples(name, at, work) for name, work in works.items()}
        left = {name: self._left(name) for name in works}
        named = sorted(works, key=lambda name: (-left[name], name))
        texts = [self._text(name, works[name], left[name]) for name in named[:_FEW]]
        return [*texts, f"and {len(named) - _FEW} more connectors"] if len(named) > _FEW else texts

    def _samples(self, name: str, at: float, work: Work) -> deque[tuple[float, Work]]:
        samples = self._seen.get(name, deque())
        if samples and (samples[-1][1].unit != work.unit or work.done < samples[-1][1].done):
            samples.clear()  # Another work has begun.
        while samples and samples[0][0] < at - _PACE_SECONDS:
            samples.popleft()
        samples.append((at, work))
        return samples

    def _rate(self, name: str) -> float:
        (first, before), (last, now) = self._seen[name][0], self._seen[name][-1]
        return (now.done - before.done) / (last - first) if last > first else 0.0

    def _left(self, name: str) -> float:
        work, rate = self._seen[name][-1][1], self._rate(name)
        return (work.total - work.done) / rate if rate else math.inf

    def _text(self, name: str, work: Work, left: float) -> str:
        pace = "" if left == math.inf else f", {self._rate(name):,.0f}/s, {time_left(left)}"
        return f"{name} {work.bar} {work.percent} % of {work.total:,} {work.unit}{pace}"


class ProgressLog:
    """Tells the progress in place on a terminal, by a line a minute elsewhere, and the sums at the end.

    It does so in a thread that does nothing else.
    """

    def __init__(self, seen: Callable[[], Future[Seen]], *, on_terminal: bool) -> None:
        self._seen = seen
        self._on_terminal = on_terminal
        self._pace = WorkPace()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="progress", daemon=True)

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    def close(self) -> None:
        """Write the sums if something has moved, and end."""
        self._stopped.set()
        self._thread.join()

    def _loop(self) -> None:
        before = Progress.of({}, time.monotonic())
        run = Run(before.at)
        lines = ProgressLines(before.at, 0.0 if self._on_terminal else _SECONDS_BETWEEN_LINES)
        while True:
            ended = self._stopped.wait(_INTERVAL_SECONDS)
            totals, works = self._seen().result()
            now = Progress.of(totals, time.monotonic())
            texts = self._pace.texts(now.at, works)
            if (line := lines.line(now)) is not None or (texts and self._on_terminal):
                self._tell([*texts, *([line] if line else [])])
            elif self._on_terminal:
                self._tell([])
            run.add(before, now)
            before = now
            if ended:
                self._end(run)
                return

    def _tell(self, texts: Sequence[str]) -> None:
        if self._on_terminal:
            logger.info("%s", "; ".join(texts), extra=IN_PLACE)
        else:
            for text in texts:
                logger.info("%s", text)

    def _end(self, run: Run) -> None:
        if self._on_terminal:
            self._tell([])
        if (sums := run.line()) is not None:
            logger.info("In all: %s", sums)
