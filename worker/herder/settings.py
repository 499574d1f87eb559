"""A herder's settings and stores, which do not change while a worker runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from worker.herder.cluster.leadership import KeyRotation
from worker.herder.connectors.connectors import TopicTracking
from worker.herder.inbox import Action
from worker.peers.leader import LeaderClient
from worker.peers.owner import OwnerClient
from worker.processes.lease import Lease
from worker.stores.config.store import ConfigStore
from worker.stores.offset.service import OffsetService
from worker.stores.status.store import StatusStore
from worker.stores.versions.service import VersionService

__all__ = ["ClusterSettings", "HerderCallbacks", "Stores", "WorkerSettings"]


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of a worker or of its cluster. Without ``versions``, no history of configurations is kept.

    ``offset_refusal`` returns why the topic of the source offsets cannot be used; any thread may call it.
    """

    configs: ConfigStore
    statuses: StatusStore
    source_offsets: OffsetService
    versions: VersionService | None = None
    offset_refusal: Callable[[], str | None] = lambda: None


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How a worker takes part in its cluster; times are in seconds.

    ``keys`` is set if workers sign their requests to each other. ``lease`` is the lease of the worker's child
    processes. ``exactly_once`` is whether source tasks write in transactions, so that former producers are fenced
    before they start.
    """

    leader: LeaderClient
    owners: OwnerClient
    keys: KeyRotation | None
    verification_algorithms: tuple[str, ...]
    lease: Lease
    sync_timeout: float
    unsync_backoff: float
    exactly_once: bool


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """A worker's properties, its id (``host:port``), and its cluster settings, ``None`` in standalone mode."""

    props: Mapping[str, str] = field(repr=False)
    id: str
    tracking: TopicTracking = field(default_factory=TopicTracking)
    cluster: ClusterSettings | None = None

    @property
    def lease(self) -> Lease | None:
        """The lease of the worker's child processes; ``None`` in standalone mode."""
        return self.cluster.lease if self.cluster is not None else None

    @property
    def leader(self) -> LeaderClient | None:
        """The client for requests to the leader, if another worker may lead."""
        return self.cluster.leader if self.cluster is not None else None


@dataclass(frozen=True, slots=True)
class HerderCallbacks:
    """Callbacks from the herder's collaborators into the herder.

    ``follow_configs`` is called when this worker may write, ``reconcile`` when a unit may start or must stop, and
    ``refused``, with the reason, when the cluster rejects this worker.
    """

    follow_configs: Action
    reconcile: Action
    refused: Callable[[str], None]
