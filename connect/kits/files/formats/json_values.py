"""Values as JSON, formatted like Kafka Connect's JSON converter without schemas.

Timestamps are milliseconds, dates are days, bytes are base64; decimals are base64 of their unscaled value, or numbers.
Values of a struct are in the order of its schema. Most values are written by orjson as they are; a schema is compiled
once to what has to change before.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import chain, repeat
from operator import eq
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
    unscaled_from_decimal,
)
from connect.data.schema import decimal_scale
from connect.errors import DataError

__all__ = ["JsonEncode", "json_encoder", "json_lines_encoder"]

JsonEncode = Callable[[Sequence[Any]], list[bytes]]
"""Encodes values, each with a line feed behind it. Raises :class:`~connect.errors.DataError` for an invalid one."""

_Node = Callable[[Any], Any]
_OPTIONS: Final = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
_FLOATS: Final = (Type.FLOAT32, Type.FLOAT64)
_LARGEST_INTEGER: Final = (1 << 64) - 1
_SMALLEST_INTEGER: Final = -(1 << 63)
_DAY_MS: Final = 86_400_000


def json_encoder(schema: Schema | None, *, numeric_decimals: bool = False) -> JsonEncode:
    """Return what encodes values of ``schema``, or schemaless ones if it is ``None``."""
    return _json_lines(schema, numeric_decimals).each


def json_lines_encoder(schema: Schema | None, *, numeric_decimals: bool = False) -> Callable[[Sequence[Any]], bytes]:
    """Return what encodes values as :func:`json_encoder` does, all lines in one."""
    return _json_lines(schema, numeric_decimals).together


class _JsonLines:
    """Encodes values of one schema."""

    def __init__(self, schema: Schema | None, numeric_decimals: bool) -> None:
        self._node = None if schema is None else _node(schema, numeric_decimals)
        self._has_floats = schema is None or _has_floats(schema)
        self._floats: list[str] | None = None
        """The fields that have floats, if not the whole value may be one."""
        if schema is not None and schema.type is Type.STRUCT:
            self._floats = [field.name for field in schema.fields if _has_floats(field.schema)]
        is_plain = schema is not None and schema.type is Type.STRUCT and not _changes(schema)
        self._names = schema.field_names if schema is not None and is_plain else None

    def each(self, values: Sequence[Any]) -> list[bytes]:
        """Return a line for each value."""
        nodes = self._nodes(values)
        lines = _lines(nodes)
        return self._checked(lines, nodes) if self._has_floats else lines

    def together(self, values: Sequence[Any]) -> bytes:
        """Return all lines."""
        is_plain = self._is_plain(values)
        nodes = values if is_plain else self._nodes(values)
        begins_alike = is_plain or _begin_alike(nodes)
        whole = (_at_once(nodes) if begins_alike else None) or b"".join(_lines(nodes))
        # Whether a null is one, or stands for a number that is not finite, is told by their count where that is enough.
        if not self._has_floats or not (nulls := whole.count(b"null")) or (begins_alike and nulls == _nulls(nodes)):
            return whole
        return b"".join(self._checked(whole.splitlines(keepends=True), nodes))

    def _checked(self, lines: list[bytes], nodes: Sequence[Any]) -> list[bytes]:
        """Return lines in which no number that is not finite was written as null, as orjson does."""
        return [
            _thorough(node) if b"null" in line and self._has_infinite(node) else line
            for line, node in zip(lines, nodes, strict=True)
        ]

    def _has_infinite(self, node: Any) -> bool:
        if self._floats is None or not isinstance(node, dict):
            return _is_infinite(node)
        return any(_is_infinite(node.get(name)) for name in self._floats)

    def _nodes(self, values: Sequence[Any]) -> Sequence[Any]:
        return values if self._node is None or self._is_plain(values) else list(map(self._node, values))

    def _is_plain(self, values: Sequence[Any]) -> bool:
        """Whether values are written as they are, since their schema says nothing else."""
        return self._names is not None and _are_objects(values) and _has_order(values, self._names)


_json_lines = lru_cache(maxsize=256)(_JsonLines)
"""What encodes the values of a schema is the same for all files."""


def _are_objects(nodes: Sequence[Any]) -> bool:
    return all(map(isinstance, nodes, repeat(dict)))


def _begin_alike(nodes: Sequence[Any]) -> bool:
    """Whether all nodes are objects that begin with the same field."""
    try:
        first = next(iter(nodes[0]))
        return _are_objects(nodes) and all(map(eq, map(next, map(iter, nodes), repeat(None)), repeat(first)))
    except (TypeError, LookupError, StopIteration):
        return False


def _nulls(objects: Sequence[Mapping[str, Any]]) -> int:
    """Return how many fields of objects are null."""
    return list(chain.from_iterable(map(dict.values, objects))).count(None)  # type: ignore[arg-type]


def _at_once(objects: Sequence[Any]) -> bytes | None:
    """Return the lines of objects that begin with the same field, encoded as one array; ``None`` if that cannot be.

    The places where one object follows the other are told by the name of that field. Where a value has something that
    looks the same, there are too many of them.
    """
    try:
        begin = orjson.dumps({next(iter(objects[0])): 0})[:-2]
        whole = orjson.dumps(list(objects), _plain, orjson.OPT_PASSTHROUGH_DATETIME)
    except (TypeError, LookupError, StopIteration, RecursionError):
        return None
    parts = whole.split(b"}," + begin)
    if len(parts) != len(objects) or b"}" in begin:
        return None
    parts[0] = parts[0][1:]
    parts[-1] = parts[-1][:-1] + b"\n"
    return (b"}\n" + begin).join(parts)


def _lines(nodes: Sequence[Any]) -> list[bytes]:
    try:
        return [orjson.dumps(each, _plain, _OPTIONS) for each in nodes]
    except (TypeError, RecursionError):
        return [_thorough(each) for each in nodes]


def _has_order(values: Sequence[Any], names: tuple[str, ...]) -> bool:
    """Whether all values have these fields, in this order."""
    return all(map(eq, map(tuple, values), repeat(names)))


def _thorough(value: Any) -> bytes:
    """Encode a value that may have integers of any size, and floats that are not finite."""
    try:
        return orjson.dumps(_written_out(value), _plain, _OPTIONS)
    except RecursionError:
        raise DataError("The value is nested too deeply for JSON.") from None
    except TypeError as error:
        raise DataError(f"The value cannot be written as JSON: {error}") from error


def _written_out(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, int) and not _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER:
        return orjson.Fragment(str(value))
    if isinstance(value, Mapping):
        return {key: _written_out(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_written_out(item) for item in value]
    return value


def _is_infinite(value: Any) -> bool:
    """Whether a value is a float that is not finite, or has one."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Mapping):
        return any(map(_is_infinite, value.values()))
    return isinstance(value, list | tuple) and any(map(_is_infinite, value))


def _plain(value: Any) -> Any:
    """Return what stands for a value that orjson does not know, and of which no schema says more."""
    make = next((make for kind, make in _UNTYPED if isinstance(value, kind)), None)
    if make is None:
        raise TypeError(f"a {type(value).__name__} has no form in JSON")
    return make(value)


def _base64(value: Any) -> str:
    return base64.b64encode(bytes(value)).decode()


def _number(value: Decimal) -> Any:
    if not value.is_finite():
        raise DataError(f"{value} cannot be written as a JSON number.")
    return orjson.Fragment(format(value, "f"))


# -- what a schema says about its values ---------------------------------------------------------------------


def _changes(schema: Schema) -> bool:
    """Whether values of any field have to be changed for orjson."""
    return any(_node(field.schema, numeric=False) is not None for field in schema.fields)


def _has_floats(schema: Schema) -> bool:
    parts = [field.schema for field in schema.fields]
    parts += [part for part in (schema.key_schema, schema.value_schema) if part is not None]
    return schema.type in _FLOATS or any(map(_has_floats, parts))


def _node(schema: Schema, numeric: bool) -> _Node | None:
    """Return what turns values into nodes for orjson; ``None`` if it writes them as they are."""
    make = _by_schema(schema, numeric)
    if make is None:
        return None
    return lambda value: None if value is None else make(value)


def _by_schema(schema: Schema, numeric: bool) -> _Node | None:
    if schema.name == DECIMAL_NAME:
        scale = decimal_scale(schema)
        return _number if numeric else lambda value: _base64(unscaled_from_decimal(value, scale))
    if (of_time := _TIMES.get(schema.name or "")) is not None:
        return of_time
    if schema.type is Type.BYTES:
        return _base64
    make = _NESTED.get(schema.type)
    return None if make is None else make(schema, numeric)


def _array(schema: Schema, numeric: bool) -> _Node | None:
    assert schema.value_schema is not None
    item = _node(schema.value_schema, numeric)
    return None if item is None else lambda values: [item(value) for value in values]


def _map(schema: Schema, numeric: bool) -> _Node | None:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    key, item = _node(schema.key_schema, numeric), _node(schema.value_schema, numeric)
    if schema.key_schema.type is Type.STRING and not schema.key_schema.optional:
        return None if item is None else lambda values: {name: item(value) for name, value in values.items()}
    # JSON has only texts as names.
    keep: _Node = lambda value: value  # noqa: E731
    return lambda values: [[(key or keep)(name), (item or keep)(value)] for name, value in values.items()]


def _struct(schema: Schema, numeric: bool) -> _Node | None:
    names = schema.field_names
    made = ((field.name, _node(field.schema, numeric)) for field in schema.fields)
    changed = [(name, node) for name, node in made if node is not None]

    def node(value: Mapping[str, Any]) -> Any:
        if tuple(value) != names:
            value = {name: value.get(name) for name in names}
        if not changed:
            return value
        fields = dict(value)
        for name, make in changed:
            fields[name] = make(fields[name])
        return fields

    return node


_TIMES: Final[Mapping[str, _Node]] = {
    DATE_NAME: days_from_date,
    TIME_NAME: milliseconds_from_time,
    TIMESTAMP_NAME: milliseconds_from_timestamp,
}
_NESTED: Final[Mapping[Type, Callable[[Schema, bool], _Node | None]]] = {
    Type.ARRAY: _array,
    Type.MAP: _map,
    Type.STRUCT: _struct,
}
_UNTYPED: Final[Sequence[tuple[Any, _Node]]] = (
    ((bytes, bytearray, memoryview), _base64),
    (Decimal, _number),
    (dt.datetime, milliseconds_from_timestamp),
    (dt.date, lambda value: days_from_date(value) * _DAY_MS),
    (dt.time, milliseconds_from_time),
    (Mapping, dict),
    (Sequence, list),
)
