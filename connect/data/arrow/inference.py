"""Schema inference for values without a schema."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Final

from connect.data import logical
from connect.data.schema import Schema
from connect.errors import DataError

__all__ = ["inferred_schema"]

_REMEDY: Final = "use a converter with schemas, or give the values a common type before they are read as columns."


def inferred_schema(values: Iterable[Any], path: str = "") -> Schema | None:
    """Return a schema that can hold all the values, optional throughout, or ``None`` if all values are null.

    Raises a :class:`~connect.errors.DataError` that names the field if its values have no type in common.
    """
    present = [value for value in values if value is not None]
    kinds = set(map(type, present))
    if not kinds:
        return None
    if len(kinds) == 1:
        make = _SCHEMAS.get(next(iter(kinds)))
        if make is not None:
            return make(present, path)
    if kinds == {int, float}:
        return Schema.float64(optional=True)
    if kinds <= {bytes, bytearray, memoryview}:
        return Schema.bytes(optional=True)
    if kinds <= {list, tuple}:
        return _array_schema(present, path)
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise DataError(
        f'The values of "{path or "value"}" have no schema, and no Arrow type fits all of their types ({names}):'
        f" {_REMEDY}"
    )


def _optional(make: Callable[..., Schema]) -> Callable[[list[Any], str], Schema]:
    return lambda _, __: make(optional=True)


def _array_schema(values: list[Any], path: str) -> Schema:
    return Schema.array(_part(chain.from_iterable(values), f"{path}[]"), optional=True)


def _mapping_schema(values: list[Mapping[Any, Any]], path: str) -> Schema:
    """Return a struct schema if all keys are strings, otherwise a map schema."""
    names: dict[Any, None] = dict.fromkeys(chain.from_iterable(values))
    if not all(isinstance(name, str) for name in names):
        key_schema = _part(names, f"{path}{{key}}").as_required()
        return Schema.map(
            key_schema, _part(chain.from_iterable(m.values() for m in values), f"{path}[]"), optional=True
        )
    prefix = f"{path}." if path else ""
    fields = {name: _part((value.get(name) for value in values), prefix + name) for name in names}
    return Schema.struct(fields, optional=True)


def _part(values: Iterable[Any], path: str) -> Schema:
    # Nulls alone lose nothing in any type, and readers of files take them for strings.
    return inferred_schema(values, path) or Schema.string(optional=True)


def _decimal_schema(values: list[decimal.Decimal], path: str) -> Schema:
    exponents = {value.as_tuple().exponent for value in values}
    exponent = exponents.pop()
    if exponents or not isinstance(exponent, int):
        raise DataError(f'The decimals of "{path or "value"}" have no schema and differ in scale: {_REMEDY}')
    return logical.decimal_schema(-exponent, optional=True)


def _time_schema(values: list[dt.time], path: str) -> Schema:
    _check_milliseconds(values, path)
    return logical.time_schema(optional=True)


def _timestamp_schema(values: list[dt.datetime], path: str) -> Schema:
    _check_milliseconds(values, path)
    return logical.timestamp_schema(optional=True)


def _check_milliseconds(values: list[Any], path: str) -> None:
    if any(value.microsecond % 1000 for value in values):
        raise DataError(
            f'A value of "{path or "value"}"  has no schema and is finer than a millisecond, which Connect cannot'
            " represent: round it, or give it a Time or Timestamp schema, which truncates it."
        )


_SCHEMAS: Final[dict[type, Callable[[list[Any], str], Schema]]] = {
    str: _optional(Schema.string),
    int: _optional(Schema.int64),
    float: _optional(Schema.float64),
    bool: _optional(Schema.boolean),
    bytes: _optional(Schema.bytes),
    dict: _mapping_schema,
    list: _array_schema,
    decimal.Decimal: _decimal_schema,
    dt.date: _optional(logical.date_schema),
    dt.time: _time_schema,
    dt.datetime: _timestamp_schema,
}
