"""Writes and reads dates and times with the patterns of Java's ``SimpleDateFormat``, in UTC and in English."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from connect.internals.java.calendar_fields import DAY_MS, CalendarFields, Moment
from connect.internals.java.time_zone import read_iso_zone, read_zone

__all__ = ["DateFormat"]

_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ERAS: Final = ("BC", "AD")
_HALVES: Final = ("AM", "PM")
_LETTERS: Final = frozenset("GyYMLwWDdFEuaHkKhmsSzZX")
_NUMBER: Final = re.compile(r"-?\d+")
# As in Java, a two-digit year means the year that is less than 20 years ahead and at most 80 years ago.
_CENTURY: Final = 80


@dataclass(frozen=True, slots=True)
class _Item:
    """A part of a pattern: a run of one pattern letter, or literal text."""

    letter: str
    count: int = 0
    text: str = ""


class DateFormat:
    """A pattern such as ``yyyy-MM-dd'T'HH:mm:ss.SSS``. Raises ``ValueError`` if it is malformed.

    Supports the letters ``G y Y M L w W D d F E u a H k K h m s S z Z X``. Reading is lenient, as Java's is: 32 January
    is 1 February, and text after the end of the pattern is ignored.
    """

    __slots__ = ("_items", "_writers", "pattern", "resolution_ms")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._items = tuple(_items(pattern))
        self._writers = tuple(_writer(item) for item in self._items)
        self.resolution_ms: Final = _resolution(item.letter for item in self._items)
        """The milliseconds in a time span within which all instants are formatted alike."""

    def format(self, milliseconds: int) -> str:
        """Return the text of an instant, given in milliseconds since the epoch."""
        moment = Moment(milliseconds)
        return "".join([write(moment) for write in self._writers])

    def parse(self, text: str) -> int:
        """Parse a text to milliseconds since the epoch; raise ``ValueError`` if it does not match the pattern."""
        fields = CalendarFields()
        short_year = False
        position = 0
        for index, item in enumerate(self._items):
            following = self._items[index + 1 : index + 2]
            if not item.letter:
                position = _read_literal(text, position, item.text)
                continue
            start = _skip_blanks(text, position)
            # Without a delimiter after it, a number has as many digits as there are pattern letters.
            width = item.count if following and following[0].letter else None
            position = _read(fields, item, text, start, width)
            if item.letter in "yY" and item.count <= 2 and text[start:position].isdecimal():
                short_year = short_year or position - start == 2
        return _in_century(fields) if short_year else fields.to_milliseconds()


def _items(pattern: str) -> Iterator[_Item]:
    """Split a pattern into its parts. Quotes enclose literal text; two quotes stand for one."""
    for match in re.finditer(r"'((?:[^']|'')*)'|([a-zA-Z])\2*|([^a-zA-Z']+)|'", pattern):
        quoted, letter, other = match.groups()
        if letter:
            if letter not in _LETTERS:
                raise ValueError(f"Illegal pattern character '{letter}'")
            if letter == "X" and len(match[0]) > 3:
                raise ValueError(f"invalid ISO 8601 format: length={len(match[0])}")
            yield _Item(letter, len(match[0]))
        elif other:
            yield _Item("", text=other)
        elif quoted is None:
            raise ValueError("Unterminated quote")
        else:
            yield _Item("", text=quoted.replace("''", "'") or "'")


def _resolution(letters: Iterable[str]) -> int:
    present = set(letters)
    if "S" in present:
        return 1
    if "s" in present:
        return 1000
    if "m" in present:
        return 60_000
    return 3_600_000 if present & set("HkKha") else DAY_MS


# -- writing -----------------------------------------------------------------------------------------------


def _writer(item: _Item) -> Callable[[Moment], str]:
    if not item.letter:
        return lambda _: item.text
    if item.letter in "yY" and item.count == 2:
        year = _NUMBERS[item.letter]
        return lambda moment: f"{year(moment) % 100:02}"
    if item.letter in _NAMES and not (item.letter in "ML" and item.count < 3):
        name = _NAMES[item.letter]
        cut = 3 if item.letter in "MLE" and item.count < 4 else None
        return lambda moment: name(moment)[:cut]
    if item.letter in _NUMBERS:
        number, width = _NUMBERS[item.letter], item.count
        return lambda moment: str(number(moment)).zfill(width)
    zone = {"z": "UTC" if item.count < 4 else "Coordinated Universal Time", "Z": "+0000", "X": "Z"}[item.letter]
    return lambda _: zone


def _hour(moment: Moment) -> int:
    return moment.milliseconds // 3_600_000


_NAMES: Final[dict[str, Callable[[Moment], str]]] = {
    "G": lambda moment: _ERAS[moment.year > 0],
    "M": lambda moment: _MONTHS[moment.month - 1],
    "L": lambda moment: _MONTHS[moment.month - 1],
    "E": lambda moment: _WEEKDAYS[moment.weekday - 1],
    "a": lambda moment: _HALVES[_hour(moment) >= 12],
}
_NUMBERS: Final[dict[str, Callable[[Moment], int]]] = {
    "y": lambda moment: moment.year_of_era,
    "Y": lambda moment: moment.week_year,
    "M": lambda moment: moment.month,
    "L": lambda moment: moment.month,
    "w": lambda moment: moment.week_of_year,
    "W": lambda moment: moment.week_of_month,
    "D": lambda moment: moment.day_of_year,
    "d": lambda moment: moment.day,
    "F": lambda moment: (moment.day - 1) // 7 + 1,
    "u": lambda moment: moment.weekday,
    "H": _hour,
    "k": lambda moment: _hour(moment) or 24,
    "K": lambda moment: _hour(moment) % 12,
    "h": lambda moment: _hour(moment) % 12 or 12,
    "m": lambda moment: moment.milliseconds // 60_000 % 60,
    "s": lambda moment: moment.milliseconds // 1000 % 60,
    "S": lambda moment: moment.milliseconds % 1000,
}


# -- reading -----------------------------------------------------------------------------------------------


def _read_literal(text: str, position: int, literal: str) -> int:
    if not text.startswith(literal, position):
        raise ValueError(f"{literal!r} expected at {position}")
    return position + len(literal)


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t":
        position += 1
    if position >= len(text):
        raise ValueError("the text ends too early")
    return position


def _read(fields: CalendarFields, item: _Item, text: str, start: int, width: int | None) -> int:
    """Read one part of the pattern into ``fields``. Return the position after it."""
    letter = item.letter
    if letter in "zZ":
        fields.offset_ms, end = read_zone(text, start)
        return end
    if letter == "X":
        fields.offset_ms, end = read_iso_zone(text, start, item.count)
        return end
    if letter in "GaE" or (letter in "ML" and item.count > 2):
        return _read_name(fields, letter, text, start)
    limit = len(text) if width is None else start + width
    match = _NUMBER.match(text, start, limit)
    if match is None or (width is not None and limit > len(text)):
        raise ValueError(f"a number expected at {start}")
    _SETTERS[letter](fields, int(match[0]))
    return match.end()


def _read_name(fields: CalendarFields, letter: str, text: str, start: int) -> int:
    names = {"G": _ERAS, "a": _HALVES, "E": _WEEKDAYS}.get(letter, _MONTHS)
    rest = text[start:].lower()
    for number, name in enumerate(names):
        for form in (name, name[:3]):
            if rest.startswith(form.lower()):
                _set_name(fields, letter, number)
                return start + len(form)
    raise ValueError(f"one of {', '.join(names)} expected at {start}")


def _set_name(fields: CalendarFields, letter: str, number: int) -> None:
    if letter == "G":
        fields.before_christ = number == 0
    elif letter == "a":
        fields.afternoon = number == 1
    elif letter == "E":
        fields.weekday = number + 1
    else:
        fields.month = number + 1


def _setter(attribute: str, *, half_day: bool | None = None) -> Callable[[CalendarFields, int], None]:
    def set_number(fields: CalendarFields, number: int) -> None:
        setattr(fields, attribute, number)
        if half_day is not None:
            fields.half_day = half_day

    return set_number


def _day_setter(letter: str) -> Callable[[CalendarFields, int], None]:
    def set_number(fields: CalendarFields, number: int) -> None:
        fields.days.pop(letter, None)
        fields.days[letter] = number

    return set_number


def _set_hour_from_1(fields: CalendarFields, number: int) -> None:
    fields.hour, fields.half_day = (0 if number == 24 else number), False


def _set_half_hour_from_1(fields: CalendarFields, number: int) -> None:
    fields.hour, fields.half_day = (0 if number == 12 else number), True


_SETTERS: Final[dict[str, Callable[[CalendarFields, int], None]]] = {
    "y": _setter("year"),
    "Y": _setter("week_year"),
    "M": _setter("month"),
    "L": _setter("month"),
    "u": _setter("weekday"),
    "H": _setter("hour", half_day=False),
    "k": _set_hour_from_1,
    "K": _setter("hour", half_day=True),
    "h": _set_half_hour_from_1,
    "m": _setter("minute"),
    "s": _setter("second"),
    "S": _setter("millisecond"),
    **{letter: _day_setter(letter) for letter in "dDwWF"},
}


def _in_century(fields: CalendarFields) -> int:
    """Return the instant, with its two-digit year placed in the century that began 80 years ago."""
    now = dt.datetime.now(dt.UTC)
    first = now.replace(year=now.year - _CENTURY, day=min(now.day, 28))
    first_ms = int(first.timestamp() * 1000)
    century, digits = divmod(first.year, 100)
    attribute = "year" if fields.week_year is None else "week_year"
    number = getattr(fields, attribute)
    setattr(fields, attribute, number + century * 100 + (100 if number < digits else 0))
    milliseconds = fields.to_milliseconds()
    if milliseconds >= first_ms:
        return milliseconds
    setattr(fields, attribute, getattr(fields, attribute) + 100)
    return fields.to_milliseconds()
