"""What is known of connectors, and what is shown of it. Used by the herder's thread alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connect.errors import NotFoundError, PluginError
from connect.plugins import PluginEntry, PluginKind, PluginRegistry
from worker.errors import ForbiddenError
from worker.herder.schedules import due
from worker.herder.views import connector_info, connector_status, task_configs, task_status
from worker.stores.config import ConfigStore, ConnectorEntry
from worker.stores.status import Status, StatusStore
from worker.unit import Unit

__all__ = ["Connectors", "TopicTracking"]

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TopicTracking:
    """Whether the topics that connectors use are kept, and may be reset (KIP-158)."""

    enabled: bool = True
    resettable: bool = True


class Connectors:
    """Looks up connectors in the stores. ``metrics`` is what each task has counted and measured.

    Every method fails with :class:`~connect.errors.NotFoundError` for a connector that there is not.
    """

    def __init__(
        self, configs: ConfigStore, statuses: StatusStore, plugins: PluginRegistry, tracking: TopicTracking
    ) -> None:
        self.metrics: dict[Unit, dict[str, float]] = {}
        self._configs = configs
        self._statuses = statuses
        self._plugins = plugins
        self._tracking = tracking
        self._types: dict[str, str] = {}

    def exists(self, name: str) -> bool:
        """Whether there is a connector of this name."""
        return name in self._configs.connectors()

    def names(self) -> list[str]:
        """The names of all, in order."""
        return sorted(self._configs.connectors())

    def entry(self, name: str) -> ConnectorEntry:
        """A connector as it is to be."""
        entry = self._configs.connectors().get(name)
        if entry is None:
            raise NotFoundError(f"Connector {name} not found")
        return entry

    def learn_type(self, name: str, kind: str) -> None:
        """Keep what a validation found a connector to be."""
        self._types[name] = kind

    def forget(self, name: str) -> None:
        """Forget what is known of a connector that is no more."""
        self._types.pop(name, None)
        self.metrics = {unit: values for unit, values in self.metrics.items() if unit.connector != name}

    def type(self, name: str) -> str:
        """``source``, ``sink``, or ``unknown`` where the class of a connector is not known here."""
        if (known := self._types.get(name)) is not None:
            return known
        entry = self._configs.connectors().get(name)
        plugin = self.plugin(entry.config.get("connector.class", "")) if entry is not None else None
        return (plugin.type if plugin is not None else None) or "unknown"

    def is_source(self, name: str) -> bool:
        """Whether a connector is a source."""
        return self.type(name) == "source"

    def plugin(self, name: str) -> PluginEntry | None:
        """The connector class that a configuration calls ``name``, if there is one."""
        try:
            return self._plugins.find(PluginKind.CONNECTOR, name)
        except PluginError:
            return None

    def info(self, name: str) -> Document:
        """A connector's configuration and tasks."""
        return connector_info(name, self.type(name), self.entry(name))

    def status(self, name: str, statuses: Mapping[Unit, Status] | None = None) -> Document:
        """The status of a connector and its tasks, as it is or as ``statuses`` say."""
        shown = self._statuses.statuses() if statuses is None else statuses
        document = connector_status(name, self.type(name), shown, self.metrics)
        entry = self._configs.connectors().get(name)
        if entry is not None and (at := due(entry)) is not None:
            document["next_run"] = at.isoformat().replace("+00:00", "Z")
        return document

    def expanded(self) -> dict[str, dict[str, Document]]:
        """Every connector by name, with its status, if it has one, and its info."""
        statuses = self._statuses.statuses()
        return {
            name: {**({"status": self.status(name)} if Unit(name) in statuses else {}), "info": self.info(name)}
            for name in self.names()
        }

    def task_configs(self, name: str) -> list[Document]:
        """The configurations of a connector's tasks."""
        return task_configs(name, self.entry(name))

    def task_status(self, unit: Unit) -> Document:
        """The status of one task."""
        return task_status(unit, self._statuses.statuses(), self.metrics)

    def totals(self) -> dict[str, float]:
        """What all tasks have counted and measured, added up."""
        totals: dict[str, float] = {}
        for values in self.metrics.values():
            for key, value in values.items():
                totals[key] = totals.get(key, 0.0) + value
        return totals

    def uses_topics(self, unit: Unit, topics: tuple[str, ...]) -> None:
        """Keep that a task uses these topics."""
        if self.exists(unit.connector):
            self._statuses.put_topics(unit, topics)

    def topics(self, name: str) -> list[str]:
        """The topics a connector uses; none of one that there is not."""
        if not self._tracking.enabled:
            raise ForbiddenError("Topic tracking is disabled.")
        return self._statuses.topics(name)

    def reset_topics(self, name: str) -> None:
        """Forget which topics a connector uses."""
        if not self._tracking.enabled:
            raise ForbiddenError("Topic tracking is disabled.")
        if not self._tracking.resettable:
            raise ForbiddenError("Topic tracking reset is disabled.")
        self._statuses.remove_topics(name)

    def listed_plugin(self, name: str) -> PluginEntry:
        """The plugin of any kind that is called ``name`` and listed."""
        for kind in PluginKind:
            try:
                entry = self._plugins.find(kind, name)
            except PluginError:
                continue
            if entry in self._plugins.entries(kind):
                return entry
        raise NotFoundError(f"Unknown plugin {name}.")
