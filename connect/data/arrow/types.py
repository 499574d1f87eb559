"""The Arrow type of every schema, and the schema of every Arrow type."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as kinds

from connect.data import logical
from connect.data.arrow.metadata import restored_schema, schema_metadata
from connect.data.schema import Field, Schema, Type
from connect.errors import SchemaError

__all__ = [
    "PRECISION",
    "arrow_field",
    "arrow_schema",
    "arrow_type",
    "decimal_precision",
    "schema_from_arrow",
    "schema_from_arrow_type",
]

PRECISION: Final = "connect.decimal.precision"
"""The parameter of a Decimal schema for the largest number of digits of its values."""

_PLAIN: Final[dict[Type, Any]] = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}
_LOGICAL: Final[dict[str, Any]] = {
    logical.DATE_NAME: pa.date32(),
    logical.TIME_NAME: pa.time32("ms"),
    logical.TIMESTAMP_NAME: pa.timestamp("ms", tz="UTC"),
}


@lru_cache(maxsize=1024)
def arrow_type(schema: Schema) -> pa.DataType:
    """Return the Arrow type for values of ``schema``."""
    made: pa.DataType
    if schema.name == logical.DECIMAL_NAME:
        made = _decimal_type(schema)
    elif schema.name in _LOGICAL:
        made = _LOGICAL[schema.name]
    elif schema.type is Type.STRUCT:
        made = pa.struct([arrow_field(field.name, field.schema) for field in schema.fields])
    elif schema.value_schema is None:
        made = _PLAIN[schema.type]
    elif schema.key_schema is None:
        made = pa.list_(arrow_field("item", schema.value_schema))
    else:
        key: Any = arrow_field("key", schema.key_schema, nullable=False)
        value: Any = arrow_field("value", schema.value_schema)
        made = pa.map_(key, value)
    return made


def arrow_field(name: str, schema: Schema, *, nullable: bool | None = None) -> pa.Field[Any]:
    """Return an Arrow field called ``name`` for values of ``schema``, nullable if the schema is optional."""
    nullable = schema.optional if nullable is None else nullable
    data_type = arrow_type(schema)
    metadata = schema_metadata(schema, _schema_of(data_type, nullable, name))
    return pa.field(name, data_type, nullable, metadata or None)


def arrow_schema(struct_schema: Schema) -> pa.Schema:
    """Return the Arrow schema of tables whose rows are values of a struct schema."""
    if struct_schema.type is not Type.STRUCT:
        raise SchemaError(
            f"An Arrow table needs a struct schema for its named columns, not {struct_schema.type.name}: wrap the "
            "value in a struct (HoistField), or use arrow_type() for a single column."
        )
    fields = [arrow_field(field.name, field.schema) for field in struct_schema.fields]
    natural = Schema.struct(struct_schema.fields)
    return pa.schema(fields, metadata=schema_metadata(struct_schema, natural) or None)


def schema_from_arrow(schema: pa.Schema) -> Schema:
    """Return the struct schema for the rows of a table with that Arrow schema.

    Raises a :class:`~connect.errors.SchemaError` that says what to cast if Connect lacks the type of a column.
    """
    return restored_schema(Schema.struct(_members(schema, "")), schema.metadata)


def schema_from_arrow_type(data_type: pa.DataType, nullable: bool = False) -> Schema:
    """Return the schema for values of that Arrow type, or the nearest one without loss if Connect lacks the type."""
    return _schema_of(data_type, nullable, "")


def decimal_precision(schema: Schema) -> int:
    """Return the maximum number of digits that values of a Decimal schema have in Arrow."""
    scale = logical.decimal_scale(schema)
    text = schema.parameters.get(PRECISION)
    if text is None:
        return _default_precision(scale)
    precision = int(text) if text.isdecimal() else 0
    if not 1 <= precision <= 76:
        raise SchemaError(
            f"Invalid {PRECISION} parameter found in Decimal schema: {text}; it must be between 1 and 76."
        )
    return precision


def _default_precision(scale: int) -> int:
    return 38 if scale <= 38 else 76


def _decimal_type(schema: Schema) -> pa.DataType:
    precision, scale = decimal_precision(schema), logical.decimal_scale(schema)
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def _field_schema(field: pa.Field[Any], path: str) -> Schema:
    return restored_schema(_schema_of(field.type, field.nullable, path), field.metadata)


def _members(fields: pa.Schema | pa.StructType, path: str) -> list[Field]:
    prefix = f"{path}." if path else ""
    return [Field(field.name, _field_schema(field, prefix + field.name), place) for place, field in enumerate(fields)]


def _schema_of(data_type: Any, nullable: bool, path: str) -> Schema:
    """Return the schema of a type, before the metadata of its field is applied."""
    if kinds.is_dictionary(data_type) or kinds.is_run_end_encoded(data_type):
        return _schema_of(data_type.value_type, nullable, path)
    if kinds.is_struct(data_type):
        return Schema.struct(_members(data_type, path), optional=nullable)
    if kinds.is_map(data_type):
        key = _field_schema(data_type.key_field, f"{path}{{key}}")
        return Schema.map(key, _field_schema(data_type.item_field, f"{path}[]"), optional=nullable)
    if any(is_list(data_type) for is_list in _LISTS):
        return Schema.array(_field_schema(data_type.value_field, f"{path}[]"), optional=nullable)
    if kinds.is_decimal(data_type):
        return _decimal_schema(data_type.precision, data_type.scale, nullable)
    for is_kind, make in _LEAVES:
        if is_kind(data_type):
            return make(optional=nullable)
    raise SchemaError(
        f'Column "{path or "value"}" has the Arrow type {data_type}, which Connect lacks: {_advice(data_type)}'
    )


def _decimal_schema(precision: int, scale: int, nullable: bool) -> Schema:
    natural = precision == _default_precision(scale)
    return logical.decimal_schema(scale, optional=nullable, parameters={} if natural else {PRECISION: str(precision)})


def _uint64_schema(*, optional: bool) -> Schema:
    return _decimal_schema(20, 0, optional)


def _null_schema(*, optional: bool) -> Schema:  # noqa: ARG001 - there is nothing but nulls
    return Schema.string(optional=True)


def _is_instant(data_type: Any) -> bool:
    return kinds.is_timestamp(data_type) and data_type.tz is not None


def _advice(data_type: Any) -> str:
    if kinds.is_timestamp(data_type):
        return "set its time zone with pyarrow.compute.assume_timezone()."
    if kinds.is_duration(data_type):
        return "cast it to int64."
    if isinstance(data_type, pa.BaseExtensionType):
        return f"use its storage type, {data_type.storage_type}."
    return "cast it to a struct, a string or a number first."


_LISTS: Final = (
    kinds.is_list,
    kinds.is_large_list,
    kinds.is_fixed_size_list,
    kinds.is_list_view,
    kinds.is_large_list_view,
)
_LEAVES: Final[tuple[tuple[Callable[[Any], bool], Callable[..., Schema]], ...]] = (
    (kinds.is_string, Schema.string),
    (kinds.is_large_string, Schema.string),
    (kinds.is_string_view, Schema.string),
    (kinds.is_int64, Schema.int64),
    (kinds.is_int32, Schema.int32),
    (kinds.is_int16, Schema.int16),
    (kinds.is_int8, Schema.int8),
    (kinds.is_uint32, Schema.int64),
    (kinds.is_uint16, Schema.int32),
    (kinds.is_uint8, Schema.int16),
    (kinds.is_uint64, _uint64_schema),
    (kinds.is_float64, Schema.float64),
    (kinds.is_float32, Schema.float32),
    (kinds.is_float16, Schema.float32),
    (kinds.is_boolean, Schema.boolean),
    (kinds.is_binary, Schema.bytes),
    (kinds.is_large_binary, Schema.bytes),
    (kinds.is_binary_view, Schema.bytes),
    (kinds.is_fixed_size_binary, Schema.bytes),
    (kinds.is_date, logical.date_schema),
    (kinds.is_time, logical.time_schema),
    (_is_instant, logical.timestamp_schema),
    (kinds.is_null, _null_schema),
)
