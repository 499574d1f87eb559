"""Schemas as JSON, as in the envelope: ``{"type":"int32","optional":false}``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from connect.data import Field, Schema, Type
from connect.data.numerals import wrapped
from connect.errors import DataError
from converters.json.nesting import MOST_SCHEMA_DEPTH, SCHEMA_TOO_DEEP

__all__ = ["schema_from_json", "schema_to_json"]

DefaultReader = Callable[[Schema, Any], Any]
"""Converts a default from JSON, given the schema without its default."""

DefaultWriter = Callable[[Schema, Any], Any]
"""Converts a default to JSON, given its schema."""

_NAMES: Final = {kind: kind.value for kind in Type} | {Type.FLOAT32: "float", Type.FLOAT64: "double"}
_TYPES: Final = {name: kind for kind, name in _NAMES.items()}


def schema_from_json(node: Any, read_default: DefaultReader, depth: int = 1) -> Schema | None:
    """Return the schema that a JSON object describes, or ``None`` for null, at a nesting ``depth`` from 1.

    Raises :class:`~connect.errors.DataError` if it describes none. Attributes of the wrong type are ignored, as in
    Kafka Connect: ``"optional":"true"`` does not make a schema optional.
    """
    if node is None:
        return None
    if depth > MOST_SCHEMA_DEPTH:
        raise DataError(SCHEMA_TOO_DEEP)
    kind = node.get("type") if isinstance(node, dict) else None
    if not isinstance(kind, str):
        raise DataError('Schema must contain "type" field, a string')
    if kind not in _TYPES:
        raise DataError(f"Unknown schema type: {kind}")
    schema = Schema(
        _TYPES[kind],
        optional=node.get("optional") is True,
        name=_text(node, "name"),
        version=_version(node),
        doc=_text(node, "doc"),
        parameters=_parameters(node),
        **_parts(_TYPES[kind], node, read_default, depth),
    )
    if "default" in node:
        return schema.replace(default=read_default(schema, node["default"]))
    return schema


def _parts(kind: Type, node: dict[str, Any], read_default: DefaultReader, depth: int) -> dict[str, Any]:
    def part(member: str, missing: str) -> Schema:
        schema = schema_from_json(node.get(member), read_default, depth + 1)
        if schema is None:
            raise DataError(missing)
        return schema

    match kind:
        case Type.ARRAY:
            return {"value_schema": part("items", "Array schema did not specify the element type")}
        case Type.MAP:
            return {
                "key_schema": part("keys", "Map schema did not specify the key type"),
                "value_schema": part("values", "Map schema did not specify the value type"),
            }
        case Type.STRUCT:
            return {"fields": _fields(node.get("fields"), read_default, depth)}
        case _:
            return {}


def _fields(node: Any, read_default: DefaultReader, depth: int) -> list[Field]:
    if not isinstance(node, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    fields = []
    for index, member in enumerate(node):
        name = _text(member, "field") if isinstance(member, dict) else None
        if name is None:
            raise DataError("Struct schema's field name not specified properly")
        schema = schema_from_json(member, read_default, depth + 1)
        assert schema is not None
        fields.append(Field(name, schema, index))
    return fields


def _text(node: dict[str, Any], member: str) -> str | None:
    text = node.get(member)
    return text if isinstance(text, str) else None


def _version(node: dict[str, Any]) -> int | None:
    version = node.get("version")
    return wrapped(version, 32) if isinstance(version, int) and not isinstance(version, bool) else None


def _parameters(node: dict[str, Any]) -> dict[str, str] | None:
    parameters = node.get("parameters")
    if not isinstance(parameters, dict):
        return None
    if not all(isinstance(text, str) for text in parameters.values()):
        raise DataError("Schema parameters must have string values.")
    return parameters


def schema_to_json(schema: Schema, write_default: DefaultWriter) -> dict[str, Any]:
    """Return the JSON object that describes a schema, with its members in Kafka Connect's order."""
    node: dict[str, Any] = {"type": _NAMES[schema.type]}
    if schema.type is Type.STRUCT:
        fields = [(field.name, schema_to_json(field.schema, write_default)) for field in schema.fields]
        node["fields"] = [member | {"field": name} for name, member in fields]
    elif schema.value_schema is not None:
        if schema.key_schema is not None:
            node["keys"] = schema_to_json(schema.key_schema, write_default)
        member = "items" if schema.key_schema is None else "values"
        node[member] = schema_to_json(schema.value_schema, write_default)
    node["optional"] = schema.optional
    for member in ("name", "version", "doc"):
        if getattr(schema, member) is not None:
            node[member] = getattr(schema, member)
    if schema.parameters:
        node["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        node["default"] = write_default(schema, schema.default)
    return node
