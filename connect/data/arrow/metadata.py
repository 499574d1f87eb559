"""Arrow field metadata for the attributes of a schema that Arrow types lack.

Each attribute is stored under a key such as ``connect.name`` or ``connect.doc``, with JSON as its value. Only
attributes that do not follow from the type are stored, so an ordinary schema needs no metadata.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from connect.data import logical
from connect.data.schema import Schema, Type
from connect.errors import DataError, SchemaError

__all__ = ["map_key", "restored_schema", "schema_metadata"]

_PREFIX: Final = "connect."
_ATTRIBUTES: Final = ("type", "optional", "name", "version", "doc", "parameters", "default")


def schema_metadata(schema: Schema, natural: Schema) -> dict[str | bytes, str | bytes]:
    """Return the attributes in which ``schema`` differs from ``natural``, the schema that the Arrow type implies."""
    if schema is natural:
        return {}
    return {
        _PREFIX + attribute: json.dumps(_as_json(schema, attribute), separators=(",", ":"))
        for attribute in _ATTRIBUTES
        if getattr(schema, attribute) != getattr(natural, attribute)
    }


def restored_schema(natural: Schema, metadata: Mapping[bytes, bytes] | None) -> Schema:
    """Apply metadata made by :func:`schema_metadata`; keys of other programs are ignored."""
    if not metadata:
        return natural
    try:
        found = {
            attribute: json.loads(text)
            for attribute in _ATTRIBUTES
            if (text := metadata.get((_PREFIX + attribute).encode())) is not None
        }
        if "type" in found:
            found["type"] = Type(found["type"])
        default = found.pop("default", None)
        schema = natural.replace(**found) if found else natural
        return schema if default is None else schema.replace(default=_decoded(schema, default))
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, binascii.Error) as error:
        raise SchemaError(
            f"The Arrow field metadata {_PREFIX}* cannot be read: {error}. Remove it to use the Arrow type alone."
        ) from error


def _as_json(schema: Schema, attribute: str) -> object:
    value = getattr(schema, attribute)
    if attribute == "type":
        return schema.type.value
    if attribute == "parameters":
        return dict(schema.parameters)
    return _encoded(schema, value) if attribute == "default" else value


def _encoded(schema: Schema, value: Any) -> object:
    """Return a default value as JSON from which its schema can restore it."""
    if value is None:
        return None
    if schema.name in logical.LOGICAL_NAMES:
        return str(value) if schema.name == logical.DECIMAL_NAME else value.isoformat()
    if schema.type.is_primitive:
        return base64.b64encode(value).decode() if schema.type is Type.BYTES else value
    if schema.type is Type.STRUCT:
        return {name: _encoded(part, value[name]) for name, part in _parts(schema) if name in value}
    items = [_encoded(_element(schema), item) for item in (value.values() if schema.key_schema else value)]
    if schema.key_schema is None:
        return items
    return list(zip([_encoded(schema.key_schema, key) for key in value], items, strict=True))


def _decoded(schema: Schema, data: Any) -> Any:
    """Restore a default value encoded by :func:`_encoded`."""
    if data is None:
        return None
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name](data)
    if schema.type.is_primitive:
        return base64.b64decode(data) if schema.type is Type.BYTES else data
    if schema.type is Type.STRUCT:
        return {name: _decoded(part, data[name]) for name, part in _parts(schema) if name in data}
    element = _element(schema)
    if schema.key_schema is None:
        return [_decoded(element, item) for item in data]
    return {map_key(_decoded(schema.key_schema, key)): _decoded(element, item) for key, item in data}


def map_key(value: Any) -> Any:
    """Return the value as a hashable dict key: an array becomes a tuple; maps and structs cannot be keys."""
    if isinstance(value, list):
        return tuple(map_key(item) for item in value)
    if isinstance(value, dict):
        raise DataError(
            "A map whose keys are structs or maps cannot be a Python dict: use an array of structs instead."
        )
    return value


def _parts(schema: Schema) -> list[tuple[str, Schema]]:
    return [(field.name, field.schema) for field in schema.fields]


def _element(schema: Schema) -> Schema:
    assert schema.value_schema is not None
    return schema.value_schema


_LOGICAL: Final[dict[str, Callable[[str], object]]] = {
    logical.DECIMAL_NAME: decimal.Decimal,
    logical.DATE_NAME: dt.date.fromisoformat,
    logical.TIME_NAME: dt.time.fromisoformat,
    logical.TIMESTAMP_NAME: dt.datetime.fromisoformat,
}
