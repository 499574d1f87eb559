"""Finds the columns for the fields of values: columns of the same name, other columns where the named one cannot hold
the field, or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from connect.data import Schema, Type
from connect.data.arrow import to_array
from connect.data.logical import LOGICAL_NAMES
from connect.errors import DataError
from connectors.spark.decoding.inference import inferred
from connectors.spark.decoding.json_text import list_offsets
from connectors.spark.schema import Evolution

__all__ = ["is_in_place", "place_array", "place_value"]


@lru_cache(maxsize=256)
def is_in_place(seen: Schema, table: Schema, evolution: Evolution) -> bool:
    """Return whether every field of ``seen`` has the column of its name."""
    if _is_struct(seen) and _is_struct(table):
        for field in seen.fields:
            name = evolution.column_of(field.name, field.schema, table)
            column = table.field(field.name)
            if name != field.name or (column and not is_in_place(field.schema, column.schema, evolution)):
                return False
    elif seen.type is table.type is Type.ARRAY and seen.value_schema is not None and table.value_schema is not None:
        return is_in_place(seen.value_schema, table.value_schema, evolution)
    return True


def place_array(
    array: Any, seen: Schema, table: Schema, evolution: Evolution, left_out: set[str], path: str = ""
) -> Any:
    """Return an array of type ``seen`` with its fields renamed to their columns.

    The paths of fields without a column are added to ``left_out``.
    """
    if is_in_place(seen, table, evolution):
        return array
    mask = array.is_null() if array.null_count else None
    if not _is_struct(seen):
        assert seen.value_schema is not None
        assert table.value_schema is not None
        items = place_array(array.flatten(), seen.value_schema, table.value_schema, evolution, left_out, f"{path}[]")
        return pa.ListArray.from_arrays(list_offsets(array), items, mask=mask)
    placed: dict[str, Any] = {}
    for field in seen.fields:
        where = f"{path}.{field.name}" if path else field.name
        name = evolution.column_of(field.name, field.schema, table)
        if name is None:
            left_out.add(where)
            continue
        _check_free(placed, name, where)
        child, column = array.field(field.name), table.field(name)
        if column is not None:
            child = place_array(child, field.schema, column.schema, evolution, left_out, where)
        placed[name] = child
    if not placed:
        return pa.array([None if item is None else {} for item in array.to_pylist()], pa.struct([]))
    return pa.StructArray.from_arrays(list(placed.values()), list(placed), mask=mask)


def place_value(value: Any, table: Schema, evolution: Evolution, left_out: set[str], path: str = "") -> Any:
    """Like :func:`place_array`, for a value without a schema."""
    if _is_struct(table) and isinstance(value, Mapping):
        placed: dict[str, Any] = {}
        for field, item in value.items():
            where = f"{path}.{field}" if path else field
            name = _column_of(field, item, table, evolution)
            if name is None:
                left_out.add(where)
                continue
            _check_free(placed, name, where)
            column = table.field(name)
            placed[name] = place_value(item, column.schema, evolution, left_out, where) if column else item
        return placed
    if table.type is Type.ARRAY and table.value_schema is not None and isinstance(value, list):
        return [place_value(item, table.value_schema, evolution, left_out, f"{path}[]") for item in value]
    return value


def _column_of(name: str, item: Any, table: Schema, evolution: Evolution) -> str | None:
    column = table.field(name)
    if column is None:
        return name if evolution.adds else None
    if not evolution.branches or _fits(item, column.schema):
        return name
    try:
        seen = inferred(item)
    except DataError:
        return name
    return name if seen is None else evolution.column_of(name, seen, table)


def _fits(item: Any, column: Schema) -> bool:
    try:
        to_array([item], column)
    except DataError:
        return False
    return True


def _check_free(placed: Mapping[str, Any], name: str, path: str) -> None:
    if name in placed:
        raise DataError(f'Field "{path}" belongs in column "{name}", but the record also has a field with that name.')


def _is_struct(schema: Schema) -> bool:
    return schema.type is Type.STRUCT and schema.name not in LOGICAL_NAMES
