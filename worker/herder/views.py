"""What the REST API shows of connectors and tasks, in Kafka Connect's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from worker.stores.status import Status
from worker.unit import Unit

__all__ = ["connector_status"]


def connector_status(
    name: str, kind: str, statuses: Mapping[Unit, Status], metrics: Mapping[Unit, Mapping[str, float]]
) -> dict[str, Any]:
    """A connector's state with those of its tasks (``ConnectorStateInfo``), and what the tasks have counted."""
    tasks = sorted(unit for unit in statuses if unit.connector == name and unit.is_task)
    return {
        "name": name,
        "connector": _state(statuses[Unit(name)]),
        "tasks": [_task(unit, statuses[unit], metrics.get(unit)) for unit in tasks],
        "type": kind,
    }


def _task(unit: Unit, status: Status, metrics: Mapping[str, float] | None) -> dict[str, Any]:
    return {"id": unit.task, **_state(status), **({"metrics": dict(metrics)} if metrics else {})}


def _state(status: Status) -> dict[str, Any]:
    state: dict[str, Any] = {"state": status.state.value, "worker_id": status.worker_id}
    if status.trace is not None:
        state["trace"] = status.trace
    if status.version not in (None, "undefined"):
        state["version"] = status.version
    return state
