"""Looks up connectors in the stores and describes them. Used only in the herder's thread.

What the REST API shows of a connector or task is built again only when it has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeAlias

from connect.errors import ConnectError, NotFoundError, PluginError
from connect.internals.plugins import PluginEntry, PluginKind, PluginRegistry
from worker.errors import ForbiddenError, UnknownConnectorError
from worker.formatting import utc_text
from worker.herder.connectors.schedules import due
from worker.herder.requests import Request, Steps
from worker.metrics.measurements import Measurements
from worker.peers.owner import TaskMeasured
from worker.stores.config.store import ConfigStore, ConnectorEntry
from worker.stores.status.store import Skips, State, Status, StatusStore
from worker.unit import Unit

__all__ = [
    "Connectors",
    "KeptViews",
    "TopicTracking",
    "Views",
    "by_connector",
    "connector_info",
    "connector_status",
    "task_configs",
    "task_status",
]

Document = dict[str, Any]
Shown: TypeAlias = Callable[[Mapping[Unit, Status]], Mapping[Unit, Status]]
_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class TopicTracking:
    """Whether topics used by connectors are tracked, and may be reset (KIP-158)."""

    enabled: bool = True
    resettable: bool = True


class Connectors:
    """Looks up connectors in the stores. ``shown`` returns what may be shown of the stored statuses now.

    All methods raise :class:`~worker.errors.UnknownConnectorError` for an unknown connector.
    """

    def __init__(
        self,
        configs: ConfigStore,
        statuses: StatusStore,
        plugins: PluginRegistry,
        tracking: TopicTracking,
        measurements: Measurements,
        shown: Shown = lambda statuses: statuses,
    ) -> None:
        self._measurements = measurements
        self._configs = configs
        self._statuses = statuses
        self._plugins = plugins
        self._tracking = tracking
        self._shown = shown
        self._kept_views = KeptViews()

    def exists(self, name: str) -> bool:
        """Return whether a connector of this name exists."""
        return name in self._configs.connectors()

    def names(self) -> list[str]:
        """Return the names of all connectors, sorted."""
        return sorted(self._configs.connectors())

    def entry(self, name: str) -> ConnectorEntry:
        """Return a connector's entry in the config store."""
        entry = self._configs.connectors().get(name)
        if entry is None:
            raise UnknownConnectorError(f"Connector {name} not found")
        return entry

    def forget(self, name: str) -> None:
        """Forget a deleted connector."""
        self._measurements.forget(name)
        self._kept_views.forget(name)

    def type(self, name: str) -> str:
        """Return ``source``, ``sink``, or ``unknown`` if neither the config record nor a plugins file says which."""
        entry = self._configs.connectors().get(name)
        if entry is None:
            return _UNKNOWN
        if entry.type is not None:
            return entry.type
        plugin = self.plugin(entry.config.get("connector.class", ""))
        return (plugin.type if plugin is not None else None) or _UNKNOWN

    def is_source(self, name: str) -> bool:
        """Return whether a connector is a source. Raises :class:`~connect.errors.ConnectError` if that is unknown."""
        found = self.type(name)
        if found == _UNKNOWN:
            raise ConnectError(
                f"It is unknown whether connector {name} is a source or a sink: its stored configuration does not say, "
                "and no plugins.toml has a type for its connector.class. PUT its configuration once more, unchanged, "
                "or set the type in the plugins.toml of the plugin."
            )
        return found == "source"

    def plugin(self, name: str) -> PluginEntry | None:
        """Return the connector plugin that a configuration calls ``name``, if it exists."""
        try:
            return self._plugins.find(PluginKind.CONNECTOR, name)
        except PluginError:
            return None

    def info(self, name: str) -> Document:
        """Return a connector's configuration and tasks."""
        return connector_info(name, self.type(name), self.entry(name))

    def status(self, name: str, statuses: Mapping[Unit, Status] | None = None) -> Document:
        """Return the status of a connector and its tasks, from the store or from ``statuses``."""
        known = self._shown(self._statuses.statuses()) if statuses is None else statuses
        return self._status(name, known, self._configs.connectors().get(name))

    def _status(self, name: str, statuses: Mapping[Unit, Status], entry: ConnectorEntry | None) -> Document:
        document = connector_status(name, self.type(name), statuses, self._measurements.of)
        if entry is not None and (at := due(entry)) is not None:
            document["next_run"] = at.isoformat().replace("+00:00", "Z")
        return document

    def newest_status(self, name: str) -> Document:
        """Return the status, and ask other workers for newer metrics, which the next status will show."""
        self._measurements.refresh(name)
        return self.status(name)

    def status_for_workers(self, name: str) -> Document:
        """Return the status for another worker, including the loads of bulk sinks."""
        loads = {task["id"]: {"loads": task} for task in self._task_loads(name)}
        document = self.status(name)
        return {**document, "tasks": [{**task, **loads.get(task["id"], {})} for task in document["tasks"]]}

    def loads(self, request: Request[Document], name: str) -> Steps[Document]:
        """Return the loads of a connector's bulk tasks, after asking the other workers."""
        self.entry(name)
        request.enter(f"asking the other workers about their tasks of connector {name}")
        yield self._measurements.gather(name)
        return {"name": name, "tasks": self._task_loads(name)}

    def _task_loads(self, name: str) -> list[Document]:
        statuses = self._statuses.statuses()
        units = sorted(unit for unit in statuses if unit.connector == name and unit.is_task)
        known = [(unit, statuses[unit], self._measurements.loads_of(unit, statuses[unit])) for unit in units]
        return [
            {"id": unit.task, "worker_id": status.worker_id, **loads}
            for unit, status, loads in known
            if loads is not None
        ]

    def expanded(self) -> dict[str, dict[str, Document]]:
        """Return every connector by name with its info, and its status if it has one. Callers must not change it."""
        connectors = self._configs.connectors()
        parts = by_connector(connectors, self._shown(self._statuses.statuses()))
        return {name: self._views(name, connectors[name], parts[name]) for name in sorted(connectors)}

    def _views(self, name: str, entry: ConnectorEntry, parts: list[tuple[Unit, Status]]) -> Views:
        measured = self._measurements.of
        seen = [item for unit, status in parts for item in (status, measured(unit, status))]

        def make() -> Views:
            statuses = dict(parts)
            has_status = Unit(name) in statuses
            status = {"status": self._status(name, statuses, entry)} if has_status else {}
            return {**status, "info": connector_info(name, self.type(name), entry)}

        return self._kept_views.get(name, (entry, *seen), make)

    def task_configs(self, name: str) -> list[Document]:
        """Return the configurations of a connector's tasks."""
        return task_configs(name, self.entry(name))

    def task_status(self, unit: Unit) -> Document:
        """Return the status of one task."""
        self._measurements.refresh(unit.connector)
        return task_status(unit, self._shown(self._statuses.statuses()), self._measurements.of)

    def uses_topics(self, unit: Unit, topics: tuple[str, ...]) -> None:
        """Record the topics that a task uses."""
        if self.exists(unit.connector):
            self._statuses.put_topics(unit, topics)

    def topics(self, name: str) -> list[str]:
        """Return the topics that a connector uses; none for an unknown connector."""
        if not self._tracking.enabled:
            raise ForbiddenError("Topic tracking is disabled.")
        return self._statuses.topics(name)

    def used_topics(self) -> dict[str, list[str]]:
        """Return the topics that each connector uses; none if that is not tracked."""
        names = self._configs.connectors() if self._tracking.enabled else ()
        return {name: self._statuses.topics(name) for name in names}

    def reset_topics(self, name: str) -> None:
        """Forget the topics that a connector uses."""
        if not self._tracking.enabled:
            raise ForbiddenError("Topic tracking is disabled.")
        if not self._tracking.resettable:
            raise ForbiddenError("Topic tracking reset is disabled.")
        self._statuses.remove_topics(name)


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
