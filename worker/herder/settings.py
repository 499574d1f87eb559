"""The settings of a herder, and the stores it works on: fixed when a worker starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from worker.herder.cluster.leadership import KeyRotation
from worker.herder.cluster.publishing import Leader
from worker.herder.connectors.connectors import TopicTracking
from worker.herder.inbox import Action
from worker.herder.offsets.sources import SourceOffsets
from worker.metrics.measurements import Owners
from worker.stores.config.store import ConfigStore
from worker.stores.status.store import StatusStore
from worker.stores.versions.service import VersionService
from worker.supervisor.lease import Lease

__all__ = ["ClusterSettings", "HerderCallbacks", "Stores", "WorkerSettings"]


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of a worker, or of its cluster. Without ``versions`` there is no history of configurations."""

    configs: ConfigStore
    statuses: StatusStore
    source_offsets: SourceOffsets
    versions: VersionService | None = None


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The way in which a worker works with the others of its cluster; times in seconds.

    ``keys`` is set if the workers sign their requests to each other, ``lease`` is the lease of the worker's children,
    ``exactly_once`` says whether source tasks write in transactions, so that their former producers are fenced before
    they start.
    """

    leader: Leader
    owners: Owners
    keys: KeyRotation | None
    verification_algorithms: tuple[str, ...]
    lease: Lease
    sync_timeout: float
    unsync_backoff: float
    exactly_once: bool


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The properties of a worker, its id (``host:port``), and how it works with its cluster; alone without one."""

    props: Mapping[str, str] = field(repr=False)
    id: str
    tracking: TopicTracking = field(default_factory=TopicTracking)
    cluster: ClusterSettings | None = None

    @property
    def lease(self) -> Lease | None:
        """The lease of the worker's children; a standalone worker needs none."""
        return self.cluster.lease if self.cluster is not None else None

    @property
    def leader(self) -> Leader | None:
        """The way to ask the leader, if that may be another worker."""
        return self.cluster.leader if self.cluster is not None else None


@dataclass(frozen=True, slots=True)
class HerderCallbacks:
    """The calls from a herder's collaborators back into it.

    ``follow_configs`` is called when it may write, ``reconcile`` when something may run or has to stop, and ``refused``
    with the reason when the cluster does not accept the worker.
    """

    follow_configs: Action
    reconcile: Action
    refused: Callable[[str], None]
