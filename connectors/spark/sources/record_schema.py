"""Converts the columns that Spark reads into schemas of records."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import types as spark

from connect.data import Schema, Type
from connect.data.logical import LOGICAL_NAMES, TIMESTAMP_NAME
from connect.errors import SchemaError
from connectors.spark.delta.columns import schema_of_columns

__all__ = ["record_schema"]


def record_schema(columns: spark.StructType, *, remembered: str | None = None, fine_as_numbers: bool = False) -> Schema:
    """Return the schema of records with these columns, some of which were written with the ``remembered`` schema.

    A time without a zone is taken to be in UTC. With ``fine_as_numbers``, times become the number of their
    microseconds. Raises :class:`~connect.errors.SchemaError` if records cannot hold the values of a column.
    """
    zoned = _zoned(columns)
    assert isinstance(zoned, spark.StructType)
    schema = schema_of_columns(zoned, remembered)
    for path, data_type in _left_out(zoned, schema, ""):
        raise SchemaError(
            f"Column {path} is {data_type} in Spark, which a record cannot hold: list the columns to read "
            "(columns) without it, or cast it at the source."
        )
    return _finished(schema, numbers=fine_as_numbers)


def _zoned(data_type: spark.DataType) -> spark.DataType:
    if isinstance(data_type, spark.TimestampNTZType):
        return spark.TimestampType()
    if isinstance(data_type, spark.StructType):
        fields = [spark.StructField(field.name, _zoned(field.dataType), field.nullable) for field in data_type.fields]
        return spark.StructType(fields)
    if isinstance(data_type, spark.ArrayType):
        return spark.ArrayType(_zoned(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, spark.MapType):
        return spark.MapType(_zoned(data_type.keyType), _zoned(data_type.valueType), data_type.valueContainsNull)
    return data_type


def _left_out(data_type: spark.DataType, schema: Schema | None, path: str) -> Iterator[tuple[str, str]]:
    """Yield the columns, at any depth, that are missing from the schema, and their types."""
    if isinstance(data_type, spark.StructType) and schema is not None:
        for field in data_type.fields:
            known = schema.field(field.name)
            below = f"{path}.{field.name}" if path else field.name
            yield from _left_out(field.dataType, None if known is None else known.schema, below)
    elif isinstance(data_type, spark.ArrayType) and schema is not None:
        yield from _left_out(data_type.elementType, schema.value_schema, f"{path}[]")
    elif isinstance(data_type, spark.MapType) and schema is not None:
        yield from _left_out(data_type.valueType, schema.value_schema, f"{path}[]")
    elif schema is None:
        yield path, data_type.simpleString()


def _finished(schema: Schema, *, numbers: bool) -> Schema:
    """Return the schema with the versions of Connect's own logical types, which tables do not store."""
    if numbers and schema.name == TIMESTAMP_NAME:
        return Schema.int64(optional=schema.optional)
    if schema.name in LOGICAL_NAMES:
        return schema.replace(version=1)
    if schema.type is Type.STRUCT:
        return schema.replace(fields={each.name: _finished(each.schema, numbers=numbers) for each in schema.fields})
    if schema.value_schema is None:
        return schema
    changed = schema.replace(value_schema=_finished(schema.value_schema, numbers=numbers))
    if schema.key_schema is None:
        return changed
    return changed.replace(key_schema=_finished(schema.key_schema, numbers=numbers))
