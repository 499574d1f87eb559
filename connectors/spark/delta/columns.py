"""Converts the columns of a Delta table to Connect schemas, and back.

A Spark table stores less than a schema: a time of day is an ``int`` there, a decimal has lost its parameters. So the
schema with which a table was written is stored in one of its properties, and applies to each column that still has the
type this schema implies. A column that somebody else created or changed gets the schema of its type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from pyspark.sql import types as spark
from pyspark.sql.pandas.types import from_arrow_schema

from connect.data import Schema
from connect.data.logical import date_schema, decimal_schema, timestamp_schema
from connect.errors import SchemaError
from connect.kits.schema_json import schema_from_json, schema_to_json
from connectors.spark.arrow_types import table_type
from connectors.spark.schema import table_schema

__all__ = [
    "SCHEMA_PROPERTY",
    "column_types",
    "has_odd_names",
    "is_widened",
    "remembered_text",
    "schema_of_columns",
]

SCHEMA_PROPERTY: Final = "sluice.schema"
"""The table property that stores its schema."""

_PLAIN: Final[dict[type[spark.DataType], Any]] = {
    spark.ByteType: Schema.int8,
    spark.ShortType: Schema.int16,
    spark.IntegerType: Schema.int32,
    spark.LongType: Schema.int64,
    spark.FloatType: Schema.float32,
    spark.DoubleType: Schema.float64,
    spark.BooleanType: Schema.boolean,
    spark.StringType: Schema.string,
    spark.BinaryType: Schema.bytes,
    spark.DateType: date_schema,
    spark.TimestampType: timestamp_schema,
}

_WIDER: Final[Mapping[str, tuple[str, ...]]] = {
    "tinyint": ("smallint", "int", "bigint", "double"),
    "smallint": ("int", "bigint", "double"),
    "int": ("bigint", "double"),
    "float": ("double",),
}
# In a table without column mapping, column names in Parquet files cannot contain these.
_ODD: Final = frozenset(" ,;{}()\n\t=")


@lru_cache(maxsize=256)
def column_types(schema: Schema) -> spark.StructType:
    """Return the columns of a table with this schema."""
    return from_arrow_schema(table_type(schema).columns)


def remembered_text(schema: Schema) -> str:
    """Return the value of :data:`SCHEMA_PROPERTY` for a table with this schema."""
    return json.dumps(schema_to_json(schema), separators=(",", ":"))


def schema_of_columns(columns: spark.StructType, remembered: str | None) -> Schema:
    """Return the schema of a table with these columns, some of which were written with the remembered schema.

    Columns whose types Connect does not have are left out: their owners write them.
    """
    try:
        memory = Schema.struct({}) if remembered is None else schema_from_json(json.loads(remembered))
    except (ValueError, SchemaError):
        memory = Schema.struct({})
    schema = _column(columns, memory)
    assert schema is not None
    return table_schema(schema)


def _column(data_type: spark.DataType, memory: Schema | None) -> Schema | None:
    if isinstance(data_type, spark.StructType):
        return _struct(data_type, memory)
    if memory is not None and _type_of(memory) == data_type.simpleString():
        return memory
    if isinstance(data_type, spark.ArrayType):
        items = _column(data_type.elementType, memory and memory.value_schema)
        return None if items is None else Schema.array(items, optional=True)
    if isinstance(data_type, spark.MapType):
        return _map(data_type, memory)
    if isinstance(data_type, spark.DecimalType):
        precision = {"connect.decimal.precision": str(data_type.precision)}
        return decimal_schema(data_type.scale, parameters=precision, optional=True)
    make = _PLAIN.get(type(data_type))
    return None if make is None else make(optional=True)


def _struct(data_type: spark.StructType, memory: Schema | None) -> Schema | None:
    known = {} if memory is None else {field.name: field.schema for field in memory.fields}
    found = {field.name: _column(field.dataType, known.get(field.name)) for field in data_type.fields}
    fields = {name: schema for name, schema in found.items() if schema is not None}
    return Schema.struct(fields, optional=True)


def _map(data_type: spark.MapType, memory: Schema | None) -> Schema | None:
    keys = _column(data_type.keyType, memory and memory.key_schema)
    values = _column(data_type.valueType, memory and memory.value_schema)
    return None if keys is None or values is None else Schema.map(keys.as_required(), values, optional=True)


def _type_of(schema: Schema) -> str:
    return column_types(Schema.struct({"column": schema})).fields[0].dataType.simpleString()


def has_odd_names(data_type: spark.DataType) -> bool:
    """Return whether a column has a name that Delta supports only with column mapping."""
    if isinstance(data_type, spark.StructType):
        return any(_ODD & set(field.name) or has_odd_names(field.dataType) for field in data_type.fields)
    if isinstance(data_type, spark.ArrayType):
        return has_odd_names(data_type.elementType)
    if isinstance(data_type, spark.MapType):
        return has_odd_names(data_type.keyType) or has_odd_names(data_type.valueType)
    return False


def is_widened(there: spark.DataType, wanted: spark.DataType, path: str = "") -> bool:
    """Return whether a column is to get a wider type; raises a :class:`SchemaError` that names one Delta cannot widen
    that way.
    """
    if isinstance(there, spark.StructType) and isinstance(wanted, spark.StructType):
        known = {field.name: field.dataType for field in there.fields}
        both = [field for field in wanted.fields if field.name in known]
        return any(is_widened(known[field.name], field.dataType, f"{path}.{field.name}") for field in both)
    if isinstance(there, spark.ArrayType) and isinstance(wanted, spark.ArrayType):
        return is_widened(there.elementType, wanted.elementType, f"{path}[]")
    if isinstance(there, spark.MapType) and isinstance(wanted, spark.MapType):
        return is_widened(there.valueType, wanted.valueType, f"{path}[]")
    before, after = there.simpleString(), wanted.simpleString()
    if before == after:
        return False
    if after not in _WIDER.get(before, ()) and not _has_more_digits(there, wanted):
        raise SchemaError(
            f"Column {path.lstrip('.')} of a Delta table is {before}, and Delta cannot make it {after} as the records "
            "need it. Make the records alike, for example with Cast, or load into another topics.dir."
        )
    return True


def _has_more_digits(there: spark.DataType, wanted: spark.DataType) -> bool:
    if not isinstance(there, spark.DecimalType) or not isinstance(wanted, spark.DecimalType):
        return False
    return there.scale == wanted.scale and there.precision < wanted.precision
