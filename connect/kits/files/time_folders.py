"""The folders of time-based partitioners: which period an instant belongs to, and the name of its folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from connect.internals.java.joda_format import JodaFormat, local_milliseconds, offset_milliseconds

__all__ = ["DAY_MS", "HOUR_MS", "TimeFolders"]

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
_MINUTE_MS: Final = 60_000
_WHOLE_MINUTES_SINCE: Final = 63_072_000_000
"""1972: since then, the clocks of all zones have been ahead of or behind UTC by whole minutes."""


@dataclass(frozen=True)
class TimeFolders:
    """Names the folder of an instant as the storage sinks do.

    The local time is rounded down to ``duration_ms`` and formatted by ``path_format``. A local time that the clocks
    skip stands for the one after the jump.
    """

    path_format: str
    duration_ms: int
    timezone: str

    def folder(self, instant: int) -> str:
        """Return the folder for an instant in milliseconds since the epoch."""
        start = _span_start(self.zone, instant, self.duration_ms)
        return self.format.format(start, local_milliseconds(self.zone, start))

    def common_instant(self, instant: int) -> int:
        """Return an instant with the same folder, which many others share."""
        if instant >= _WHOLE_MINUTES_SINCE and self.duration_ms % _MINUTE_MS == 0:
            return instant - instant % _MINUTE_MS
        return instant

    @cached_property
    def zone(self) -> ZoneInfo:
        """The time zone."""
        return _zone(self.timezone)

    @cached_property
    def format(self) -> JodaFormat:
        """The pattern."""
        return JodaFormat(self.path_format, self.zone)


_zone = lru_cache(maxsize=16)(ZoneInfo)


def _span_start(zone: ZoneInfo, instant: int, duration: int) -> int:
    """Return the first instant of the period that one belongs to. Before 1970, periods are counted towards 1970, as in
    Java."""
    local = local_milliseconds(zone, instant)
    whole = abs(local) // duration * duration
    return _instant_of(zone, whole if local >= 0 else -whole)


def _instant_of(zone: ZoneInfo, local: int) -> int:
    """Return the instant of a local time, by Joda-Time's rules where clocks jump forward or back."""
    estimate = offset_milliseconds(zone, local)
    offset = offset_milliseconds(zone, local - estimate)
    if estimate != offset and estimate < 0 and not _shows(zone, local - offset, local):
        # A gap in a zone west of Greenwich.
        offset = estimate
    return local - offset


def _shows(zone: ZoneInfo, instant: int, local: int) -> bool:
    return local_milliseconds(zone, instant) == local
