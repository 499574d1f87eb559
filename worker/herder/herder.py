"""The herder: one thread with one inbox that answers requests and decides what this worker runs.

Requests and notices arrive in the inbox and are handled one after the other. Pure functions of the state decide what to
do (:mod:`worker.herder.reconcile`, :mod:`worker.herder.connectors.drains`,
:mod:`worker.herder.connectors.automatic_restarts`), and the supervisor's thread does it; the herder itself never waits
for a plugin, a process or a socket. Standalone and distributed workers have the same herder: a standalone worker always
leads, and all units are assigned to it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from connect.errors import ConnectError
from connect.internals.plugins import PluginRegistry
from worker.herder.cluster.peers import Peers
from worker.herder.cluster.standing import Trouble
from worker.herder.cluster.view import ClusterView
from worker.herder.collaborators import Collaborators
from worker.herder.connectors.drains import Outcome
from worker.herder.connectors.requests import ConnectorRequests
from worker.herder.dead_letters import DeadLetters
from worker.herder.inbox import Inbox, Once
from worker.herder.loggers import Loggers
from worker.herder.plugins import Plugins
from worker.herder.previews import Previews
from worker.herder.requests import Requests, answered
from worker.herder.settings import HerderCallbacks, Stores, WorkerSettings
from worker.membership.membership import Membership
from worker.metrics.snapshot import Snapshot
from worker.metrics.work import Work
from worker.stores.config.store import (
    ConfigChange,
    ConnectorChanged,
    ConnectorRemoved,
    LoggerLevelChanged,
    RestartRequested,
    TargetState,
    TargetStateChanged,
    TasksChanged,
    WritesLost,
)
from worker.supervisor.notices import (
    Answered,
    AnsweredInPart,
    Changed,
    ClientMeasured,
    Expires,
    Hangs,
    JvmLaunched,
    Launched,
    Loaded,
    Measured,
    Noted,
    Notice,
    OwnershipAsked,
    Published,
    Rested,
    SignalAnswered,
    StillMeasured,
    TopicsUsed,
)
from worker.supervisor.supervisor import Supervisor

__all__ = ["Herder"]

logger = logging.getLogger(__name__)

# The longest time that a request for an unknown connector waits for the config topic if no broker answers.
_CATCH_UP_SECONDS: Final = 3.0


class Herder:
    """Runs connectors. Its public methods and those of its interfaces may be called from any thread.

    The interfaces are ``connectors``, ``offsets``, ``dead_letters``, ``plugins``, ``previews``, ``loggers``,
    ``versions``, ``histories``, ``timelines``, ``cluster`` and ``peers`` (requests of other workers). Their methods
    return a :class:`~worker.herder.requests.Request`, which is completed later. ``drained`` completes when every
    connector is drained, and fails if the worker has to end. ``broker_troubles`` returns what is wrong with the brokers
    if the worker has no group from which to know it; any thread may call it.
    """

    def __init__(
        self,
        worker: WorkerSettings,
        stores: Stores,
        inbox: Inbox,
        membership: Membership,
        supervisor: Callable[[Callable[[Notice], None]], Supervisor],
        plugins: PluginRegistry,
        broker_troubles: Callable[[], list[Trouble]] = list,
    ) -> None:
        self._inbox = inbox
        self._broker_troubles = broker_troubles
        self._configs = stores.configs
        self._versions = stores.versions
        self._offset_refusal = stores.offset_refusal
        self._statuses = stores.statuses
        self._membership = membership
        self._closing = False
        self._follow_soon = Once(inbox, self._follow_configs)
        self._reconcile_soon = Once(inbox, self._reconcile)
        self._thread = threading.Thread(target=self._loop, name="herder")
        self.drained: Future[Outcome] = Future()
        self._supervisor = supervisor(lambda notice: inbox.post(lambda: self._notice(notice)))
        callbacks = HerderCallbacks(self._follow_configs, self._reconcile, self._refused)
        requests = self._requests = Requests(inbox, lambda: stores.configs.read_to_end(_CATCH_UP_SECONDS))
        made = self._collaborators = Collaborators(
            requests, worker, stores, inbox, membership, plugins, self._supervisor, callbacks
        )
        self.connectors = ConnectorRequests(
            requests, made.connectors, made.writes, made.sets, made.restarts, made.plugin_metrics, made.signals
        )
        self.versions = made.versions
        self.offsets = made.offsets
        self.dead_letters = DeadLetters(
            requests, worker.props, made.connectors, made.leadership, made.inquiries, made.stopped
        )
        self.plugins = Plugins(requests, worker.props, plugins, made.connectors, made.inquiries)
        self.previews = Previews(requests, worker.props, made.connectors, made.inquiries, stores.source_offsets)
        self.loggers = Loggers(requests, made.levels, stores.configs)
        self.cluster = ClusterView(
            requests,
            worker.id,
            membership,
            stores.statuses,
            made.rebalancing,
            made.standing,
            self.troubles,
            distributed=worker.cluster is not None,
        )
        self.histories = made.histories
        self.timelines = made.timelines
        self.peers = Peers(requests, worker.cluster, stores.configs, made.connectors, made.writes, made.fencing)

    def start(self) -> None:
        """Read the stores and start working. Blocks until the stores are read.

        Raises :class:`~connect.errors.ConnectError` if they cannot be read.
        """
        self._configs.start(self._config_changed)
        self._statuses.start()
        if self._versions is not None:
            self._versions.start()
        self._supervisor.start_thread()
        self._inbox.post(self._collaborators.rebalancing.start)
        self._inbox.post(self._collaborators.leadership.changed)
        self._inbox.post(self._reconcile)
        self._inbox.post(self._collaborators.histories.start)
        self._inbox.post(self._collaborators.snapshots.start)
        self._thread.start()

    def close(self) -> None:
        """Stop every connector and task, leave the cluster, and return when everything has ended."""
        self._inbox.post(self._begin_to_close)
        self._supervisor.close()
        self._inbox.close()
        if self._thread.ident is not None:
            self._thread.join()
        self._membership.close()
        if self._versions is not None:
            self._versions.close()
        self._statuses.close()
        self._configs.close()

    def all_created(self) -> None:
        """Let sinks drain, because all connectors have been created.

        Before this call, sinks with ``run.until=drained`` are not told to drain: their source may not exist yet.
        """
        self._inbox.post(self._see_all_created)

    def when_leading(self, action: Callable[[], None]) -> None:
        """Call ``action`` in the herder's thread: now if this worker leads, and whenever it becomes the leader."""
        self._inbox.post(lambda: self._call_when_leading(action))

    @answered
    def progress(self) -> tuple[dict[str, float], dict[str, Work]]:
        """Return the sums of the measurements of all tasks on this worker, and how far connectors' tasks here are."""
        measurements = self._collaborators.measurements
        return measurements.totals(), measurements.works()

    @property
    def snapshot(self) -> Snapshot | None:
        """The latest snapshot for scrapes; ``None`` before the first one. Never blocks."""
        return self._collaborators.snapshots.latest

    @answered
    def ping(self) -> None:
        """Answer from the herder's thread, which shows that it is alive."""

    def troubles(self) -> list[Trouble]:
        """Return what keeps this worker from its work: a lost cluster, brokers that do not answer. Never blocks."""
        return [*self._collaborators.standing.troubles, *self._broker_troubles()]

    def refusals(self) -> list[str]:
        """Return why this worker's topics cannot be used: access denied, or a topic is gone. Never blocks."""
        found = (self._configs.refusal, self._statuses.refusal, self._offset_refusal())
        return [refusal for refusal in found if refusal is not None]

    @answered
    def unready(self) -> list[str]:
        """Return the reasons why this worker cannot run connectors now; an empty list if it can."""

        closing = ["This worker is stopping."] if self._closing else []
        silent = [trouble.message for trouble in self._broker_troubles()]
        return closing + silent + self.refusals() + self._collaborators.rebalancing.unready()

    # -- in the herder's thread --------------------------------------------------------------------------------------

    def _loop(self) -> None:
        while (action := self._inbox.take()) is not None:
            try:
                action()
            except Exception as error:
                # A bug in Sluice. Continuing could run a task twice, so the worker must end (invariant I6).
                logger.exception(
                    "The herder failed; the worker stops. This is a bug in Sluice: please report it with this trace"
                )
                if not self.drained.done():
                    self.drained.set_exception(error)

    def _begin_to_close(self) -> None:
        self._closing = True
        self._collaborators.changes.end("this worker is stopping")

    def _refused(self, message: str) -> None:
        if not self.drained.done():
            self.drained.set_exception(ConnectError(message))

    def _notice(self, notice: Notice) -> None:
        match notice:
            case Launched() | JvmLaunched() | Rested() | Measured() | StillMeasured() | ClientMeasured():
                self._collaborators.snapshots.heard(notice)
                if isinstance(notice, Launched):
                    self._collaborators.signals.heard(notice)
            case Loaded(unit, loads):
                self._collaborators.measurements.take_loads(unit, loads)
            case TopicsUsed(unit, topics):
                if self._collaborators.units.speaks_for(unit):
                    self._collaborators.connectors.uses_topics(unit, topics)
            case Hangs() | Noted():
                self._collaborators.units.heard(notice)
            case SignalAnswered():
                self._collaborators.signals.heard(notice)
            case Answered():
                self._collaborators.inquiries.answered(notice)
            case AnsweredInPart():
                self._collaborators.inquiries.answered_in_part(notice)
            case OwnershipAsked():
                self._collaborators.ownership.asked(notice)
            case Changed() | Published() | Expires():
                if isinstance(notice, Changed):
                    self._collaborators.snapshots.heard(notice)
                    self._collaborators.signals.heard(notice)
                self._collaborators.units.heard(notice)
                # Reconciling many units takes a while, so all notices that arrive until then share one call.
                self._reconcile_soon.post()

    def _config_changed(self, change: ConfigChange) -> None:
        match change:
            case RestartRequested(name, include_tasks, only_failed):
                self._collaborators.restarts.requested(name, include_tasks=include_tasks, only_failed=only_failed)
                return
            case LoggerLevelChanged(namespace, level):
                self._collaborators.levels.set_for_cluster(namespace, level)
                return
            case WritesLost():
                self._collaborators.leadership.writes_lost()
                return
            case ConnectorChanged(name):
                self._collaborators.versions.changed(name)
            case ConnectorRemoved(name):
                self._collaborators.versions.removed(name)
                self._collaborators.connectors.forget(name)
                self._collaborators.histories.forget(name)
                self._collaborators.timelines.forget(name)
                self._collaborators.snapshots.forget(name)
                self._collaborators.writes.forget(name)
                self._collaborators.units.forget(name, with_statuses=self._membership.is_leader)
                self._collaborators.stopped.changed(name)
            case TargetStateChanged(name):
                if self._configs.connectors()[name].target is TargetState.STOPPED:
                    self._collaborators.units.stop_all(name)
                self._collaborators.stopped.changed(name)
            case TasksChanged(name):
                self._collaborators.units.tasks_changed(name)
        # Following a change may write to the store, so it runs after this change, once for many changes.
        self._follow_soon.post()

    def _follow_configs(self) -> None:
        if not self._closing:
            self._collaborators.rebalancing.configs_changed()
            self._collaborators.schedules.look()
        self._reconcile()

    def _call_when_leading(self, action: Callable[[], None]) -> None:
        self._collaborators.leadership.when_taken(action)
        if self._collaborators.leadership.is_ready:
            action()

    def _see_all_created(self) -> None:
        self._collaborators.drains.all_created()
        self._reconcile()

    def _reconcile(self) -> None:
        if self._closing:
            return
        self._collaborators.units.reconcile(self._collaborators.drains.sinks())
        self._collaborators.drains.stop_drained()
        if not self.drained.done() and (outcome := self._collaborators.drains.outcome()) is not None:
            self.drained.set_result(outcome)
