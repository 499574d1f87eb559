"""The lifetimes of this worker's units: successful and failed starts, processes, and time spent running."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from worker.supervisor.lifecycle import Phase
from worker.unit import Unit

__all__ = ["Life", "Lifetimes", "LifetimesSeen", "Shares", "Starts"]

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
class Life:
    """The life of a unit: when it began, and since when it is in its phase, by :func:`time.monotonic`.

    ``running`` and ``paused`` are the seconds spent before that. ``pid`` is its process, while it has one.
    """

    since: float
    phase: Phase = Phase.STARTING
    changed: float = 0.0
    running: float = 0.0
    paused: float = 0.0
    pid: int | None = None

    def moved(self, phase: Phase, now: float) -> Life:
        """Return the life in another phase."""
        running, paused = self._spent(now)
        pid = self.pid if phase in _LIVE else None
        return Life(self.since, phase, now, running, paused, pid)

    def shares(self, now: float) -> Shares:
        """Return the fractions of the life until now."""
        life = max(now - self.since, 1e-9)
        running, paused = self._spent(now)
        return Shares(min(1.0, running / life), min(1.0, paused / life))

    def _spent(self, now: float) -> tuple[float, float]:
        spent = now - self.changed
        running = self.running + (spent if self.phase in (Phase.RUNNING, Phase.DRAINED) else 0.0)
        return running, self.paused + (spent if self.phase is Phase.PAUSED else 0.0)


@dataclass(frozen=True, slots=True)
class LifetimesSeen:
    """The lifetimes at one moment, ``at`` by :func:`time.monotonic`."""

    connectors: Starts
    tasks: Starts
    lives: Mapping[Unit, Life]
    failures: Mapping[Unit, int]
    at: float
    jvms: Mapping[int, int] = field(default_factory=dict)
    """The JVM of each process that has one."""

    def shares(self, unit: Unit) -> Shares | None:
        """Return the fractions of a task's life; ``None`` for one that is not known."""
        life = self.lives.get(unit)
        return None if life is None else life.shares(self.at)

    def processes(self) -> dict[Unit, int]:
        """Return the process ids of the units that have a process."""
        return {unit: life.pid for unit, life in self.lives.items() if life.pid is not None}


class Lifetimes:
    """Follows the units. Used by one thread."""

    def __init__(self) -> None:
        self._lives: dict[Unit, Life] = {}
        self._succeeded: Counter[bool] = Counter()
        self._failed: Counter[bool] = Counter()
        self._failures: Counter[Unit] = Counter()
        self._jvms: dict[int, int] = {}

    def launched(self, unit: Unit, pid: int, now: float) -> None:
        """Record that a process starts running a unit."""
        self._lives[unit] = Life(now, changed=now, pid=pid)

    def jvm_launched(self, pid: int, jvm: int) -> None:
        """Record that a process has a JVM."""
        self._jvms[pid] = jvm

    def rested(self, unit: Unit) -> None:
        """Record that a unit continues without a process."""
        if (life := self._lives.get(unit)) is not None:
            self._lives[unit] = replace(life, pid=None)

    def changed(self, unit: Unit, phase: Phase, now: float) -> None:
        """Record that a unit has entered a phase."""
        life = self._lives.get(unit) or Life(now, changed=now)
        if life.phase is Phase.STARTING and phase in _UP:
            self._succeeded[unit.is_task] += 1
        elif life.phase is Phase.STARTING and phase is Phase.FAILED:
            self._failed[unit.is_task] += 1
        if phase is Phase.FAILED:
            self._failures[unit] += 1
        if phase is Phase.GONE:
            self._lives.pop(unit, None)
        else:
            self._lives[unit] = life.moved(phase, now)

    def forget(self, connector: str) -> None:
        """Forget the counts of a deleted connector."""
        self._failures = Counter({unit: count for unit, count in self._failures.items() if unit.connector != connector})

    def seen(self, now: float) -> LifetimesSeen:
        """Return the current state."""
        processes = {life.pid for life in self._lives.values()}
        self._jvms = {pid: jvm for pid, jvm in self._jvms.items() if pid in processes}
        return LifetimesSeen(
            Starts(self._succeeded[False], self._failed[False]),
            Starts(self._succeeded[True], self._failed[True]),
            dict(self._lives),
            dict(self._failures),
            now,
            self._jvms,
        )
