"""The store of the states of connectors and tasks, and its standalone implementation."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from worker.unit import Unit

__all__ = ["Hang", "Heard", "MemoryStatusStore", "Skips", "State", "Status", "StatusStore", "Wait"]


class State(enum.Enum):
    """The states of Kafka Connect's REST API."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


_UP: Final = (State.RUNNING, State.PAUSED)


@dataclass(frozen=True, slots=True)
class Hang:
    """A plugin call that has not returned since ``since``, in ISO 8601; ``line`` is the line it is executing."""

    method: str
    since: str
    line: str
    trace: str


@dataclass(frozen=True, slots=True)
class Wait:
    """What a task waits for, in a sentence, and since when, in ISO 8601."""

    reason: str
    since: str


@dataclass(frozen=True, slots=True)
class Skips:
    """The records that a task has left out since its start ``since``; ``last`` is when the last one was.

    Both times are in ISO 8601. ``dead_letters`` is how many of them are in the dead letter queue, ``reason`` why the
    last one was left out.
    """

    records: int
    dead_letters: int
    since: str
    last: str
    reason: str


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a connector or task, with the worker and generation that reported it.

    ``drained`` is whether it has delivered everything (``run.until=drained``); ``restarts`` is how often
    ``restart.policy`` has restarted it since it last ran for long; ``hanging`` is the call in which it hangs.
    ``waiting`` is what a task waits for, and ``skipped`` are the records that it has left out since its start.
    ``changed`` is when it entered this state, and ``started`` when it began to run, also after it has failed; both in
    milliseconds since 1970, or ``None`` if a Kafka Connect worker wrote the status.
    """

    state: State
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None
    drained: bool = False
    restarts: int = 0
    hanging: Hang | None = None
    changed: int | None = field(default=None, compare=False)
    started: int | None = field(default=None, compare=False)
    waiting: Wait | None = None
    skipped: Skips | None = None

    def after(self, before: Status | None, now: int) -> Status:
        """Return this status with its times set, as the successor of another status of the unit."""
        if before is None or before.worker_id != self.worker_id:
            return replace(self, changed=now, started=now if self.state in _UP else None)
        changed = before.changed if before.state is self.state else None
        started = before.started if before.state in _UP else None
        if self.state not in (*_UP, State.FAILED):
            started = None
        elif self.state in _UP and started is None:
            started = now
        elif before.state is State.FAILED:
            started = before.started
        return replace(self, changed=now if changed is None else changed, started=started)


Heard: TypeAlias = Callable[[Unit, Status | None, Status | None], None]
"""Is told of each unit whose status has changed, what it was before, and what it is now."""


def _ignored(_unit: Unit, _before: Status | None, _after: Status | None) -> None:
    """Whom nobody listens for."""


class StatusStore(ABC):
    """Stores the newest status of each unit. Only the owner of a unit writes its status (invariant I6).

    ``heard`` is called for each change of a status, in the thread that uses the store.
    """

    heard: Heard = staticmethod(_ignored)

    @abstractmethod
    def start(self) -> None:
        """Read all stored statuses."""

    @property
    def refusal(self) -> str | None:
        """The access that the brokers currently deny to the store. May be called by any thread."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Make pending writes, and close the store."""

    @abstractmethod
    def put(self, unit: Unit, status: Status) -> None:
        """Store a status."""

    @abstractmethod
    def remove(self, unit: Unit) -> None:
        """Remove the status of a unit that was removed."""

    @abstractmethod
    def statuses(self) -> Mapping[Unit, Status]:
        """Return every status by unit."""

    @abstractmethod
    def put_topics(self, unit: Unit, topics: Iterable[str]) -> None:
        """Record that a task of a connector uses these topics (KIP-158)."""

    @abstractmethod
    def remove_topics(self, connector: str) -> None:
        """Forget which topics a connector uses."""

    @abstractmethod
    def topics(self, connector: str) -> list[str]:
        """Return the topics that a connector has used since they were last forgotten, in order."""


class MemoryStatusStore(StatusStore):
    """The store of standalone mode. Used only in the herder's thread."""

    def __init__(self) -> None:
        self._statuses: dict[Unit, Status] = {}
        self._topics: dict[str, set[str]] = {}

    def start(self) -> None:
        """Do nothing: nothing survives a restart."""

    def close(self) -> None:
        """Do nothing: nothing is pending."""

    def put(self, unit: Unit, status: Status) -> None:
        before = self._statuses.get(unit)
        self._statuses[unit] = status
        self.heard(unit, before, status)

    def remove(self, unit: Unit) -> None:
        self.heard(unit, self._statuses.pop(unit, None), None)

    def statuses(self) -> Mapping[Unit, Status]:
        return dict(self._statuses)

    def put_topics(self, unit: Unit, topics: Iterable[str]) -> None:
        self._topics.setdefault(unit.connector, set()).update(topics)

    def remove_topics(self, connector: str) -> None:
        self._topics.pop(connector, None)

    def topics(self, connector: str) -> list[str]:
        return sorted(self._topics.get(connector, ()))
