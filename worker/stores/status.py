"""Where the states of connectors and tasks are kept, for whoever asks."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping
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
    """The state of a connector or task, and which worker said so in which generation."""

    state: State
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None


class StatusStore(ABC):
    """Keeps the newest status of each unit. Only the owner of a unit writes its status (invariant I6)."""

    @abstractmethod
    def put(self, unit: Unit, status: Status) -> None:
        """Keep a status."""

    @abstractmethod
    def remove(self, unit: Unit) -> None:
        """Forget the status of a unit that is no more."""

    @abstractmethod
    def statuses(self) -> Mapping[Unit, Status]:
        """Every status by unit."""


class MemoryStatusStore(StatusStore):
    """The store of standalone mode. Used by the herder's thread alone."""

    def __init__(self) -> None:
        self._statuses: dict[Unit, Status] = {}

    def put(self, unit: Unit, status: Status) -> None:
        self._statuses[unit] = status

    def remove(self, unit: Unit) -> None:
        self._statuses.pop(unit, None)

    def statuses(self) -> Mapping[Unit, Status]:
        return dict(self._statuses)
