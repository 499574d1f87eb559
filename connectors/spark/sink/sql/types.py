"""The schema of a query's result: Spark's types as those of a table."""

from __future__ import annotations

from typing import Final

from pyspark.sql import types as spark

from connect.data import Schema, Type
from connect.data.logical import date_schema, decimal_schema, timestamp_schema
from connect.errors import SchemaError

__all__ = ["schema_of_result"]

_PRIMITIVES: Final[dict[type[spark.DataType], Type]] = {
    spark.ByteType: Type.INT8,
    spark.ShortType: Type.INT16,
    spark.IntegerType: Type.INT32,
    spark.LongType: Type.INT64,
    spark.FloatType: Type.FLOAT32,
    spark.DoubleType: Type.FLOAT64,
    spark.BooleanType: Type.BOOLEAN,
    spark.StringType: Type.STRING,
    spark.VarcharType: Type.STRING,
    spark.CharType: Type.STRING,
    spark.BinaryType: Type.BYTES,
}


def schema_of_result(columns: spark.StructType) -> Schema:
    """Return the schema of a table for rows of these columns; raises a :class:`~connect.errors.SchemaError` that names
    one without a matching type.
    """
    names = [column.name for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise SchemaError(f"The query has two columns named {name}: rename one with AS.")
    return _struct(columns, "").as_required()


def _struct(columns: spark.StructType, path: str) -> Schema:
    fields = {field.name: _column(field.dataType, f"{path}{field.name}") for field in columns}
    return Schema.struct(fields, optional=True)


def _column(data_type: spark.DataType, path: str) -> Schema:
    match data_type:
        case spark.StructType():
            schema = _struct(data_type, f"{path}.")
        case spark.ArrayType():
            schema = Schema(Type.ARRAY, optional=True, value_schema=_column(data_type.elementType, f"{path}[]"))
        case spark.MapType():
            key = _column(data_type.keyType, f"{path}[]").as_required()
            value = _column(data_type.valueType, f"{path}[]")
            schema = Schema(Type.MAP, optional=True, key_schema=key, value_schema=value)
        case spark.DateType():
            schema = date_schema(optional=True)
        case spark.TimestampType():
            schema = timestamp_schema(optional=True)
        case spark.DecimalType():
            schema = _decimal(data_type)
        case _:
            schema = _primitive(data_type, path)
    return schema


def _primitive(data_type: spark.DataType, path: str) -> Schema:
    kind = _PRIMITIVES.get(type(data_type))
    if kind is None:
        raise SchemaError(
            f"Column {path} of the query's result has Spark's type {data_type.simpleString()}, which tables "
            "cannot hold: CAST it."
        )
    return Schema(kind, optional=True)


def _decimal(data_type: spark.DecimalType) -> Schema:
    schema = decimal_schema(data_type.scale, optional=True)
    return schema.replace(
        parameters={**(schema.parameters or {}), "connect.decimal.precision": str(data_type.precision)}
    )
