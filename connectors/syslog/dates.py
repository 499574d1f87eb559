"""The dates of messages: RFC 3339, and that of BSD's syslog, which has neither a year nor a zone."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Final

__all__ = ["bsd_date", "iso_date"]

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}
_ZONE_HOURS: Final = {
    "UTC": 0,
    "GMT": 0,
    "UT": 0,
    "Z": 0,
    "EST": -5,
    "EDT": -4,
    "CST": -6,
    "CDT": -5,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
    "WET": 0,
    "WEST": 1,
    "CET": 1,
    "CEST": 2,
    "EET": 2,
    "EEST": 3,
    "JST": 9,
}
"""The zones that devices write after the time, and that have one meaning: RFC 822's, and those of Europe and Japan."""

_AHEAD: Final = dt.timedelta(days=2)
"""How far ahead of the worker's clock a date without a year may be; beyond that it is one of the past."""

_ISO: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?)\d{0,9}(Z|[+-]\d\d:?\d\d)?:?(?= |$)")
_BSD: Final = re.compile(
    rf"({'|'.join(_MONTHS)}) {{1,2}}(\d{{1,2}}) (?:((?:19|20)\d\d) )?(\d\d:\d\d:\d\d)(?:[.,](\d{{1,9}}))?"
    rf"(?: ((?:19|20)\d\d)(?=[ :]))?(?: ({'|'.join(sorted(_ZONE_HOURS, key=len, reverse=True))})(?=[ :]))?:?(?= |$)"
)


def iso_date(time: str, zone: str | None, default: dt.tzinfo | None) -> dt.datetime | None:
    """Return the date of RFC 3339's text and zone, in milliseconds; ``None`` if there is no such day or time."""
    try:
        date = dt.datetime.fromisoformat(time if zone is None else time + zone)
    except ValueError:
        return None
    if not dt.MINYEAR < date.year < dt.MAXYEAR:
        # In UTC it may be of no year that there is.
        return None
    return _in_zone(date, default) if zone is None else date


def bsd_date(content: str, start: int, now: dt.datetime, default: dt.tzinfo | None) -> tuple[dt.datetime, int] | None:
    """Return the date that ``content`` has at ``start``, and where it ends; ``None`` if there is none."""
    found = _BSD.match(content, start)
    if found is None:
        return _iso_at(content, start, default)
    month, day, year, time, fraction, later_year, zone = found.groups()
    date = _dated(month, day, year or later_year, time, zone, now.date(), default)
    if date is None:
        return None
    if fraction:
        date = date.replace(microsecond=int(fraction[:3].ljust(3, "0")) * 1000)
    return date, found.end()


def _iso_at(content: str, start: int, default: dt.tzinfo | None) -> tuple[dt.datetime, int] | None:
    found = _ISO.match(content, start)
    date = iso_date(found[1], found[2], default) if found is not None else None
    return None if date is None or found is None else (date, found.end())


@lru_cache(maxsize=256)
def _dated(
    month: str, day: str, year: str | None, time: str, zone: str | None, today: dt.date, default: dt.tzinfo | None
) -> dt.datetime | None:
    """Return a date to the second. Messages of one second share it, so that it is seldom computed."""
    own = dt.timezone(dt.timedelta(hours=_ZONE_HOURS[zone])) if zone is not None else default
    years = (int(year),) if year is not None else (today.year, today.year - 1, today.year + 1)
    dates = list(_candidates(years, _MONTHS[month], int(day), time))
    if not dates:
        return None
    # Clocks may be a little ahead, but a message is not of next spring.
    known = [date for date in dates if date.date() <= today + _AHEAD]
    return _in_zone(max(known) if known else min(dates), own)


def _candidates(years: tuple[int, ...], month: int, day: int, time: str) -> Iterator[dt.datetime]:
    hour, minute, second = (int(part) for part in time.split(":"))
    for year in years:
        with suppress(ValueError):
            yield dt.datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - the zone follows


def _in_zone(date: dt.datetime, zone: dt.tzinfo | None) -> dt.datetime:
    """Return a date of a zone, by default the system's."""
    return date.astimezone() if zone is None else date.replace(tzinfo=zone)
