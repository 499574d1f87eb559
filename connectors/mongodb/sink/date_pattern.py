"""Dates in text, read by the patterns of Java's ``DateTimeFormatter``, in English."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connect.data.excerpt import excerpt
from connect.errors import DataError

__all__ = ["DatePattern"]

_MONTHS: Final = {
    name[:length].lower(): number
    for number, name in enumerate(
        (
            *("January", "February", "March", "April", "May", "June"),
            *("July", "August", "September", "October", "November", "December"),
        ),
        1,
    )
    for length in (3, len(name))
}
_ZONE: Final = re.compile(r"Z|(?:UTC|GMT|UT)?[+-]\d\d?(?::?\d\d){0,2}|[A-Za-z][A-Za-z0-9~/._+-]+")
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?):?(\d\d)?:?(\d\d)?")
_NUMBERS: Final = {"u": "year", "y": "year", "M": "month", "L": "month", "d": "day", "H": "hour", "k": "hour"} | {
    "h": "half_hour",
    "K": "half_hour",
    "m": "minute",
    "s": "second",
    "n": "nanosecond",
}
_ZONES: Final = frozenset("VXxZzO")
_TEXT: Final = frozenset("Eea")
_NAME: Final = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class _Item:
    """A part of a pattern: a run of a letter, a literal text, or an optional section."""

    letter: str = ""
    count: int = 0
    text: str = ""
    section: tuple[_Item, ...] = ()


_Fields: TypeAlias = dict[str, int | str]


class DatePattern:
    """A pattern such as ``yyyy-MM-dd'T'HH:mm:ss[.SSS][ VV]``. Raises ``ValueError`` if it is malformed."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        items, rest = _parsed(pattern, 0)
        if rest != len(pattern):
            raise ValueError(f"the ] at position {rest + 1} ends no section")
        self._items = items

    def milliseconds(self, text: str) -> int:
        """Return the milliseconds since the epoch; a ``DataError`` if the text does not have this form."""
        fields: _Fields = {}
        end = _read(self._items, text, 0, fields)
        if end != len(text):
            raise DataError(f"The text {excerpt(text)} is not a date of the form {self.pattern}.")
        try:
            return _moment(fields)
        except (ValueError, OverflowError, KeyError, ZoneInfoNotFoundError) as error:
            raise DataError(f"The text {excerpt(text)} is not a date: {error}.") from error


def _parsed(pattern: str, start: int) -> tuple[tuple[_Item, ...], int]:
    """Return the items of a pattern from a position on, and where they end."""
    items: list[_Item] = []
    at = start
    while at < len(pattern):
        letter = pattern[at]
        if letter == "]":
            return tuple(items), at
        if letter == "[":
            section, end = _parsed(pattern, at + 1)
            if end == len(pattern):
                raise ValueError(f"the [ at position {at + 1} is not closed")
            items.append(_Item(section=section))
            at = end + 1
        elif letter == "'":
            text, at = _quoted(pattern, at)
            items.append(_Item(text=text))
        elif letter.isascii() and letter.isalpha():
            count = len(pattern) - at - len(pattern[at:].lstrip(letter))
            if letter not in _NUMBERS and letter not in _ZONES and letter not in _TEXT and letter != "S":
                raise ValueError(f"the letter {letter} is not supported")
            items.append(_Item(letter, count))
            at += count
        else:
            items.append(_Item(text=letter))
            at += 1
    return tuple(items), at


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    if pattern.startswith("''", at):
        return "'", at + 2
    end = pattern.find("'", at + 1)
    while end >= 0 and pattern.startswith("''", end):
        end = pattern.find("'", end + 2)
    if end < 0:
        raise ValueError(f"the quote at position {at + 1} is not closed")
    return pattern[at + 1 : end].replace("''", "'"), end + 1


def _read(items: Sequence[_Item], text: str, start: int, fields: _Fields) -> int:
    """Read a text; return where the items end, or -1 if they do not match. A section that does not match is left."""
    at = start
    for item, adjacent in _with_adjacent(items):
        if item.section:
            inner = dict(fields)
            end = _read(item.section, text, at, inner)
            if end >= 0:
                fields.update(inner)
                at = end
            continue
        at = _read_item(item, text, at, fields, adjacent=adjacent)
        if at < 0:
            return -1
    return at


def _with_adjacent(items: Sequence[_Item]) -> Iterator[tuple[_Item, bool]]:
    """Yield each item, and whether another number follows it at once."""
    for item, after in zip(items, [*items[1:], _Item()], strict=True):
        yield item, after.letter in _NUMBERS or after.letter == "S"


def _read_item(item: _Item, text: str, at: int, fields: _Fields, *, adjacent: bool) -> int:
    if item.text:
        return at + len(item.text) if text.startswith(item.text, at) else -1
    if item.letter in _ZONES:
        return _read_zone(text, at, fields)
    if item.letter == "S":
        return _read_fraction(item, text, at, fields)
    if item.letter in _TEXT or (item.letter in "ML" and item.count > 2):
        return _read_name(item.letter, text, at, fields)
    return _read_number(item, text, at, fields, adjacent=adjacent)


def _read_name(letter: str, text: str, at: int, fields: _Fields) -> int:
    """Read a month, a half of the day, or a day of the week, which the date tells as well."""
    found = _NAME.match(text, at)
    if found is None:
        return -1
    name = found[0].lower()
    if letter in "ML":
        if name not in _MONTHS:
            return -1
        fields["month"] = _MONTHS[name]
    elif letter == "a":
        if name not in ("am", "pm"):
            return -1
        fields["half"] = name
    return found.end()


def _read_number(item: _Item, text: str, at: int, fields: _Fields, *, adjacent: bool) -> int:
    name = _NUMBERS[item.letter]
    most = item.count if adjacent or item.count == 2 else 9 if item.count == 1 else max(item.count, 4)
    found = re.compile(r"[+-]?\d+" if name == "year" and item.count != 2 else r"\d+").match(text, at)
    if found is None:
        return -1
    digits = found[0][: most + (not found[0][0].isdigit())]
    if len(digits.lstrip("+-")) < item.count:
        return -1
    number = int(digits)
    if name == "year" and item.count == 2:
        number += 2000
    fields[name] = number
    return at + len(digits)


def _read_fraction(item: _Item, text: str, at: int, fields: _Fields) -> int:
    digits = text[at : at + item.count]
    if len(digits) < item.count or not digits.isdecimal():
        return -1
    fields["nanosecond"] = int(digits[:9].ljust(9, "0"))
    return at + item.count


def _read_zone(text: str, at: int, fields: _Fields) -> int:
    found = _ZONE.match(text, at)
    if found is None:
        return -1
    fields["zone"] = found[0]
    return found.end()


def _moment(fields: _Fields) -> int:
    numbers = {name: value for name, value in fields.items() if isinstance(value, int)}
    if "year" not in numbers:
        raise ValueError("it has no date")
    hour = numbers.get("hour", 0) % 24 if numbers.get("hour") == 24 else numbers.get("hour", 0)
    if "half_hour" in numbers:
        hour = numbers["half_hour"] % 12 + (12 if fields.get("half") == "pm" else 0)
    moment = dt.datetime(
        numbers["year"],
        numbers.get("month", 1),
        numbers.get("day", 1),
        hour,
        numbers.get("minute", 0),
        numbers.get("second", 0),
        tzinfo=_zone(str(fields.get("zone", "Z"))),
    )
    seconds = (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(seconds=1)
    return seconds * 1000 + numbers.get("nanosecond", 0) // 1_000_000


def _zone(text: str) -> dt.tzinfo:
    if text in ("Z", "UTC", "GMT", "UT"):
        return dt.UTC
    if offset := _OFFSET.fullmatch(text):
        hours, minutes, seconds = (int(offset[part] or 0) for part in (2, 3, 4))
        distance = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return dt.timezone(-distance if offset[1] == "-" else distance)
    return ZoneInfo(text)
