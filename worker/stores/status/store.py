"""Where the states of connectors and tasks are kept, for whoever asks."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from worker.unit import Unit

__all__ = ["MemoryStatusStore", "State", "Status", "StatusStore"]


class State(enum.Enum):
    """The states that Kafka Connect's REST API knows."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a connector or task, and which worker said so in which generation.

    ``drained`` says that it has delivered everything it is to deliver (``run.until=drained``), ``restarts`` how often
    it was restarted by ``restart.policy`` since it last ran for long.
    """

    state: State
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None
    drained: bool = False
    restarts: int = 0


class StatusStore(ABC):
    """Keeps the newest status of each unit. Only the owner of a unit writes its status (invariant I6)."""

    @abstractmethod
    def start(self) -> None:
        """Read all there is."""

    @abstractmethod
    def close(self) -> None:
        """Write what is still to be written, and end."""

    @abstractmethod
    def put(self, unit: Unit, status: Status) -> None:
        """Keep a status."""

    @abstractmethod
    def remove(self, unit: Unit) -> None:
        """Forget the status of a unit that is no more."""

    @abstractmethod
    def statuses(self) -> Mapping[Unit, Status]:
        """Every status by unit."""

    @abstractmethod
    def put_topics(self, unit: Unit, topics: Iterable[str]) -> None:
        """Keep that a task of a connector uses these topics (KIP-158)."""

    @abstractmethod
    def remove_topics(self, connector: str) -> None:
        """Forget which topics a connector uses."""

    @abstractmethod
    def topics(self, connector: str) -> list[str]:
        """The topics that a connector has used since they were forgotten last, in order."""


class MemoryStatusStore(StatusStore):
    """The store of standalone mode. Used by the herder's thread alone."""

    def __init__(self) -> None:
        self._statuses: dict[Unit, Status] = {}
        self._topics: dict[str, set[str]] = {}

    def start(self) -> None:
        """There is nothing to read."""

    def close(self) -> None:
        """There is nothing to write."""

    def put(self, unit: Unit, status: Status) -> None:
        self._statuses[unit] = status

    def remove(self, unit: Unit) -> None:
        self._statuses.pop(unit, None)

    def statuses(self) -> Mapping[Unit, Status]:
        return dict(self._statuses)

    def put_topics(self, unit: Unit, topics: Iterable[str]) -> None:
        self._topics.setdefault(unit.connector, set()).update(topics)

    def remove_topics(self, connector: str) -> None:
        self._topics.pop(connector, None)

    def topics(self, connector: str) -> list[str]:
        return sorted(self._topics.get(connector, ()))
