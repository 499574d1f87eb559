"""The lifetimes of this worker's units: successful and failed starts, processes, and time spent running."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from worker.supervisor.lifecycle import Phase
from worker.unit import Unit

__all__ = ["Lifetimes", "LifetimesSeen", "Shares", "Starts"]

_UP: Final = (Phase.RUNNING, Phase.DRAINED, Phase.PAUSED)
_LIVE: Final = (*_UP, Phase.STOPPING)


@dataclass(frozen=True, slots=True)
class Starts:
    """The number of starts: those that reached the running state, and those that failed before."""

    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Shares:
    """The fractions of a unit's lifetime in which it ran and was paused, from 0 to 1."""

    running: float
    paused: float


@dataclass(frozen=True, slots=True)
class LifetimesSeen:
    """The lifetimes at one moment. ``processes`` are process ids."""

    connectors: Starts
    tasks: Starts
    processes: Mapping[Unit, int]
    shares: Mapping[Unit, Shares]
    failures: Mapping[Unit, int]


@dataclass(slots=True)
class _Life:
    since: float
    phase: Phase = Phase.STARTING
    changed: float = 0.0
    running: float = 0.0
    paused: float = 0.0
    pid: int | None = None

    def move(self, phase: Phase, now: float) -> None:
        spent = now - self.changed
        if self.phase in (Phase.RUNNING, Phase.DRAINED):
            self.running += spent
        elif self.phase is Phase.PAUSED:
            self.paused += spent
        self.phase, self.changed = phase, now

    def shares(self, now: float) -> Shares:
        life = max(now - self.since, 1e-9)
        spent = now - self.changed
        running = self.running + (spent if self.phase in (Phase.RUNNING, Phase.DRAINED) else 0.0)
        paused = self.paused + (spent if self.phase is Phase.PAUSED else 0.0)
        return Shares(min(1.0, running / life), min(1.0, paused / life))


class Lifetimes:
    """Follows the units. Used by one thread."""

    def __init__(self) -> None:
        self._lives: dict[Unit, _Life] = {}
        self._succeeded: Counter[bool] = Counter()
        self._failed: Counter[bool] = Counter()
        self._failures: Counter[Unit] = Counter()

    def launched(self, unit: Unit, pid: int, now: float) -> None:
        """Record that a process starts running a unit."""
        self._lives[unit] = _Life(now, changed=now, pid=pid)

    def rested(self, unit: Unit) -> None:
        """Record that a unit continues without a process."""
        if unit in self._lives:
            self._lives[unit].pid = None

    def changed(self, unit: Unit, phase: Phase, now: float) -> None:
        """Record that a unit has entered a phase."""
        life = self._lives.get(unit)
        if life is None:
            life = self._lives[unit] = _Life(now, changed=now)
        if life.phase is Phase.STARTING and phase in _UP:
            self._succeeded[unit.is_task] += 1
        elif life.phase is Phase.STARTING and phase is Phase.FAILED:
            self._failed[unit.is_task] += 1
        if phase is Phase.FAILED:
            self._failures[unit] += 1
        life.move(phase, now)
        if phase not in _LIVE:
            life.pid = None
        if phase is Phase.GONE:
            del self._lives[unit]

    def forget(self, connector: str) -> None:
        """Forget the counts of a deleted connector."""
        self._failures = Counter({unit: count for unit, count in self._failures.items() if unit.connector != connector})

    def seen(self, now: float) -> LifetimesSeen:
        """Return the current state."""
        return LifetimesSeen(
            Starts(self._succeeded[False], self._failed[False]),
            Starts(self._succeeded[True], self._failed[True]),
            {unit: life.pid for unit, life in self._lives.items() if life.pid is not None},
            {unit: life.shares(now) for unit, life in self._lives.items() if unit.is_task},
            dict(self._failures),
        )
