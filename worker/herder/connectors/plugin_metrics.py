"""The metrics that plugins record for their tasks, gathered for a connector. Used only in the herder's thread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from worker.herder.cluster.other_workers import OtherWorkers
from worker.herder.connectors.connectors import Connectors
from worker.herder.requests import Request, Steps
from worker.metrics.measurements import Measurements
from worker.metrics.snapshot import OwnSeries, OwnValue
from worker.stores.status.store import StatusStore
from worker.unit import Unit

__all__ = ["PluginMetrics"]

Document: TypeAlias = dict[str, Any]


class PluginMetrics:
    """Gathers the plugin metrics of a connector's tasks from all workers; tasks without such metrics are left out."""

    def __init__(
        self,
        worker_id: str,
        statuses: StatusStore,
        connectors: Connectors,
        measurements: Measurements,
        others: OtherWorkers,
    ) -> None:
        self._worker_id = worker_id
        self._statuses = statuses
        self._connectors = connectors
        self._measurements = measurements
        self._others = others

    def own(self, name: str) -> Document:
        """Return the metrics of the tasks that this worker runs, for another worker.

        Raises :class:`~connect.errors.NotFoundError` for an unknown connector.
        """
        self._connectors.entry(name)
        return self._document(name, [])

    def gather(self, request: Request[Document], name: str) -> Steps[Document]:
        """Return the metrics of all tasks, after asking the other workers."""
        self._connectors.entry(name)
        answers = yield from self._others.gather(request, name, lambda owners, url: owners.own_numbers(url, name))
        return self._document(name, answers)

    def _document(self, name: str, answers: Sequence[Sequence[Document]]) -> Document:
        tasks = {task["id"]: task for worker in [*answers, self._here(name)] for task in worker}
        return {"name": name, "tasks": [tasks[number] for number in sorted(tasks)]}

    def _here(self, name: str) -> list[Document]:
        units = [
            unit
            for unit, status in self._statuses.statuses().items()
            if unit.connector == name and unit.is_task and status.worker_id == self._worker_id
        ]
        return [self._task(unit, own) for unit in units if (own := self._measurements.own_numbers_of(unit))]

    def _task(self, unit: Unit, own: Mapping[OwnSeries, OwnValue]) -> Document:
        return {
            "id": unit.task,
            "worker_id": self._worker_id,
            "measurements": [
                {
                    "name": name,
                    "labels": dict(zip(labels[::2], labels[1::2], strict=True)),
                    "value": each.value if math.isfinite(each.value) else None,
                    "help": each.help,
                }
                for (name, labels), each in own.items()
            ],
        }
