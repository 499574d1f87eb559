"""Infers schemas from values without a schema, such as JSON.

Unlike columns in memory, the columns of a table stay. So a field gets a type only when a value shows it. Null, an empty
array and an empty object show none: the type of such a field is unknown, represented by ``None`` here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from connect.data import Schema, Type
from connect.data.arrow.inference import inferred_schema
from connect.errors import DataError
from connectors.spark.schema import VALUE_COLUMN, in_common

__all__ = ["as_row", "infer_rows", "inferred", "prune"]


def as_row(value: Any) -> Mapping[str, Any]:
    """Return a value as a row of its table: a dict is a row, anything else is the row's only column."""
    return value if isinstance(value, Mapping) else {VALUE_COLUMN: value}


def inferred(value: Any) -> Schema | None:
    """Return the schema that one value shows."""
    return _infer([value])


def infer_rows(rows: Sequence[Mapping[str, Any]], *, branches: bool = False) -> Schema:
    """Return the schema of a table for these rows. If types have nothing in common, the first one wins.

    With ``branches``, the other types get their own columns.
    """
    try:
        return _struct(rows)
    except DataError:
        seen = Schema.struct({})
        for row in rows:
            seen = in_common(seen, _row_alone(row), branches=branches)
        return seen


def prune(value: Any, schema: Schema, untyped: set[str], path: str = "") -> Any:
    """Return the value without the fields that ``schema`` lacks because no value has shown their type yet.

    The paths of those that held an empty array or object are added to ``untyped``.
    """
    if schema.type is Type.STRUCT and isinstance(value, Mapping):
        kept: dict[str, Any] = {}
        for name, item in value.items():
            where = f"{path}.{name}" if path else name
            field = schema.field(name)
            if field is not None:
                kept[name] = prune(item, field.schema, untyped, where)
            elif _infer([item]) is not None:
                kept[name] = item
            elif item is not None:
                untyped.add(where)
        return kept
    if schema.type is Type.ARRAY and isinstance(value, list):
        assert schema.value_schema is not None
        return [prune(item, schema.value_schema, untyped, f"{path}[]") for item in value]
    return value


def _row_alone(row: Mapping[str, Any]) -> Schema:
    """Return the schema of one row, without fields whose own values have no type in common."""
    fields: dict[str, Schema] = {}
    for name, value in row.items():
        try:
            schema = _infer([value])
        except DataError:
            continue
        if schema is not None:
            fields[name] = schema
    return Schema.struct(fields)


def _struct(rows: Iterable[Mapping[str, Any]]) -> Schema:
    rows = list(rows)
    names = dict.fromkeys(chain.from_iterable(rows))
    found = {name: _infer([row.get(name) for row in rows]) for name in names}
    return Schema.struct({name: schema for name, schema in found.items() if schema is not None})


def _infer(values: Iterable[Any]) -> Schema | None:
    present = [value for value in values if value is not None]
    kinds = set(map(type, present))
    if kinds == {dict} and all(isinstance(name, str) for value in present for name in value):
        struct = _struct(present)
        return struct.as_optional() if struct.fields else None
    if kinds == {list}:
        items = _infer(chain.from_iterable(present))
        return None if items is None else Schema.array(items, optional=True)
    return inferred_schema(present)
