"""Packed numbers, dates and times of the log, as plain numbers.

Dates are days and times microseconds since 1970, times of day microseconds. A date that is none, such as
``0000-00-00``, is ``None``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Final

__all__ = [
    "MICROS_PER_SECOND",
    "date_days",
    "datetime2_micros",
    "datetime_micros",
    "decimal_reader",
    "decimal_size",
    "decimal_text",
    "old_date_days",
    "old_datetime_micros",
    "old_time_micros",
    "time2_micros",
    "timestamp2_micros",
]

MICROS_PER_SECOND: Final = 1_000_000
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_SECONDS_PER_DAY: Final = 86_400
_DIGITS_PER_WORD: Final = 9
_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""How many bytes hold so many decimal digits."""
_FRACTION: Final = (1, 10_000, 100, 1)
"""Microseconds a unit, by the number of bytes of the fraction."""


@lru_cache(maxsize=4096)
def date_days(year: int, month: int, day: int) -> int | None:
    """Return the days since 1970, or ``None`` for what is no date."""
    try:
        return date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None


def datetime_micros(days: int | None, seconds: int, micros: int) -> int | None:
    """Return the microseconds since 1970 of a time on a day."""
    return None if days is None else (days * _SECONDS_PER_DAY + seconds) * MICROS_PER_SECOND + micros


def old_date_days(raw: bytes) -> int | None:
    """Return the days of a DATE: three bytes."""
    packed = raw[0] | raw[1] << 8 | raw[2] << 16
    return date_days(packed >> 9, (packed >> 5) & 15, packed & 31)


def datetime2_micros(raw: bytes) -> int | None:
    """Return the microseconds of a DATETIME: five bytes and its fraction."""
    packed = int.from_bytes(raw[:5], "big") - 0x8000000000
    months = packed >> 22
    days = date_days(months // 13, months % 13, (packed >> 17) & 31)
    if days is None:
        return None
    seconds = ((packed >> 12) & 31) * 3600 + ((packed >> 6) & 63) * 60 + (packed & 63)
    fraction = int.from_bytes(raw[5:], "big") * _FRACTION[len(raw) - 5]
    return (days * _SECONDS_PER_DAY + seconds) * MICROS_PER_SECOND + fraction


def timestamp2_micros(raw: bytes) -> int | None:
    """Return the microseconds of a TIMESTAMP: four bytes and its fraction; zero is no time."""
    seconds = int.from_bytes(raw[:4], "big")
    fraction = int.from_bytes(raw[4:], "big") * _FRACTION[len(raw) - 4]
    return seconds * MICROS_PER_SECOND + fraction if seconds or fraction else None


def time2_micros(raw: bytes) -> int:
    """Return the microseconds of a TIME, which may be negative: three bytes and its fraction."""
    size = len(raw)
    packed = int.from_bytes(raw, "big") - (0x80 << 8 * (size - 1))
    magnitude = abs(packed)
    shift = 8 * (size - 3)
    clock = magnitude >> shift
    seconds = ((clock >> 12) & 0x3FF) * 3600 + ((clock >> 6) & 63) * 60 + (clock & 63)
    micros = seconds * MICROS_PER_SECOND + (magnitude & ((1 << shift) - 1)) * _FRACTION[size - 3]
    return -micros if packed < 0 else micros


def old_datetime_micros(raw: bytes) -> int | None:
    """Return the microseconds of a DATETIME of before MySQL 5.6: the number YYYYMMDDhhmmss."""
    day, clock = divmod(int.from_bytes(raw, "little"), 1_000_000)
    days = date_days(day // 10_000, day // 100 % 100, day % 100)
    return datetime_micros(days, clock // 10_000 * 3600 + clock // 100 % 100 * 60 + clock % 100, 0)


def old_time_micros(raw: bytes) -> int:
    """Return the microseconds of a TIME of before MySQL 5.6: the number hhmmss, which may be negative."""
    number = int.from_bytes(raw, "little", signed=True)
    clock = abs(number)
    micros = (clock // 10_000 * 3600 + clock // 100 % 100 * 60 + clock % 100) * MICROS_PER_SECOND
    return -micros if number < 0 else micros


def decimal_size(precision: int, scale: int) -> int:
    """Return how many bytes a DECIMAL takes."""
    whole, fraction = precision - scale, scale
    words = whole // _DIGITS_PER_WORD + fraction // _DIGITS_PER_WORD
    return words * 4 + _BYTES[whole % _DIGITS_PER_WORD] + _BYTES[fraction % _DIGITS_PER_WORD]


def decimal_reader(precision: int, scale: int) -> Callable[[bytes], Decimal]:
    """Return the function that reads a DECIMAL, with all of its digits after the point."""
    size = decimal_size(precision, scale)
    limit, mask = 1 << 8 * size - 1, (1 << 8 * size) - 1
    whole, fraction = precision - scale, scale
    if whole > _DIGITS_PER_WORD or fraction > _DIGITS_PER_WORD:
        return lambda raw: Decimal(decimal_text(precision, scale, raw, 0))
    shift = 8 * _BYTES[fraction]
    low = (1 << shift) - 1

    def read(raw: bytes) -> Decimal:
        # Up to nine digits on each side are one number each; those below zero have all bits inverted.
        packed = int.from_bytes(raw, "big")
        if packed & limit:
            packed ^= limit
            sign = ""
        else:
            packed = (packed ^ limit) ^ mask
            sign = "-"
        if not fraction:
            return Decimal(f"{sign}{packed}")
        return Decimal(f"{sign}{packed >> shift}.{packed & low:0{fraction}d}")

    return read


def decimal_text(precision: int, scale: int, raw: bytes, at: int) -> str:
    """Return the digits of a DECIMAL at a place, as MySQL prints it."""
    negative = not raw[at] & 0x80
    data = bytearray(raw[at : at + decimal_size(precision, scale)])
    data[0] ^= 0x80
    if negative:
        data = bytearray(byte ^ 0xFF for byte in data)
    whole_digits = precision - scale
    place = 0
    digits: list[str] = []
    head = whole_digits % _DIGITS_PER_WORD
    sizes = [head] if head else []
    sizes += [_DIGITS_PER_WORD] * (whole_digits // _DIGITS_PER_WORD + scale // _DIGITS_PER_WORD)
    if tail := scale % _DIGITS_PER_WORD:
        sizes.append(tail)
    for size in sizes:
        width = _BYTES[size]
        digits.append(f"{int.from_bytes(data[place : place + width], 'big'):0{size}d}")
        place += width
    text = "".join(digits)
    whole, fraction = text[:whole_digits].lstrip("0") or "0", text[whole_digits:]
    sign = "-" if negative else ""
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"
