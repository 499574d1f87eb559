"""Decides which units run alone because they keep a core busy. Callers pass the time, for tests.

A unit returns to a shared host after it has been idle for a long time. That time is four times as long after each
further departure, so that no unit goes back and forth. A unit is judged only when it has just reported: it is then
between two calls of its plugin, and a move interrupts none.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from worker.unit import Unit

__all__ = ["Load"]

_MEMORY_SECONDS: Final = 20.0
"""The seconds over which the share of a core is averaged, with older seconds weighing less and less."""
_BUSY: Final = 0.2
"""A unit that takes this share of a core leaves a shared host."""
_CROWDED: Final = 0.5
"""If all units of a host together take this share of a core, the busiest leaves."""
_LITTLE: Final = 0.05
"""A unit that takes a smaller share of a core counts as idle."""
_REST_SECONDS: Final = 600.0
_PAUSE_SECONDS: Final = 60.0
"""The idle seconds after which a unit that has always run alone joins others."""
_LONGER: Final = 4


@dataclass(slots=True)
class _Known:
    total: float | None = None
    at: float = 0.0
    share: float = 0.0
    is_alone: bool = False
    times: int = 0
    """How often the unit has left a shared host."""
    rests_since: float = 0.0

    def share_at(self, now: float) -> float:
        return self.share * math.exp((self.at - now) / _MEMORY_SECONDS)


class Load:
    """The share of a core that each unit takes, and the units that therefore run alone."""

    def __init__(self) -> None:
        self._known: dict[Unit, _Known] = {}

    def is_alone(self, unit: Unit) -> bool:
        """Return whether a unit has to run alone."""
        return unit in self._known and self._known[unit].is_alone

    def begin(self, unit: Unit) -> None:
        """Begin to count a unit from 0, since it starts in a new process or thread."""
        known = self._known.setdefault(unit, _Known())
        known.total, known.share = None, 0.0

    def spent(self, unit: Unit, total: float, mates: Collection[Unit], now: float) -> bool:
        """Take in the CPU seconds of a unit since its start. Return whether it has to move.

        ``mates`` are the units of its host, including itself.
        """
        known = self._follow(unit, total, now)
        if known.is_alone:
            return self._has_rested(known, now)
        if self._crowds(unit, mates, now):
            known.is_alone, known.rests_since = True, now
            known.times += 1
        return known.is_alone

    def rests(self, unit: Unit, total: float, now: float) -> bool:
        """Take in the CPU seconds of a unit that has always run alone. Return whether it has rested for a minute."""
        known = self._follow(unit, total, now)
        return now - known.rests_since >= _PAUSE_SECONDS

    def forget(self, unit: Unit) -> None:
        """Forget a unit, since it has another configuration now or has ended."""
        self._known.pop(unit, None)

    def _follow(self, unit: Unit, total: float, now: float) -> _Known:
        known = self._known.setdefault(unit, _Known())
        if known.total is None:
            known.rests_since = now
        elif now > known.at:
            share = (total - known.total) / (now - known.at)
            before = known.share_at(now)
            known.share = before + share * (1 - math.exp((known.at - now) / _MEMORY_SECONDS))
        known.total, known.at = total, now
        if known.share >= _LITTLE:
            known.rests_since = now
        return known

    def _has_rested(self, known: _Known, now: float) -> bool:
        known.is_alone = now - known.rests_since < _REST_SECONDS * _LONGER ** (known.times - 1)
        return not known.is_alone

    def _crowds(self, unit: Unit, mates: Collection[Unit], now: float) -> bool:
        share = self._known[unit].share
        if share >= _BUSY or share < _LITTLE:
            return share >= _BUSY
        staying = [self._known[mate] for mate in mates if mate in self._known and not self._known[mate].is_alone]
        shares = [known.share_at(now) for known in staying]
        return sum(shares) >= _CROWDED and share >= max(shares)
