"""How database values become Connect values: numbers by ``numeric.mapping``, times by their granularity."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connect.data import Schema, Type, decimal_schema, timestamp_schema
from connect.data.logical import EPOCH
from connect.data.schema import INTEGER_RANGES
from connect.errors import DataError

__all__ = [
    "PRECISION",
    "NumericMapping",
    "Reading",
    "TimestampGranularity",
    "TypeOptions",
    "checked_integer",
    "checked_text",
    "midnight",
    "numeric_reading",
    "parse_zone",
    "timestamp_reading",
]

PRECISION: Final = "connect.decimal.precision"
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_MOST_DIGITS: Final = 18


class NumericMapping(StrEnum):
    """How to map NUMERIC columns."""

    NONE = "none"
    PRECISION_ONLY = "precision_only"
    BEST_FIT = "best_fit"
    BEST_FIT_EAGER_DOUBLE = "best_fit_eager_double"


class TimestampGranularity(StrEnum):
    """How to map columns with date and time."""

    CONNECT_LOGICAL = "connect_logical"
    MICROS_LONG = "micros_long"
    MICROS_STRING = "micros_string"
    MICROS_ISO_DATETIME_STRING = "micros_iso_datetime_string"
    NANOS_LONG = "nanos_long"
    NANOS_STRING = "nanos_string"
    NANOS_ISO_DATETIME_STRING = "nanos_iso_datetime_string"


@dataclass(frozen=True, slots=True)
class TypeOptions:
    """A connector's choices for types; ``zone`` is that of times without one (``db.timezone``)."""

    numeric_mapping: NumericMapping = NumericMapping.NONE
    granularity: TimestampGranularity = TimestampGranularity.CONNECT_LOGICAL
    zone: dt.tzinfo = dt.UTC


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read the values of a column: their schema, and the conversion from the driver's value.

    ``convert`` is not called for null; ``None`` leaves values unchanged. Its ``ValueError`` or
    :class:`~connect.errors.DataError` says what is wrong with a value.
    """

    schema: Schema
    convert: Callable[[Any], Any] | None = None
    instant: Callable[[Any], dt.datetime] | None = None
    """What makes an aware instant of the driver's value, if it is a time that rows can be ordered by."""

    local: Callable[[Any], dt.datetime] | None = None
    """What makes of the driver's value the time that the clock in ``db.timezone`` shows, with the zone UTC."""

    only: type | None = None
    """The type of every value that need not be converted; a driver may give others where it has none that fits."""

    @property
    def is_instant(self) -> bool:
        """Whether the value itself is the instant."""
        return self.convert is not None and self.convert is self.instant


def parse_zone(text: str) -> dt.tzinfo:
    """Return the time zone of that name, as in Java's ``ZoneId``. Raises ``ValueError`` if there is none."""
    if text in ("UTC", "Z", "GMT", "UT"):
        return dt.UTC
    if (offset := _OFFSET.fullmatch(text)) is not None:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        if minutes <= 18 * 60:
            return dt.timezone(dt.timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{text} is not a time zone: write it as Europe/Berlin, UTC or +02:00") from error


def numeric_reading(precision: int | None, scale: int | None, options: TypeOptions) -> Reading:
    """Return how to read NUMERIC with these digits; without a scale as text, since its values may have any."""
    mapping = options.numeric_mapping
    if precision is None or scale is None:
        if mapping is NumericMapping.BEST_FIT_EAGER_DOUBLE:
            return Reading(Schema.float64(), float)
        return Reading(Schema.string(), _decimal_text)
    if precision <= _MOST_DIGITS and _is_integer(mapping, scale):
        kind = _integer_type(precision if scale >= 0 else precision - scale)
        if kind is not None:
            return Reading(Schema(kind), checked_integer(kind))
    if scale > 0 and (
        mapping is NumericMapping.BEST_FIT_EAGER_DOUBLE
        or (mapping is NumericMapping.BEST_FIT and precision <= _MOST_DIGITS)
    ):
        return Reading(Schema.float64(), float)
    return Reading(decimal_schema(scale, parameters={PRECISION: str(precision)}), _exact_decimal(scale))


def _is_integer(mapping: NumericMapping, scale: int) -> bool:
    if mapping is NumericMapping.NONE:
        return False
    return scale == 0 if mapping is NumericMapping.PRECISION_ONLY else scale < 1


def _integer_type(precision: int) -> Type | None:
    for digits, kind in ((2, Type.INT8), (4, Type.INT16), (9, Type.INT32), (_MOST_DIGITS, Type.INT64)):
        if precision <= digits:
            return kind
    return None


def _decimal_text(value: Any) -> str:
    number = value if isinstance(value, decimal.Decimal) else decimal.Decimal(str(value))
    return format(number, "f") if number.is_finite() else str(number)


def _exact_decimal(scale: int) -> Callable[[Any], decimal.Decimal]:
    unit = decimal.Decimal(1).scaleb(-scale)
    context = decimal.Context(prec=decimal.MAX_PREC, traps=[decimal.Inexact, decimal.InvalidOperation])

    def convert(value: Any) -> decimal.Decimal:
        number = value if isinstance(value, decimal.Decimal) else decimal.Decimal(str(value))
        if not number.is_finite():
            raise DataError(f"{value} cannot be represented as a Decimal")
        if -number.as_tuple().exponent == scale:  # type: ignore[operator]
            return number
        try:
            return number.quantize(unit, context=context)
        except decimal.DecimalException as error:
            raise DataError(f"{value} does not have {scale} decimal places") from error

    return convert


def checked_integer(kind: Type) -> Callable[[Any], int]:
    """Return a conversion of numbers to integers of a type that refuses all others."""
    least, most = INTEGER_RANGES[kind]

    def convert(value: Any) -> int:
        if isinstance(value, str | bytes):
            raise DataError(f"{value[:40]!r} is not a number")
        number = int(value)
        if number != value or not least <= number <= most:
            raise DataError(f"{value} is out of range for {kind.value}")
        return number

    return convert


def checked_text(value: Any) -> str:
    """Return the value if it is a string; otherwise raise :class:`~connect.errors.DataError`."""
    if not isinstance(value, str):
        raise DataError(f"the value is a {type(value).__name__}, but a string is expected")
    return value


def midnight(value: Any) -> Any:
    """Return the time at which a date begins; what is no date stays as it is."""
    return dt.datetime.combine(value, dt.time()) if isinstance(value, dt.date) else value


def timestamp_reading(
    options: TypeOptions, parse: Callable[[Any], Any] | None = None, *, zone: dt.tzinfo | None = None
) -> Reading:
    """Return how to read date and time; ``parse`` converts the driver's values that are not ``datetime`` objects.

    Times without a zone are in ``zone``, by default in ``db.timezone``.
    """
    in_utc = _in_zone(zone or options.zone)

    def parsed(value: Any) -> dt.datetime:
        moment = value if parse is None else parse(value)
        if moment.__class__ is not dt.datetime:
            raise DataError(f"{str(moment)[:40]!r} is not a date and time within the years 1 to 9999")
        return moment

    def instant(value: Any) -> dt.datetime:
        return in_utc(parsed(value))

    def local(value: Any) -> dt.datetime:
        moment = parsed(value)
        if moment.tzinfo is not None:
            try:
                moment = moment.astimezone(zone or options.zone)
            except OverflowError as error:
                raise DataError(f"{moment} is outside the years 1 to 9999 in db.timezone") from error
        return moment.replace(tzinfo=dt.UTC)

    granularity = options.granularity
    if granularity is TimestampGranularity.CONNECT_LOGICAL:
        return Reading(timestamp_schema(), instant, instant, local)
    form = _forms(options.zone)[granularity]
    schema = Schema.int64() if granularity.value.endswith("_long") else Schema.string()
    return Reading(schema, lambda value: form(instant(value)), instant, local)


def _in_zone(zone: dt.tzinfo) -> Callable[[dt.datetime], dt.datetime]:
    """Return a conversion to UTC of times that are in a zone, or else in ``zone``."""
    utc = dt.UTC

    def instant(moment: dt.datetime) -> dt.datetime:
        own = moment.tzinfo
        if own is None:
            if zone is utc:
                return moment.replace(tzinfo=utc)
            moment = moment.replace(tzinfo=zone)
        elif own is utc:
            return moment
        try:
            return moment.astimezone(utc)
        except OverflowError as error:
            raise DataError(f"{moment} is outside the years 1 to 9999 in UTC") from error

    return instant


def _forms(zone: dt.tzinfo) -> Mapping[TimestampGranularity, Callable[[dt.datetime], Any]]:
    def micros(moment: dt.datetime) -> int:
        elapsed: int = (moment - EPOCH) // _MICROSECOND
        return elapsed

    def iso(moment: dt.datetime) -> str:
        return moment.astimezone(zone).replace(tzinfo=None).isoformat(timespec="microseconds")

    return {
        TimestampGranularity.MICROS_LONG: micros,
        TimestampGranularity.MICROS_STRING: lambda moment: str(micros(moment)),
        TimestampGranularity.MICROS_ISO_DATETIME_STRING: iso,
        TimestampGranularity.NANOS_LONG: lambda moment: _int64(micros(moment) * 1000),
        TimestampGranularity.NANOS_STRING: lambda moment: str(micros(moment) * 1000),
        TimestampGranularity.NANOS_ISO_DATETIME_STRING: lambda moment: iso(moment) + "000",
    }


def _int64(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise DataError(f"{value} nanoseconds do not fit into 64 bits")
    return value
