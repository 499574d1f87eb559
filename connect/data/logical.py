"""The logical types: schemas with a well-known name whose values are richer than their base type.

============  ==========================================  ====================================================
type          base                                        value
============  ==========================================  ====================================================
Decimal       bytes, parameter ``scale``                  :class:`decimal.Decimal` of exactly that scale
Date          int32, days since 1970-01-01                :class:`datetime.date`
Time          int32, milliseconds since midnight          :class:`datetime.time`, without a time zone
Timestamp     int64, milliseconds since the epoch         :class:`datetime.datetime`, aware
============  ==========================================  ====================================================
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

from connect.data.excerpt import excerpt
from connect.data.numerals import EXACT, decimal_from_integer, integer_from_decimal
from connect.data.schema import (
    DATE_NAME,
    DECIMAL_NAME,
    LOGICAL_NAMES,
    TIME_NAME,
    TIMESTAMP_NAME,
    Schema,
    Type,
    decimal_scale,
)
from connect.errors import DataError

__all__ = [
    "DATE_NAME",
    "DECIMAL_NAME",
    "EPOCH",
    "LOGICAL_NAMES",
    "TEMPORAL_RANGES",
    "TIMESTAMP_NAME",
    "TIME_NAME",
    "date_from_days",
    "date_schema",
    "days_from_date",
    "decimal_from_unscaled",
    "decimal_scale",
    "decimal_schema",
    "instant_in_utc",
    "milliseconds_from_time",
    "milliseconds_from_timestamp",
    "milliseconds_from_timestamps",
    "time_from_milliseconds",
    "time_schema",
    "timestamp_from_milliseconds",
    "timestamp_schema",
    "unscaled_from_decimal",
    "unscaled_from_decimals",
    "whole_decimal",
]

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY: Final = EPOCH.date().toordinal()
_MILLISECOND: Final = dt.timedelta(milliseconds=1)
_DAY_MS: Final = 86_400_000
_SHORT_DIGITS: Final = 100
TEMPORAL_RANGES: Final = {
    DATE_NAME: (-719_162, 2_932_896),
    TIME_NAME: (0, _DAY_MS - 1),
    TIMESTAMP_NAME: (-62_135_596_800_000, 253_402_300_799_999),
}
"""The lowest and highest numbers that stand for a date, time or timestamp Python can represent: the years 1 to 9999."""


def decimal_schema(scale: int, **attributes: Any) -> Schema:
    """Return a schema of exact decimals with ``scale`` digits after the point (before it, if negative)."""
    parameters = {"scale": str(scale), **attributes.pop("parameters", {})}
    return Schema(Type.BYTES, name=DECIMAL_NAME, version=1, parameters=parameters, **attributes)


def date_schema(**attributes: Any) -> Schema:
    """Return a schema of calendar days, without time or time zone."""
    return Schema(Type.INT32, name=DATE_NAME, version=1, **attributes)


def time_schema(**attributes: Any) -> Schema:
    """Return a schema of times of day with millisecond resolution, without date or time zone."""
    return Schema(Type.INT32, name=TIME_NAME, version=1, **attributes)


def timestamp_schema(**attributes: Any) -> Schema:
    """Return a schema of instants with millisecond resolution."""
    return Schema(Type.INT64, name=TIMESTAMP_NAME, version=1, **attributes)


def unscaled_from_decimal(value: decimal.Decimal, scale: int) -> bytes:
    """Return ``value * 10**scale`` as big-endian two's complement bytes; ``value`` must have exactly that scale."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise DataError(f"Decimal value {value} is not finite and cannot be written as bytes.")
    if -exponent != scale:
        mismatch = f"{-exponent} instead of {scale}"
        raise DataError(f"Decimal value has mismatching scale for given Decimal schema: {mismatch}")
    return _bytes_of(integer_from_decimal(whole_decimal(value, scale)))


def unscaled_from_decimals(values: Sequence[decimal.Decimal], scale: int) -> list[bytes]:
    """Convert many values at once; see :func:`unscaled_from_decimal`."""
    unit = decimal.Decimal((0, (1,), -scale))
    if not all(map(unit.same_quantum, values)):
        return [unscaled_from_decimal(value, scale) for value in values]
    wholes = [whole_decimal(value, scale) for value in values]
    are_short = max(map(decimal.Decimal.adjusted, wholes), default=0) < _SHORT_DIGITS
    return list(map(_bytes_of, map(int if are_short else integer_from_decimal, wholes)))


def _bytes_of(unscaled: int) -> bytes:
    # One bit more than the magnitude, the sign, save for negative powers of two: Java's BigInteger.
    length = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return unscaled.to_bytes(length, "big", signed=True)


def whole_decimal(value: decimal.Decimal, scale: int) -> decimal.Decimal:
    """Return ``value * 10**scale``, exactly."""
    return value.scaleb(scale, EXACT)


def decimal_from_unscaled(data: bytes, scale: int) -> decimal.Decimal:
    """Return the decimal that unscaled bytes stand for; the inverse of :func:`unscaled_from_decimal`."""
    if not data:
        raise DataError("An empty byte string is not a Decimal: zero is one byte.")
    return decimal_from_integer(int.from_bytes(data, "big", signed=True)).scaleb(-scale, EXACT)


def days_from_date(value: dt.date) -> int:
    """Return the days since 1970-01-01."""
    return value.toordinal() - _EPOCH_DAY


def date_from_days(days: int) -> dt.date:
    """Return the date of a number of days; a ``DataError`` outside the years 1 to 9999."""
    try:
        return dt.date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError) as error:
        raise DataError(f"Date {excerpt(days)} days from 1970-01-01 is outside the years 1 to 9999.") from error


def milliseconds_from_time(value: dt.time) -> int:
    """Return the milliseconds since midnight; finer digits are cut off."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def time_from_milliseconds(milliseconds: int) -> dt.time:
    """Return the time of day; the inverse of :func:`milliseconds_from_time`."""
    if not 0 <= milliseconds < _DAY_MS:
        raise DataError(f"Time {excerpt(milliseconds)} ms is not within a day: it must be from 0 to {_DAY_MS - 1}.")
    seconds, rest = divmod(milliseconds, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return dt.time(hour, minute, second, rest * 1000)


def milliseconds_from_timestamp(value: dt.datetime) -> int:
    """Return the milliseconds since the epoch, rounded down."""
    try:
        return (value - EPOCH) // _MILLISECOND
    except TypeError as error:
        raise DataError(f"The datetime {value} has no time zone: give it one, such as datetime.UTC.") from error


def instant_in_utc(value: dt.datetime) -> dt.datetime:
    """Return the same instant in UTC; a ``DataError`` for a naive ``datetime`` or one outside the years 1 to 9999."""
    if value.tzinfo is None:
        raise DataError(f"The datetime {value} has no time zone: give it one, such as datetime.UTC.")
    try:
        return value.astimezone(dt.UTC)
    except OverflowError as error:
        raise DataError(f"Timestamp {value} is outside the years 1 to 9999 in UTC.") from error


def milliseconds_from_timestamps(values: Sequence[dt.datetime]) -> list[int]:
    """Convert many values at once; see :func:`milliseconds_from_timestamp`."""
    if set(map(attrgetter("tzinfo"), values)) == {dt.UTC}:
        return [(value - EPOCH) // _MILLISECOND for value in values]
    return list(map(milliseconds_from_timestamp, values))


def timestamp_from_milliseconds(milliseconds: int) -> dt.datetime:
    """Return the instant in UTC; the inverse of :func:`milliseconds_from_timestamp`."""
    try:
        return EPOCH + _MILLISECOND * milliseconds
    except OverflowError as error:
        raise DataError(
            f"Timestamp {excerpt(milliseconds)} ms from the epoch is outside the years 1 to 9999."
        ) from error
