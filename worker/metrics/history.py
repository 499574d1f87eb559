"""The last 24 hours of each connector, for charts: its rate and its lag.

Nothing is stored: a worker that restarts begins anew. The last five minutes are kept in steps of two seconds, 24 hours
in steps of a minute. Memory is bounded (invariant I9): 14 KB for each connector, 14 MB for a thousand.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "DAY",
    "MINUTE",
    "SECONDS",
    "SLOT",
    "History",
    "Part",
    "Point",
    "Recorded",
    "Series",
    "added",
    "document",
]

SLOT: Final = 2
"""The seconds between points."""
SECONDS: Final = 300
"""How far back the history goes in such steps."""
MINUTE: Final = 60
"""The seconds between the points of what is older."""
DAY: Final = 86_400
"""How far back the history goes."""

_UNKNOWN: Final = math.nan


@dataclass(frozen=True, slots=True)
class Point:
    """A connector at one moment: records per second, and its lag in ``unit``; ``None`` is unknown."""

    rate: float
    lag: float | None
    unit: str | None


@dataclass(frozen=True, slots=True)
class Series:
    """The rates and lags of a connector, oldest first."""

    unit: str | None
    rate: Sequence[float | None]
    lag: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Part:
    """What one worker knows about its own tasks. The last values are those of step number ``end`` since 1970."""

    end: int
    connectors: Mapping[str, Series]


@dataclass(slots=True)
class _Ring:
    """The points of a connector; ``count`` is how many the newest is the mean of."""

    unit: str | None
    newest: int
    rates: array[float]
    lags: array[float]
    count: int = 1

    def copied(self) -> _Ring:
        return _Ring(self.unit, self.newest, self.rates[:], self.lags[:])


class _Rings:
    """The points of all connectors in slots of some seconds."""

    def __init__(self, seconds: int, span: int, number: str) -> None:
        self.seconds: Final = seconds
        self.slots: Final = span // seconds
        self.newest = 0
        self.rings: dict[str, _Ring] = {}
        self._unknown: Final = array(number, [_UNKNOWN]) * self.slots

    def note(self, at: float, points: Mapping[str, Point]) -> None:
        """Record the points of connectors; those of one slot become their mean rate and the last lag."""
        slot = int(at // self.seconds)
        if slot != self.newest:
            self._advance(slot)
        for connector, point in points.items():
            self._put(connector, slot, point)

    def _advance(self, slot: int) -> None:
        if slot < self.newest or slot - self.newest >= self.slots:
            # The clock was changed, or the machine was asleep.
            self.rings.clear()
            self.newest = slot - 1
        for missed in range(self.newest + 1, slot + 1):
            for ring in self.rings.values():
                ring.rates[missed % self.slots] = ring.lags[missed % self.slots] = _UNKNOWN
        self.newest = slot
        self.rings = {name: ring for name, ring in self.rings.items() if slot - ring.newest < self.slots}

    def _put(self, connector: str, slot: int, point: Point) -> None:
        ring = self.rings.get(connector)
        if ring is None:
            ring = self.rings[connector] = _Ring(point.unit, slot - 1, self._unknown[:], self._unknown[:])
        place = slot % self.slots
        ring.count = ring.count + 1 if ring.newest == slot else 1
        before = ring.rates[place] if ring.count > 1 else point.rate
        ring.unit, ring.newest = point.unit, slot
        ring.rates[place] = before + (point.rate - before) / ring.count
        ring.lags[place] = _UNKNOWN if point.lag is None else point.lag


class History:
    """Keeps points. Used by one thread; the result of :meth:`recorded` may be read by any."""

    def __init__(self) -> None:
        self._short = _Rings(SLOT, SECONDS, "d")
        self._long = _Rings(MINUTE, DAY, "f")

    def note(self, at: float, points: Mapping[str, Point]) -> None:
        """Record the points of connectors at this time, in seconds since 1970."""
        self._short.note(at, points)
        self._long.note(at, points)

    def forget(self, connector: str) -> None:
        """Forget the points of a deleted connector."""
        for rings in (self._short, self._long):
            rings.rings.pop(connector, None)

    def recorded(self, connector: str | None = None, seconds: int = SECONDS) -> Recorded:
        """Return a copy of the points of so many seconds, of all connectors or of one."""
        kept = self._short if seconds <= SECONDS else self._long
        rings = {name: ring.copied() for name, ring in kept.rings.items() if connector is None or name == connector}
        return Recorded(kept.newest, rings, kept.seconds, kept.slots, min(seconds // kept.seconds, kept.slots))


class Recorded:
    """The points of a worker at one moment, in slots of ``seconds``; the last ``shown`` count. Immutable."""

    def __init__(
        self,
        newest: int,
        rings: Mapping[str, _Ring],
        seconds: int = SLOT,
        slots: int = SECONDS // SLOT,
        shown: int = SECONDS // SLOT,
    ) -> None:
        self._newest = newest
        self._rings = rings
        self._seconds = seconds
        self._slots = slots
        self._shown = shown

    def part(self, step: int) -> Part:
        """Return the points in steps of this many seconds, a multiple of a slot's: mean rates, last lags."""
        width = step // self._seconds
        return Part(self._newest // width, {name: self._series(ring, width) for name, ring in self._rings.items()})

    def _series(self, ring: _Ring, width: int) -> Series:
        oldest, count = self._newest - self._shown + 1, self._slots
        rates: list[float | None] = []
        lags: list[float | None] = []
        for step in range(oldest // width, self._newest // width + 1):
            slots = range(max(step * width, oldest), min((step + 1) * width, self._newest + 1))
            known = [slot % count for slot in slots if not math.isnan(ring.rates[slot % count])]
            rates.append(sum(ring.rates[slot] for slot in known) / len(known) if known else None)
            lag = ring.lags[known[-1]] if known else _UNKNOWN
            lags.append(None if math.isnan(lag) else lag)
        return _without_beginning(ring.unit, rates, lags)


def added(parts: Sequence[Part]) -> Part:
    """Combine what several workers know; a connector's lag is unknown if a worker that runs its tasks has none.

    The newest step is one that all workers have, unless a worker is more than two steps behind.
    """
    newest = max((part.end for part in parts), default=0)
    end = max(min((part.end for part in parts), default=0), newest - 2)
    names = {name for part in parts for name in part.connectors}
    return Part(end, {name: _sum(end, [part for part in parts if name in part.connectors], name) for name in names})


def _sum(end: int, parts: Sequence[Part], name: str) -> Series:
    known = [(part.end, part.connectors[name]) for part in parts]
    first = min(at - max(len(series.rate), 1) + 1 for at, series in known)
    rates: list[float | None] = []
    lags: list[float | None] = []
    for step in range(first, end + 1):
        here = list(_at(step, known))
        rates.append(sum(rate for rate, _ in here) if here else None)
        behind = [lag for _, lag in here if lag is not None]
        lags.append(sum(behind) if here and len(behind) == len(here) else None)
    unit = next((series.unit for _, series in known if series.unit is not None), None)
    return _without_beginning(unit, rates, lags)


def _at(step: int, known: Iterable[tuple[int, Series]]) -> Iterator[tuple[float, float | None]]:
    for end, series in known:
        index = step - end + len(series.rate) - 1
        if 0 <= index < len(series.rate) and (rate := series.rate[index]) is not None:
            yield rate, series.lag[index]


def document(part: Part, step: int) -> dict[str, Any]:
    """Return a part as the REST API shows it; ``end`` is when its last step began, in seconds since 1970."""
    return {
        "end": part.end * step,
        "step": step,
        "connectors": {
            name: {
                "unit": series.unit,
                "rate": [None if rate is None else round(rate, 1) for rate in series.rate],
                "lag": [None if lag is None else int(lag) for lag in series.lag],
            }
            for name, series in sorted(part.connectors.items())
        },
    }


def _without_beginning(unit: str | None, rates: Sequence[float | None], lags: Sequence[float | None]) -> Series:
    """Return the values from the first known one."""
    begin = next((index for index, rate in enumerate(rates) if rate is not None), len(rates))
    return Series(unit, rates[begin:], lags[begin:])
