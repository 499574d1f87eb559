"""Whether a value is what its schema says, and if not, where it is not."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from connect.data import logical
from connect.data.numerals import INTEGER_RANGES, single
from connect.data.schema import Schema, Type
from connect.data.shown import shown
from connect.errors import DataError

__all__ = ["validate"]

_EXACT_UP_TO: Final = {Type.FLOAT32: 2**24, Type.FLOAT64: 2**53}


def validate(schema: Schema | None, value: object, path: str = "") -> None:
    """Check ``value`` against ``schema``, all the way down; a schema of ``None`` allows anything.

    Raises :class:`~connect.errors.DataError` that names the path of the bad value (``order.lines[2].price``).
    Nothing is converted. An ``int`` may stand where a float is asked for, as everywhere in Python, as long as
    a float of that width can hold it. Null is allowed where a schema is optional, and in a field of a struct whose
    schema has a default, which then stands for it.
    """
    try:
        _check(schema, value, path)
    except RecursionError as error:
        raise DataError(f'Invalid value for field "{path or "value"}": it is nested too deep') from error


def _check(schema: Schema | None, value: object, path: str) -> None:
    if schema is None:
        return
    if value is None:
        if not schema.optional:
            what = "null used for required field"
            raise DataError(f'Invalid value: {what}: "{path or "value"}", schema type: {schema.type.name}')
        return
    check = _LOGICAL.get(schema.name) if schema.name is not None else None
    (check or _PLAIN[schema.type])(schema, value, path)


def _refuse(schema: Schema, value: object, path: str, reason: str = "") -> DataError:
    expected = f"{schema.name} ({schema.type.name})" if schema.name in logical.LOGICAL_NAMES else schema.type.name
    detail = f": {reason}" if reason else ""
    kind = type(value).__name__
    return DataError(f'Invalid value for field "{path or "value"}": {kind} where {expected} is expected{detail}')


def _integer(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _refuse(schema, value, path)
    low, high = INTEGER_RANGES[schema.type]
    if not low <= value <= high:
        raise _refuse(schema, value, path, f"{shown(value)} is not within {low} and {high}")


def _float(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _refuse(schema, value, path)
    if isinstance(value, int):
        if abs(value) > _EXACT_UP_TO[schema.type]:
            text = shown(value)
            raise _refuse(schema, value, path, f"{text} may not be exact as a float; pass float({text})")
    elif schema.type is Type.FLOAT32 and math.isinf(single(value)) and not math.isinf(value):
        raise _refuse(schema, value, path, f"{value} is too large for single precision")


def _instance(*types: type) -> Callable[[Schema, object, str], None]:
    def check(schema: Schema, value: object, path: str) -> None:
        if not isinstance(value, types):
            raise _refuse(schema, value, path)

    return check


def _array(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes, bytearray, memoryview)):
        raise _refuse(schema, value, path)
    for index, item in enumerate(value):
        _check(schema.value_schema, item, f"{path}[{index}]")


def _map(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, Mapping):
        raise _refuse(schema, value, path)
    for key, item in value.items():
        text = shown(key)
        _check(schema.key_schema, key, f"{path}{{key {text}}}")
        _check(schema.value_schema, item, f"{path}[{text}]")


def _struct(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, Mapping):
        raise _refuse(schema, value, path)
    for field in schema.fields:
        item = value.get(field.name)
        if item is not None or field.schema.default is None:
            _check(field.schema, item, f"{path}.{field.name}" if path else field.name)
    if len(value) > len(schema.fields) or any(schema.field(name) is None for name in value):
        unknown = next(name for name in value if schema.field(name) is None)
        raise _refuse(
            schema, value, path, f"{unknown if isinstance(unknown, str) else shown(unknown)} is not a valid field name"
        )


def _decimal(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, decimal.Decimal):
        raise _refuse(schema, value, path)
    exponent = value.as_tuple().exponent
    scale = logical.decimal_scale(schema)
    if not isinstance(exponent, int) or -exponent != scale:
        raise _refuse(schema, value, path, f"{shown(value)} does not have the scale {scale} of the schema")


def _date(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise _refuse(schema, value, path)


def _time(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, dt.time):
        raise _refuse(schema, value, path)
    if value.tzinfo is not None:
        raise _refuse(schema, value, path, "a time of day has no time zone")


def _timestamp(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, dt.datetime):
        raise _refuse(schema, value, path)
    if value.tzinfo is None:
        raise _refuse(schema, value, path, "the datetime has no time zone: give it one, such as datetime.UTC")


_PLAIN: Final[Mapping[Type, Callable[[Schema, object, str], None]]] = {
    Type.INT8: _integer,
    Type.INT16: _integer,
    Type.INT32: _integer,
    Type.INT64: _integer,
    Type.FLOAT32: _float,
    Type.FLOAT64: _float,
    Type.BOOLEAN: _instance(bool),
    Type.STRING: _instance(str),
    Type.BYTES: _instance(bytes, bytearray, memoryview),
    Type.ARRAY: _array,
    Type.MAP: _map,
    Type.STRUCT: _struct,
}
_LOGICAL: Final[Mapping[str, Callable[[Schema, object, str], None]]] = {
    logical.DECIMAL_NAME: _decimal,
    logical.DATE_NAME: _date,
    logical.TIME_NAME: _time,
    logical.TIMESTAMP_NAME: _timestamp,
}
