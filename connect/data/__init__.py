"""The data model: schemas, values, records and batches.

Values are plain Python: a struct is a ``dict``, an array a ``list``, a timestamp an aware ``datetime``, a
decimal a ``Decimal``. The schema travels beside the value; ``None`` means that there is none.
"""

from connect.data.batch import Batch, SinkBatch, SourceBatch
from connect.data.column import ArrowColumn, Column, Constant, Lazy, StructColumn, ValueColumn
from connect.data.logical import date_schema, decimal_schema, time_schema, timestamp_schema
from connect.data.record import (
    NO_HEADERS,
    BytesHeaders,
    Header,
    Headers,
    Offset,
    Record,
    SchemaAndValue,
    SinkRecord,
    SourceRecord,
    TimestampType,
    TopicPartition,
)
from connect.data.schema import Field, Schema, Type, validate

__all__ = [
    "NO_HEADERS",
    "ArrowColumn",
    "Batch",
    "BytesHeaders",
    "Column",
    "Constant",
    "Field",
    "Header",
    "Headers",
    "Lazy",
    "Offset",
    "Record",
    "Schema",
    "SchemaAndValue",
    "SinkBatch",
    "SinkRecord",
    "SourceBatch",
    "SourceRecord",
    "StructColumn",
    "TimestampType",
    "TopicPartition",
    "Type",
    "ValueColumn",
    "date_schema",
    "decimal_schema",
    "time_schema",
    "timestamp_schema",
    "validate",
]
