"""Messages about what a task has done and does: reports of a child process.

They are part of :mod:`worker.supervisor.messages.messages`, which encodes and decodes all messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["ClientMetrics", "Loads", "Metrics"]


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counters and gauges of a task by name; counters only grow while the process lives.

    ``values`` are shown in statuses, ``details`` only to who scrapes; ``histograms`` have a sum and the counts of the
    buckets (:mod:`worker.metrics.histograms`). ``own`` is what has changed of the plugin's own: of each a name, its
    labels by turns with their values, a sentence about it, and the number; ``None`` if it is there no longer. ``cpu``
    is how many seconds of a core the task's threads have taken since it began.
    """

    values: dict[str, float]
    details: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, list[float]] = field(default_factory=dict)
    own: list[tuple[str, list[str], str, float | None]] = field(default_factory=list)
    cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class ClientMetrics:
    """What the statistics of a Kafka client say: its kind, its values, and the lag by topic and partition."""

    kind: str
    client_id: str
    values: dict[str, float]
    lags: list[tuple[str, int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Loads:
    """The load of a bulk sink that is under way, if any, and the last ones, the newest first, as documents.

    ``retry`` tells when one that has failed is tried again.
    """

    current: dict[str, Any] | None
    last: list[dict[str, Any]]
    retry: dict[str, Any] | None
