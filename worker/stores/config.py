"""Where connectors, their target states and their task configs are kept."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

__all__ = ["ConfigStore", "ConnectorEntry", "MemoryConfigStore", "TargetState"]


class TargetState(enum.Enum):
    """What a user wants of a connector (KIP-875)."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class ConnectorEntry:
    """A connector as it is to be. Configurations are as written: their references are not resolved.

    ``applied`` is the connector's configuration as it was when the task configs were made of it: tasks run by that
    one, so that a change reaches them once, with the task configs that come of it.
    """

    config: Mapping[str, str]
    target: TargetState = TargetState.STARTED
    task_configs: tuple[Mapping[str, str], ...] = ()
    applied: Mapping[str, str] = field(default_factory=dict)


class ConfigStore(ABC):
    """Keeps what is to run. Only the leader writes (invariant I6)."""

    @abstractmethod
    def connectors(self) -> Mapping[str, ConnectorEntry]:
        """Every connector by name."""

    @abstractmethod
    def put_connector(self, name: str, config: Mapping[str, str], target: TargetState | None) -> None:
        """Create a connector or change its configuration, and its target state if one is given."""

    @abstractmethod
    def remove_connector(self, name: str) -> None:
        """Forget a connector."""

    @abstractmethod
    def put_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Set the task configs of a connector, all at once; they are made of the configuration it has now."""

    @abstractmethod
    def put_target_state(self, name: str, target: TargetState) -> None:
        """Set what is wanted of a connector."""


class MemoryConfigStore(ConfigStore):
    """The store of standalone mode, whose files are read at every start. Used by the herder's thread alone."""

    def __init__(self) -> None:
        self._connectors: dict[str, ConnectorEntry] = {}

    def connectors(self) -> Mapping[str, ConnectorEntry]:
        return dict(self._connectors)

    def put_connector(self, name: str, config: Mapping[str, str], target: TargetState | None) -> None:
        entry = self._connectors.get(name)
        if entry is None:
            self._connectors[name] = ConnectorEntry(dict(config), target or TargetState.STARTED)
        else:
            self._connectors[name] = replace(entry, config=dict(config), target=target or entry.target)

    def remove_connector(self, name: str) -> None:
        self._connectors.pop(name, None)

    def put_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        entry = self._connectors[name]
        self._connectors[name] = replace(entry, task_configs=tuple(configs), applied=entry.config)

    def put_target_state(self, name: str, target: TargetState) -> None:
        self._connectors[name] = replace(self._connectors[name], target=target)
