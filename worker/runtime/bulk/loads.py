"""The current load of a bulk task and the last ones, for the status, the metrics and the log.

While a load runs, a separate thread reports its progress once a second. None of this is stored: a kill loses only the
display.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from connect.bulk import Progress
from connect.internals.status_line import on_terminal, time_left
from worker.formatting import counted, utc_text, written_text
from worker.messages import messages
from worker.runtime.bulk.plan import Plan
from worker.runtime.metrics import TaskMetrics

__all__ = ["Loads"]

logger = logging.getLogger(__name__)
_TICK_SECONDS: Final = 1.0
_LINE_SECONDS: Final = 60.0
_KEPT: Final = 20
_RANGES: Final = 20
_LONGEST_TEXT: Final = 2_000


@dataclass(slots=True)
class _Load:
    """An attempt to load a plan."""

    number: int
    plan: Plan
    begun: float = field(default_factory=time.monotonic)
    begun_at: float = field(default_factory=time.time)
    ended: float | None = None
    progress: Progress = field(default_factory=lambda: Progress("starting"))
    error: str | None = None

    @property
    def seconds(self) -> float:
        return (time.monotonic() if self.ended is None else self.ended) - self.begun

    @property
    def records(self) -> int:
        """The number of its records; of a source, those read so far."""
        return self.plan.records if self.plan.ranges else self.progress.records

    @property
    def found_nothing(self) -> bool:
        """Whether a source had nothing to load."""
        return not (self.plan.ranges or self.progress.records or self.error)

    def document(self) -> dict[str, Any]:
        """Return the load as a document, with the first of many ranges."""
        plan, seconds = self.plan, self.seconds
        return {
            "number": self.number,
            "begun_at": utc_text(self.begun_at),
            "seconds": round(seconds, 3),
            "reason": plan.reason,
            "topics": len({item.topic for item in plan.ranges}),
            "partitions": len(plan.ranges),
            "records": self.records,
            "ranges": [
                {"topic": item.topic, "partition": item.partition, "first": item.first, "end": item.end}
                for item in plan.ranges[:_RANGES]
            ],
            "progress": asdict(self.progress),
            "rows_per_second": round(self.progress.rows / max(seconds, _TICK_SECONDS)),
            "error": self.error,
        }

    def line(self) -> str:
        """Return its progress, for the log."""
        progress = self.progress
        of = counted(self.records, "record")
        if progress.records and self.plan.ranges:
            rate = progress.records / max(self.seconds, _TICK_SECONDS)
            left = time_left((self.records - progress.records) / rate)
            of = f"{progress.records:,} of {of} ({rate:,.0f} a second, {left})"
        written = written_text(progress.rows, progress.bytes, progress.files)
        return f"Loading for {self.seconds:,.0f} s: {progress.stage}, {of}{written}"

    def last_line(self) -> str:
        """Return its outcome, for the log."""
        plan, progress, seconds = self.plan, self.progress, self.seconds
        rate = f" ({progress.rows / max(seconds, 0.001):,.0f} a second)" if progress.rows else ""
        count = len(plan.ranges)
        of = f" of {count:,} partition{'s' * (count > 1)}" if count else ""
        return (
            f"Loaded {counted(self.records, 'record')}{of} in {seconds:,.1f} s{rate}"
            f"{written_text(progress.rows, progress.bytes, progress.files)}. It was due by {plan.reason}."
        )


class Loads:
    """Keeps track of loads. The task's thread begins and ends them; any thread may report progress."""

    def __init__(
        self, send: Callable[[messages.Loads], None], hide: Callable[[str], str], metrics: TaskMetrics
    ) -> None:
        self._send = send
        self._hide = hide
        self._metrics = metrics
        self._lock = threading.Lock()
        self._number = 0
        self._current: _Load | None = None
        self._last: deque[_Load] = deque(maxlen=_KEPT)
        self._retry: dict[str, Any] | None = None
        self._failures = 0

    def tell(self, progress: Progress) -> None:
        """Record the progress of the current load. It comes from a plugin, so its types are checked."""
        shown = Progress(
            self._shown(progress.stage),
            int(progress.records),
            int(progress.rows),
            int(progress.bytes),
            int(progress.files),
            None if progress.ui is None else self._shown(progress.ui),
        )
        with self._lock:
            if self._current is not None:
                self._current.progress = shown

    @contextmanager
    def under_way(self, plan: Plan) -> Iterator[None]:
        """Record a ``with`` block as the load of this plan."""
        self._number += 1
        load = _Load(self._number, plan)
        with self._lock:
            self._current, self._retry = load, None
        if plan.ranges:
            self._report()
        over = threading.Event()
        teller = threading.Thread(target=self._tell_on, args=(load, over), name="load", daemon=True)
        teller.start()
        try:
            yield
        except BaseException as error:
            # Whatever a plugin raises, even SystemExit.
            load.error = self._shown(str(error) or type(error).__name__)
            raise
        finally:
            over.set()
            teller.join()
            self._end(load)

    def retried_in(self, seconds: float) -> None:
        """Show that the failed load will be retried after this many seconds."""
        with self._lock:
            error = self._last[-1].error if self._last else None
            at = utc_text(time.time() + seconds)
            self._retry = {"at": at, "attempts": self._failures, "error": error}
        self._report()

    def _end(self, load: _Load) -> None:
        load.ended = time.monotonic()
        with self._lock:
            self._current = None
            if not load.found_nothing:
                self._last.append(load)
        if load.found_nothing:
            self._failures = 0
            self._number -= 1
        elif load.error is None:
            self._failures = 0
            self._count(load)
            logger.info("%s", load.last_line())
        else:
            self._failures += 1
            self._metrics.count("load-failure-total", 1)
        self._report()

    def _count(self, load: _Load) -> None:
        progress = load.progress
        self._metrics.count("load-total", 1)
        self._metrics.count("load-time-ms-total", round(load.seconds * 1000))
        self._metrics.count("load-row-total", progress.rows)
        self._metrics.count("load-byte-total", progress.bytes)
        self._metrics.count("load-file-total", progress.files)

    def _tell_on(self, load: _Load, over: threading.Event) -> None:
        # On a terminal the worker shows all loads in one line.
        due = math.inf if on_terminal() else _LINE_SECONDS
        while not over.wait(_TICK_SECONDS):
            if load.seconds >= due:
                due = load.seconds + _LINE_SECONDS
                logger.info("%s", load.line())
            # The task's thread, to which the metrics belong, is waiting for the load.
            self._metrics.report()
            self._report()

    def _report(self) -> None:
        with self._lock:
            current = None if self._current is None else self._current.document()
            last = [load.document() for load in reversed(self._last)]
            retry = self._retry
        self._send(messages.Loads(current, last, retry))

    def _shown(self, text: str) -> str:
        return self._hide(str(text))[:_LONGEST_TEXT]
