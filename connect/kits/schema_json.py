"""Schemas as JSON, as in the envelope of Kafka Connect's JsonConverter: ``{"type":"int32","optional":false}``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from connect.data import Field, Schema, Type
from connect.errors import DataError, SchemaError

__all__ = ["Wording", "schema_from_json", "schema_to_json"]

Default = Callable[[Schema, Any], Any]
"""Converts a default from JSON or to JSON; when it is read, the schema is still without it."""

_NAMES: Final = {kind: kind.value for kind in Type} | {Type.FLOAT32: "float", Type.FLOAT64: "double"}
_TYPES: Final = {name: kind for kind, name in _NAMES.items()}
_PARTS: Final = {Type.ARRAY: ("items",), Type.MAP: ("keys", "values")}


@dataclass(frozen=True, slots=True)
class Wording:
    """The errors for JSON that describes no schema. In their texts ``{0}`` is what is found."""

    error: type[DataError]
    no_object: str
    no_type: str
    unknown_type: str
    no_part: Mapping[str, str]
    """What is said if ``items``, ``keys`` or ``values`` is missing."""
    no_fields: str
    no_field: str
    """What is said of a field that is no object."""
    no_name: str
    too_deep: str = ""
    deepest: int = sys.maxsize


_NO_OBJECT: Final = 'A schema is a JSON object such as {{"type": "struct", ...}}, not {0!r}.'
_NO_TYPE: Final = f"A schema has the unknown type {{0!r}}: use one of {', '.join(sorted(_TYPES))}."
_NO_FIELDS: Final = 'A schema of type struct needs "fields": a list of objects with "field" and "type".'
_OURS: Final = Wording(
    SchemaError,
    _NO_OBJECT,
    _NO_TYPE,
    _NO_TYPE,
    dict.fromkeys(("items", "keys", "values"), _NO_OBJECT),
    _NO_FIELDS,
    _NO_FIELDS,
    'Field {0} of a struct schema needs its name in "field".',
)


@dataclass(frozen=True, slots=True)
class _Reader:
    wording: Wording
    attributes: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    read_default: Default | None

    def read(self, node: Any, depth: int) -> Schema:
        wording = self.wording
        if depth > wording.deepest:
            raise self._refused(wording.too_deep, depth)
        if not isinstance(node, dict):
            raise self._refused(wording.no_object, node)
        if not isinstance(name := node.get("type"), str):
            raise self._refused(wording.no_type, name)
        if (kind := _TYPES.get(name)) is None:
            raise self._refused(wording.unknown_type, name)
        own, parts = self.attributes(node), [self._part(node, member, depth) for member in _PARTS.get(kind, ())]
        schema = Schema(
            kind,
            optional=node.get("optional") is True,
            **{member: own.get(member) for member in ("name", "version", "doc", "parameters")},
            fields=self._fields(node.get("fields"), depth) if kind is Type.STRUCT else (),
            key_schema=parts[0] if kind is Type.MAP else None,
            value_schema=parts[-1] if parts else None,
        )
        if self.read_default is not None and "default" in node:
            return schema.replace(default=self.read_default(schema, node["default"]))
        return schema

    def _part(self, node: Mapping[str, Any], member: str, depth: int) -> Schema:
        if (found := node.get(member)) is None:
            raise self._refused(self.wording.no_part[member], None)
        return self.read(found, depth + 1)

    def _fields(self, members: Any, depth: int) -> list[Field]:
        if not isinstance(members, list):
            raise self._refused(self.wording.no_fields, members)
        return [self._field(index, member, depth) for index, member in enumerate(members)]

    def _field(self, index: int, member: Any, depth: int) -> Field:
        if not isinstance(member, dict):
            raise self._refused(self.wording.no_field, member)
        if not isinstance(name := member.get("field"), str):
            raise self._refused(self.wording.no_name, index)
        return Field(name, self.read(member, depth + 1), index)

    def _refused(self, text: str, found: object) -> DataError:
        return self.wording.error(text.format(found))


def schema_from_json(
    node: Any,
    *,
    wording: Wording = _OURS,
    attributes: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda node: node,
    read_default: Default | None = None,
) -> Schema:
    """Return the schema that a JSON object describes. Raises the error of ``wording`` if it describes none.

    ``attributes`` returns what is to be read of an object's name, version, doc and parameters. Without ``read_default``
    there are no defaults.
    """
    return _Reader(wording, attributes, read_default).read(node, 1)


def schema_to_json(schema: Schema, write_default: Default | None = None) -> dict[str, Any]:
    """Return the JSON object that describes a schema, with its members in Kafka Connect's order.

    Without ``write_default`` it has no defaults.
    """
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
    if schema.default is not None and write_default is not None:
        node["default"] = write_default(schema, schema.default)
    return node
