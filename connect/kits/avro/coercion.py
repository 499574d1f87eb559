"""Conversions of values that represent a Connect type without being of its exact Python class."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from connect.data import logical
from connect.errors import DataError
from connect.kits.avro.wire_format import MalformedError

__all__ = ["COERCIONS"]

_EXACT_IN_DOUBLE: Final = 2**53


def _as_int(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise _unfit(value, "a whole number")


def _as_float(value: Any) -> float:
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > _EXACT_IN_DOUBLE:
            raise DataError(
                f"The whole number {value} cannot be held exactly as a float; pass a float to have it rounded."
            )
        return float(value)
    raise _unfit(value, "a number")


def _as_str(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    raise _unfit(value, "text")


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise _unfit(value, "bytes")


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview)):
        return list(value)
    raise _unfit(value, "an array")


def _as_dict(value: Any) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise _unfit(value, "a struct or a map")


def _completed(value: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Add the missing fields of a struct as nulls."""
    unknown = value.keys() - set(names)
    if unknown:
        raise MalformedError(f"{min(map(str, unknown))} is not a valid field name")
    return {name: value.get(name) for name in names}


def _as_days(value: Any) -> int:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return logical.days_from_date(value)
    raise _unfit(value, "a date")


def _as_milliseconds_of_day(value: Any) -> int:
    if isinstance(value, dt.time) and value.tzinfo is None:
        return logical.milliseconds_from_time(value)
    raise _unfit(value, "a time of day without a time zone")


def _as_milliseconds(value: Any) -> int:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return logical.milliseconds_from_timestamp(value)
    raise _unfit(value, "a datetime with a time zone")


def _as_unscaled(value: Any, scale: int) -> bytes:
    if isinstance(value, Decimal):
        return logical.unscaled_from_decimal(value, scale)
    raise _unfit(value, "a decimal")


def _as_fixed(unscaled: bytes, size: int) -> bytes:
    number = int.from_bytes(unscaled, "big", signed=True)
    try:
        return number.to_bytes(size, "big", signed=True)
    except OverflowError as error:
        raise DataError(f"The decimal takes {len(unscaled)} bytes and does not fit a fixed of {size}.") from error


def _unfit(value: Any, wanted: str) -> MalformedError:
    return MalformedError(f"{type(value).__name__} where {wanted} is expected")


COERCIONS: Final[dict[str, Callable[..., Any]]] = {
    "as_bytes": _as_bytes,
    "as_days": _as_days,
    "as_dict": _as_dict,
    "as_fixed": _as_fixed,
    "as_float": _as_float,
    "as_int": _as_int,
    "as_list": _as_list,
    "as_milliseconds": _as_milliseconds,
    "as_milliseconds_of_day": _as_milliseconds_of_day,
    "as_str": _as_str,
    "as_unscaled": _as_unscaled,
    "completed": _completed,
}
"""The conversions, by the names under which compiled encoders call them. Each rejects values it cannot convert."""
