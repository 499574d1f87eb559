"""The statistics of a task's Kafka client, as the worker is told of them: less often while nothing moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from connect.kafka.clients.statistics import ClientStatistics
from worker.supervisor.messages import messages

__all__ = ["ToldStatistics"]

_SELDOM_SECONDS: Final = 20.0
_ALWAYS_MOVING: Final = frozenset(
    {
        *("incoming-byte-total", "outgoing-byte-total", "request-total", "response-total", "requests-in-flight"),
        *("request-latency-avg", "request-latency-max"),
    }
)
"""What changes although no record moves: a client that waits asks again and again."""
_WITHOUT_CLIENT: Final = {"connection-count": 0.0, "requests-in-flight": 0.0}


class ToldStatistics:
    """Tells what a client says of itself. Used by the task's thread alone."""

    def __init__(
        self, tell: Callable[[messages.ClientMetrics], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._now = now
        self._seen: ClientStatistics | None = None
        self._told: ClientStatistics | None = None
        self._due = 0.0

    def take(self, seen: ClientStatistics) -> None:
        """Tell these, unless they differ from those told last only in what always moves, and that was lately."""
        self._seen = seen
        if self._told is None or self._now() >= self._due or _of_records(seen) != _of_records(self._told):
            self._told, self._due = seen, self._now() + _SELDOM_SECONDS
            self._tell(messages.ClientMetrics(seen.kind, seen.client_id, seen.values, seen.lags))

    def rest(self) -> None:
        """Tell that there is no client any more, for now."""
        if self._seen is not None:
            self.take(replace(self._seen, values={**self._seen.values, **_WITHOUT_CLIENT}))


def _of_records(seen: ClientStatistics) -> tuple[dict[str, float], list[tuple[str, int, int]]]:
    return {name: value for name, value in seen.values.items() if name not in _ALWAYS_MOVING}, seen.lags
