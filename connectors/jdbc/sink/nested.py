"""Structs, arrays and maps as JSON.

Decimals are texts, so that no digit is lost; bytes are base64, times ISO 8601.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any, Final

from connect.data import Schema, Type
from connect.errors import DataError

__all__ = ["JSON_NAME", "json_schema", "json_writer"]

JSON_NAME: Final = "sluice.jdbc.Json"
"""The name of the schema of a column that holds JSON."""

_Change = Callable[[Any], Any]


def json_schema(*, optional: bool) -> Schema:
    """The schema of a column that holds JSON."""
    return Schema.string(name=JSON_NAME, optional=optional)


def json_writer(schema: Schema) -> Callable[[Any], str | None]:
    """What writes a value of ``schema`` as JSON; null stays null."""
    import orjson  # noqa: PLC0415 - the keys of the connector can be described without any package

    change = _change(schema)

    def write(value: Any) -> str | None:
        if value is None:
            return None
        return orjson.dumps(change(value)).decode()

    return write


def _change(schema: Schema) -> _Change:
    """What makes of a value that is not null something that JSON has."""
    match schema.type:
        case Type.STRUCT:
            members = {field.name: _nullable(_change(field.schema)) for field in schema.fields}
            return lambda struct: {name: change(struct.get(name)) for name, change in members.items()}
        case Type.ARRAY:
            assert schema.value_schema is not None
            element = _nullable(_change(schema.value_schema))
            return lambda values: [element(value) for value in values]
        case Type.MAP:
            assert schema.key_schema is not None
            assert schema.value_schema is not None
            key, member = _change(schema.key_schema), _nullable(_change(schema.value_schema))
            return lambda values: {_name(key(name)): member(value) for name, value in values.items()}
        case Type.BYTES if schema.name is None:
            return lambda value: base64.b64encode(value).decode()
        case Type.FLOAT32 | Type.FLOAT64:
            return _finite
    return _text if schema.name is not None else lambda value: value


def _nullable(change: _Change) -> _Change:
    return lambda value: None if value is None else change(value)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise DataError(f"JSON has no number {value}.")
    return value


def _text(value: Any) -> Any:
    """A value of a logical type, or of another type with a name."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if value is None or isinstance(value, (str, int, float)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _name(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return key if isinstance(key, str) else str(key)
