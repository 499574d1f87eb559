"""Conventions by which Connect schemas represent Avro's unions, enums, fixed types, map entries and schemaless data."""

from __future__ import annotations

from typing import Final

from connect.data import Schema, Type
from connect.errors import SchemaError
from connect.kits.avro.avro_schema import AvroSchema
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.names import (
    ANYTHING,
    ENUM,
    FIXED_SIZE,
    GENERALIZED_ENUM,
    GENERALIZED_UNION,
    MAP_ENTRY,
    UNION,
    UNION_FIELD,
    scrub_full,
    split,
)

__all__ = [
    "KINDS",
    "avro_member_name",
    "enum_name",
    "fixed_size",
    "is_avro_map",
    "is_map_entry",
    "is_schemaless",
    "is_union",
    "member_name",
    "part",
]

_SCHEMALESS_FIELDS = ("boolean", "bytes", "double", "float", "int", "long", "string", "array", "map")
KINDS: Final = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
"""The Avro types of the primitive, non-logical Connect types."""
_NAMED = ("record", "enum", "fixed")


def part(schema: Schema | None) -> Schema:
    """Return the schema of an element, key or value. Arrays and maps always have one."""
    assert schema is not None
    return schema


def is_union(schema: Schema) -> bool:
    """Return whether a schema represents a union: a struct in which exactly one field is set."""
    return schema.type is Type.STRUCT and (schema.name == UNION or GENERALIZED_UNION in schema.parameters)


def enum_name(schema: Schema, config: AvroDataConfig) -> str | None:
    """Return the full name of the Avro enum that represents a string schema, or ``None`` if it is not an enum."""
    if schema.type is not Type.STRING or not config.writes_enums:
        return None
    return schema.parameters.get(config.enum_parameter)


def fixed_size(schema: Schema) -> int | None:
    """Return the size in bytes of the Avro fixed in which a schema is written, or ``None`` if it is not."""
    if schema.type is not Type.BYTES or schema.name is None:
        return None
    text = schema.parameters.get(FIXED_SIZE)
    if text is None:
        return None
    if not text.isdecimal():
        raise SchemaError(f"The parameter {FIXED_SIZE} is {text!r}; it must be a whole number of bytes.")
    return int(text)


def is_avro_map(schema: Schema, config: AvroDataConfig) -> bool:
    """Return whether a map is written as an Avro map. The keys of an Avro map are always strings."""
    key = part(schema.key_schema)
    return key.type is Type.STRING and (not key.optional or config.allow_optional_map_keys)


def is_map_entry(schema: AvroSchema) -> bool:
    """Return whether arrays of this Avro type represent maps."""
    return schema.kind == "record" and (
        schema.name == MAP_ENTRY or schema.props.get("connect.internal.type") == split(MAP_ENTRY)[1]
    )


def is_schemaless(schema: AvroSchema) -> bool:
    """Return whether this is the record type for values without a schema."""
    return schema.name == ANYTHING and tuple(field.name for field in schema.fields) == _SCHEMALESS_FIELDS


def avro_member_name(schema: AvroSchema, index: int, config: AvroDataConfig) -> str:
    """Return the name of the Connect field that represents a member of an Avro union."""
    if config.generalized_sum_type_support:
        return f"{UNION_FIELD}{index}"
    if schema.kind in _NAMED:
        return schema.full_name if config.enhanced_avro_schema_support else split(schema.full_name)[1]
    return schema.kind


def member_name(schema: Schema, index: int, config: AvroDataConfig) -> str:
    """Return the same name as :func:`avro_member_name`, given the Connect schema of the field."""
    if config.generalized_sum_type_support:
        return f"{UNION_FIELD}{index}"
    is_enum = schema.type is Type.STRING and (ENUM in schema.parameters or GENERALIZED_ENUM in schema.parameters)
    if schema.type is Type.STRUCT or is_enum or fixed_size(schema) is not None:
        name = schema.name or ""
        name = scrub_full(name) if config.scrub_invalid_names else name
        return name if config.enhanced_avro_schema_support else split(name)[1]
    kind: str = KINDS.get(schema.type, schema.type.value)
    return kind
