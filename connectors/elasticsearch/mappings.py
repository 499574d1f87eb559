"""Mappings: which types the fields of documents have in an index, by the schema of the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from connect.data import Schema, Type
from connect.data.logical import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME

__all__ = ["mapping_of"]

_KEYWORD: Final = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
_LOGICAL: Final[Mapping[str, str]] = {
    DECIMAL_NAME: "double",
    DATE_NAME: "date",
    TIME_NAME: "date",
    TIMESTAMP_NAME: "date",
}
_TYPES: Final[Mapping[Type, str]] = {
    Type.BOOLEAN: "boolean",
    Type.INT8: "byte",
    Type.INT16: "short",
    Type.INT32: "integer",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BYTES: "binary",
}
_WITHOUT_DEFAULT: Final = ("binary", "text")
_Written: TypeAlias = Callable[[Schema], Callable[[Any], Any] | None]


def mapping_of(schema: Schema, *, compacts_maps: bool, written: _Written) -> Any:
    """Return the mapping of the values of a schema, such as ``{"properties": {"id": {"type": "long"}}}``.

    ``written`` says how a value of a schema appears in documents: a default of a field, which stands for a null, is
    given as it would. The entries of a map that is written as an object are left to the cluster, which finds their
    fields in the documents; Java's sink declares fields ``key`` and ``value`` for them, which such documents do not
    have.
    """
    match schema:
        case Schema(type=Type.STRUCT):
            return _properties({field.name: field.schema for field in schema.fields or ()}, compacts_maps, written)
        case Schema(type=Type.ARRAY, value_schema=Schema() as items):
            return mapping_of(items, compacts_maps=compacts_maps, written=written)
        case Schema(type=Type.MAP, key_schema=Schema() as keys, value_schema=Schema() as values):
            if compacts_maps and keys.type is Type.STRING:
                return {"type": "object"}
            return _properties({"key": keys, "value": values}, compacts_maps, written)
    return _leaf(schema, written)


def _properties(fields: Mapping[str, Schema], compacts_maps: bool, written: _Written) -> Any:
    inner = {name: mapping_of(each, compacts_maps=compacts_maps, written=written) for name, each in fields.items()}
    return {"properties": inner}


def _leaf(schema: Schema, written: _Written) -> Any:
    if schema.type is Type.STRING:
        return _KEYWORD
    kind = _LOGICAL.get(schema.name or "") or _TYPES[schema.type]
    if schema.default is None or kind in _WITHOUT_DEFAULT:
        return {"type": kind}
    write = written(schema)
    return {"type": kind, "null_value": schema.default if write is None else write(schema.default)}
