"""What the leader does at the request of a user: connectors made, changed, stopped, restarted. The herder's thread.

Each write is done when the config store's own view has it, so whoever is answered can read what was written. Crash
point: a leader killed before that leaves the record on the config topic or not, and the client without an answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from connect.errors import AlreadyExistsError, ConnectError, NotFoundError
from worker.errors import ConflictError
from worker.herder.changes import GivenConfig, check_infos, merged, named, required_class
from worker.herder.connectors import Connectors
from worker.herder.drains import stop_connector
from worker.herder.inbox import Action, Inbox
from worker.herder.inquiries import Inquiries
from worker.herder.leadership import Leadership
from worker.herder.publication import Publication, Publications
from worker.herder.request import Request
from worker.herder.restart import restart_plan, restarting
from worker.loggers import level_named
from worker.membership.membership import Membership
from worker.stores.config import ConfigStore, TargetState
from worker.stores.status import StatusStore
from worker.supervisor import messages
from worker.supervisor.messages import Report

__all__ = ["Writes"]

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]


class Writes:
    """Writes configurations. ``when_free`` has something done once the offsets of a connector are not being altered."""

    def __init__(
        self,
        worker_props: Mapping[str, str],
        configs: ConfigStore,
        statuses: StatusStore,
        membership: Membership,
        connectors: Connectors,
        leadership: Leadership,
        inquiries: Inquiries,
        inbox: Inbox,
        when_free: Callable[[str, Action], None],
    ) -> None:
        self._worker_props = dict(worker_props)
        self._configs = configs
        self._statuses = statuses
        self._membership = membership
        self._connectors = connectors
        self._leadership = leadership
        self._inquiries = inquiries
        self._inbox = inbox
        self._when_free = when_free
        self._creating: set[str] = set()
        self._publications = Publications()

    def create(self, request: Request[Document], name: str, config: GivenConfig, target: TargetState | None) -> None:
        """Check a configuration and make a connector of it."""

        def begin() -> None:
            if self._connectors.exists(name) or name in self._creating:
                raise AlreadyExistsError(f"Connector {name} already exists")
            given = named(name, config)
            self._creating.add(name)
            request.add_done_callback(lambda _: self._creating.discard(name))
            self._validated(request, name, given, lambda: self._connectors.info(name), target, must_be_new=True)

        self._leadership.as_leader(request, begin)

    def put(self, request: Request[tuple[bool, Document]], name: str, config: GivenConfig) -> None:
        """Check a configuration and give it to a connector, new or not."""

        def begin() -> None:
            is_new = not self._connectors.exists(name)
            self._validated(request, name, named(name, config), lambda: (is_new, self._connectors.info(name)))

        self._leadership.as_leader(request, begin)

    def patch(self, request: Request[Document], name: str, patch: GivenConfig) -> None:
        """Change some keys of a connector's configuration."""

        def begin() -> None:
            config = named(name, merged(self._connectors.entry(name).config, patch))
            self._validated(request, name, config, lambda: self._connectors.info(name))

        self._leadership.as_leader(request, begin)

    def delete(self, request: Request[None], name: str) -> None:
        """Forget a connector."""

        def begin() -> None:
            self._connectors.entry(name)
            self._written(request, f"deleting connector {name}", self._configs.remove_connector(name), _nothing)

        self._leadership.as_leader(request, begin)

    def set_target_state(self, request: Request[None], name: str, target: TargetState) -> None:
        """Pause, resume or stop a connector."""

        def begin() -> None:
            if not self._connectors.exists(name):
                raise NotFoundError(f"Unknown connector {name}")
            request.enter(f"waiting until the offsets of connector {name} are modified")
            self._when_free(name, write)

        def write() -> None:
            if target is TargetState.STOPPED:
                written = stop_connector(self._configs, name, self._inbox)
            else:
                written = self._configs.put_target_state(name, target)
            self._written(request, f"writing the target state of connector {name}", written, _nothing)

        self._leadership.as_leader(request, begin)

    def put_task_configs(
        self,
        request: Request[None],
        name: str,
        configs: Sequence[Mapping[str, str]],
        publication: Publication | None,
    ) -> None:
        """Keep the task configs that the worker of a connector heard of it, unless a newer publication has come."""

        def begin() -> None:
            entry = self._connectors.entry(name)
            if entry.target is TargetState.STOPPED:
                raise ConflictError(f"Connector {name} is stopped and has no tasks")
            if publication is not None:
                self._publications.take(name, publication, self._membership.generation)
            written = self._configs.put_task_configs(name, configs)
            self._written(request, f"writing the task configs of connector {name}", written, _nothing)

        self._leadership.as_leader(request, begin)

    def forget(self, name: str) -> None:
        """The connector is no more."""
        self._publications.forget(name)

    def restart(self, request: Request[Document], name: str, *, include_tasks: bool, only_failed: bool) -> None:
        """Have every worker restart what it runs of a connector (KIP-745); its status, with what is being restarted."""

        def begin() -> None:
            if not self._connectors.exists(name):
                raise NotFoundError(f"Unknown connector: {name}")
            statuses = self._statuses.statuses()
            plan = restart_plan(name, statuses, include_tasks=include_tasks, only_failed=only_failed)
            shown = self._connectors.status(name, restarting(statuses, plan))
            written = self._configs.put_restart(name, include_tasks=include_tasks, only_failed=only_failed)
            self._written(request, f"asking for a restart of connector {name}", written, lambda: shown)

        self._leadership.as_leader(request, begin)

    def set_logger_level(self, request: Request[None], namespace: str, level: str) -> None:
        """Have every worker set the level of a logger. Any worker may ask for that."""
        level_named(level)
        written = self._configs.put_logger_level(namespace, level.upper())
        self._written(request, "writing the level of a logger", written, _nothing)

    def _validated(
        self,
        request: Request[T],
        name: str,
        config: GivenConfig,
        result: Callable[[], T],
        target: TargetState | None = None,
        *,
        must_be_new: bool = False,
    ) -> None:
        """Give a connector this configuration once it is found to be right."""
        required_class(config)

        def decide(report: Report) -> None:
            assert isinstance(report, messages.Validated)
            check_infos(report.infos)
            if must_be_new and self._connectors.exists(name):
                raise AlreadyExistsError(f"Connector {name} already exists")
            kept = {key: value for key, value in config.items() if value is not None}

            def write() -> None:
                self._connectors.learn_type(name, report.type)
                begin, drained = target, None
                if target is None and kept.get("schedule") and not self._connectors.exists(name):
                    # It runs when its time has come, and not because it was made.
                    begin, drained = TargetState.STOPPED, time.time_ns() // 1_000_000
                written = self._configs.put_connector(name, kept, begin, drained)
                self._written(request, f"writing the configuration of connector {name}", written, result)

            self._leadership.as_leader(request, write)

        request.enter(f"waiting for {config['connector.class']} to validate connector {name}'s configuration")
        inquiry = messages.ValidateConfig(dict(config), self._worker_props)
        self._inquiries.answer(inquiry, request, decide)

    def _written(self, request: Request[T], stage: str, written: Future[None], result: Callable[[], T]) -> None:
        """Answer once a write is in the store's view."""
        request.enter(stage)

        def done() -> None:
            try:
                if (error := written.exception()) is not None:
                    raise error
                request.set_result(result())
            except ConnectError as error:
                request.set_exception(error)

        written.add_done_callback(lambda _: self._inbox.post(done))


def _nothing() -> None:
    """What is answered where there is nothing to be said."""
