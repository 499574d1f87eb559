"""Which units keep a core busy, and so live alone until they have rested for long.

Times are given, so that all of it can be tested. Nobody goes back and forth: each time that a unit is busy again after
it had come back, it has to rest four times as long. A unit is only judged when it has just said what it has done, since
it is between two calls of its plugin then: a move ends none of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from worker.unit import Unit

__all__ = ["Load"]

_MEMORY: Final = 20.0
"""Over how many seconds the share of a core is averaged; what was before counts less and less."""
_BUSY: Final = 0.2
"""Who takes this much of a core leaves the others."""
_CROWDED: Final = 0.5
"""Where all together take this much of a core the busiest leaves."""
_LITTLE: Final = 0.05
"""Who takes less than this much of a core rests, and helps nobody by leaving."""
_REST: Final = 600.0
_PAUSE: Final = 60.0
"""Who has not left others yet has rested after this."""
_LONGER: Final = 4


@dataclass(slots=True)
class _Known:
    total: float | None = None
    at: float = 0.0
    share: float = 0.0
    is_alone: bool = False
    times: int = 0
    """How often it has left."""
    rests_since: float = 0.0

    def share_at(self, now: float) -> float:
        return self.share * math.exp((self.at - now) / _MEMORY)


class Load:
    """How much of a core each unit takes, and who lives alone for that."""

    def __init__(self) -> None:
        self._known: dict[Unit, _Known] = {}

    def is_alone(self, unit: Unit) -> bool:
        """Whether a unit is to live alone."""
        return unit in self._known and self._known[unit].is_alone

    def begin(self, unit: Unit) -> None:
        """Take note that a unit counts from 0 again, in a process or thread of its own."""
        known = self._known.setdefault(unit, _Known())
        known.total, known.share = None, 0.0

    def spent(self, unit: Unit, total: float, mates: Collection[Unit], now: float) -> bool:
        """Take note of how many seconds of a core a unit has taken since it began; whether it is to move for that.

        ``mates`` are those that live with it, itself among them.
        """
        known = self._follow(unit, total, now)
        if known.is_alone:
            return self._has_rested(known, now)
        if self._crowds(unit, mates, now):
            known.is_alone, known.rests_since = True, now
            known.times += 1
        return known.is_alone

    def rests(self, unit: Unit, total: float, now: float) -> bool:
        """Take note of the same of a unit that has always lived alone; whether it has taken little for a minute."""
        known = self._follow(unit, total, now)
        return now - known.rests_since >= _PAUSE

    def forget(self, unit: Unit) -> None:
        """Know nothing of a unit any more: it is another one now."""
        self._known.pop(unit, None)

    def _follow(self, unit: Unit, total: float, now: float) -> _Known:
        known = self._known.setdefault(unit, _Known())
        if known.total is None:
            known.rests_since = now
        elif now > known.at:
            share = (total - known.total) / (now - known.at)
            before = known.share_at(now)
            known.share = before + share * (1 - math.exp((known.at - now) / _MEMORY))
        known.total, known.at = total, now
        if known.share >= _LITTLE:
            known.rests_since = now
        return known

    def _has_rested(self, known: _Known, now: float) -> bool:
        known.is_alone = now - known.rests_since < _REST * _LONGER ** (known.times - 1)
        return not known.is_alone

    def _crowds(self, unit: Unit, mates: Collection[Unit], now: float) -> bool:
        share = self._known[unit].share
        if share >= _BUSY or share < _LITTLE:
            return share >= _BUSY
        staying = [self._known[mate] for mate in mates if mate in self._known and not self._known[mate].is_alone]
        shares = [known.share_at(now) for known in staying]
        return sum(shares) >= _CROWDED and share >= max(shares)
