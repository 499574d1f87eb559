"""Python values made from Arrow arrays, column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from connect.data import logical
from connect.data.arrow.casting import conform
from connect.data.arrow.metadata import map_key
from connect.data.arrow.types import schema_from_arrow_type
from connect.data.excerpt import excerpt
from connect.data.hash_collisions import refuse_colliding_keys
from connect.data.schema import Schema, Type
from connect.errors import DataError

__all__ = ["to_values"]

_TEMPORAL: Final = frozenset({logical.DATE_NAME, logical.TIME_NAME, logical.TIMESTAMP_NAME})


def to_values(array: pa.Array[Any], schema: Schema | None) -> Sequence[Any]:
    """Return the values of an array as Connect's Python types: dicts for structs and maps, aware datetimes and so on.

    An array whose type differs from the schema's is first passed to :func:`~connect.data.arrow.conform`.
    """
    if schema is None:
        schema = schema_from_arrow_type(array.type, nullable=True)
    return _values(conform(array, schema), schema)


@lru_cache(maxsize=1024)
def _is_plain(schema: Schema) -> bool:
    """Return whether pyarrow's own conversion, which is fast, gives Connect's types; for times and maps it does not."""
    if schema.name in _TEMPORAL or schema.type is Type.MAP:
        return False
    if schema.type is Type.STRUCT:
        return all(_is_plain(field.schema) for field in schema.fields)
    return schema.value_schema is None or _is_plain(schema.value_schema)


def _values(array: Any, schema: Schema) -> Sequence[Any]:
    if _is_plain(schema):
        values: list[Any] = array.to_pylist()
        return values
    if schema.name in _TEMPORAL:
        return _times(array, schema)
    if schema.type is Type.STRUCT:
        rows = _structs(array, schema)
    elif schema.key_schema is None:
        rows = _lists(array, schema)
    else:
        rows = _maps(array, schema)
    if not array.null_count:
        return list(rows)
    return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]


def _times(array: Any, schema: Schema) -> Sequence[Any]:
    # By number: Arrow's own values take longer, have another time zone class, and may overflow.
    made: Callable[[int], object]
    if schema.name == logical.TIMESTAMP_NAME:
        numbers, made = array.view(pa.int64()).to_pylist(), logical.timestamp_from_milliseconds
    elif schema.name == logical.DATE_NAME:
        numbers, made = array.view(pa.int32()).to_pylist(), logical.date_from_days
    else:
        numbers, made = array.view(pa.int32()).to_pylist(), logical.time_from_milliseconds
    return [None if number is None else made(number) for number in numbers]


def _structs(array: Any, schema: Schema) -> Iterable[Any]:
    names = schema.field_names
    columns = [_values(array.field(field.index), field.schema) for field in schema.fields]
    return (dict(zip(names, row, strict=False)) for row in zip(*columns, strict=True))


def _lists(array: Any, schema: Schema) -> Iterable[Any]:
    assert schema.value_schema is not None
    offsets, start, length = _extent(array)
    items = _values(array.values.slice(start, length), schema.value_schema)
    return (items[low - start : high - start] for low, high in pairwise(offsets))


def _maps(array: Any, schema: Schema) -> Iterable[Any]:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    offsets, start, length = _extent(array)
    keys = _values(array.keys.slice(start, length), schema.key_schema)
    if schema.key_schema.name not in logical.LOGICAL_NAMES and not schema.key_schema.type.is_primitive:
        keys = [map_key(key) for key in keys]
    elif schema.key_schema.name == logical.DECIMAL_NAME:
        for low, high in pairwise(offsets):
            refuse_colliding_keys(keys[low - start : high - start])
    items = _values(array.items.slice(start, length), schema.value_schema)
    return (
        _dict(keys[low - start : high - start], items[low - start : high - start]) for low, high in pairwise(offsets)
    )


def _dict(keys: Sequence[Any], items: Sequence[Any]) -> dict[Any, Any]:
    made = dict(zip(keys, items, strict=True))
    if len(made) != len(keys):
        seen: set[Any] = set()
        twice = next(key for key in keys if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise DataError(f"A map has the key {excerpt(twice)} more than once: remove the duplicates.")
    return made


def _extent(array: Any) -> tuple[list[int], int, int]:
    """Return the offsets of a list or map array, the position of its first element, and the number of elements."""
    offsets: list[int] = array.offsets.to_pylist()
    return offsets, offsets[0], offsets[-1] - offsets[0]
