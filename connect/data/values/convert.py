"""Conversions of values to other types."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from typing import Any, Final

from connect.data import logical
from connect.data.excerpt import excerpt
from connect.data.numerals import EXACT, double_text, single, wrapped
from connect.data.schema import Schema, Type
from connect.data.values.parse import exact_number, parse_string
from connect.errors import DataError

__all__ = [
    "convert_to_boolean",
    "convert_to_date",
    "convert_to_decimal",
    "convert_to_float32",
    "convert_to_float64",
    "convert_to_int8",
    "convert_to_int16",
    "convert_to_int32",
    "convert_to_int64",
    "convert_to_list",
    "convert_to_map",
    "convert_to_struct",
    "convert_to_time",
    "convert_to_timestamp",
]

_TWO_TO_64: Final = Decimal(1 << 64)
_TEMPORAL: Final = (logical.DATE_NAME, logical.TIME_NAME, logical.TIMESTAMP_NAME)


def convert_to_boolean(schema: Schema | None, value: Any) -> bool | None:
    """Return the value as a boolean. Accepts the text ``true`` or ``false``, and numbers, of which 0 is false."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and isinstance(parsed := parse_string(value).value, bool):
        return parsed
    return _integer(schema, value) != 0


def convert_to_int8(schema: Schema | None, value: Any) -> int | None:
    """Return the value as an 8-bit integer; fractions are cut off and larger values wrap around."""
    return None if value is None else wrapped(_integer(schema, value), 8)


def convert_to_int16(schema: Schema | None, value: Any) -> int | None:
    """Return the value as a 16-bit integer; fractions are cut off and larger values wrap around."""
    return None if value is None else wrapped(_integer(schema, value), 16)


def convert_to_int32(schema: Schema | None, value: Any) -> int | None:
    """Return the value as a 32-bit integer; fractions are cut off and larger values wrap around."""
    return None if value is None else wrapped(_integer(schema, value), 32)


def convert_to_int64(schema: Schema | None, value: Any) -> int | None:
    """Return the value as a 64-bit integer; fractions are cut off and larger values wrap around."""
    return None if value is None else _integer(schema, value)


def convert_to_float32(schema: Schema | None, value: Any) -> float | None:
    """Return the value as the nearest number of single precision."""
    return None if value is None else single(_float(schema, value))


def convert_to_float64(schema: Schema | None, value: Any) -> float | None:
    """Return the value as the nearest number of double precision."""
    return None if value is None else _float(schema, value)


def convert_to_list(schema: Schema | None, value: Any) -> Sequence[Any]:  # noqa: ARG001 - as its siblings
    """Return an array as it is, or the array that a text represents."""
    found = parse_string(value).value if isinstance(value, str) else _not_null(value)
    if isinstance(found, (list, tuple)):
        return found
    raise _refused(value, "an array")


def convert_to_map(schema: Schema | None, value: Any) -> Mapping[Any, Any]:
    """Return a map as it is, or the map that a text represents."""
    found = parse_string(value).value if isinstance(value, str) else _not_null(value)
    if isinstance(found, Mapping) and not _is_struct(schema):
        return found
    raise _refused(value, "a map")


def convert_to_struct(schema: Schema | None, value: Any) -> Mapping[str, Any]:
    """Return the value if its schema is a struct; nothing else can be converted to one."""
    if isinstance(_not_null(value), Mapping) and _is_struct(schema):
        found: Mapping[str, Any] = value
        return found
    raise _refused(value, "a struct")


def convert_to_date(schema: Schema | None, value: Any) -> dt.date:
    """Return the value as a date: the date of a timestamp in UTC, or a number of days since 1970-01-01."""
    value = _not_null(value)
    kind, value = _temporal(schema, value)
    if kind == logical.DATE_NAME:
        return _date(value)
    if kind == logical.TIMESTAMP_NAME:
        return _instant(value).date()
    return logical.date_from_days(wrapped(_integer(schema, value), 32))


def convert_to_time(schema: Schema | None, value: Any) -> dt.time:
    """Return the value as a time of day: that of a timestamp in UTC, or a number of milliseconds since midnight."""
    value = _not_null(value)
    kind, value = _temporal(schema, value)
    if kind == logical.TIME_NAME and isinstance(value, dt.time):
        return value
    if kind == logical.TIMESTAMP_NAME:
        return _instant(value).time()
    return logical.time_from_milliseconds(wrapped(_integer(schema, value), 32))


def convert_to_timestamp(schema: Schema | None, value: Any) -> dt.datetime:
    """Return the value as an instant: midnight UTC of a date, a time on 1970-01-01, or milliseconds since the epoch."""
    value = _not_null(value)
    kind, value = _temporal(schema, value)
    if kind == logical.DATE_NAME:
        return dt.datetime.combine(_date(value), dt.time(), dt.UTC)
    if kind == logical.TIME_NAME and isinstance(value, dt.time):
        return dt.datetime.combine(logical.EPOCH.date(), value, dt.UTC)
    if kind == logical.TIMESTAMP_NAME:
        return _instant(value)
    return logical.timestamp_from_milliseconds(_integer(schema, value))


def convert_to_decimal(schema: Schema | None, value: Any, scale: int) -> Decimal:
    """Return the value as a decimal. ``scale`` applies to bytes; all other values keep their own."""
    value = _not_null(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return logical.decimal_from_unscaled(bytes(value), scale)
    if isinstance(value, Decimal):
        return value
    number = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = exact_number(double_text(_float(schema, value)))
    elif isinstance(value, str):
        number = exact_number(value)
    if number is None:
        raise _refused(value, "a decimal")
    return number


# -- numbers -----------------------------------------------------------------------------------------------


def _integer(schema: Schema | None, value: Any) -> int:
    """Return the value as a 64-bit integer."""
    number = exact_number(value) if isinstance(value, str) else value
    if isinstance(number, float):
        return _truncated(number)
    if isinstance(number, Decimal):
        return wrapped(_whole(number), 64)
    if isinstance(number, int) and not isinstance(number, bool):
        return wrapped(number, 64)
    if schema is not None and schema.name in _TEMPORAL and isinstance(value, (dt.date, dt.time)):
        return _time_number(value)
    raise _refused(value, "a number")


def _truncated(number: float) -> int:
    if math.isnan(number):
        return 0
    return int(max(-(2.0**63), min(number, 2.0**63))) - (number >= 2.0**63)


def _whole(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    # From 10**64 on all of the 64 bits are zero, and the number itself may be too large to write down.
    if not isinstance(exponent, int) or exponent >= 64 or number.adjusted() < 0:
        return 0
    whole = number if exponent >= 0 else number.to_integral_value(ROUND_DOWN, EXACT)
    return int(EXACT.remainder(whole, _TWO_TO_64))


def _float(schema: Schema | None, value: Any) -> float:
    number = exact_number(value) if isinstance(value, str) else value
    if isinstance(number, (int, float, Decimal)) and not isinstance(number, bool):
        try:
            return float(number)
        except OverflowError:
            return math.inf if number > 0 else -math.inf
        except ValueError:  # a signalling NaN
            return math.nan
    return float(_integer(schema, value))


# -- times -------------------------------------------------------------------------------------------------


def _temporal(schema: Schema | None, value: Any) -> tuple[str | None, Any]:
    """Return the logical type of a date or time and the value itself, parsed if it is text."""
    if isinstance(value, str):
        parsed = parse_string(value)
        # Kafka Connect believes a schema that says it is text, even when the text is a date.
        name = parsed.schema.name if schema is None and parsed.schema is not None else None
        return name, value if isinstance(parsed.value, str) else parsed.value
    if schema is not None:
        return schema.name, value
    if isinstance(value, dt.datetime):
        return logical.TIMESTAMP_NAME, value
    if isinstance(value, (dt.date, dt.time)):
        return (logical.DATE_NAME if isinstance(value, dt.date) else logical.TIME_NAME), value
    return None, value


def _date(value: Any) -> dt.date:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    raise _refused(value, "a date")


def _instant(value: Any) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return logical.instant_in_utc(value)
    raise _refused(value, "a timestamp")


def _time_number(value: dt.date | dt.time) -> int:
    if isinstance(value, dt.time):
        return logical.milliseconds_from_time(value)
    if isinstance(value, dt.datetime):
        return logical.milliseconds_from_timestamp(_instant(value))
    return logical.days_from_date(value)


def _not_null(value: Any) -> Any:
    if value is None:
        raise DataError("Unable to convert a null value to a schema that requires a value")
    return value


def _is_struct(schema: Schema | None) -> bool:
    return schema is not None and schema.type is Type.STRUCT


def _refused(value: Any, wanted: str) -> DataError:
    return DataError(f"Unable to convert {excerpt(value)} ({type(value).__name__}) to {wanted}")
