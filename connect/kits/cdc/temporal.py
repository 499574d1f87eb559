"""Dates and times by ``time.precision.mode``: conversions from whole days and microseconds.

A database's decoder reads its dates as days since 1970-01-01, its times as microseconds since midnight and its
timestamps without a zone as microseconds since 1970-01-01, and finds the schema and the value here. Each is exact: what
a mode cannot hold is a ``DataError``, as the years beyond 9999 under ``connect``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from connect.data import date_schema, time_schema, timestamp_schema
from connect.data.logical import EPOCH, date_from_days, time_from_milliseconds, timestamp_from_milliseconds
from connect.errors import DataError
from connect.kits.cdc import semantic_types as types
from connect.kits.cdc.conversion import Conversion

__all__ = [
    "DAY_US",
    "TimePrecisionMode",
    "civil_from_days",
    "date_conversion",
    "days_from_civil",
    "iso_date",
    "iso_time",
    "iso_timestamp",
    "time_conversion",
    "timestamp_conversion",
    "zoned_timestamp",
]

DAY_US: Final = 86_400_000_000
_SECOND_US: Final = 1_000_000
_LONG_MAX: Final = 2**63 - 1
_LONG_MIN: Final = -(2**63)
_EPOCH_DAY: Final = EPOCH.toordinal()


class TimePrecisionMode(StrEnum):
    """The values of ``time.precision.mode``."""

    ADAPTIVE = "adaptive"
    ADAPTIVE_TIME_MICROSECONDS = "adaptive_time_microseconds"
    CONNECT = "connect"
    ISOSTRING = "isostring"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"


_ADAPTIVE: Final = (TimePrecisionMode.ADAPTIVE, TimePrecisionMode.ADAPTIVE_TIME_MICROSECONDS)
_MILLISECOND_DIGITS: Final = 3


def date_conversion(mode: TimePrecisionMode) -> Conversion:
    """Return the conversion of days since 1970-01-01."""
    if mode is TimePrecisionMode.CONNECT:
        return Conversion(date_schema(), date_from_days)
    if mode is TimePrecisionMode.ISOSTRING:
        return Conversion(types.ISO_DATE, lambda days: iso_date(days) + "Z")
    return Conversion(types.DATE, _same)


def time_conversion(mode: TimePrecisionMode, precision: int) -> Conversion:
    """Return the conversion of microseconds since midnight, of which the column keeps ``precision`` digits."""
    if mode is TimePrecisionMode.CONNECT:
        return Conversion(time_schema(), lambda micros: time_from_milliseconds(micros // 1000))
    if mode is TimePrecisionMode.ISOSTRING:
        return Conversion(types.ISO_TIME, lambda micros: iso_time(micros) + "Z")
    if mode is TimePrecisionMode.NANOSECONDS:
        return Conversion(types.NANO_TIME, lambda micros: micros * 1000)
    if mode is TimePrecisionMode.ADAPTIVE and precision <= _MILLISECOND_DIGITS:
        return Conversion(types.TIME, lambda micros: micros // 1000)
    return Conversion(types.MICRO_TIME, _same)


def timestamp_conversion(mode: TimePrecisionMode, precision: int) -> Conversion:
    """Return the conversion of microseconds since 1970-01-01, of which the column keeps ``precision`` digits."""
    if mode is TimePrecisionMode.CONNECT:
        return Conversion(timestamp_schema(), lambda micros: timestamp_from_milliseconds(micros // 1000))
    if mode is TimePrecisionMode.ISOSTRING:
        return Conversion(types.ISO_TIMESTAMP, lambda micros: iso_timestamp(micros) + "Z")
    if mode is TimePrecisionMode.NANOSECONDS:
        return Conversion(types.NANO_TIMESTAMP, _nanoseconds)
    if mode in _ADAPTIVE and precision <= _MILLISECOND_DIGITS:
        return Conversion(types.TIMESTAMP, lambda micros: micros // 1000)
    return Conversion(types.MICRO_TIMESTAMP, _same)


def _same(value: int) -> int:
    return value


def _nanoseconds(micros: int) -> int:
    nanos = micros * 1000
    if not _LONG_MIN <= nanos <= _LONG_MAX:
        raise DataError(
            f"{iso_timestamp(micros)} does not fit into 64 bits of nanoseconds, which end in 2262: set "
            "time.precision.mode to another value than nanoseconds."
        )
    return nanos


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01 of a date of the Gregorian calendar, year 0 being 1 BC."""
    if 1 <= year <= dt.MAXYEAR:
        return dt.date(year, month, day).toordinal() - _EPOCH_DAY
    eras, year_of_era = divmod(year - 1, 400)
    return dt.date(year_of_era + 1, month, day).toordinal() - _EPOCH_DAY + eras * 146_097


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day; the inverse of :func:`days_from_civil`."""
    eras, day_of_era = divmod(days + _EPOCH_DAY - 1, 146_097)
    date = dt.date.fromordinal(day_of_era + 1)
    return date.year + eras * 400, date.month, date.day


def iso_date(days: int) -> str:
    """Return a date as ``2024-02-29``; years before 0 and beyond 9999 have a sign, as in Java."""
    year, month, day = civil_from_days(days)
    text = f"{year:04d}" if 0 <= year <= dt.MAXYEAR else f"{year:+05d}"
    return f"{text}-{month:02d}-{day:02d}"


def iso_time(micros: int) -> str:
    """Return a time of day as ``12:34:56.123456``, with as many digits as there are: none, three or six."""
    seconds, fraction = divmod(micros, _SECOND_US)
    hours, rest = divmod(seconds, 3600)
    text = f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"
    if not fraction:
        return text
    return f"{text}.{fraction // 1000:03d}" if fraction % 1000 == 0 else f"{text}.{fraction:06d}"


def iso_timestamp(micros: int) -> str:
    """Return a timestamp as ``2024-01-02T03:04:05.123456``, with as many digits as there are."""
    days, time = divmod(micros, DAY_US)
    return f"{iso_date(days)}T{iso_time(time)}"


def zoned_timestamp(digits: int) -> Callable[[int], str]:
    """Return the function that writes microseconds since 1970-01-01 in UTC, with a fixed number of digits."""
    unit = 10 ** (6 - digits)

    def write(micros: int) -> str:
        days, time = divmod(micros, DAY_US)
        seconds, fraction = divmod(time, _SECOND_US)
        hours, rest = divmod(seconds, 3600)
        point = f".{fraction // unit:0{digits}d}" if digits else ""
        return f"{iso_date(days)}T{hours:02d}:{rest // 60:02d}:{rest % 60:02d}{point}Z"

    return write
