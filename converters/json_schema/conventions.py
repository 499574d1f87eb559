"""The names by which Connect schemas represent what JSON Schema has and they lack: enums, unions, any JSON."""

from __future__ import annotations

from typing import Final

from connect.data import Schema, Type

__all__ = [
    "ADDITIONAL",
    "ANY",
    "ENUM",
    "GENERALIZED_ENUM",
    "GENERALIZED_UNION",
    "JSON_NAME",
    "NAMESPACE",
    "NULL_SYMBOL",
    "UNION",
    "enum_symbols",
    "is_any",
    "is_union",
]

NAMESPACE: Final = "io.confluent.connect.json"
UNION: Final = f"{NAMESPACE}.OneOf"
ENUM: Final = f"{NAMESPACE}.Enum"
GENERALIZED_UNION: Final = "org.apache.kafka.connect.data.Union"
GENERALIZED_ENUM: Final = "org.apache.kafka.connect.data.Enum"
NULL_SYMBOL: Final = "<NULL>"
ADDITIONAL: Final = "__connect_additional_properties__"
"""The field that holds the properties that the schema does not declare."""

JSON_NAME: Final = "io.debezium.data.Json"
"""The name of strings that hold JSON, which sinks know."""

ANY: Final = "sluice.json"
"""The parameter that marks a string as JSON of any type, which is written as that JSON and not as text."""


def is_union(schema: Schema) -> bool:
    """Return whether a schema represents a union: a struct in which exactly one field is set."""
    return schema.type is Type.STRUCT and (schema.name == UNION or GENERALIZED_UNION in schema.parameters)


def is_any(schema: Schema) -> bool:
    """Return whether the strings of a schema are JSON of any type."""
    return schema.type is Type.STRING and ANY in schema.parameters


def enum_symbols(schema: Schema) -> tuple[str, ...] | None:
    """Return the symbols of a string schema that represents an enum; ``None`` if it does not."""
    if schema.type is not Type.STRING:
        return None
    for name in (ENUM, GENERALIZED_ENUM):
        if name in schema.parameters:
            prefix = f"{name}."
            return tuple(key.removeprefix(prefix) for key in schema.parameters if key.startswith(prefix))
    return None
