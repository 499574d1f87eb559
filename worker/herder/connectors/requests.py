"""Requests for connectors: their configurations, states and tasks. Any thread may make them."""

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
    """Has the herder look up and change connectors.

    Requests fail with :class:`~connect.errors.NotFoundError` for an unknown connector, with
    :class:`~worker.errors.BadRequestError` for a mistake in the request, and with
    :class:`~worker.errors.NotLeaderError` or :class:`~worker.errors.NotAssignedError` for what another worker does.
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
        """Check a configuration and create a connector with it; its info. ``author`` is who asks, if they signed in.

        Fails with :class:`~connect.errors.AlreadyExistsError` if a connector of this name exists or is being created.
        """
        return self._requests.begin(lambda request: self._writes.create(request, name, config, target, author))

    def put_config(
        self, name: str, config: GivenConfig, revision: int | None = None, author: str | None = None
    ) -> Request[tuple[bool, Document]]:
        """Check a configuration and give it to a connector, new or not; whether it is new, and its info.

        With a ``revision`` this fails with :class:`~worker.errors.ChangedMeanwhileError` if it is another now.
        """
        return self._requests.begin(lambda request: self._writes.put(request, name, config, revision, author))

    def patch_config(
        self, name: str, patch: GivenConfig, revision: int | None = None, author: str | None = None
    ) -> Request[Document]:
        """Change some keys of a connector's configuration; its info. Null removes a key. ``revision`` as above."""
        return self._requests.begin(lambda request: self._writes.patch(request, name, patch, revision, author))

    def delete(self, name: str, author: str | None = None) -> Request[None]:
        """Stop a connector and forget it. Its offsets stay, for another of its name."""
        return self._requests.begin(lambda request: self._writes.delete(request, name, author))

    def set_target_state(self, name: str, target: TargetState) -> Request[None]:
        """Pause, resume or stop a connector; the answer does not wait until its tasks have done so."""
        return self._requests.begin(lambda request: self._writes.set_target_state(request, name, target))

    def put_all(self, configs: Mapping[str, GivenConfig], author: str | None = None) -> Request[bool]:
        """Check several configurations and give them to connectors, new or not; whether none of them was there.

        None is written if one is wrong. Those that are as they should be are left alone.
        """
        return self._requests.begin(lambda request: self._sets.put(request, configs, author))

    def delete_all(self, names: Sequence[str], author: str | None = None) -> Request[None]:
        """Stop and forget those of these connectors that there are; it fails if there is none."""
        return self._requests.begin(lambda request: self._sets.delete(request, names, author))

    def set_target_state_of_all(self, names: Sequence[str], target: TargetState) -> Request[None]:
        """Pause, resume or stop those of these connectors that there are; it fails if there is none."""
        return self._requests.begin(lambda request: self._sets.set_target_state(request, names, target))

    def restart(self, name: str, *, include_tasks: bool = False, only_failed: bool = False) -> Request[Document]:
        """Restart a connector, with its tasks if asked for; its status, with what is being restarted (KIP-745).

        Without either flag the worker that runs the connector restarts it, and the answer is empty.
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
        """The names of all connectors, in order."""
        return self._requests.ask(self._connectors.names)

    def expanded(self) -> Request[dict[str, dict[str, Document]]]:
        """Every connector by name, with its ``status``, if it has one, and its ``info``."""
        return self._requests.ask(self._connectors.expanded)

    def info(self, name: str) -> Request[Document]:
        """A connector's configuration and tasks."""
        return self._requests.ask(lambda: self._connectors.info(name))

    def config(self, name: str) -> Request[dict[str, str]]:
        """A connector's configuration as it was written: references are not resolved."""
        return self._requests.ask(lambda: dict(self._connectors.entry(name).config))

    def entry(self, name: str) -> Request[ConnectorEntry]:
        """A connector as it should be: its configuration as it was written, and the revision of that."""
        return self._requests.ask(lambda: self._connectors.entry(name))

    def status(self, name: str, *, refresh: bool = True) -> Request[Document]:
        """The status of a connector and its tasks, for which other workers are asked for newer metrics.

        Without ``refresh`` it is for another worker that asks, and has all that this one knows.
        """
        if not refresh:
            return self._requests.ask(lambda: self._connectors.status_for_workers(name))
        return self._requests.ask(lambda: self._connectors.newest_status(name))

    def loads(self, name: str) -> Request[Document]:
        """The loads of the tasks of a bulk sink: the one under way and the last ones of each."""
        return self._requests.begin(lambda request: self._connectors.loads(request, name))

    def measurements(self, name: str, *, of_all: bool = True) -> Request[Document]:
        """What the plugins of a connector's tasks measure of themselves; unless ``of_all``, of this worker's alone."""
        if not of_all:
            return self._requests.ask(lambda: self._plugin_metrics.own(name))
        return self._requests.begin(lambda request: self._plugin_metrics.gather(request, name))

    def task_configs(self, name: str) -> Request[list[Document]]:
        """The configurations of a connector's tasks."""
        return self._requests.ask(lambda: self._connectors.task_configs(name))

    def task_status(self, name: str, task: int) -> Request[Document]:
        """The status of one task."""
        return self._requests.ask(lambda: self._connectors.task_status(Unit(name, task)))

    def topics(self, name: str) -> Request[list[str]]:
        """The topics a connector has used; none for an unknown connector, as in Kafka Connect."""
        return self._requests.ask(lambda: self._connectors.topics(name))

    def reset_topics(self, name: str) -> Request[None]:
        """Forget which topics a connector has used."""
        return self._requests.ask(lambda: self._connectors.reset_topics(name))
