"""Adjusts field names to what other systems allow (``field.name.adjustment.mode``), at any depth of a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from connect.data import ArrowColumn, Column, Field, Schema, Type, ValueColumn
from connect.data.arrow import arrow_type
from connect.data.logical import LOGICAL_NAMES
from connect.errors import DataError
from connectors.spark.decoding.json_text import list_offsets

__all__ = ["adjust_column", "adjusted_name", "adjusted_schema"]

_ODD: Final = re.compile(r"[^A-Za-z0-9_]")


@lru_cache(maxsize=4096)
def adjusted_name(name: str, mode: str) -> str:
    """Return the name in a mode: ``avro`` keeps letters, digits and ``_``; ``hive`` also makes them lower case."""
    if mode == "none":
        return name
    plain = _ODD.sub("_", name)
    if not plain or plain[0].isdigit():
        plain = f"_{plain}"
    return plain.lower() if mode == "hive" else plain


@lru_cache(maxsize=256)
def adjusted_schema(schema: Schema, mode: str) -> Schema:
    """Return the schema with adjusted names; the same object if all names are valid."""
    if schema.name in LOGICAL_NAMES:
        return schema
    if schema.type is Type.STRUCT:
        names = _free([field.name for field in schema.fields], mode)
        fields = [
            Field(name, adjusted_schema(field.schema, mode), field.index)
            for name, field in zip(names, schema.fields, strict=True)
        ]
        return schema.replace(fields=fields)
    if schema.value_schema is not None:
        return schema.replace(value_schema=adjusted_schema(schema.value_schema, mode))
    return schema


def adjust_column(column: Column, mode: str) -> Column:
    """Values with adjusted names; the same column if there is nothing to do."""
    if mode == "none":
        return column
    if column.schema is None:
        return ValueColumn([_value(value, mode) for value in column])
    schema = adjusted_schema(column.schema, mode)
    return column if schema is column.schema else ArrowColumn(_relabelled(column.to_arrow(), schema), schema)


def _free(names: list[str], mode: str) -> list[str]:
    """Return the adjusted names; raises :class:`~connect.errors.DataError` if two fields would get the same one."""
    found: dict[str, str] = {}
    for name in names:
        other = found.setdefault(adjusted_name(name, mode), name)
        if other != name:
            raise DataError(
                f'Fields "{other}" and "{name}" would both become column "{adjusted_name(name, mode)}" '
                f"(field.name.adjustment.mode={mode}): rename one of them (ReplaceField)."
            )
    return list(found)


def _value(value: Any, mode: str) -> Any:
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            return value
        names = _free(list(value), mode)
        return {name: _value(item, mode) for name, item in zip(names, value.values(), strict=True)}
    return [_value(item, mode) for item in value] if isinstance(value, list) else value


def _relabelled(array: Any, schema: Schema) -> Any:
    """Return an array with the field names of a schema of the same shape."""
    data_type: Any = arrow_type(schema)
    if schema.name in LOGICAL_NAMES or array.type.equals(data_type):
        return array
    mask = array.is_null() if array.null_count else None
    if schema.type is Type.STRUCT:
        children = [_relabelled(array.field(field.index), field.schema) for field in schema.fields]
        return pa.StructArray.from_arrays(children, fields=list(data_type), mask=mask)
    assert schema.value_schema is not None
    if schema.key_schema is None:
        items = _relabelled(array.flatten(), schema.value_schema)
        return pa.ListArray.from_arrays(list_offsets(array), items, type=data_type, mask=mask)
    items = _relabelled(array.items, schema.value_schema)
    return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=data_type, mask=mask)
