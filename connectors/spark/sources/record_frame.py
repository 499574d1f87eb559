"""Frames of rows that are ready to become records, each with a key, a value and a timestamp, and the schemas
of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f
from pyspark.sql import types as spark

from connect.data import Schema
from connect.errors import ConfigError
from connectors.spark.sources.options import FineTimes, RowOptions
from connectors.spark.sources.record_schema import record_schema
from connectors.spark.sources.rows import KEY, TIMESTAMP, VALUE, RowPlan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["RecordFrame", "RowReading", "column_of", "line_frame"]

_NUMBERS: Final = (spark.LongType, spark.IntegerType, spark.ShortType, spark.ByteType)


@dataclass(frozen=True, slots=True)
class RecordFrame:
    """Rows with the columns ``key``, ``value`` and ``timestamp``, and the plan by which executors turn them into
    records.
    """

    frame: DataFrame
    plan: RowPlan


@dataclass(frozen=True, slots=True)
class RowReading:
    """How to read the rows of a frame as keys, values and timestamps, according to the connector's options.

    ``remembered`` is the schema that the Spark sink stored when it wrote the table.
    """

    options: RowOptions
    columns: spark.StructType
    remembered: str | None = None

    @property
    def value_names(self) -> Sequence[str]:
        """The columns of the value."""
        return self.options.columns or self.columns.names

    @property
    def columns_used(self) -> Sequence[str]:
        """The columns of the value, the key and the timestamp, each listed once."""
        timestamp = self.options.timestamp_column
        beside = (*self.options.key_columns, *([] if timestamp is None else [timestamp]))
        return list(dict.fromkeys((*self.value_names, *beside)))

    @property
    def value_schema(self) -> Schema:
        """The schema of the value."""
        return self._schema("columns", self.value_names)

    @property
    def key_schema(self) -> Schema | None:
        """The schema of the key, if there is one."""
        names = self.options.key_columns
        return self._schema("key.columns", names) if names else None

    def value(self, prefix: str = "") -> Column:
        """Return the value column, built from columns of the struct ``prefix`` if one is named."""
        return _struct(prefix, self.value_names)

    def key(self, prefix: str = "") -> Column:
        """Return the key column, null if no columns are configured for it."""
        names = self.options.key_columns
        return _struct(prefix, names) if names else f.lit(None).cast("string")

    def timestamp(self, prefix: str = "") -> Column:
        """Return the timestamp column in milliseconds, null if no column is configured for it."""
        name = self.options.timestamp_column
        if name is None:
            return f.lit(None).cast("long")
        data_type, column = self._type("timestamp.column", name), column_of(prefix, name)
        if isinstance(data_type, _NUMBERS):
            return column.cast("long")
        if isinstance(data_type, (spark.TimestampType, spark.TimestampNTZType, spark.DateType)):
            return f.unix_millis(column.cast("timestamp"))
        reason = f"The column is {data_type.simpleString()}: name one of a time, a date or a whole number."
        raise ConfigError("timestamp.column", name, reason)

    def plan(self, topic: str, value: Schema) -> RowPlan:
        """Return the plan for rows whose values have this schema."""
        return RowPlan(topic, value, self.key_schema, self.options.fine_times is FineTimes.TRUNCATE)

    def frame(self, frame: DataFrame, topic: str) -> RecordFrame:
        """Return a frame's rows as records of a topic."""
        plan = self.plan(topic, self.value_schema)
        columns = (self.key().alias(KEY), self.value().alias(VALUE), self.timestamp().alias(TIMESTAMP))
        return RecordFrame(frame.select(*columns), plan)

    def _schema(self, key: str, names: Sequence[str]) -> Schema:
        fields = [spark.StructField(name, self._type(key, name)) for name in names]
        numbers = self.options.fine_times is FineTimes.NUMBER
        return record_schema(spark.StructType(fields), remembered=self.remembered, fine_as_numbers=numbers)

    def _type(self, key: str, name: str) -> spark.DataType:
        if name not in self.columns.names:
            there = ", ".join(self.columns.names[:20])
            raise ConfigError(key, name, f"There is no such column; there are {there}.")
        return self.columns[name].dataType


def line_frame(frame: DataFrame, topic: str) -> RecordFrame:
    """Lines of text as records of a topic, one value for each line."""
    columns = (f.lit(None).cast("string").alias(KEY), f.col("value").alias(VALUE))
    rows = frame.select(*columns, f.lit(None).cast("long").alias(TIMESTAMP))
    return RecordFrame(rows, RowPlan(topic, Schema.string(optional=True)))


def column_of(prefix: str, name: str) -> Column:
    """Return a column, or the field of that name in the struct ``prefix``."""
    quoted = f"`{name.replace('`', '``')}`"
    return f.col(f"{prefix}.{quoted}" if prefix else quoted)


def _struct(prefix: str, names: Sequence[str]) -> Column:
    return f.struct(*[column_of(prefix, name).alias(name) for name in names])
