"""Logs the worker's progress while records move."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from worker.formatting import counted

__all__ = ["Progress", "ProgressLines", "ProgressLog", "Run"]

logger = logging.getLogger(__name__)
_INTERVAL_SECONDS: Final = 2.0
_SECONDS_BETWEEN_LINES: Final = 60.0
"""Where nobody sits in front of it: a log that is kept."""
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


class ProgressLog:
    """Logs the progress every two seconds on a terminal, every minute elsewhere, and the sums at the end.

    It does so in a thread that does nothing else.
    """

    def __init__(self, totals: Callable[[], Future[dict[str, float]]], *, on_terminal: bool) -> None:
        self._totals = totals
        self._seconds = 0.0 if on_terminal else _SECONDS_BETWEEN_LINES
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
        run, lines = Run(before.at), ProgressLines(before.at, self._seconds)
        while True:
            ended = self._stopped.wait(_INTERVAL_SECONDS)
            now = Progress.of(self._totals().result(), time.monotonic())
            if (line := lines.line(now)) is not None:
                logger.info("%s", line)
            run.add(before, now)
            before = now
            if ended:
                if (sums := run.line()) is not None:
                    logger.info("In all: %s", sums)
                return
