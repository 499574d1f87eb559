"""Translates JSON Schema to Connect schemas."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from connect.data import Field, Schema, Type, logical
from connect.data.numerals import INT32_MAX, INT32_MIN
from connect.errors import DataError, SchemaError
from converters.json.nesting import MOST_SCHEMA_DEPTH, SCHEMA_TOO_DEEP
from converters.json_schema.config import JsonSchemaConverterConfig
from converters.json_schema.conventions import (
    ADDITIONAL,
    ANY,
    ENUM,
    GENERALIZED_ENUM,
    GENERALIZED_UNION,
    JSON_NAME,
    NULL_SYMBOL,
    UNION,
    is_any,
)
from converters.json_schema.decode import json_decoder
from converters.json_schema.document import JsonSchema, Part
from converters.json_schema.encode import json_encoder

__all__ = ["ANY_JSON", "connect_from_json_schema"]

log = logging.getLogger(__name__)

ANY_JSON: Final = Schema.string(optional=True, name=JSON_NAME, parameters={ANY: "true"})
"""The schema of JSON of any type: its text."""

_MOST_PARTS: Final = 50_000
_TYPES: Final = {
    kind.value: kind
    for kind in (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64, Type.BYTES, Type.STRING)
}
_OF_OBJECTS: Final = ("properties", "required", "minProperties", "maxProperties", "propertyNames", "dependencies")
_OF_ARRAYS: Final = ("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems")
_OF_STRINGS: Final = ("minLength", "maxLength", "pattern", "format")
_OF_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_MERGED: Final = frozenset({"$ref", "allOf", "properties", "required"})
_SHAPING: Final = frozenset(
    {
        *("type", "enum", "const", "properties", "items", "prefixItems", "additionalProperties", "patternProperties"),
        *("oneOf", "anyOf", "connect.type", *_OF_STRINGS, *_OF_NUMBERS),
    }
)
"""The members of a schema that say of what type its values are."""


def connect_from_json_schema(
    schema: JsonSchema, config: JsonSchemaConverterConfig, version: int | None = None
) -> Schema:
    """Return the Connect schema of values that follow a JSON Schema.

    ``version`` is the schema's version in its subject; it applies if the schema does not specify one itself. Raises
    :class:`~connect.errors.SchemaError` if Connect cannot represent the schema.
    """
    return _Translation(config).schema(schema.root(), version=version)


@dataclass(slots=True)
class _Merged:
    """A schema with all that ``$ref`` and ``allOf`` add to it."""

    members: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Part] = field(default_factory=dict)
    """For each member, the part in which it stands."""
    properties: dict[str, Part] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    targets: set[int] = field(default_factory=set)
    """What has been referred to, by identity."""

    def inner(self, name: str, contents: Any) -> Part:
        """Return a schema that stands in the member of that name."""
        return self.parts[name].inner(contents)


class _Translation:
    """Translates one document."""

    def __init__(self, config: JsonSchemaConverterConfig) -> None:
        self._config = config
        self._open: set[int] = set()
        self._depth = 0
        self._parts = 0
        self._unions = 0

    def schema(self, part: Part, *, optional: bool = False, version: int | None = None) -> Schema:
        """Return the schema of a part."""
        return self._of(self._whole(part), optional=optional, version=version)

    def _of(self, merged: _Merged, *, optional: bool, version: int | None = None) -> Schema:
        if self._depth > MOST_SCHEMA_DEPTH:
            raise SchemaError(SCHEMA_TOO_DEEP)
        if merged.targets & self._open:
            # A Connect schema cannot contain itself.
            return ANY_JSON
        self._open |= merged.targets
        self._depth += 1
        try:
            return self._translated(merged, optional, version)
        finally:
            self._depth -= 1
            self._open -= merged.targets

    # -- $ref and allOf ------------------------------------------------------------------------------------------

    def _whole(self, part: Part) -> _Merged:
        merged = _Merged()
        if part.is_root:
            merged.targets.add(id(part.members))
        self._merge(part, merged, 0)
        return merged

    def _merge(self, part: Part, into: _Merged, depth: int) -> None:
        """Add a part with what it refers to. What is known already stays."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise SchemaError(f"The JSON Schema has more than {_MOST_PARTS:,} parts when it is written out: divide it.")
        if depth > MOST_SCHEMA_DEPTH:
            raise SchemaError(SCHEMA_TOO_DEEP)
        members = part.members
        for name, value in members.items():
            if name not in _MERGED and name not in into.members:
                into.members[name] = value
                into.parts[name] = part
        properties = members.get("properties")
        if isinstance(properties, dict):
            into.members.setdefault("properties", properties)
            for name, value in properties.items():
                into.properties.setdefault(name, part.inner(value))
        required = members.get("required")
        if isinstance(required, list):
            into.required.update(name for name in required if isinstance(name, str))
        if "$ref" in members:
            target = part.referenced()
            if id(target.members) in into.targets:
                raise SchemaError(f"The JSON Schema refers to itself at once by {str(members['$ref'])[:200]!r}.")
            into.targets.add(id(target.members))
            self._merge(target, into, depth + 1)
        for member in _list(members.get("allOf")):
            self._merge(part.inner(member), into, depth + 1)

    # -- oneOf, anyOf and lists of types -------------------------------------------------------------------------

    def _alternatives(self, merged: _Merged) -> list[_Merged]:
        """Return the schemas one of which a value follows, or nothing if there is no choice of types."""
        members = merged.members
        kinds = members.get("type")
        if isinstance(kinds, list):
            return [replace(merged, members={**members, "type": kind}, targets=set()) for kind in kinds]
        if isinstance(kinds, str) and kinds not in ("object", "array"):
            return []
        for name in ("oneOf", "anyOf"):
            found = [self._whole(merged.inner(name, each)) for each in _list(members.get(name))]
            if any(map(_has_shape, found)):
                return sorted(found, key=lambda each: _index(each.members, 0))
        return []

    def _add_branches(self, merged: _Merged, alternatives: Sequence[_Merged]) -> frozenset[str]:
        """Add the properties that only some alternatives of an object have; return their names."""
        added = set()
        for each in alternatives:
            for name, part in each.properties.items():
                if name not in merged.properties:
                    merged.properties[name] = part
                    added.add(name)
        return frozenset(added)

    def _translated(self, merged: _Merged, optional: bool, version: int | None) -> Schema:
        alternatives = self._alternatives(merged)
        if not alternatives or (merged.properties and not isinstance(merged.members.get("type"), list)):
            loose = self._add_branches(merged, alternatives)
            return self._single(merged, optional, version, loose)
        present = [each for each in alternatives if not _is_null(each)]
        optional = optional or len(present) < len(alternatives)
        if not present:
            return Schema.string(optional=True)
        if not all(map(_has_shape, present)):
            return ANY_JSON
        if len(present) > 1 or (len(alternatives) == 1 and not self._config.flatten_singleton_unions):
            return self._union(merged, present, optional, version)
        (only,) = present
        only.targets |= merged.targets
        for name in ("title", "description", "default"):
            if name in merged.members:
                only.members.setdefault(name, merged.members[name])
        self._open -= merged.targets
        return self._of(only, optional=optional, version=version)

    def _union(self, merged: _Merged, present: Sequence[_Merged], optional: bool, version: int | None) -> Schema:
        generalized = self._config.generalized_sum_type_support
        name = f"connect_union_{self._unions}" if generalized else UNION
        prefix = "connect_union_field_" if generalized else f"{UNION}.field."
        number = self._unions
        self._unions += 1
        fields = [
            Field(f"{prefix}{index}", self._of(each, optional=True).as_optional(), index)
            for index, each in enumerate(present)
        ]
        if any(is_any(each.schema) for each in fields):
            # What may be any JSON fits every member, so no choice between them could be relied on.
            self._unions = number
            return ANY_JSON
        attributes = _described(merged.members, version)
        attributes["name"] = name
        if generalized:
            attributes["parameters"] = {**attributes["parameters"], GENERALIZED_UNION: name}
        return self._with_default(Schema(Type.STRUCT, fields=fields, optional=optional, **attributes), merged.members)

    # -- one type ------------------------------------------------------------------------------------------------

    def _single(self, merged: _Merged, optional: bool, version: int | None, loose: frozenset[str]) -> Schema:
        members = merged.members
        attributes = _described(members, version)
        values = _constants(members)
        if values is not None and None in values:
            optional = True
        shape = self._shape(merged, values, loose)
        if shape is None:
            return Schema(
                Type.STRING,
                optional=True,
                **{**attributes, "name": JSON_NAME, "parameters": {**attributes["parameters"], ANY: "true"}},
            )
        attributes["parameters"] = {**attributes["parameters"], **shape.pop("parameters", {})}
        base = _LOGICAL.get(attributes["name"] or "")
        if base is not None:
            shape["type"] = base
        schema = Schema(**{"optional": optional, **attributes, **shape})
        return self._with_default(schema, members)

    def _shape(  # noqa: PLR0911
        self, merged: _Merged, values: list[Any] | None, loose: frozenset[str]
    ) -> dict[str, Any] | None:
        """Return the attributes that make the type; ``None`` for JSON of any type."""
        members = merged.members
        kind = members.get("type")
        if values is not None and kind not in ("integer", "number", "boolean", "object", "array"):
            return self._enum(values)
        if kind is None:
            kind = _implied(members)
        match kind:
            case "integer" | "number":
                usual = Type.INT64 if kind == "integer" else Type.FLOAT64
                return {"type": _TYPES.get(str(members.get("connect.type")), usual)}
            case "string":
                return {"type": Type.BYTES if members.get("connect.type") == "bytes" else Type.STRING}
            case "boolean":
                return {"type": Type.BOOLEAN}
            case "null":
                return {"type": Type.STRING, "optional": True}
            case "array":
                return self._array(merged)
            case "object":
                return self._object(merged, loose)
            case None:
                return None
            case _:
                raise SchemaError(f"The JSON Schema has the type {str(kind)[:100]!r}, which JSON Schema does not have.")

    def _enum(self, values: list[Any]) -> dict[str, Any] | None:
        present = [value for value in values if value is not None]
        classes = {value.__class__ for value in present}
        if classes and classes <= {int, float}:
            return {"type": Type.INT64 if classes == {int} else Type.FLOAT64}
        if classes == {bool}:
            return {"type": Type.BOOLEAN}
        if not classes <= {str}:
            return None
        generalized = self._config.generalized_sum_type_support
        name = GENERALIZED_ENUM if generalized else ENUM
        parameters = {name: ""}
        for index, value in enumerate(values):
            symbol = NULL_SYMBOL if value is None else value
            parameters[f"{name}.{symbol}"] = str(index) if generalized else symbol
        return {"type": Type.STRING, "parameters": parameters}

    def _array(self, merged: _Merged) -> dict[str, Any]:
        items = merged.members.get("items")
        if not isinstance(items, dict) or "prefixItems" in merged.members:
            return {"type": Type.ARRAY, "value_schema": ANY_JSON}
        part = merged.inner("items", items)
        if merged.members.get("connect.type") != "map":
            return {"type": Type.ARRAY, "value_schema": self.schema(part)}
        entry = self._whole(part).properties
        if entry.keys() != {"key", "value"}:
            raise SchemaError(
                "The JSON Schema has a map (connect.type: map) whose items have other properties than key and value."
            )
        return {
            "type": Type.MAP,
            "key_schema": self.schema(entry["key"]),
            "value_schema": self.schema(entry["value"]),
        }

    def _object(self, merged: _Merged, loose: frozenset[str]) -> dict[str, Any] | None:
        members = merged.members
        more = members.get("additionalProperties")
        is_map = members.get("connect.type") == "map"
        if is_map or ("properties" not in members and not loose):
            if isinstance(more, dict) and (more or is_map):
                items = self.schema(merged.inner("additionalProperties", more))
            elif is_map:
                items = ANY_JSON
            elif isinstance(members.get("patternProperties"), dict) and members["patternProperties"]:
                items = self._of_patterns(merged, members["patternProperties"])
            elif more is not False:
                return None
            else:
                return {"type": Type.STRUCT}
            return {"type": Type.MAP, "key_schema": Schema.string(), "value_schema": items}
        return {"type": Type.STRUCT, "fields": list(self._fields(merged, loose))}

    def _of_patterns(self, merged: _Merged, patterns: dict[str, Any]) -> Schema:
        found = {self.schema(merged.inner("patternProperties", each)) for each in patterns.values()}
        return found.pop() if len(found) == 1 else ANY_JSON

    def _fields(self, merged: _Merged, loose: frozenset[str]) -> Iterator[Field]:
        places: dict[int, str] = {}
        ordered = []
        for turn, (name, part) in enumerate(merged.properties.items()):
            index = part.members.get("connect.index")
            if isinstance(index, int):
                if index in places:
                    raise SchemaError(
                        f"The JSON Schema gives the properties {places[index]} and {name} the same connect.index, "
                        f"{index}: give each its own."
                    )
                places[index] = name
            ordered.append((_index(part.members, turn), turn, name, part))
        for place, (_, _, name, part) in enumerate(sorted(ordered, key=lambda each: each[:2])):
            is_loose = name in loose or (self._config.use_optional_for_nonrequired and name not in merged.required)
            schema = self.schema(part, optional=is_loose)
            yield Field(name, schema, place)
        if self._config.preserve_additional_properties:
            if ADDITIONAL in merged.properties:
                raise SchemaError(
                    f"The JSON Schema has a property {ADDITIONAL}: set preserve.additional.properties=false to read it."
                )
            more = Schema.map(Schema.string(), ANY_JSON, optional=True)
            yield Field(ADDITIONAL, more, len(ordered))

    def _with_default(self, schema: Schema, members: dict[str, Any]) -> Schema:
        node = members.get("default")
        if node is None:
            return schema
        required = schema.as_required()
        try:
            default = json_decoder(required, self._config)(copy.deepcopy(node))
            json_encoder(required, self._config)(default)  # what reading accepts may not be written, such as a symbol
            return schema.replace(default=default)
        except DataError as error:
            log.warning("Ignoring a default in a JSON Schema (%s), which is not valid: %s", members.get("title"), error)
            return schema


_LOGICAL: Final = {
    logical.DECIMAL_NAME: Type.BYTES,
    logical.DATE_NAME: Type.INT32,
    logical.TIME_NAME: Type.INT32,
    logical.TIMESTAMP_NAME: Type.INT64,
}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _index(members: dict[str, Any], otherwise: int) -> int:
    index = members.get("connect.index")
    return index if isinstance(index, int) else otherwise


def _has_shape(merged: _Merged) -> bool:
    return any(name in merged.members for name in _SHAPING)


def _is_null(merged: _Merged) -> bool:
    members = merged.members
    return members.get("type") == "null" or (_constants(members) == [None] and "type" not in members)


def _constants(members: dict[str, Any]) -> list[Any] | None:
    if "const" in members:
        return [members["const"]]
    values = members.get("enum")
    return values if isinstance(values, list) else None


def _implied(members: dict[str, Any]) -> str | None:
    """Return the type that is meant where none is given."""
    for names, kind in (
        (_OF_OBJECTS, "object"),
        (_OF_ARRAYS, "array"),
        (_OF_STRINGS, "string"),
        (_OF_NUMBERS, "number"),
    ):
        if any(name in members for name in names):
            return kind
    return "object" if isinstance(members.get("additionalProperties"), dict) else None


def _described(members: dict[str, Any], version: int | None) -> dict[str, Any]:
    """Return the attributes of a schema that are not its type."""
    title, doc, given = members.get("title"), members.get("description"), members.get("connect.parameters")
    own = members.get("connect.version")
    name = title if isinstance(title, str) and title else None
    chosen = own if isinstance(own, int) and INT32_MIN <= own <= INT32_MAX else version
    if own is None and name in _LOGICAL:
        chosen = 1
    parameters = given if isinstance(given, dict) else {}
    return {
        "name": name,
        "doc": doc if isinstance(doc, str) else None,
        "version": chosen,
        "parameters": {key: text if isinstance(text, str) else json.dumps(text) for key, text in parameters.items()},
    }
