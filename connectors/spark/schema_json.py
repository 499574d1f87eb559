"""Schemas as JSON, in the form of the envelopes of Kafka Connect's JsonConverter.

The ledger stores table schemas in this form, and ``value.schema`` is read from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect.data import Field, Schema, Type
from connect.errors import SchemaError

__all__ = ["schema_from_json", "schema_to_json"]

_TYPE_NAMES = {"int8", "int16", "int32", "int64", "boolean", "string", "bytes", "array", "map", "struct"}
_FLOATS = {"float": Type.FLOAT32, "double": Type.FLOAT64}
_FLOAT_NAMES = {kind: name for name, kind in _FLOATS.items()}


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """Return the schema as a JSON object, without defaults: table columns have none."""
    written: dict[str, Any] = {
        "type": _FLOAT_NAMES.get(schema.type, schema.type.value),
        "optional": schema.optional,
    }
    for attribute in ("name", "version", "doc"):
        if (value := getattr(schema, attribute)) is not None:
            written[attribute] = value
    if schema.parameters:
        written["parameters"] = dict(schema.parameters)
    if schema.type is Type.STRUCT:
        written["fields"] = [{"field": field.name, **schema_to_json(field.schema)} for field in schema.fields]
    if schema.key_schema is not None:
        written["keys"] = schema_to_json(schema.key_schema)
    if schema.value_schema is not None:
        written["values" if schema.type is Type.MAP else "items"] = schema_to_json(schema.value_schema)
    return written


def schema_from_json(document: object) -> Schema:
    """Return the schema that a JSON object describes; raise :class:`~connect.errors.SchemaError` if it is invalid."""
    if not isinstance(document, Mapping):
        raise SchemaError(f'A schema is a JSON object such as {{"type": "struct", ...}}, not {document!r}.')
    kind = _type(document.get("type"))
    attributes: dict[str, Any] = {
        "optional": document.get("optional", False) is True,
        "name": document.get("name"),
        "version": document.get("version"),
        "doc": document.get("doc"),
        "parameters": document.get("parameters"),
    }
    if kind is Type.STRUCT:
        attributes["fields"] = _fields(document.get("fields"))
    elif kind is Type.ARRAY:
        attributes["value_schema"] = schema_from_json(document.get("items"))
    elif kind is Type.MAP:
        attributes["key_schema"] = schema_from_json(document.get("keys"))
        attributes["value_schema"] = schema_from_json(document.get("values"))
    return Schema(kind, **attributes)


def _type(name: object) -> Type:
    if name in _FLOATS:
        return _FLOATS[str(name)]
    if name in _TYPE_NAMES:
        return Type(name)
    known = ", ".join(sorted(_TYPE_NAMES | _FLOATS.keys()))
    raise SchemaError(f"A schema has the unknown type {name!r}: use one of {known}.")


def _fields(documents: object) -> list[Field]:
    if not isinstance(documents, list) or not all(isinstance(item, Mapping) for item in documents):
        raise SchemaError('A schema of type struct needs "fields": a list of objects with "field" and "type".')
    fields: list[Field] = []
    for place, document in enumerate(documents):
        name = document.get("field")
        if not isinstance(name, str):
            raise SchemaError(f'Field {place} of a struct schema needs its name in "field".')
        fields.append(Field(name, schema_from_json(document), place))
    return fields
