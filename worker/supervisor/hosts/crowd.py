"""Who has a process of its own because a worker runs few: tasks and connectors are counted each for themselves.

Who begins while there are few lives alone. When there are many, those that rest move together, a task once it has
rested for a minute; who begins then begins with others. Nobody moves out because there are few again, so that somebody
who comes and goes makes nobody move.
"""

from __future__ import annotations

from typing import Final

from worker.unit import Unit

__all__ = ["FEW", "Crowd"]

FEW: Final = 16
"""As many tasks, and as many connectors, each have a process of their own."""


class Crowd:
    """The units that may live alone or together, as is best, and those of them that live alone since they are few."""

    def __init__(self) -> None:
        self._units: dict[bool, set[Unit]] = {True: set(), False: set()}
        self._alone: set[Unit] = set()

    def comes(self, unit: Unit) -> bool:
        """Take note that a unit is about to begin; whether others are to move for that."""
        there = self._units[unit.is_task]
        there.add(unit)
        if not self.is_many(unit):
            self._alone.add(unit)
            return False
        # What a connector does is not measured, and it is seldom much.
        leaving = frozenset() if unit.is_task else self._alone & there
        self._alone -= {unit, *leaving}
        return bool(leaving - {unit})

    def goes(self, unit: Unit) -> None:
        """Take note that a unit is to run no more, or not as is best for all."""
        self._units[unit.is_task].discard(unit)
        self._alone.discard(unit)

    def is_many(self, unit: Unit) -> bool:
        """Whether there are too many of a unit's kind for a process each."""
        return len(self._units[unit.is_task]) > FEW

    def is_alone(self, unit: Unit) -> bool:
        """Whether a unit lives alone since there are few, or were when it began."""
        return unit in self._alone

    def joins(self, unit: Unit) -> None:
        """Take note that a unit is to live with others from now on."""
        self._alone.discard(unit)
