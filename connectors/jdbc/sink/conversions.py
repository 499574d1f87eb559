"""Conversions of fields that have no column type of their own: nested values and timestamps finer than a millisecond.

Structs, arrays and maps become JSON, in which decimals are strings, so that no digit is lost, bytes are base64 and
times ISO 8601. Numbers since the epoch become timestamps to the microsecond.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from connect.data import Schema, Type
from connect.data.logical import EPOCH
from connect.errors import DataError
from connect.kits.sql.writer import JSON_NAME, PRECISE_NAME

__all__ = ["json_schema", "json_writer", "precise_reader", "precise_schema"]

_MICROSECOND: Final = dt.timedelta(microseconds=1)
_NANOS: Final = 1000

_Change = Callable[[Any], Any]


def json_schema(*, optional: bool) -> Schema:
    """Return the schema of a column that holds JSON."""
    return Schema.string(name=JSON_NAME, optional=optional)


def json_writer(schema: Schema) -> Callable[[Any], str | None]:
    """Return a function that writes values of ``schema`` as JSON; null stays null."""
    import orjson  # noqa: PLC0415 - the keys of the connector can be described without any package

    change = _change(schema)

    def write(value: Any) -> str | None:
        if value is None:
            return None
        return orjson.dumps(change(value)).decode()

    return write


def _change(schema: Schema) -> _Change:
    """Return a conversion of non-null values to types that JSON has."""
    match schema.type:
        case Type.STRUCT:
            members = {field.name: _nullable(_change(field.schema)) for field in schema.fields}
            return lambda struct: {name: change(struct.get(name)) for name, change in members.items()}
        case Type.ARRAY:
            assert schema.value_schema is not None
            element = _nullable(_change(schema.value_schema))
            return lambda values: [element(value) for value in values]
        case Type.MAP:
            assert schema.key_schema is not None
            assert schema.value_schema is not None
            key, member = _change(schema.key_schema), _nullable(_change(schema.value_schema))
            return lambda values: {_name(key(name)): member(value) for name, value in values.items()}
        case Type.BYTES if schema.name is None:
            return lambda value: base64.b64encode(value).decode()
        case Type.FLOAT32 | Type.FLOAT64:
            return _finite
    return _text if schema.name is not None else lambda value: value


def _nullable(change: _Change) -> _Change:
    return lambda value: None if value is None else change(value)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise DataError(f"{value} cannot be written as a JSON number.")
    return value


def _text(value: Any) -> Any:
    """Convert a value of a logical or another named type."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if value is None or isinstance(value, (str, int, float)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _name(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return key if isinstance(key, str) else str(key)


def precise_schema(*, optional: bool) -> Schema:
    """Return the schema of a timestamp column with microseconds."""
    return Schema.int64(name=PRECISE_NAME, optional=optional)


def precise_reader(schema: Schema, unit: str) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a conversion of times since the epoch in ``unit``, as integers or strings of digits, to timestamps."""
    if schema.type not in (Type.INT64, Type.STRING) or schema.name is not None:
        raise DataError(f"timestamp.fields.list names a field of type {schema.type.value}: it must be int64 or string.")
    divisor = _NANOS if unit == "NANOSECONDS" else 1

    def moment(value: Any) -> dt.datetime | None:
        if value is None:
            return None
        try:
            micros, rest = divmod(int(value), divisor)
            if rest:
                raise DataError(f"{value} ns is more precise than a microsecond, the finest resolution of a timestamp.")
            return EPOCH + micros * _MICROSECOND
        except (ValueError, OverflowError) as error:
            raise DataError(f"{str(value)[:40]} is not a timestamp within the years 1 to 9999.") from error

    return lambda values: [moment(value) for value in values]
