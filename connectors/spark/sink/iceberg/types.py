"""The columns of an Iceberg table as Connect's types.

Integers of 8 and 16 bits are ``int`` in Iceberg, and a time of day, for which Spark has no type, is an ``int`` of
milliseconds. A column keeps the type a connector has declared for it as long as both are the same to Spark. Columns
whose types Connect lacks are left to other writers: no records are written into them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from connect.data import Schema, Type
from connect.data.logical import date_schema, decimal_schema, timestamp_schema
from connectors.spark.arrow_types import table_type
from connectors.spark.schema import table_schema

__all__ = ["columns_of", "required_fields", "uuid_fields"]

_PLAIN: Final = {
    "boolean": Type.BOOLEAN,
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "string": Type.STRING,
    "uuid": Type.STRING,
    "binary": Type.BYTES,
}
_DECIMAL: Final = re.compile(r"decimal\((\d+), *(\d+)\)")
_PRECISION: Final = "connect.decimal.precision"


def columns_of(schema: Mapping[str, Any], declared: Schema | None = None) -> Schema:
    """Return the columns of an Iceberg schema in JSON, with the types of ``declared`` where they are the same
    to Spark.
    """
    columns = table_schema(_struct(schema))
    return columns if declared is None else _as_declared(columns, declared)


def required_fields(schema: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Return the paths of columns, and of fields in them, that must not be null."""
    return tuple(path for path, field in _fields(schema, ()) if field["required"])


def uuid_fields(schema: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Return the paths of columns, and of fields in them, whose texts must be UUIDs."""
    return tuple(path for path, field in _fields(schema, ()) if field["type"] == "uuid")


def _fields(struct: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    for field in struct["fields"]:
        name, inner = (*path, field["name"]), field["type"]
        yield name, field
        if isinstance(inner, dict) and inner["type"] == "struct":
            yield from _fields(inner, name)


def _struct(document: Mapping[str, Any]) -> Schema:
    fields = {item["name"]: _type(item["type"]) for item in document["fields"]}
    return Schema.struct({name: schema for name, schema in fields.items() if schema is not None})


def _type(document: str | Mapping[str, Any]) -> Schema | None:
    if isinstance(document, str):
        return _primitive(document)
    if document["type"] == "struct":
        return _struct(document).as_optional()
    if document["type"] == "list":
        element = _type(document["element"])
        return None if element is None else Schema(Type.ARRAY, optional=True, value_schema=element)
    key, value = _type(document["key"]), _type(document["value"])
    if key is None or value is None:
        return None
    return Schema(Type.MAP, optional=True, key_schema=key.as_required(), value_schema=value)


def _primitive(name: str) -> Schema | None:
    if name in _PLAIN:
        return Schema(_PLAIN[name], optional=True)
    if name == "date":
        return date_schema(optional=True)
    if name in ("timestamptz", "timestamp"):
        return timestamp_schema(optional=True)
    if match := _DECIMAL.fullmatch(name):
        return decimal_schema(int(match[2]), optional=True, parameters={_PRECISION: match[1]})
    return None


def _as_declared(columns: Schema, declared: Schema) -> Schema:
    if columns.type is not declared.type or columns.name is not None:
        return declared if _same_to_spark(columns, declared) else columns
    if columns.type is Type.STRUCT:
        fields = {}
        for field in columns.fields:
            before = declared.field(field.name)
            fields[field.name] = field.schema if before is None else _as_declared(field.schema, before.schema)
        return columns.replace(fields=fields)
    if columns.value_schema is not None and declared.value_schema is not None:
        return columns.replace(value_schema=_as_declared(columns.value_schema, declared.value_schema))
    return declared if _same_to_spark(columns, declared) else columns


def _same_to_spark(one: Schema, other: Schema) -> bool:
    first, second = (table_type(Schema.struct({"column": schema})).columns for schema in (one, other))
    return bool(first.equals(second))
