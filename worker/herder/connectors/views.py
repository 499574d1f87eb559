"""Connectors and tasks as the REST API shows them, built again only when they have changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from connect.errors import NotFoundError
from worker.formatting import utc_text
from worker.peers.owner import TaskMeasured
from worker.stores.config.store import ConnectorEntry
from worker.stores.status.store import Skips, State, Status
from worker.unit import Unit

__all__ = ["KeptViews", "Views", "by_connector", "connector_info", "connector_status", "task_configs", "task_status"]

Measured: TypeAlias = Callable[[Unit, Status], TaskMeasured]
"""The measurements of a task with a status, as far as they are known."""


def connector_info(name: str, kind: str, entry: ConnectorEntry) -> dict[str, Any]:
    """Return a connector's configuration as written, and its tasks (``ConnectorInfo``)."""
    return {
        "name": name,
        "config": dict(entry.config),
        "tasks": [{"connector": name, "task": task} for task in range(len(entry.task_configs))],
        "type": kind,
    }


def task_configs(name: str, entry: ConnectorEntry) -> list[dict[str, Any]]:
    """Return the configuration of each task as stored (``TaskInfo``)."""
    return [
        {"id": {"connector": name, "task": task}, "config": dict(config)}
        for task, config in enumerate(entry.task_configs)
    ]


def connector_status(name: str, kind: str, statuses: Mapping[Unit, Status], measured: Measured) -> dict[str, Any]:
    """Return the state of a connector and its tasks (``ConnectorStateInfo``), and the metrics of the tasks.

    ``statuses`` may include other connectors. Raises :class:`~connect.errors.NotFoundError` if it has no status of this
    one.
    """
    if Unit(name) not in statuses:
        raise NotFoundError(f"No status found for connector {name}")
    tasks = sorted(unit for unit in statuses if unit.connector == name and unit.is_task)
    return {
        "name": name,
        "connector": _state(statuses[Unit(name)]),
        "tasks": [_task(unit, statuses[unit], measured) for unit in tasks],
        "type": kind,
        **_skipped([skips for unit in tasks if (skips := statuses[unit].skipped) is not None]),
    }


def _skipped(parts: Sequence[Skips]) -> dict[str, Any]:
    """Return the sum of what the tasks have left out, with the reason of the last record; nothing without any."""
    if not parts:
        return {}
    newest = max(parts, key=lambda skips: skips.last)
    records, dead_letters = sum(skips.records for skips in parts), sum(skips.dead_letters for skips in parts)
    since = min(skips.since for skips in parts)
    return {"skipped": asdict(replace(newest, records=records, dead_letters=dead_letters, since=since))}


def task_status(unit: Unit, statuses: Mapping[Unit, Status], measured: Measured) -> dict[str, Any]:
    """Return the state of one task (``TaskState``). Raises :class:`~connect.errors.NotFoundError` if it has none."""
    if unit not in statuses:
        raise NotFoundError(f"No status found for task {unit.connector}-{unit.task}")
    return _task(unit, statuses[unit], measured)


def _task(unit: Unit, status: Status, measured: Measured) -> dict[str, Any]:
    found, shown = measured(unit, status), {"id": unit.task, **_state(status)}
    # Without a worker that runs the task, what it last measured is not what is.
    is_run = status.state is not State.UNASSIGNED
    values, old = (found.values, found.old) if is_run else (None, {**(found.old or {}), **(found.values or {})})
    if values:
        shown["metrics"] = dict(values)
    if old:
        shown["last_metrics"] = {"at": found.at, "values": dict(old)}
    return shown


def _state(status: Status) -> dict[str, Any]:
    state: dict[str, Any] = {"state": status.state.value, "worker_id": status.worker_id}
    if status.trace is not None:
        state["trace"] = status.trace
    if status.version not in (None, "undefined"):
        state["version"] = status.version
    if status.restarts:
        state["restarts"] = status.restarts
    if status.hanging is not None:
        state["hanging"] = asdict(status.hanging)
    if status.waiting is not None:
        state["waiting"] = asdict(status.waiting)
    if status.skipped is not None:
        state["skipped"] = asdict(status.skipped)
    times = (("changed_at", status.changed), ("started_at", status.started))
    state |= {name: utc_text(time / 1000) for name, time in times if time is not None}
    return state


Views: TypeAlias = dict[str, dict[str, Any]]
"""The ``status`` and the ``info`` of a connector. They are shared with former callers and must not be changed."""


@dataclass(frozen=True, slots=True)
class _Kept:
    made_of: tuple[object, ...]
    views: Views


class KeptViews:
    """Caches the views of connectors."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def get(self, name: str, made_of: tuple[object, ...], make: Callable[[], Views]) -> Views:
        """Return the views made from these very objects, or else new ones."""
        kept = self._kept.get(name)
        if kept is None or not _same(kept.made_of, made_of):
            kept = self._kept[name] = _Kept(made_of, make())
        return kept.views

    def forget(self, name: str) -> None:
        """Forget a deleted connector."""
        self._kept.pop(name, None)


def by_connector(
    connectors: Mapping[str, ConnectorEntry], statuses: Mapping[Unit, Status]
) -> dict[str, list[tuple[Unit, Status]]]:
    """Group the statuses by connector, in no particular order."""
    parts: dict[str, list[tuple[Unit, Status]]] = {name: [] for name in connectors}
    for part in statuses.items():
        if (of_connector := parts.get(part[0].connector)) is not None:
            of_connector.append(part)
    return parts


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
