"""Translates Connect schemas to JSON Schema, draft 7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from connect.data import Schema, Type, logical
from connect.data.schema import INTEGER_RANGES
from connect.errors import SchemaError
from converters.json.encode import DecimalFormat
from converters.json.nesting import check_schema
from converters.json.text import dump
from converters.json_schema.config import JsonSchemaConverterConfig
from converters.json_schema.conventions import (
    ADDITIONAL,
    ANY,
    NAMESPACE,
    NULL_SYMBOL,
    enum_symbols,
    is_any,
    is_union,
)

__all__ = ["json_schema_from_connect"]

Document = dict[str, Any]
"""A JSON Schema as parsed JSON."""

WriteDefault = Callable[[Schema, Any], Any]
"""Returns the JSON of the default of a schema."""

_NO_SCHEMA: Final = (
    "A value without a schema cannot be written with JSON Schema: use JsonConverter with schemas.enable=false, or give "
    "the values a schema."
)


def json_schema_from_connect(
    schema: Schema | None, config: JsonSchemaConverterConfig, write_default: WriteDefault
) -> Document:
    """Return the JSON Schema of the values of a Connect schema.

    Raises :class:`~connect.errors.SchemaError` if there is none.
    """
    if schema is None:
        raise SchemaError(_NO_SCHEMA)
    check_schema(schema)
    return _Translation(config, write_default).document(schema, None)


class _Translation:
    """Translates one schema."""

    def __init__(self, config: JsonSchemaConverterConfig, write_default: WriteDefault) -> None:
        self._config = config
        self._write_default = write_default

    def document(self, schema: Schema, index: int | None, *, optional: bool | None = None) -> Document:
        """Return the schema; ``index`` is its place among the fields of a struct."""
        place: Document = {} if index is None else {"connect.index": index}
        is_optional = schema.optional if optional is None else optional
        if is_any(schema):
            # Any JSON includes null.
            return {**self._described(schema, {}), **place}
        if is_union(schema):
            return {**self._described(schema, self._union(schema, is_optional)), **place}
        described = self._described(schema, self._typed(schema))
        return {"oneOf": [{"type": "null"}, described], **place} if is_optional else {**described, **place}

    def _typed(self, schema: Schema) -> Document:  # noqa: PLR0911
        symbols = enum_symbols(schema)
        if symbols is not None:
            return {"enum": [None if symbol == NULL_SYMBOL else symbol for symbol in symbols]}
        kind = schema.type
        if schema.name == logical.DECIMAL_NAME:
            is_number = self._config.decimal_format is DecimalFormat.NUMERIC
            return {"type": "number" if is_number else "string", "connect.type": "bytes"}
        if kind in INTEGER_RANGES:
            return {"type": "integer", "connect.type": kind.value}
        if kind in (Type.FLOAT32, Type.FLOAT64):
            return {"type": "number", "connect.type": kind.value}
        if kind is Type.BYTES:
            return {"type": "string", "connect.type": "bytes"}
        if kind is Type.ARRAY:
            assert schema.value_schema is not None
            return {"type": "array", "items": self.document(schema.value_schema, None)}
        if kind is Type.MAP:
            return self._map(schema)
        if kind is Type.STRUCT:
            return self._struct(schema)
        return {"type": kind.value}

    def _map(self, schema: Schema) -> Document:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        key = schema.key_schema
        if key.type is Type.STRING and not key.optional:
            items = self.document(schema.value_schema, None)
            return {"type": "object", "connect.type": "map", "additionalProperties": items}
        entry = {"key": self.document(key, 0), "value": self.document(schema.value_schema, 1)}
        return {"type": "array", "connect.type": "map", "items": {"type": "object", "properties": entry}}

    def _struct(self, schema: Schema) -> Document:
        fields = [field for field in schema.fields if field.name != ADDITIONAL]
        document: Document = {
            "type": "object",
            "properties": {field.name: self.document(field.schema, index) for index, field in enumerate(fields)},
        }
        if not self._config.object_additional_properties:
            document["additionalProperties"] = False
        return document

    def _union(self, schema: Schema, optional: bool) -> Document:
        members = [self.document(field.schema, index, optional=False) for index, field in enumerate(schema.fields)]
        return {"oneOf": [*([{"type": "null"}] if optional else []), *members]}

    def _described(self, schema: Schema, document: Document) -> Document:
        """Add the attributes of a schema that are not its type."""
        if schema.name is not None and not is_union(schema):
            document["title"] = schema.name
        if schema.version is not None:
            document["connect.version"] = schema.version
        if schema.doc is not None:
            document["description"] = schema.doc
        parameters = {name: text for name, text in sorted(schema.parameters.items()) if not name.startswith(NAMESPACE)}
        parameters.pop(ANY, None)
        if parameters:
            document["connect.parameters"] = parameters
        if schema.default is not None:
            # What orjson cannot write itself, such as a decimal, is among the nodes as finished text.
            document["default"] = orjson.loads(dump(self._write_default(schema, schema.default)))
        return document
