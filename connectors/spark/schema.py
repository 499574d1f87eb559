"""The schemas of tables: how they come from the schemas of values, and how they grow.

A table has a struct schema. A value that is a struct gives its fields as columns, any other value is the one
column ``value``. Columns may always be null, and know nothing of the names, versions and defaults of the
schemas they come from, but for the logical types.

A table grows by new columns, and by types that hold every value of the type before, whoever reads the old
files: ``int8`` to ``int16`` to ``int32`` to ``int64``, ``int8`` and ``int16`` to ``float32``, those and
``int32`` and ``float32`` to ``float64``. Anything else, above all ``int64`` to ``float64``, would change values
that are already written (invariant I5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from connect.data import Schema, Type
from connect.data.logical import LOGICAL_NAMES
from connect.errors import SchemaError

__all__ = ["VALUE_COLUMN", "in_common", "table_schema", "widen", "widen_where_possible"]

VALUE_COLUMN: Final = "value"

_FLOAT32: Final = {Type.INT8, Type.INT16, Type.FLOAT32}
_FLOAT64: Final = _FLOAT32 | {Type.INT32, Type.FLOAT64}
_INTEGERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)

_Resolve = Callable[[Schema, Schema, str], Schema]
"""Resolves two types of a column (its path last) that no type can hold without loss."""


def table_schema(value_schema: Schema) -> Schema:
    """The schema of the table for values of ``value_schema``."""
    column = _column(value_schema)
    if column.type is Type.STRUCT:
        return column.as_required()
    return Schema.struct({VALUE_COLUMN: column})


def widen(table: Schema, seen: Schema) -> Schema:
    """The least schema that holds the rows of both tables; ``table`` itself if it does.

    Raises :class:`~connect.errors.SchemaError` that names the column which no type holds without loss.
    """
    return _widened(table, seen, "", _refuse)


def widen_where_possible(table: Schema, seen: Schema) -> Schema:
    """As :func:`widen`, but a column whose types have nothing in common keeps its type."""
    return _widened(table, seen, "", lambda kept, _seen, _path: kept)


def in_common(first: Schema, second: Schema) -> Schema:
    """The schema for rows of both tables before anything is written, where ``first`` takes precedence.

    A whole number in one and a float in the other become a float: whether it holds the values exactly is checked when
    they are written.
    """
    return _widened(first, second, "", _float_or_first)


def _float_or_first(first: Schema, second: Schema, _path: str) -> Schema:
    numbers = {Type.FLOAT32, Type.FLOAT64, *_INTEGERS}
    if {first.type, second.type} <= numbers and first.name is None and second.name is None:
        return first.replace(type=Type.FLOAT64)
    return first


def _column(schema: Schema) -> Schema:
    if schema.name in LOGICAL_NAMES:
        return Schema(schema.type, optional=True, name=schema.name, parameters=schema.parameters)
    return Schema(
        schema.type,
        optional=True,
        fields={field.name: _column(field.schema) for field in schema.fields},
        key_schema=None if schema.key_schema is None else _column(schema.key_schema).as_required(),
        value_schema=None if schema.value_schema is None else _column(schema.value_schema),
    )


def _widened(table: Schema, seen: Schema, path: str, conflict: _Resolve) -> Schema:
    if table is seen:
        return table
    if table.type is seen.type and table.name == seen.name and table.parameters == seen.parameters:
        if table.type is Type.STRUCT:
            return _struct(table, seen, path, conflict)
        if table.type in (Type.ARRAY, Type.MAP):
            return _container(table, seen, path, conflict)
        return table
    if table.name is None and seen.name is None and (kind := _number(table.type, seen.type)) is not None:
        return table if kind is table.type else table.replace(type=kind)
    return conflict(table, seen, path)


def _struct(table: Schema, seen: Schema, path: str, conflict: _Resolve) -> Schema:
    fields: dict[str, Schema] = {}
    for field in table.fields:
        other = seen.field(field.name)
        where = f"{path}.{field.name}" if path else field.name
        if other is not None:
            fields[field.name] = _widened(field.schema, other.schema, where, conflict)
        else:
            fields[field.name] = field.schema
    for field in seen.fields:
        fields.setdefault(field.name, field.schema)
    return table.replace(fields=fields)


def _container(table: Schema, seen: Schema, path: str, conflict: _Resolve) -> Schema:
    assert table.value_schema is not None
    assert seen.value_schema is not None
    if table.key_schema is not seen.key_schema:
        return conflict(table, seen, path)
    return table.replace(value_schema=_widened(table.value_schema, seen.value_schema, f"{path}[]", conflict))


def _number(table: Type, seen: Type) -> Type | None:
    both = {table, seen}
    if both <= set(_INTEGERS):
        return max(both, key=_INTEGERS.index)
    if both <= _FLOAT32:
        return Type.FLOAT32
    return Type.FLOAT64 if both <= _FLOAT64 else None


def _refuse(table: Schema, seen: Schema, path: str) -> Schema:
    raise SchemaError(
        f'Column "{path or "value"}" of the table is {_described(table)} and cannot hold {_described(seen)} '
        "without changing values. Make the records alike, for example with the transformation Cast, or begin "
        "another table (topics.dir) and declare its type with value.schema."
    )


def _described(schema: Schema) -> str:
    return schema.name.rpartition(".")[2] if schema.name else schema.type.value
