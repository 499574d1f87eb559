"""What a transformation may ask of a key or a value before it works on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect.data import Schema, Type
from connect.errors import DataError

__all__ = ["require_map", "require_struct_schema", "type_name"]


def require_map(value: object, schema: Schema | None, purpose: str) -> Mapping[str, Any]:
    """The struct or map that ``value`` is; a :class:`~connect.errors.DataError` if it is neither."""
    if type(value) is dict or isinstance(value, Mapping):
        return value
    if schema is None:
        expected = "Only Map objects supported in absence of schema for"
    else:
        expected = "Only Struct objects supported for"
    raise DataError(f"{expected} [{purpose}], found: {type_name(value)}")


def require_struct_schema(schema: Schema, purpose: str) -> Schema:
    """The schema, if it is that of structs."""
    if schema.type is not Type.STRUCT:
        raise DataError(f"Only Struct objects supported for [{purpose}], found: {schema.type.name}")
    return schema


def type_name(value: object) -> str:
    """What to call the type of a value in an error."""
    return "null" if value is None else type(value).__name__
