"""Requests for connectors: their configurations, states and tasks. They may be made from any thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from worker.herder.connectors.connector_sets import ConnectorSets
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.plugin_metrics import PluginMetrics
from worker.herder.connectors.restarts import Restarts
from worker.herder.connectors.writes import GivenConfig, Writes
from worker.herder.inbox import Request, Requests
from worker.stores.config.store import ConnectorEntry, TargetState
from worker.unit import Unit

__all__ = ["ConnectorRequests"]

Document: TypeAlias = dict[str, Any]


class ConnectorRequests:
    """Looks up and changes connectors.

    Requests fail with :class:`~connect.errors.NotFoundError` for an unknown connector, with
    :class:`~worker.errors.BadRequestError` for an invalid request, and with :class:`~worker.errors.NotLeaderError` or
    :class:`~worker.errors.NotAssignedError` if another worker must do it.
    """

    def __init__(
        self,
        requests: Requests,
        connectors: Connectors,
        writes: Writes,
        sets: ConnectorSets,
        restarts: Restarts,
        plugin_metrics: PluginMetrics,
    ) -> None:
        self._requests = requests
        self._connectors = connectors
        self._writes = writes
        self._sets = sets
        self._restarts = restarts
        self._plugin_metrics = plugin_metrics

    def create(
        self, name: str, config: GivenConfig, target: TargetState | None = None, author: str | None = None
    ) -> Request[Document]:
        """Validate a configuration, create a connector with it, and return its info. ``author`` is the signed-in user.

        Fails with :class:`~connect.errors.AlreadyExistsError` if a connector of this name exists or is being created.
        """
        return self._requests.begin(lambda request: self._writes.create(request, name, config, target, author))

    def put_config(
        self, name: str, config: GivenConfig, revision: int | None = None, author: str | None = None
    ) -> Request[tuple[bool, Document]]:
        """Validate a configuration and create or update a connector; return whether it is new, and its info.

        If a ``revision`` is given and is not the current one, fails with :class:`~worker.errors.ChangedMeanwhileError`.
        """
        return self._requests.begin(lambda request: self._writes.put(request, name, config, revision, author))

    def patch_config(
        self, name: str, patch: GivenConfig, revision: int | None = None, author: str | None = None
    ) -> Request[Document]:
        """Merge keys into a connector's configuration; null removes a key. Returns its info. ``revision`` as above."""
        return self._requests.begin(lambda request: self._writes.patch(request, name, patch, revision, author))

    def delete(self, name: str, author: str | None = None) -> Request[None]:
        """Stop and delete a connector. Its offsets stay, for a new connector of the same name."""
        return self._requests.begin(lambda request: self._writes.delete(request, name, author))

    def set_target_state(self, name: str, target: TargetState) -> Request[None]:
        """Pause, resume or stop a connector. The answer does not wait for its tasks."""
        return self._requests.begin(lambda request: self._writes.set_target_state(request, name, target))

    def put_all(self, configs: Mapping[str, GivenConfig], author: str | None = None) -> Request[bool]:
        """Validate several configurations and create or update the connectors; return whether all are new.

        If one is invalid, none is written. Connectors that already have their configuration are left alone.
        """
        return self._requests.begin(lambda request: self._sets.put(request, configs, author))

    def delete_all(self, names: Sequence[str], author: str | None = None) -> Request[None]:
        """Stop and delete those of the given connectors that exist; fails if none exists."""
        return self._requests.begin(lambda request: self._sets.delete(request, names, author))

    def set_target_state_of_all(self, names: Sequence[str], target: TargetState) -> Request[None]:
        """Pause, resume or stop those of the given connectors that exist; fails if none exists."""
        return self._requests.begin(lambda request: self._sets.set_target_state(request, names, target))

    def restart(self, name: str, *, include_tasks: bool = False, only_failed: bool = False) -> Request[Document]:
        """Restart a connector, with its tasks if requested; return its status and what is being restarted (KIP-745).

        Without either flag, the worker that runs the connector restarts it, and the answer is empty.
        """
        if not (include_tasks or only_failed):
            return self._requests.begin(lambda request: self._restarts.connector(request, name))
        return self._requests.begin(
            lambda request: self._restarts.everywhere(
                request, name, include_tasks=include_tasks, only_failed=only_failed
            )
        )

    def restart_task(self, name: str, task: int) -> Request[None]:
        """Restart one task."""
        return self._requests.begin(lambda request: self._restarts.task(request, Unit(name, task)))

    def names(self) -> Request[list[str]]:
        """Return the names of all connectors, sorted."""
        return self._requests.ask(self._connectors.names)

    def expanded(self) -> Request[dict[str, dict[str, Document]]]:
        """Return every connector by name, with its ``info``, and its ``status`` if it has one."""
        return self._requests.ask(self._connectors.expanded)

    def info(self, name: str) -> Request[Document]:
        """Return a connector's configuration and tasks."""
        return self._requests.ask(lambda: self._connectors.info(name))

    def config(self, name: str) -> Request[dict[str, str]]:
        """Return a connector's configuration as written, with unresolved references."""
        return self._requests.ask(lambda: dict(self._connectors.entry(name).config))

    def entry(self, name: str) -> Request[ConnectorEntry]:
        """Return a connector's desired state: its configuration as written, and its revision."""
        return self._requests.ask(lambda: self._connectors.entry(name))

    def status(self, name: str, *, refresh: bool = True) -> Request[Document]:
        """Return the status of a connector and its tasks, and ask other workers for newer metrics.

        Without ``refresh``, return all that this worker knows, for another worker.
        """
        if not refresh:
            return self._requests.ask(lambda: self._connectors.status_for_workers(name))
        return self._requests.ask(lambda: self._connectors.newest_status(name))

    def loads(self, name: str) -> Request[Document]:
        """Return the loads of a bulk sink's tasks: of each, the current one and the last ones."""
        return self._requests.begin(lambda request: self._connectors.loads(request, name))

    def measurements(self, name: str, *, of_all: bool = True) -> Request[Document]:
        """Return the plugin metrics of a connector's tasks; unless ``of_all``, only of this worker's tasks."""
        if not of_all:
            return self._requests.ask(lambda: self._plugin_metrics.own(name))
        return self._requests.begin(lambda request: self._plugin_metrics.gather(request, name))

    def task_configs(self, name: str) -> Request[list[Document]]:
        """Return the configurations of a connector's tasks."""
        return self._requests.ask(lambda: self._connectors.task_configs(name))

    def task_status(self, name: str, task: int) -> Request[Document]:
        """Return the status of one task."""
        return self._requests.ask(lambda: self._connectors.task_status(Unit(name, task)))

    def topics(self, name: str) -> Request[list[str]]:
        """Return the topics a connector has used; none for an unknown connector, as in Kafka Connect."""
        return self._requests.ask(lambda: self._connectors.topics(name))

    def reset_topics(self, name: str) -> Request[None]:
        """Forget the topics a connector has used."""
        return self._requests.ask(lambda: self._connectors.reset_topics(name))
