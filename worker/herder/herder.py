"""The herder: one thread with one inbox that answers requests and decides what this worker runs.

Requests and notices come into the inbox and are handled one after the other. What to do is decided by functions of the
state (:mod:`worker.herder.reconcile`, :mod:`worker.herder.connectors.drains`,
:mod:`worker.herder.connectors.restart_plans`) and done by the supervisor's thread; the herder itself never waits for a
plugin, a process or a socket. A standalone worker has the same herder as one of a cluster: it leads, and everything is
assigned to it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from connect.errors import ConnectError
from connect.plugins import PluginRegistry
from worker.herder.cluster.publication import Publication
from worker.herder.connectors.connectors import TopicTracking
from worker.herder.connectors.drains import Outcome
from worker.herder.connectors.writes import GivenConfig, check_same_class, required_class
from worker.herder.inbox import Inbox, Once, Request
from worker.herder.offsets.offsets import Document
from worker.herder.offsets.sources import SourceOffsets
from worker.herder.parts import Calls, ClusterSettings, Parts, Standing
from worker.loggers import LoggerLevels, level_named
from worker.membership.membership import Membership
from worker.security.session_keys import SignedRequest, verify
from worker.stores.config.store import (
    ConfigChange,
    ConfigStore,
    ConnectorRemoved,
    LoggerLevelChanged,
    RestartRequested,
    TargetState,
    TargetStateChanged,
    TasksChanged,
    WritesLost,
)
from worker.stores.status.store import StatusStore
from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import Report
from worker.supervisor.supervisor import (
    Answered,
    Changed,
    Expires,
    Measured,
    Notice,
    OwnershipAsked,
    Published,
    Supervisor,
    TopicsUsed,
)
from worker.unit import Unit

__all__ = ["Herder"]

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Herder:
    """Runs connectors. The public methods may be called from any thread; their results come in futures.

    These fail with :class:`~connect.errors.NotFoundError` for a connector that there is not, with
    :class:`~worker.errors.BadRequestError` for what is wrong with a request, and with
    :class:`~worker.errors.NotLeaderError` or :class:`~worker.errors.NotAssignedError` for what another worker is to do.
    Without ``cluster`` settings this is a standalone worker.
    """

    def __init__(
        self,
        worker_props: Mapping[str, str],
        worker_id: str,
        inbox: Inbox,
        configs: ConfigStore,
        statuses: StatusStore,
        membership: Membership,
        supervisor: Callable[[Callable[[Notice], None]], Supervisor],
        plugins: PluginRegistry,
        source_offsets: SourceOffsets,
        tracking: TopicTracking = TopicTracking(),  # noqa: B008 - it cannot be changed
        cluster: ClusterSettings | None = None,
    ) -> None:
        self._worker_props = dict(worker_props)
        self._inbox = inbox
        self._configs = configs
        self._statuses = statuses
        self._membership = membership
        self._plugins = plugins
        self._cluster = cluster
        self._closing = False
        self._follow_soon = Once(inbox, self._follow_configs)
        self._reconcile_soon = Once(inbox, self._reconcile)
        self._thread = threading.Thread(target=self._loop, name="herder")
        self.drained: Future[Outcome] = Future()

        self._supervisor = supervisor(lambda notice: inbox.post(lambda: self._notice(notice)))
        self._levels = LoggerLevels(self._supervisor.set_log_level)
        parts = Parts(
            Standing(
                worker_props,
                worker_id,
                inbox,
                configs,
                statuses,
                membership,
                plugins,
                source_offsets,
                tracking,
                cluster,
            ),
            self._supervisor,
            Calls(self._follow_configs, self._reconcile, self._refused),
        )
        self._inquiries, self._connectors, self._leadership = parts.inquiries, parts.connectors, parts.leadership
        self._fencing, self._units, self._drains = parts.fencing, parts.units, parts.drains
        self._schedules, self._rebalancing, self._writes = parts.schedules, parts.rebalancing, parts.writes
        self._offsets, self._consumer_offsets, self._ownership = parts.offsets, parts.consumer_offsets, parts.ownership
        self._dead_letters, self._restarts = parts.dead_letters, parts.restarts
        self._measurements = parts.measurements
        self._turns, self._stopped = parts.turns, parts.stopped

    def start(self) -> None:
        """Read what is stored and begin to work. Waits for the stores.

        Raises :class:`~connect.errors.ConnectError` if they cannot be read.
        """
        self._configs.start(self._config_changed)
        self._statuses.start()
        self._supervisor.start_thread()
        self._inbox.post(self._rebalancing.start)
        self._inbox.post(self._leadership.changed)
        self._inbox.post(self._reconcile)
        self._thread.start()

    def close(self) -> None:
        """Stop every connector and task, leave the cluster and end, as far as all that was started; returns then."""
        self._inbox.post(self._begin_to_close)
        self._supervisor.close()
        self._inbox.close()
        if self._thread.ident is not None:
            self._thread.join()
        self._membership.close()
        self._statuses.close()
        self._configs.close()

    # -- connectors ------------------------------------------------------------------------------------------------

    def create_connector(self, name: str, config: GivenConfig, target: TargetState | None = None) -> Request[Document]:
        """Check a configuration and make a connector of it; the connector as it is shown.

        The request fails with :class:`~connect.errors.AlreadyExistsError` if there is one of that name, or one is
        being made.
        """
        return self._request(lambda request: self._writes.create(request, name, config, target))

    def put_config(self, name: str, config: GivenConfig) -> Request[tuple[bool, Document]]:
        """Check a configuration and give it to a connector, new or not; whether it is new, and as it is shown."""
        return self._request(lambda request: self._writes.put(request, name, config))

    def patch_config(self, name: str, patch: GivenConfig) -> Request[Document]:
        """Change some keys of a connector's configuration; the connector as it is shown. Null removes a key."""
        return self._request(lambda request: self._writes.patch(request, name, patch))

    def delete_connector(self, name: str) -> Request[None]:
        """Stop a connector and forget it. Its offsets stay, for another of its name."""
        return self._request(lambda request: self._writes.delete(request, name))

    def set_target_state(self, name: str, target: TargetState) -> Request[None]:
        """Pause, resume or stop a connector; what that needs is done after this is answered."""
        return self._request(lambda request: self._writes.set_target_state(request, name, target))

    def restart_connector(
        self, name: str, *, include_tasks: bool = False, only_failed: bool = False
    ) -> Request[Document]:
        """Restart a connector, with its tasks if asked for; its status with what is being restarted (KIP-745).

        Without either flag the worker that runs the connector restarts it, and there is nothing to be shown.
        """
        if not (include_tasks or only_failed):
            return self._request(lambda request: self._restarts.connector(request, name))
        return self._request(
            lambda request: self._writes.restart(request, name, include_tasks=include_tasks, only_failed=only_failed)
        )

    def restart_task(self, name: str, task: int) -> Request[None]:
        """Restart one task."""
        return self._request(lambda request: self._restarts.task(request, Unit(name, task)))

    def put_task_configs(
        self, name: str, configs: Sequence[Mapping[str, str]], signed: SignedRequest, said: Publication | None = None
    ) -> Request[None]:
        """Keep the task configs that another worker's connector wants, unless a newer publication has come."""

        def begin(request: Request[None]) -> None:
            self._check_signature(signed)
            self._writes.put_task_configs(request, name, configs, said)

        return self._request(begin)

    def fence(self, name: str, signed: SignedRequest) -> Request[None]:
        """Fence the producers of a connector's former tasks, for a worker that is about to start the new ones."""

        def begin(request: Request[None]) -> None:
            self._check_signature(signed)
            self._connectors.entry(name)
            self._fencing.fence(request, name)

        return self._request(begin)

    def all_created(self) -> None:
        """Say that no more connectors are to come for now.

        Until then sinks with ``run.until=drained`` are not told to drain: a source of theirs may not be there yet.
        """
        self._inbox.post(self._see_all_created)

    # -- what there is -----------------------------------------------------------------------------------------------

    def connector_names(self) -> Request[list[str]]:
        """The names of all connectors, in order."""
        return self._ask(self._connectors.names)

    def connectors(self) -> Request[dict[str, dict[str, Document]]]:
        """Every connector by name, with its ``status``, if it has one, and its ``info``."""
        return self._ask(self._connectors.expanded)

    def connector_info(self, name: str) -> Request[Document]:
        """A connector's configuration and tasks."""
        return self._ask(lambda: self._connectors.info(name))

    def connector_config(self, name: str) -> Request[dict[str, str]]:
        """A connector's configuration as it was written: references are not resolved."""
        return self._ask(lambda: dict(self._connectors.entry(name).config))

    def connector_status(self, name: str, *, refresh: bool = True) -> Request[Document]:
        """The status of a connector and its tasks; with ``refresh`` other workers are asked for newer metrics."""
        return self._ask(lambda: self._connectors.newest_status(name, refresh=refresh))

    def task_configs(self, name: str) -> Request[list[Document]]:
        """The configurations of a connector's tasks."""
        return self._ask(lambda: self._connectors.task_configs(name))

    def task_status(self, name: str, task: int) -> Request[Document]:
        """The status of one task."""
        return self._ask(lambda: self._connectors.task_status(Unit(name, task)))

    def active_topics(self, name: str) -> Request[list[str]]:
        """The topics a connector has used; none of one that there is not, as in Kafka Connect."""
        return self._ask(lambda: self._connectors.topics(name))

    def reset_active_topics(self, name: str) -> Request[None]:
        """Forget which topics a connector has used."""
        return self._ask(lambda: self._connectors.reset_topics(name))

    def totals(self) -> Request[dict[str, float]]:
        """What all tasks of this worker have counted and measured, added up."""
        return self._ask(self._measurements.totals)

    def ping(self) -> Request[None]:
        """An answer, which tells that the herder works."""
        return self._ask(lambda: None)

    # -- offsets -------------------------------------------------------------------------------------------------------

    def connector_offsets(self, name: str) -> Request[Document]:
        """The offsets of a connector, in Kafka Connect's form."""
        return self._request(
            lambda request: self._offsets.read(
                request, name, self._connectors.entry(name), is_source=self._connectors.is_source(name)
            )
        )

    def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]] | None) -> Request[Document]:
        """Set offsets of a stopped connector, or reset all where ``offsets`` is ``None``; what is to be said of it."""

        def begin(request: Request[Document]) -> None:
            entry, is_source = self._connectors.entry(name), self._connectors.is_source(name)
            self._offsets.alter(request, name, entry, offsets, is_source=is_source)

        return self._request(lambda request: self._leadership.as_leader(request, lambda: begin(request)))

    def reset_consumer_offsets(self, name: str, body: Mapping[str, Any], *, dry_run: bool) -> Request[list[Document]]:
        """Move the group of a stopped sink; each partition with its offset before and after. A dry run only tells."""
        return self._request(lambda request: self._consumer_offsets.reset(request, name, body, dry_run=dry_run))

    def connector_lag(self, name: str) -> Request[Document]:
        """How far a connector is behind, and how fast it goes, in all and by task; the tasks' workers are asked."""
        return self._request(lambda request: self._consumer_offsets.lag(request, name))

    def dead_letters(self, name: str, after: tuple[int, int] | None, limit: int) -> Request[Document]:
        """What is in the dead letter queue of a connector, after a partition and offset of it."""
        return self._request(lambda request: self._dead_letters.list(request, name, after, limit))

    def replay_dead_letters(self, name: str, body: Mapping[str, Any]) -> Request[Document]:
        """Deliver records of a sink's dead letter queue again; which were delivered, which failed, and what remains."""
        return self._request(lambda request: self._dead_letters.replay(request, name, body))

    # -- plugins and loggers -------------------------------------------------------------------------------------------

    def plugins(self) -> PluginRegistry:
        """The plugins there are; this answers at once."""
        return self._plugins

    def plugin_keys(self, name: str, version: str) -> Request[list[Document]]:
        """The keys of a plugin of any kind, for connectors those of the framework too."""

        def begin(request: Request[list[Document]]) -> None:
            entry = self._connectors.listed_plugin(name)

            def answered(report: Report) -> None:
                assert isinstance(report, messages.PluginDescribed)
                request.set_result(report.keys)

            request.enter(f"asking plugin {entry.class_name} for its keys")
            kind = entry.kind.value
            inquiry = messages.DescribePlugin(kind, entry.class_name, version, self._worker_props)
            self._inquiries.answer(inquiry, request, answered)

        return self._request(begin)

    def validate(self, plugin: str, config: GivenConfig) -> Request[Document]:
        """Everything there is to say of a configuration of the connector called ``plugin``."""

        def begin(request: Request[Document]) -> None:
            def answered(report: Report) -> None:
                assert isinstance(report, messages.Validated)
                request.set_result(report.infos)

            in_config = required_class(config)
            check_same_class(in_config, plugin, (self._connectors.plugin(in_config), self._connectors.plugin(plugin)))
            request.enter(f"waiting for {in_config} to validate the given configuration")
            self._inquiries.answer(messages.ValidateConfig(dict(config), self._worker_props), request, answered)

        return self._request(begin)

    def logger_levels(self) -> Request[dict[str, Document]]:
        """The level of every logger of this process."""
        return self._ask(self._levels.all)

    def logger_level(self, name: str) -> Request[Document]:
        """The level of one logger."""
        return self._ask(lambda: self._levels.one(name))

    def set_logger_level(self, name: str, level: str) -> Request[list[str]]:
        """Set the level of a logger and all below it, in the connectors' and tasks' processes too; those changed."""
        return self._ask(lambda: self._levels.set(name, level_named(level)))

    def set_cluster_logger_level(self, name: str, level: str) -> Request[None]:
        """Have every worker of the cluster set the level of a logger (KIP-976)."""
        return self._request(lambda request: self._writes.set_logger_level(request, name, level))

    # -- in the herder's thread --------------------------------------------------------------------------------------

    def _loop(self) -> None:
        while (action := self._inbox.take()) is not None:
            try:
                action()
            except Exception as error:
                # A defect of ours. Going on could run a task twice, so the worker is to end (invariant I6).
                logger.exception("The herder failed; the worker stops")
                if not self.drained.done():
                    self.drained.set_exception(error)

    def _begin_to_close(self) -> None:
        self._closing = True
        self._turns.end("this worker is stopping")

    def _refused(self, message: str) -> None:
        if not self.drained.done():
            self.drained.set_exception(ConnectError(message))

    def _request(self, begin: Callable[[Request[T]], None]) -> Request[T]:
        request: Request[T] = Request()

        def attempt() -> None:
            try:
                begin(request)
            except Exception as error:
                request.set_exception(error)

        self._inbox.post(attempt)
        return request

    def _ask(self, answer: Callable[[], T]) -> Request[T]:
        return self._request(lambda request: request.set_result(answer()))

    def _notice(self, notice: Notice) -> None:
        match notice:
            case Measured(unit, values):
                self._measurements.take(unit, values)
            case TopicsUsed(unit, topics):
                if self._units.speaks_for(unit):
                    self._connectors.uses_topics(unit, topics)
            case Answered():
                self._inquiries.answered(notice)
            case OwnershipAsked():
                self._ownership.asked(notice)
            case Changed() | Published() | Expires():
                self._units.heard(notice)
                # With many units each look takes a while: what else they have said by then is seen by the same one.
                self._reconcile_soon.post()

    def _config_changed(self, change: ConfigChange) -> None:
        match change:
            case RestartRequested(name, include_tasks, only_failed):
                self._restarts.requested(name, include_tasks=include_tasks, only_failed=only_failed)
                return
            case LoggerLevelChanged(namespace, level):
                self._levels.set_for_cluster(namespace, level)
                return
            case WritesLost():
                self._leadership.writes_lost()
                return
            case ConnectorRemoved(name):
                self._connectors.forget(name)
                self._writes.forget(name)
                self._units.forget(name, with_statuses=self._membership.is_leader)
                self._stopped.changed(name)
            case TargetStateChanged(name):
                if self._configs.connectors()[name].target is TargetState.STOPPED:
                    self._units.stop_all(name)
                self._stopped.changed(name)
            case TasksChanged(name):
                self._units.tasks_changed(name)
        # What follows changes the store, too, so it is not done in the middle of a change; many changes are one to it.
        self._follow_soon.post()

    def _follow_configs(self) -> None:
        if not self._closing:
            self._rebalancing.configs_changed()
            self._schedules.look()
        self._reconcile()

    def _see_all_created(self) -> None:
        self._drains.all_created()
        self._reconcile()

    def _reconcile(self) -> None:
        if self._closing:
            return
        self._units.reconcile(self._drains.sinks())
        self._drains.stop_drained()
        if not self.drained.done() and (outcome := self._drains.outcome()) is not None:
            self.drained.set_result(outcome)

    def _check_signature(self, signed: SignedRequest) -> None:
        if self._cluster is not None and self._cluster.keys is not None:
            verify(signed, self._configs.session_key(), self._cluster.verification_algorithms)
