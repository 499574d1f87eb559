"""Writes Avro schemas as JSON text, member for member as Java's Avro library does.

A registry compares schemas by this text, so a schema already registered by a Java worker keeps its id.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from connect.data.numerals import double_text
from connect.errors import SchemaError
from connect.kits.avro.avro_schema import NO_DEFAULT, PRIMITIVES, TOO_DEEP, AvroField, AvroSchema
from connect.kits.avro.names import split
from connect.kits.avro.structure import Forms

__all__ = ["avro_text"]

_MOST_TYPES: Final = 200_000
_ESCAPE: Final = re.compile(r"\\(?:u00([0-9a-f]{2})|.)", re.DOTALL)


def avro_text(schema: AvroSchema) -> str:
    """Return the JSON text of a schema.

    Raises :class:`~connect.errors.SchemaError` if two different types share a name, or if the text would be too large:
    only named types are written once, all others are repeated at every use.
    """
    try:
        return _dumps(_Writer().write(schema, None))
    except RecursionError as error:
        raise SchemaError(TOO_DEEP) from error


def _dumps(node: Any) -> str:
    try:
        text = orjson.dumps(_with_java_floats(node)).decode()
    except orjson.JSONEncodeError as error:
        raise SchemaError(f"The schema cannot be written as JSON: {error}") from error
    return _ESCAPE.sub(lambda match: match[0] if match[1] is None else f"\\u00{match[1].upper()}", text)


def _with_java_floats(node: Any) -> Any:
    """Return the JSON with its floats formatted as in Java, such as 1.0E7."""
    match node:
        case dict():
            return {key: _with_java_floats(value) for key, value in node.items()}
        case list():
            return [_with_java_floats(value) for value in node]
        case float():
            return orjson.Fragment(double_text(node).encode())
        case _:
            return node


class _Writer:
    def __init__(self) -> None:
        self._known: dict[str, AvroSchema] = {}
        self._forms = Forms()
        self._written = 0

    def write(self, schema: AvroSchema, namespace: str | None) -> Any:
        self._written += 1
        if self._written > _MOST_TYPES:
            raise SchemaError(
                f"The Avro schema has more than {_MOST_TYPES} types: give structs names, so that each is written once."
            )
        if schema.kind == "union":
            return [self.write(branch, namespace) for branch in schema.branches]
        if schema.kind in PRIMITIVES:
            return {"type": schema.kind, **schema.props} if schema.props else schema.kind
        if schema.kind in ("array", "map"):
            member = "items" if schema.kind == "array" else "values"
            return {"type": schema.kind, member: self.write(schema.element, namespace), **schema.props}
        return self._named(schema, namespace)

    def _named(self, schema: AvroSchema, namespace: str | None) -> Any:
        own_namespace, name = split(schema.full_name)
        known = self._known.get(schema.full_name)
        if known is not None:
            if known is not schema and self._forms.number(known) != self._forms.number(schema):
                raise SchemaError(
                    f"Two different schemas are called {schema.full_name}, which Avro does not allow: give one of them "
                    "another name (SetSchemaMetadata sets that of the whole value)."
                )
            return name if own_namespace == namespace else schema.full_name
        self._known[schema.full_name] = schema
        node: dict[str, Any] = {"type": schema.kind, "name": name}
        if own_namespace != namespace:
            node["namespace"] = own_namespace or ""
        if schema.doc is not None:
            node["doc"] = schema.doc
        node |= self._own_members(schema, own_namespace)
        node |= schema.props
        if schema.aliases:
            node["aliases"] = list(schema.aliases)
        return node

    def _own_members(self, schema: AvroSchema, namespace: str | None) -> dict[str, Any]:
        if schema.kind == "fixed":
            return {"size": schema.size}
        if schema.kind == "record":
            return {"fields": [self._field(each, namespace) for each in schema.fields]}
        default = {} if schema.enum_default is None else {"default": schema.enum_default}
        return {"symbols": list(schema.symbols), **default}

    def _field(self, field: AvroField, namespace: str | None) -> dict[str, Any]:
        node: dict[str, Any] = {"name": field.name, "type": self.write(field.schema, namespace)}
        if field.doc is not None:
            node["doc"] = field.doc
        if field.default is not NO_DEFAULT:
            node["default"] = field.default
        if field.aliases:
            node["aliases"] = list(field.aliases)
        return node
