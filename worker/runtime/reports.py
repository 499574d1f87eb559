"""When a task reports its metrics, and those of its Kafka client: less often while little moves.

Each report wakes the task, the supervisor and the herder, which is most of the cost of tasks with little to do. So the
tasks of one process make their reports at the same moments, unless they are urgent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from connect.internals.kafka.clients.statistics import ClientStatistics
from worker.messages import messages

__all__ = ["ReportPace", "ReportedStatistics"]

_SOON: Final = 1.0
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
            self.next_report = min(self.next_report, self._now() + _SOON)

    def reported(self, *, changed: bool) -> None:
        """Note that a report was made, and whether it differed from the one before it."""
        now, much = self._now(), self._counted >= _MANY
        self._counted, self._rests, self._is_soon = 0, not changed, much
        if much:
            self.next_report = now + _SOON
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
