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

__all__ = ["Progress", "ProgressLog"]

logger = logging.getLogger(__name__)
_INTERVAL: Final = 2.0
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


class ProgressLog:
    """Logs the progress every two seconds, from its own thread, which only queries and logs."""

    def __init__(self, totals: Callable[[], Future[dict[str, float]]]) -> None:
        self._totals = totals
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="progress", daemon=True)

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    def close(self) -> None:
        """Write a last line if something has changed, and end."""
        self._stopped.set()
        self._thread.join()

    def _loop(self) -> None:
        before = Progress.of({}, time.monotonic())
        while True:
            ended = self._stopped.wait(_INTERVAL)
            now = Progress.of(self._totals().result(), time.monotonic())
            if (line := now.line(before)) is not None:
                logger.info("%s", line)
            before = now
            if ended:
                return
