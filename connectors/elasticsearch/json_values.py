"""Values as JSON for documents: what a schema says becomes a function once, and then runs for each value.

Whole numbers, texts and objects are as Java's sink writes them. Two differences keep what it loses: a decimal has all
its digits, and no value becomes a null because JSON has no number for it.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import orjson

from connect.data import Schema, Type
from connect.data.logical import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    days_from_date,
    milliseconds_from_time,
    milliseconds_from_timestamp,
)
from connect.data.numerals import float_text, integer_text
from connect.errors import DataError

__all__ = ["Write", "json_bytes", "json_writer"]

Write = Callable[[Any], Any]
"""Makes of a value what orjson writes as intended."""

_FLAGS: Final = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME
_NULL: Final = b"null"


def json_bytes(value: Any, *, is_checked: bool = False) -> bytes:
    """Return the JSON of a value. Raises :class:`~connect.errors.DataError` if it has none.

    ``is_checked`` says that the floats in it are finite, as those that :func:`json_writer` has written are.
    """
    try:
        text = orjson.dumps(value, default=_other, option=_FLAGS)
    except (TypeError, ValueError) as error:
        text = orjson.dumps(_with_any_integers(value, error), default=_other, option=_FLAGS)
    if not is_checked and _NULL in text:
        _check_floats(value)
    return text


def _with_any_integers(value: Any, error: Exception) -> Any:
    """Return the value with integers of more than 64 bits as fragments; raise if that is not what is wrong."""
    found = _replaced(value)
    if found is value:
        raise DataError(f"The value cannot be written as JSON: {error}") from error
    return found


def _replaced(value: Any) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return orjson.Fragment(integer_text(value).encode())
    if isinstance(value, Mapping):
        items = {key: _replaced(item) for key, item in value.items()}
        return items if any(items[key] is not item for key, item in value.items()) else value
    if isinstance(value, (list, tuple)):
        parts = [_replaced(item) for item in value]
        return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
    return value


def _other(value: Any) -> Any:
    """Write what orjson does not know, in a value without a schema."""
    match value:
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode()
        case Decimal():
            return _decimal(value)
        case dt.datetime():
            return milliseconds_from_timestamp(value)
        case dt.date():
            return days_from_date(value)
        case dt.time():
            return milliseconds_from_time(value)
        case Mapping():
            return dict(value)
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def _check_floats(value: Any) -> None:
    """Refuse numbers that JSON lacks, which orjson writes as null."""
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f"{value} cannot be written as a JSON number.")
    if isinstance(value, Mapping):
        for item in value.values():
            _check_floats(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check_floats(item)


def json_writer(schema: Schema, *, compacts_maps: bool) -> Write | None:
    """Return what writes values of a schema, without nulls; None if they can be written as they are."""
    if schema.type is Type.STRUCT:
        return _struct(schema, compacts_maps)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return _array(schema.value_schema, compacts_maps)
    if schema.type is Type.MAP and schema.key_schema is not None and schema.value_schema is not None:
        return _map(schema.key_schema, schema.value_schema, compacts_maps)
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    return _PLAIN.get(schema.type)


def _optional(schema: Schema, what: str, compacts_maps: bool) -> Write | None:
    """Return what writes values that may be null; a default stands for a null."""
    write = json_writer(schema, compacts_maps=compacts_maps)
    default, is_optional = schema.default, schema.optional
    if default is None and is_optional:
        return None if write is None else lambda value: None if value is None else write(value)

    def written(value: Any) -> Any:
        if value is None:
            value = schema.default
        if value is None:
            if is_optional:
                return None
            raise DataError(f"{what} is null, and its schema says that it never is.")
        return value if write is None else write(value)

    return written


def _struct(schema: Schema, compacts_maps: bool) -> Write:
    fields = [
        (field.name, _optional(field.schema, f"Field {field.name}", compacts_maps)) for field in schema.fields or ()
    ]

    def write(value: Mapping[str, Any]) -> dict[str, Any]:
        get = value.get
        return {name: get(name) if inner is None else inner(get(name)) for name, inner in fields}

    return write


def _array(items: Schema, compacts_maps: bool) -> Write | None:
    inner = _optional(items, "An element", compacts_maps)
    return None if inner is None else lambda value: [inner(item) for item in value]


def _map(keys: Schema, values: Schema, compacts_maps: bool) -> Write:
    inner = _optional(values, "A value of a map", compacts_maps) or _same
    if compacts_maps and keys.type is Type.STRING:
        return lambda value: {str(key): inner(item) for key, item in value.items()}
    outer = _optional(keys, "A key of a map", compacts_maps) or _same
    return lambda value: [{"key": outer(key), "value": inner(item)} for key, item in value.items()]


def _same(value: Any) -> Any:
    return value


def _decimal(value: Decimal) -> orjson.Fragment:
    if not value.is_finite():
        raise DataError(f"{value} cannot be written as a JSON number.")
    return orjson.Fragment(f"{value:f}".encode())


def _double(value: float) -> float:
    if not math.isfinite(value):
        raise DataError(f"{value} cannot be written as a JSON number.")
    return value


def _single(value: float) -> orjson.Fragment:
    """Write a number of single precision with its own digits, 1.1, and not those of the double that holds it."""
    return orjson.Fragment(float_text(_double(value)).encode())


def _bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


_PLAIN: Final[Mapping[Type, Write]] = {Type.FLOAT64: _double, Type.FLOAT32: _single, Type.BYTES: _bytes}
_LOGICAL: Final[Mapping[str | None, Write]] = {
    DECIMAL_NAME: _decimal,
    DATE_NAME: days_from_date,
    TIME_NAME: milliseconds_from_time,
    TIMESTAMP_NAME: milliseconds_from_timestamp,
}
