"""Creates the objects that share the herder's work and connects them. They are used only in the herder's thread."""

from __future__ import annotations

from connect.internals.plugins import PluginRegistry
from worker.herder.cluster.fencing import Fencing
from worker.herder.cluster.leadership import Leadership
from worker.herder.cluster.other_workers import OtherWorkers
from worker.herder.cluster.ownership import Ownership
from worker.herder.cluster.publishing import Publishing
from worker.herder.cluster.rebalancing import Rebalancing, SharedNames
from worker.herder.cluster.standing import Standing
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.connectors.connector_sets import ConnectorSets
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.drains import Drains
from worker.herder.connectors.plugin_metrics import PluginMetrics
from worker.herder.connectors.restarts import Restarts
from worker.herder.connectors.schedules import Schedules
from worker.herder.connectors.signals import Signals
from worker.herder.connectors.stopped_connectors import StoppedConnectors
from worker.herder.connectors.versions import Versions
from worker.herder.connectors.writes import Writes
from worker.herder.inbox import Inbox
from worker.herder.inquiries import Inquiries
from worker.herder.metrics_history import Histories
from worker.herder.offsets.offsets import Offsets
from worker.herder.offsets.sources import OffsetLayers
from worker.herder.requests import Requests
from worker.herder.settings import HerderCallbacks, Stores, WorkerSettings
from worker.herder.snapshots import Snapshots
from worker.herder.timelines import Timelines
from worker.herder.units import Units
from worker.loggers import LoggerLevels
from worker.membership.membership import Membership
from worker.messages import messages
from worker.metrics.measurements import Measurements
from worker.supervisor.supervisor import Supervisor
from worker.unit import Unit

__all__ = ["Collaborators"]


class Collaborators:
    """The objects that share the herder's work, one attribute each."""

    def __init__(
        self,
        requests: Requests,
        worker: WorkerSettings,
        stores: Stores,
        inbox: Inbox,
        membership: Membership,
        plugins: PluginRegistry,
        supervisor: Supervisor,
        callbacks: HerderCallbacks,
    ) -> None:
        self._configs = stores.configs
        props, cluster, configs, statuses = worker.props, worker.cluster, stores.configs, stores.statuses
        self.levels = LoggerLevels(supervisor.set_log_level)
        standing = self.standing = Standing(props.get("bootstrap.servers", ""))
        self.inquiries = Inquiries(
            supervisor.inquire,
            supervisor.give_up,
            lambda: None if standing.loss is None else standing.loss.message,
        )
        owners = cluster.owners if cluster is not None else None
        self.measurements = Measurements(worker.id, statuses, membership, inbox, owners)
        others = OtherWorkers(worker.id, statuses, membership, inbox, owners)
        self.connectors = Connectors(
            configs, statuses, plugins, worker.tracking, self.measurements, self.standing.shown
        )
        self.histories = Histories(requests, worker.id, statuses, self.connectors, self.measurements, others, inbox)
        self.timelines = Timelines(requests, self.connectors)
        statuses.heard = self.timelines.heard
        self.plugin_metrics = PluginMetrics(worker.id, statuses, self.connectors, self.measurements, others)
        self.snapshots = Snapshots(worker, stores, membership, self.measurements, self.connectors, inbox)
        type_of = self.connectors.type
        is_source, is_sink = (lambda name: type_of(name) == "source"), (lambda name: type_of(name) == "sink")
        keys = cluster.keys if cluster is not None else None
        self.leadership = Leadership(
            membership, configs, inbox, keys, callbacks.follow_configs, worker.lease, self._obstacle
        )
        self.versions = Versions(requests, configs, self.leadership, stores.versions, complete=cluster is not None)
        self.changes = ChangeQueue(self.leadership, inbox.post)
        self.writes = Writes(
            props,
            configs,
            membership,
            self.connectors,
            self.leadership,
            self.inquiries,
            inbox,
            self.changes,
            self.versions.removes,
        )
        self.sets = ConnectorSets(self.writes, self.connectors, self.leadership)
        publishing = Publishing(
            configs,
            membership,
            self.leadership,
            inbox,
            worker.leader,
            self.writes.put_task_configs,
            lambda name, reason: supervisor.command(Unit(name), messages.Fail(reason)),
        )
        self.fencing = Fencing(
            worker, configs, membership, self.leadership, self.inquiries, inbox, self.changes, is_sink
        )
        self.units = Units(
            worker, stores, membership, supervisor, publishing, inbox, self.fencing.may_start, callbacks.reconcile
        )
        will_restart = self.units.will_restart
        self.drains = Drains(
            configs, statuses, self.leadership, self.changes, inbox, is_source, will_restart, together=cluster is None
        )
        self.schedules = Schedules(configs, self.leadership, self.changes, inbox)
        self.rebalancing = Rebalancing(
            membership,
            configs,
            self.units,
            self.leadership,
            self.inquiries,
            inbox,
            callbacks,
            cluster,
            self.standing,
            SharedNames(props.get("group.id", ""), props.get("config.storage.topic", "")),
        )
        self.stopped = StoppedConnectors(configs, self.units, membership, self.changes, inbox, callbacks.reconcile)
        self.ownership = Ownership(configs, self.units, inbox, is_sink)
        self.restarts = Restarts(stores, membership, self.connectors, self.leadership, self.units, inbox)
        self.signals = Signals(self.connectors, membership, self.units, supervisor, inbox)
        self.offsets = Offsets(
            requests,
            props,
            self.connectors,
            self.leadership,
            OffsetLayers(props, stores.source_offsets, self.inquiries),
            self.inquiries,
            self.stopped,
            self.fencing.former_fenced,
            statuses,
            self.measurements,
        )

    def _obstacle(self) -> str | None:
        """Return why nothing can be written to the config topic now."""
        troubles = self.standing.troubles
        return troubles[0].message if troubles else self._configs.refusal
