"""Requests for connectors: their configurations, states and tasks. They may be made from any thread."""

from __future__ import annotations

from typing import Any, TypeAlias

from worker.herder.connectors.connector_sets import ConnectorSets
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.plugin_metrics import PluginMetrics
from worker.herder.connectors.restarts import Restarts
from worker.herder.connectors.signals import Signals
from worker.herder.connectors.writes import Writes
from worker.herder.requests import Request, Requests, Steps, answered, asked
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
        signals: Signals,
    ) -> None:
        self._requests = requests
        self._connectors = connectors
        self._restarts = restarts
        self._plugin_metrics = plugin_metrics
        self.signal = requests.from_steps(signals.send)
        self.create = requests.from_steps(writes.create)
        self.put_config = requests.from_steps(writes.put)
        self.patch_config = requests.from_steps(writes.patch)
        self.delete = requests.from_steps(writes.delete)
        self.set_target_state = requests.from_steps(writes.set_target_state)
        self.put_all = requests.from_steps(sets.put)
        self.delete_all = requests.from_steps(sets.delete)
        self.set_target_state_of_all = requests.from_steps(sets.set_target_state)
        self.names = requests.from_answer(connectors.names)
        self.expanded = requests.from_answer(connectors.expanded)
        self.info = requests.from_answer(connectors.info)
        self.entry = requests.from_answer(connectors.entry)
        self.loads = requests.from_steps(connectors.loads)
        self.task_configs = requests.from_answer(connectors.task_configs)
        self.topics = requests.from_answer(connectors.topics)
        self.used_topics = requests.from_answer(connectors.used_topics)
        self.reset_topics = requests.from_answer(connectors.reset_topics)

    @asked
    def restart(
        self, request: Request[Document], name: str, *, include_tasks: bool = False, only_failed: bool = False
    ) -> Steps[Document]:
        """Restart a connector, with its tasks if requested; return its status and what is being restarted (KIP-745).

        Without either flag, the worker that runs the connector restarts it, and the answer is empty.
        """
        if not (include_tasks or only_failed):
            return (yield from self._restarts.connector(request, name))
        return (
            yield from self._restarts.everywhere(request, name, include_tasks=include_tasks, only_failed=only_failed)
        )

    @asked
    def restart_task(self, request: Request[None], name: str, task: int) -> Steps[None]:
        """Restart one task."""
        yield from self._restarts.task(request, Unit(name, task))

    @answered
    def config(self, name: str) -> dict[str, str]:
        """Return a connector's configuration as written, with unresolved references."""
        return dict(self._connectors.entry(name).config)

    @answered
    def status(self, name: str, *, refresh: bool = True) -> Document:
        """Return the status of a connector and its tasks, and ask other workers for newer metrics.

        Without ``refresh``, return all that this worker knows, for another worker.
        """
        return self._connectors.newest_status(name) if refresh else self._connectors.status_for_workers(name)

    @asked
    def measurements(self, request: Request[Document], name: str, *, of_all: bool = True) -> Steps[Document]:
        """Return the plugin metrics of a connector's tasks; unless ``of_all``, only of this worker's tasks."""
        return (yield from self._plugin_metrics.gather(request, name)) if of_all else self._plugin_metrics.own(name)

    @answered
    def task_status(self, name: str, task: int) -> Document:
        """Return the status of one task."""
        return self._connectors.task_status(Unit(name, task))
