"""Decides which units run alone because they have ended a host, or may have. Callers pass the time, for tests.

When a host dies and the culprit is unknown, all its units are suspects and run alone. The one that ends its process
again is guilty, which clears the others. If none does within the probation, all are cleared; each further suspicion of
the same unit makes its probation longer.

Where a process for each would be too much, as of JVMs, suspects run in two cells. The one that ends is divided
again, until it has one unit.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from worker.unit import Unit

__all__ = ["Blame"]

_PROBATION: Final = 60.0
_LONGER: Final = 4
_LONGEST_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class _Case:
    suspects: frozenset[Unit]
    until: float
    number: int


class Blame:
    """The suspects of hosts that died, and the units that were found guilty."""

    def __init__(self) -> None:
        self._guilty: set[Unit] = set()
        self._cases: list[_Case] = []
        self._suspicions: Counter[Unit] = Counter()
        self._numbers = itertools.count()

    def is_alone(self, unit: Unit) -> bool:
        """Return whether a unit has to run alone."""
        return unit in self._guilty or self.is_suspect(unit)

    def is_suspect(self, unit: Unit) -> bool:
        """Return whether a unit may have ended a host."""
        return any(unit in case.suspects for case in self._cases)

    def cell(self, unit: Unit) -> str | None:
        """Return the cell of a suspect by its last case, with connectors kept together as far as possible.

        ``None`` if the unit is no suspect, or is known to be guilty.
        """
        case = next((case for case in reversed(self._cases) if unit in case.suspects), None)
        if case is None or unit in self._guilty:
            return None
        is_later = sorted(case.suspects).index(unit) >= (len(case.suspects) + 1) // 2
        return f"{case.number}{'b' if is_later else 'a'}"

    def suspect(self, units: Collection[Unit], now: float) -> None:
        """Suspect all units of a host that died for an unknown reason."""
        self._suspicions.update(units)
        most = max(self._suspicions[unit] for unit in units)
        probation = min(_PROBATION * _LONGER ** (most - 1), _LONGEST_SECONDS)
        self._cases.append(_Case(frozenset(units), now + probation, next(self._numbers)))

    def find(self, unit: Unit) -> None:
        """Find a unit guilty, which clears those that were suspected together with it."""
        self._guilty.add(unit)
        self._cases = [case for case in self._cases if unit not in case.suspects]

    def forget(self, unit: Unit) -> None:
        """Forget a unit, since it has another configuration now."""
        self._guilty.discard(unit)
        del self._suspicions[unit]
        cases = (replace(case, suspects=case.suspects - {unit}) for case in self._cases)
        self._cases = [case for case in cases if case.suspects]

    def acquit(self, now: float) -> None:
        """Clear the suspects whose probation is over."""
        self._cases = [case for case in self._cases if case.until > now]

    def next_acquittal(self) -> float | None:
        """Return when the next probation ends."""
        return min((case.until for case in self._cases), default=None)
