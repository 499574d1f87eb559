"""Formats instants with the patterns of Joda-Time's ``DateTimeFormat``, which name the folders of the storage sinks.

They resemble those of ``SimpleDateFormat`` (:mod:`connect.internals.java.date_format`), but ``Y`` is the year of the
era, ``x`` is the year of the week, weeks follow ISO 8601, and ``S`` is the fraction of the second. It writes English.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from typing import Final
from zoneinfo import ZoneInfo

from connect.internals.java.date_format import DateFormat

__all__ = ["JodaFormat", "local_milliseconds", "offset_milliseconds"]

_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([a-zA-Z])\2*|([^a-zA-Z']+)|'")
_SAME: Final = frozenset("GMdDEaKhHkms")
"""The letters that have the same meaning in ``SimpleDateFormat``."""

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_CYCLE_YEARS: Final = 400
_CYCLE_MS: Final = 146_097 * 86_400_000
"""The Gregorian calendar repeats itself, days of the week included."""
_GREGORIAN: Final = -12_219_292_800_000
"""15 October 1582: before it, Java's dates are of the Julian calendar, and Joda-Time's are not."""
_SECOND_YEAR: Final = (dt.datetime(2, 1, 1, tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(milliseconds=1)
_LAST_YEAR: Final = (dt.datetime(9999, 1, 1, tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(milliseconds=1)
_Writer = Callable[[int, int], str]
"""Writes a part of the text, given an instant and its local time, both in milliseconds."""


def offset_milliseconds(zone: ZoneInfo, instant: int) -> int:
    """Return how far the clocks of a zone are ahead of UTC at an instant."""
    if not _SECOND_YEAR <= instant < _LAST_YEAR:
        # At the ends of Python's calendar a local time may be beyond it; zones have the same rules 400 years apart.
        instant += _CYCLE_MS if instant < _SECOND_YEAR else -_CYCLE_MS
    moment = _EPOCH + dt.timedelta(milliseconds=instant)
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None
    return offset // dt.timedelta(milliseconds=1)


def local_milliseconds(zone: ZoneInfo, instant: int) -> int:
    """Return the local time of a zone, in milliseconds since the clocks there showed 1970."""
    return instant + offset_milliseconds(zone, instant)


class JodaFormat:
    """A pattern such as ``'year'=YYYY/'month'=MM``. Raises ``ValueError`` if it is malformed.

    Supports the letters ``G C Y x w e E y D M d a K h H k m s S z Z``, but not long zone names (``zzzz``).
    """

    __slots__ = ("_writers", "has_text", "pattern")

    def __init__(self, pattern: str, zone: ZoneInfo) -> None:
        self.pattern = pattern
        items = list(_items(pattern))
        self._writers = tuple(_writer(letter, text, zone) for letter, text in items)
        self.has_text: Final = any(letter and _is_text(letter, len(text)) for letter, text in items)
        """Whether the output depends on a language."""

    def format(self, instant: int, local: int) -> str:
        """Return the text of an instant in milliseconds, at which the local time of the zone is ``local``."""
        return "".join([write(instant, local) for write in self._writers])


def _items(pattern: str) -> Iterator[tuple[str, str]]:
    """Split a pattern into runs of one letter, each with that letter, and literal texts, without a letter."""
    for match in _TOKEN.finditer(pattern):
        quoted, letter, other = match.groups()
        if letter:
            yield letter, match[0]
        elif other:
            yield "", other
        elif quoted is None:
            raise ValueError("a quote has no end")
        else:
            yield "", quoted.replace("''", "'") or "'"


def _is_text(letter: str, count: int) -> bool:
    return letter in "GEaz" or (letter == "M" and count > 2)


def _writer(letter: str, text: str, zone: ZoneInfo) -> _Writer:
    count = len(text)
    if not letter:
        return lambda _instant, _local: text
    if letter in _SAME:
        same = DateFormat(text)
        return lambda _instant, local: same.format(local if letter == "G" else _modern(local)[0])
    if letter in "yY":
        return lambda _instant, local: _year_text(_year(local), count)
    if letter in "Zz":
        return _zone_writer(letter, count, zone)
    return _number_writer(letter, count)


def _number_writer(letter: str, count: int) -> _Writer:
    if letter == "S":
        return lambda _instant, local: f"{local % 1000:03}".ljust(count, "0")[:count]
    if letter not in _NUMBERS:
        raise ValueError(f"{letter * count!r} is no letter of the patterns")
    number = _NUMBERS[letter]
    if letter == "x" and count == 2:
        return lambda _instant, local: f"{number(local) % 100:02}"
    return lambda _instant, local: str(number(local)).zfill(count)


def _modern(local: int) -> tuple[int, int]:
    """Return a local time with the same date but for the year, in the middle of the calendars of Java and Python, and
    the years to add to its own.
    """
    cycles = -((local - _GREGORIAN) // _CYCLE_MS) if local < _GREGORIAN else -int(local >= _LAST_YEAR)
    return local + cycles * _CYCLE_MS, -cycles * _CYCLE_YEARS


def _date(local: int) -> tuple[dt.date, int]:
    modern, years = _modern(local)
    return (_EPOCH + dt.timedelta(milliseconds=modern)).date(), years


def _year(local: int) -> int:
    """Return the year of the era."""
    day, years = _date(local)
    year = day.year + years
    return year if year > 0 else 1 - year


def _year_text(year: int, count: int) -> str:
    return f"{year % 100:02}" if count == 2 else str(year).zfill(count)


def _week_year(local: int) -> int:
    day, years = _date(local)
    return day.isocalendar().year + years


_NUMBERS: Final[dict[str, Callable[[int], int]]] = {
    "C": lambda local: _year(local) // 100,
    "x": _week_year,
    "w": lambda local: _date(local)[0].isocalendar().week,
    "e": lambda local: _date(local)[0].isoweekday(),
}


def _zone_writer(letter: str, count: int, zone: ZoneInfo) -> _Writer:
    if letter == "Z" and count > 2:
        return lambda _instant, _local: zone.key
    if letter == "Z":
        colon = ":" if count == 2 else ""
        return lambda instant, _local: _offset_text(offset_milliseconds(zone, instant), colon)
    if count > 3:
        raise ValueError(f"{letter * count!r} asks for the long name of a zone: use z, Z, ZZ or ZZZ")
    return lambda instant, _local: (_EPOCH + dt.timedelta(milliseconds=instant)).astimezone(zone).strftime("%Z")


def _offset_text(offset: int, colon: str) -> str:
    hours, minutes = divmod(abs(offset) // 60_000, 60)
    return f"{'-' if offset < 0 else '+'}{hours:02}{colon}{minutes:02}"
