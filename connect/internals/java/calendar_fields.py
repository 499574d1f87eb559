"""Java's calendar in UTC: Gregorian since 15 October 1582, Julian before. Weeks begin on Sunday."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Final

__all__ = ["DAY_MS", "CalendarFields", "Moment", "calendar_day", "date_of", "day_number"]

DAY_MS: Final = 86_400_000
_EPOCH: Final = dt.date(1970, 1, 1).toordinal()
# The first day of the Gregorian calendar, and March 1st of the year 0 in both, in days since the epoch.
_CUTOVER: Final = -141_427
_GREGORIAN_ORIGIN: Final = -719_468
_JULIAN_ORIGIN: Final = -719_470


def day_number(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01. Months and days may be out of range: 32 December is 1 January."""
    carried, month0 = divmod(month - 1, 12)
    year += carried
    days = _gregorian(year, month0 + 1) + day - 1
    return days if days >= _CUTOVER else _julian(year, month0 + 1) + day - 1


def date_of(year: int, month: int, day: int) -> dt.date:
    """Return the date of a day in Java's calendar.

    Raises ``ValueError`` if it is outside of Python's range of years.
    """
    return dt.date.fromordinal(day_number(year, month, day) + _EPOCH)


def calendar_day(date: dt.date) -> tuple[int, int, int]:
    """Return year, month and day of a date in Java's calendar; a datetime is taken in its own time zone."""
    days = date.toordinal() - _EPOCH
    return (date.year, date.month, date.day) if days >= _CUTOVER else _civil(days)


def _gregorian(year: int, month: int) -> int:
    year, of_year = _from_march(year, month)
    return _GREGORIAN_ORIGIN + year * 365 + year // 4 - year // 100 + year // 400 + of_year


def _julian(year: int, month: int) -> int:
    year, of_year = _from_march(year, month)
    return _JULIAN_ORIGIN + year * 365 + year // 4 + of_year


def _from_march(year: int, month: int) -> tuple[int, int]:
    """Return the year, counted from March, and the day of that year on which the month begins."""
    if month <= 2:
        return year - 1, (153 * (month + 9) + 2) // 5
    return year, (153 * (month - 3) + 2) // 5


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day."""
    if days >= _CUTOVER:
        era, of_era = divmod(days - _GREGORIAN_ORIGIN, 146_097)
        of_400 = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
        of_year = of_era - (365 * of_400 + of_400 // 4 - of_400 // 100)
        year = of_400 + era * 400
    else:
        cycle, of_cycle = divmod(days - _JULIAN_ORIGIN, 1461)
        of_4 = (of_cycle - of_cycle // 1460) // 365
        of_year = of_cycle - 365 * of_4
        year = of_4 + cycle * 4
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    return (year + 1, month - 9, day) if month >= 10 else (year, month + 3, day)


class Moment:
    """An instant as shown by calendar and clock. ``year`` is 0 for 1 BC, and so on."""

    __slots__ = ("day", "days", "milliseconds", "month", "year")

    def __init__(self, milliseconds: int) -> None:
        self.days, self.milliseconds = divmod(milliseconds, DAY_MS)
        self.year, self.month, self.day = _civil(self.days)

    @property
    def year_of_era(self) -> int:
        """The year as written with AD or BC."""
        return self.year if self.year > 0 else 1 - self.year

    @property
    def weekday(self) -> int:
        """The day of the week, from 1 for Monday to 7 for Sunday."""
        return (self.days + 3) % 7 + 1

    @property
    def day_of_year(self) -> int:
        """The day of the year; January 1st is 1."""
        return self.days - day_number(self.year, 1, 1) + 1

    @property
    def week_of_month(self) -> int:
        """The week of the month; week 1 is the one in which the month begins."""
        return self._week(self.day)

    @property
    def week_of_year(self) -> int:
        """The week of the year; week 1 is the one that contains January 1st, even if it begins in the previous year."""
        if self.week_year > self.year:
            return 1
        return self._week(self.day_of_year)

    @property
    def week_year(self) -> int:
        """The year to which the week belongs."""
        sunday = self.days - self.weekday % 7
        return self.year + 1 if sunday + 6 >= day_number(self.year + 1, 1, 1) else self.year

    def _week(self, ordinal: int) -> int:
        """Return the week of a period, given the ``ordinal`` of this day in it, counting from 1."""
        first_weekday = (self.weekday - (ordinal - 1)) % 7
        return (ordinal - 1 + first_weekday) // 7 + 1


@dataclass(slots=True)
class CalendarFields:
    """The parsed fields of a date and a time. Missing fields default to the epoch's, and each may be out of range."""

    year: int = 1970
    before_christ: bool = False
    month: int = 1
    week_year: int | None = None
    days: dict[str, int] = field(default_factory=dict)
    """Days and weeks by their pattern letters d D w W F, the last one read at the end."""
    weekday: int | None = None
    hour: int = 0
    half_day: bool = False
    afternoon: bool = False
    minute: int = 0
    second: int = 0
    millisecond: int = 0
    offset_ms: int = 0

    def to_milliseconds(self) -> int:
        """Return the milliseconds since the epoch."""
        hour = self.hour + 12 if self.half_day and self.afternoon else self.hour
        clock = ((hour * 60 + self.minute) * 60 + self.second) * 1000 + self.millisecond
        return self._day() * DAY_MS + clock - self.offset_ms

    def _day(self) -> int:
        year = 1 - self.year if self.before_christ else self.year
        letter = self._counting_letter()
        count = self.days.get(letter, 1)
        if letter == "D":
            return day_number(year, 1, count)
        if letter == "w":
            first = day_number(self.week_year if self.week_year is not None else year, 1, 1)
            return self._in_week(first, count)
        first = day_number(year, self.month, 1)
        if letter == "W":
            return self._in_week(first, count)
        if letter == "F":
            to_weekday = ((self.weekday or 7) - ((first + 3) % 7 + 1)) % 7
            return first + to_weekday + (count - 1) * 7
        return first + count - 1

    def _counting_letter(self) -> str:
        """Return the letter of the parsed day that takes effect: the last one.

        A week counts only with a day of the week.
        """
        complete = [letter for letter in self.days if letter in "dD" or self.weekday is not None]
        if complete:
            return complete[-1]
        if self.days:
            return next(reversed(self.days))
        if self.week_year is not None:
            return "w"
        return "d" if self.weekday is None else "F"

    def _in_week(self, first: int, week: int) -> int:
        sunday = first - ((first + 3) % 7 + 1) % 7
        return sunday + (week - 1) * 7 + (self.weekday or 7) % 7
