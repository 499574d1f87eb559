"""Who has hurt a host, and who may have: those units live alone. A clock is given, so that all of it can be tested.

When a host dies and nobody knows who did it, each of its units is a suspect. One that does it again, alone, is found,
and the others are free of suspicion. If none does, they all are after a while, which is longer each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from worker.unit import Unit

__all__ = ["Blame"]

_PROBATION: Final = 60.0
_LONGER: Final = 4
_LONGEST: Final = 3600.0


@dataclass(frozen=True, slots=True)
class _Case:
    suspects: frozenset[Unit]
    until: float


class Blame:
    """What is known of the units that lived in hosts which died."""

    def __init__(self) -> None:
        self._guilty: set[Unit] = set()
        self._cases: list[_Case] = []
        self._suspicions: Counter[Unit] = Counter()

    def is_alone(self, unit: Unit) -> bool:
        """Whether a unit is to live alone."""
        return unit in self._guilty or self.is_suspect(unit)

    def is_suspect(self, unit: Unit) -> bool:
        """Whether a unit may have hurt a host."""
        return any(unit in case.suspects for case in self._cases)

    def suspect(self, units: Collection[Unit], now: float) -> None:
        """Take note that a host died with these in it, and nobody knows why."""
        self._suspicions.update(units)
        most = max(self._suspicions[unit] for unit in units)
        probation = min(_PROBATION * _LONGER ** (most - 1), _LONGEST)
        self._cases.append(_Case(frozenset(units), now + probation))

    def find(self, unit: Unit) -> None:
        """Take note that this one has ended a host; those that were suspects with it are so no more."""
        self._guilty.add(unit)
        self._cases = [case for case in self._cases if unit not in case.suspects]

    def forget(self, unit: Unit) -> None:
        """Know nothing of a unit any more: it is another one now."""
        self._guilty.discard(unit)
        del self._suspicions[unit]
        cases = (_Case(case.suspects - {unit}, case.until) for case in self._cases)
        self._cases = [case for case in cases if case.suspects]

    def acquit(self, now: float) -> None:
        """Let go of suspects that have run long enough."""
        self._cases = [case for case in self._cases if case.until > now]

    def next_acquittal(self) -> float | None:
        """When :meth:`acquit` has something to do."""
        return min((case.until for case in self._cases), default=None)
