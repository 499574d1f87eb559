"""The herder: one thread with one inbox that answers requests and decides what this worker runs.

Requests and notices come into the inbox and are handled one after the other. What to do is decided by functions of
the state (:mod:`worker.herder.reconcile`, :mod:`worker.herder.draining`, :mod:`worker.herder.restart`) and done by the
supervisor's thread; the herder itself never waits for a plugin, a process or a socket.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from connect.errors import AlreadyExistsError, ConnectError, NotFoundError
from connect.plugins import PluginRegistry
from worker.herder.changes import GivenConfig, check_infos, check_same_class, merged, named, required_class
from worker.herder.connectors import Connectors, TopicTracking
from worker.herder.inquiries import Inquiries
from worker.herder.offsets import ConnectorOffsets, Document, SourceOffsets
from worker.herder.request import Request
from worker.herder.restart import restart_plan, restarting
from worker.herder.units import Outcome, Units
from worker.loggers import LoggerLevels, level_named
from worker.membership.membership import Membership
from worker.stores.config import ConfigStore, TargetState
from worker.stores.status import StatusStore
from worker.supervisor import messages
from worker.supervisor.messages import Report
from worker.supervisor.supervisor import Answered, Changed, Measured, Notice, Published, Supervisor, TopicsUsed
from worker.unit import Unit

__all__ = ["Herder"]

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Herder:
    """Runs connectors. The public methods may be called from any thread; their results come in futures.

    These fail with :class:`~connect.errors.NotFoundError` for a connector that there is not, and with
    :class:`~worker.errors.BadRequestError` for what is wrong with a request.
    """

    def __init__(
        self,
        worker_props: Mapping[str, str],
        worker_id: str,
        configs: ConfigStore,
        statuses: StatusStore,
        membership: Membership,
        supervisor: Callable[[Callable[[Notice], None]], Supervisor],
        plugins: PluginRegistry,
        source_offsets: SourceOffsets,
        tracking: TopicTracking = TopicTracking(),  # noqa: B008 - it cannot be changed
    ) -> None:
        self._worker_props = dict(worker_props)
        self._configs = configs
        self._statuses = statuses
        self._plugins = plugins
        self._connectors = Connectors(configs, statuses, plugins, tracking)
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._supervisor = supervisor(lambda notice: self._post(lambda: self._notice(notice)))
        self._inquiries = Inquiries(self._supervisor.inquire)
        self._units = Units(
            worker_props,
            worker_id,
            configs,
            statuses,
            membership,
            self._supervisor,
            self._connectors.is_source,
        )
        self._offsets = ConnectorOffsets(
            worker_props, source_offsets, self._inquiries, self._units, self._post, self._reconcile
        )
        self._creating: set[str] = set()
        self._levels = LoggerLevels()
        self._closing = False
        self._thread = threading.Thread(target=self._loop, name="herder")
        self.drained: Future[Outcome] = Future()

    def start(self) -> None:
        """Begin to work."""
        self._supervisor.start_thread()
        self._thread.start()

    def close(self) -> None:
        """Stop every connector and task of this worker, and end; returns when they are gone."""
        self._inbox.put(self._begin_to_close)
        self._supervisor.close()
        self._inbox.put(None)
        self._thread.join()

    # -- connectors ------------------------------------------------------------------------------------------------

    def create_connector(self, name: str, config: GivenConfig, target: TargetState | None = None) -> Request[Document]:
        """Check a configuration and make a connector of it; the connector as it is shown.

        The request fails with :class:`~connect.errors.AlreadyExistsError` if there is one of that name, or one is
        being made.
        """
        return self._request(lambda request: self._create(request, name, config, target))

    def put_config(self, name: str, config: GivenConfig) -> Request[tuple[bool, Document]]:
        """Check a configuration and give it to a connector, new or not; whether it is new, and as it is shown."""
        return self._request(lambda request: self._put(request, name, named(name, config)))

    def patch_config(self, name: str, patch: GivenConfig) -> Request[Document]:
        """Change some keys of a connector's configuration; the connector as it is shown. Null removes a key."""

        def begin(request: Request[Document]) -> None:
            config = named(name, merged(self._connectors.entry(name).config, patch))
            self._validated(request, name, config, lambda: request.set_result(self._connectors.info(name)))

        return self._request(begin)

    def delete_connector(self, name: str) -> Request[None]:
        """Stop a connector and forget it. Its offsets stay, for another of its name."""
        return self._ask(lambda: self._delete(name))

    def set_target_state(self, name: str, target: TargetState) -> Request[None]:
        """Pause, resume or stop a connector; what that needs is done after this is answered."""
        return self._ask(lambda: self._set_target_state(name, target))

    def restart_connector(
        self, name: str, *, include_tasks: bool = False, only_failed: bool = False
    ) -> Request[Document]:
        """Restart a connector, with its tasks if asked for; its status with what is being restarted (KIP-745)."""
        return self._ask(lambda: self._restart(name, include_tasks=include_tasks, only_failed=only_failed))

    def restart_task(self, name: str, task: int) -> Request[None]:
        """Restart one task."""
        return self._ask(lambda: self._restart_task(Unit(name, task)))

    def all_created(self) -> None:
        """Say that no more connectors are to come for now.

        Until then sinks with ``run.until=drained`` are not told to drain: a source of theirs may not be there yet.
        """
        self._inbox.put(self._see_all_created)

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

    def connector_status(self, name: str) -> Request[Document]:
        """The status of a connector and its tasks."""
        return self._ask(lambda: self._connectors.status(name))

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
        """What all tasks have counted and measured, added up."""
        return self._ask(self._connectors.totals)

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
        return self._request(
            lambda request: self._offsets.alter(
                request, name, self._connectors.entry(name), offsets, is_source=self._connectors.is_source(name)
            )
        )

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
            self._inquire(
                messages.DescribePlugin(kind, entry.class_name, version, self._worker_props), request, answered
            )

        return self._request(begin)

    def validate(self, plugin: str, config: GivenConfig) -> Request[Document]:
        """Everything there is to say of a configuration of the connector called ``plugin``."""

        def begin(request: Request[Document]) -> None:
            in_config = required_class(config)
            check_same_class(in_config, plugin, (self._connectors.plugin(in_config), self._connectors.plugin(plugin)))
            self._validate(request, "the given", config, lambda done: request.set_result(done.infos))

        return self._request(begin)

    def logger_levels(self) -> Request[dict[str, Document]]:
        """The level of every logger of this process."""
        return self._ask(self._levels.all)

    def logger_level(self, name: str) -> Request[Document]:
        """The level of one logger."""
        return self._ask(lambda: self._levels.one(name))

    def set_logger_level(self, name: str, level: str) -> Request[list[str]]:
        """Set the level of a logger and all below it, in the connectors' and tasks' processes too; those changed."""
        return self._ask(lambda: self._set_logger_level(name, level_named(level)))

    # -- in the herder's thread --------------------------------------------------------------------------------------

    def _loop(self) -> None:
        while (action := self._inbox.get()) is not None:
            try:
                action()
            except Exception as error:
                # A defect of ours. Going on could run a task twice, so the worker is to end (invariant I6).
                logger.exception("The herder failed; the worker stops")
                if not self.drained.done():
                    self.drained.set_exception(error)

    def _begin_to_close(self) -> None:
        self._closing = True

    def _request(self, begin: Callable[[Request[T]], None]) -> Request[T]:
        request: Request[T] = Request()

        def attempt() -> None:
            try:
                begin(request)
            except Exception as error:
                request.set_exception(error)

        self._inbox.put(attempt)
        return request

    def _ask(self, answer: Callable[[], T]) -> Request[T]:
        return self._request(lambda request: request.set_result(answer()))

    def _post(self, action: Callable[[], None]) -> None:
        self._inbox.put(action)

    def _notice(self, notice: Notice) -> None:
        match notice:
            case Measured(unit, values):
                self._connectors.metrics[unit] = values
                return
            case TopicsUsed(unit, topics):
                self._connectors.uses_topics(unit, topics)
                return
            case Answered():
                self._inquiries.answered(notice)
            case Published():
                self._units.published(notice)
            case Changed():
                self._units.changed(notice)
        self._reconcile()

    def _see_all_created(self) -> None:
        self._units.all_created()
        self._reconcile()

    def _reconcile(self) -> None:
        if self._closing:
            return
        self._units.reconcile()
        if self._units.outcome is not None and not self.drained.done():
            self.drained.set_result(self._units.outcome)

    # -- changes -------------------------------------------------------------------------------------------------------

    def _create(self, request: Request[Document], name: str, config: GivenConfig, target: TargetState | None) -> None:
        if self._connectors.exists(name) or name in self._creating:
            raise AlreadyExistsError(f"Connector {name} already exists")
        self._creating.add(name)
        request.add_done_callback(lambda _: self._creating.discard(name))

        def create() -> None:
            request.set_result(self._connectors.info(name))

        self._validated(request, name, named(name, config), create, target, must_be_new=True)

    def _put(self, request: Request[tuple[bool, Document]], name: str, config: GivenConfig) -> None:
        is_new = not self._connectors.exists(name)
        self._validated(request, name, config, lambda: request.set_result((is_new, self._connectors.info(name))))

    def _validated(
        self,
        request: Request[Any],
        name: str,
        config: GivenConfig,
        go_on: Callable[[], None],
        target: TargetState | None = None,
        *,
        must_be_new: bool = False,
    ) -> None:
        """Give a connector this configuration once it is found to be right, and go on."""
        required_class(config)

        def decide(done: messages.Validated) -> None:
            check_infos(done.infos)
            if must_be_new and self._connectors.exists(name):
                raise AlreadyExistsError(f"Connector {name} already exists")
            self._connectors.learn_type(name, done.type)
            kept = {key: value for key, value in config.items() if value is not None}
            self._configs.put_connector(name, kept, target)
            go_on()

        self._validate(request, f"connector {name}'s", config, decide)

    def _validate(
        self, request: Request[Any], whose: str, config: GivenConfig, decide: Callable[[messages.Validated], None]
    ) -> None:
        def answered(report: Report) -> None:
            assert isinstance(report, messages.Validated)
            decide(report)

        request.enter(f"waiting for {config['connector.class']} to validate {whose} configuration")
        self._inquire(messages.ValidateConfig(dict(config), self._worker_props), request, answered)

    def _inquire(self, inquiry: messages.Inquiry, request: Request[Any], go_on: Callable[[Report], None]) -> None:
        def answered(outcome: Report | ConnectError) -> None:
            try:
                if isinstance(outcome, ConnectError):
                    raise outcome
                go_on(outcome)
            except ConnectError as error:
                request.set_exception(error)

        self._inquiries.put(inquiry, answered)

    def _delete(self, name: str) -> None:
        self._connectors.entry(name)
        self._configs.remove_connector(name)
        self._connectors.forget(name)
        self._units.forget(name)
        self._reconcile()

    def _set_target_state(self, name: str, target: TargetState) -> None:
        if not self._connectors.exists(name):
            raise NotFoundError(f"Unknown connector {name}")
        if target is TargetState.STOPPED:
            self._configs.put_task_configs(name, ())
        self._configs.put_target_state(name, target)
        self._reconcile()

    def _restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> Document:
        if not self._connectors.exists(name):
            raise NotFoundError(f"Unknown connector: {name}")
        statuses = self._statuses.statuses()
        plan = restart_plan(name, statuses, include_tasks=include_tasks, only_failed=only_failed)
        shown = self._connectors.status(name, restarting(statuses, plan))
        self._units.restart(plan)
        return shown

    def _restart_task(self, unit: Unit) -> None:
        entry = self._configs.connectors().get(unit.connector)
        if entry is None:
            raise NotFoundError(f"Unknown connector: {unit.connector}")
        if unit.task >= len(entry.task_configs):
            raise NotFoundError(f"Unknown task: {unit.connector}-{unit.task}")
        self._units.restart([unit])

    def _set_logger_level(self, name: str, level: int) -> list[str]:
        changed = self._levels.set(name, level)
        self._supervisor.set_log_level(name, level)
        return changed
