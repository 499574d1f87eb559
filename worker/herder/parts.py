"""The parts of a herder, put together: each decides or does one thing, all in the herder's thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from connect.plugins import PluginRegistry
from worker.herder.cluster.fencing import Fencing
from worker.herder.cluster.leadership import KeyRotation, Leadership
from worker.herder.cluster.ownership import Ownership
from worker.herder.cluster.publishing import Leader, Publishing
from worker.herder.cluster.rebalancing import Rebalancing
from worker.herder.connectors.connectors import Connectors, TopicTracking
from worker.herder.connectors.drains import Drains
from worker.herder.connectors.restarts import Restarts
from worker.herder.connectors.schedules import Schedules
from worker.herder.connectors.stopped import StoppedConnectors
from worker.herder.connectors.writes import Writes
from worker.herder.dead_letters import DeadLetters
from worker.herder.inbox import Action, Inbox
from worker.herder.inquiries import Inquiries
from worker.herder.offsets.groups import ConsumerOffsets
from worker.herder.offsets.offsets import ConnectorOffsets
from worker.herder.offsets.sources import OffsetLayers, SourceOffsets
from worker.herder.turns import Turns
from worker.herder.units import Units
from worker.membership.membership import Membership
from worker.metrics.measurements import Measurements, Owners
from worker.stores.config.store import ConfigStore
from worker.stores.status.store import StatusStore
from worker.supervisor.lease import Lease
from worker.supervisor.messages import messages
from worker.supervisor.supervisor import Supervisor
from worker.unit import Unit

__all__ = ["Calls", "ClusterSettings", "Parts", "Standing"]


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How the herder of a cluster's worker keeps up with the others; times in seconds.

    ``keys`` is there if what workers ask of each other is signed, ``lease`` is that of the
    worker's children, ``exactly_once`` says whether source tasks write in transactions, so that their former producers
    are fenced before they start.
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
class Standing:
    """What a herder stands on: its worker's properties and name, the stores, its place and the plugins."""

    worker_props: Mapping[str, str]
    worker_id: str
    inbox: Inbox
    configs: ConfigStore
    statuses: StatusStore
    membership: Membership
    plugins: PluginRegistry
    source_offsets: SourceOffsets
    tracking: TopicTracking
    cluster: ClusterSettings | None


@dataclass(frozen=True, slots=True)
class Calls:
    """What the parts call in the herder: when it may write, when something may run, when the cluster refuses it."""

    follow_configs: Action
    reconcile: Action
    refused: Callable[[str], None]


class Parts:
    """Makes the parts."""

    def __init__(self, on: Standing, supervisor: Supervisor, calls: Calls) -> None:
        props, configs, statuses, inbox, membership = on.worker_props, on.configs, on.statuses, on.inbox, on.membership
        cluster = on.cluster
        leader = cluster.leader if cluster is not None else None
        lease = cluster.lease if cluster is not None else None
        self.inquiries = Inquiries(supervisor.inquire, supervisor.give_up)
        owners = cluster.owners if cluster is not None else None
        self.measurements = Measurements(on.worker_id, statuses, membership, inbox, owners)
        self.connectors = Connectors(configs, statuses, on.plugins, on.tracking, self.measurements)
        type_of = self.connectors.type
        is_source, is_sink = (lambda name: type_of(name) == "source"), (lambda name: type_of(name) == "sink")
        keys = cluster.keys if cluster is not None else None
        self.leadership = Leadership(membership, configs, inbox, keys, calls.follow_configs, lease)
        self.turns = Turns(self.leadership, inbox.post)
        self.publishing = Publishing(
            configs,
            membership,
            self.leadership,
            inbox,
            leader,
            lambda name, reason: supervisor.command(Unit(name), messages.Fail(reason)),
        )
        self.fencing = Fencing(
            props,
            configs,
            membership,
            self.leadership,
            self.inquiries,
            inbox,
            leader,
            is_sink,
            enabled=cluster is not None and cluster.exactly_once,
        )
        self.units = Units(
            props,
            on.worker_id,
            configs,
            statuses,
            membership,
            supervisor,
            self.publishing,
            inbox,
            self.fencing.may_start,
            lease,
            calls.reconcile,
        )
        self.drains = Drains(configs, statuses, self.leadership, self.turns, inbox, is_source, together=cluster is None)
        self.schedules = Schedules(configs, self.leadership, self.turns, inbox)
        self.rebalancing = Rebalancing(
            membership,
            configs,
            self.units,
            self.leadership,
            self.inquiries,
            inbox,
            calls.reconcile,
            calls.refused,
            cluster.sync_timeout if cluster is not None else 0.0,
            cluster.unsync_backoff if cluster is not None else 0.0,
        )
        self.stopped = stopped = StoppedConnectors(configs, self.units, membership, self.turns, inbox, calls.reconcile)
        layers = OffsetLayers(props, on.source_offsets, self.inquiries, inbox.post)
        fence = self.fencing.former_fenced
        self.offsets = ConnectorOffsets(props, layers, self.inquiries, stopped, fence, inbox.post)
        self.ownership = Ownership(configs, self.units, inbox, is_sink)
        self.consumer_offsets = ConsumerOffsets(
            props, self.connectors, self.leadership, self.inquiries, stopped, statuses, self.measurements
        )
        self.dead_letters = DeadLetters(props, self.connectors, self.leadership, self.inquiries, stopped)
        self.restarts = Restarts(configs, statuses, membership, self.units, inbox)
        self.writes = Writes(
            props,
            configs,
            statuses,
            membership,
            self.connectors,
            self.leadership,
            self.inquiries,
            inbox,
            self.turns,
        )
