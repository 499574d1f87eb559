"""What a worker knows at one moment, for scrapes: immutable, so that any thread may read it. And its histograms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from worker.metrics.lifetimes import LifetimesSeen
from worker.stores.status.store import Status
from worker.unit import Unit

__all__ = [
    "BOUNDS",
    "COMMIT",
    "LATENCY",
    "POLL",
    "PUT",
    "ClientSeen",
    "ConnectorSeen",
    "GroupSeen",
    "OwnSeries",
    "OwnValue",
    "Snapshot",
    "TaskSeen",
    "own_values",
]


_OTHER_COUNTS: Final = frozenset(("last-error-timestamp", "offset-commit-seq-no"))


@dataclass(frozen=True, slots=True)
class ConnectorSeen:
    """A connector of this worker: its class as configured, and ``source``, ``sink`` or ``unknown``."""

    class_name: str
    type: str


@dataclass(frozen=True, slots=True)
class ClientSeen:
    """The statistics of a Kafka client of a task."""

    kind: str
    client_id: str
    values: Mapping[str, float]
    lags: tuple[tuple[str, int, int], ...]


OwnSeries: TypeAlias = tuple[str, tuple[str, ...]]
"""The name of a plugin's metric, and its labels as alternating names and values."""


@dataclass(frozen=True, slots=True)
class OwnValue:
    """A metric recorded by a plugin, and its description."""

    value: float
    help: str


def own_values(
    changes: Iterable[tuple[str, Sequence[str], str, float | None]],
) -> dict[OwnSeries, OwnValue | None]:
    """Return the changes to a plugin's metrics, as its process reports them; ``None`` marks a removed metric."""
    return {
        (str(name), tuple(map(str, labels))): None if value is None else OwnValue(float(value), str(text))
        for name, labels, text, value in changes
    }


@dataclass(frozen=True, slots=True)
class TaskSeen:
    """The last report of a task, and of each of its clients."""

    values: Mapping[str, float] = field(default_factory=dict)
    histograms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    clients: tuple[ClientSeen, ...] = ()
    at: float = 0.0
    own: Mapping[OwnSeries, OwnValue] = field(default_factory=dict)

    def counts(self) -> TaskSeen:
        """Return what is still true of a task that does not report any more: its counts."""
        counts = {name: value for name, value in self.values.items() if _is_count(name)}
        return replace(self, values=counts, clients=(), own={})


def _is_count(name: str) -> bool:
    return name.endswith("-total") or name.startswith(("total-", "deadletterqueue-")) or name in _OTHER_COUNTS


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """This worker in its group: counts since it started, times in seconds; ``None`` means not yet."""

    client_id: str
    leader_url: str | None
    protocol: str
    epoch: int
    is_rebalancing: bool
    failed_joins: int
    rebalances: int
    rebalance_seconds: float
    longest_rebalance: float
    since_rebalance: float | None
    heartbeats: int
    since_heartbeat: float | None
    connection: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot. ``at`` and ``started`` are in seconds since 1970; the statuses are those of this worker's own units.

    ``group`` is ``None`` in a standalone worker; ``inbox`` is the number of requests and notices waiting for the
    herder.
    """

    at: float
    worker_id: str
    is_leader: bool
    connectors: Mapping[str, ConnectorSeen]
    statuses: Mapping[Unit, Status]
    tasks: Mapping[Unit, TaskSeen]
    lives: LifetimesSeen
    group: GroupSeen | None
    inbox: int
    started: float = 0.0


POLL: Final = "poll-batch"
PUT: Final = "put-batch"
COMMIT: Final = "offset-commit"
LATENCY: Final = "record-latency"
_OF_CALLS: Final = (0.001, 0.01, 0.1, 1.0, 10.0)
_OF_LATENCY: Final = (0.1, 1.0, 10.0, 60.0, 600.0)
BOUNDS: Final[Mapping[str, tuple[float, ...]]] = {
    POLL: _OF_CALLS,
    PUT: _OF_CALLS,
    COMMIT: _OF_CALLS,
    LATENCY: _OF_LATENCY,
}
"""The upper bounds of the buckets in seconds, without the last bucket.

Few, because each is one more series per task.
"""
