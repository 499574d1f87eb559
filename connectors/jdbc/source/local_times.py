"""Local times around the changes of the clock: which instants stand for them in an offset, and how to go on."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from connect.data.logical import EPOCH

__all__ = ["LocalTimes"]

_SECOND: Final = 1_000_000
_MICROSECOND: Final = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class LocalTimes:
    """The times of a zone, each the microseconds since 1970 that its clock shows. Those of UTC are instants.

    An instant in an offset is never later than its row: the databases order local times by what the clock shows.
    """

    zone: dt.tzinfo = dt.UTC

    def of(self, micros: int) -> int:
        """Return the local time of an instant."""
        return micros + self._difference(micros // _SECOND)

    def instant(self, local: int) -> int:
        """Return the latest instant from which reading loses no row after a local time.

        For a time that the clock skips it is the one before the change, and for one that comes twice, the one before
        its first pass.
        """
        if self.zone is dt.UTC:
            return local
        least, most = self._differences(local)
        if (start := self.repeated_from(local)) is not None:
            return start - most - 1
        return local - least if least == most else self._change(local, least, most) - 1

    def is_skipped(self, local: int) -> bool:
        """Return whether the clock never shows this time."""
        least, most = self._differences(local)
        return least != most and self._is_skipped(local)

    def repeated_from(self, local: int) -> int | None:
        """Return the local time from which the clock shows all twice, if this time is one of those."""
        least, most = self._differences(local)
        if least == most or self._is_skipped(local):
            return None
        return self._change(local, least, most) + least

    def moment(self, local: int) -> dt.datetime:
        """Return a local time as a ``datetime`` in the zone."""
        return (EPOCH + _MICROSECOND * local).replace(tzinfo=self.zone)

    def _is_skipped(self, local: int) -> bool:
        before, after = (self._shown(local, fold) for fold in (0, 1))
        return before < after

    def _differences(self, local: int) -> tuple[int, int]:
        """Return the smaller and the greater of the differences from UTC that the time may have."""
        before, after = self._shown(local, 0), self._shown(local, 1)
        return min(before, after), max(before, after)

    def _shown(self, local: int, fold: int) -> int:
        return _micros(self.moment(local).replace(fold=fold).utcoffset())

    def _change(self, local: int, least: int, most: int) -> int:
        """Return the instant of the change by which a time is skipped or comes twice."""
        low, high = (local - most) // _SECOND, -((least - local) // _SECOND)
        before = self._difference(low)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._difference(middle) == before else (low, middle)
        return high * _SECOND

    def _difference(self, seconds: int) -> int:
        return _micros((EPOCH + dt.timedelta(seconds=seconds)).astimezone(self.zone).utcoffset())


def _micros(difference: dt.timedelta | None) -> int:
    return 0 if difference is None else difference // _MICROSECOND
