"""Turns the rows of a DataFrame into records for a sink."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from connect.data import (
    NO_HEADERS,
    ArrowColumn,
    Column,
    Constant,
    Header,
    Headers,
    Schema,
    SinkBatch,
    TimestampType,
    Type,
    ValueColumn,
)
from connect.data.arrow import conform, schema_from_arrow
from connect.errors import ConfigError, DataError
from connectors.spark.datasource.config import DataSourceConfig
from connectors.spark.schema import VALUE_COLUMN

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["RecordShape"]

_TEXT = Schema.string(optional=True)


@dataclass(frozen=True, slots=True)
class RecordShape:
    """Which columns of the rows are the keys, the headers and the values of the records.

    The values are structs of the remaining columns or, if the only one left is called ``value``, that column's values:
    the inverse of reading.
    """

    topic: str
    row: Schema
    key: str = ""
    headers: str = ""

    @classmethod
    def of(cls, schema: StructType, config: DataSourceConfig) -> RecordShape:
        """Return the shape for rows of this schema.

        Raises :class:`~connect.errors.ConfigError` if a column does not exist, and
        :class:`~connect.errors.SchemaError`, which says what to cast, if Connect lacks a column's type.
        """
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - only where Spark is

        row = schema_from_arrow(to_arrow_schema(schema))
        named = {"key.column": config.key_column, "headers.column": config.headers_column}
        for option, name in named.items():
            if name and row.field(name) is None:
                reason = f"The DataFrame has no such column; it has {', '.join(row.field_names)}."
                raise ConfigError(option, name, reason)
        if len(row.fields) == len([name for name in named.values() if name]):
            raise ConfigError(
                "key.column",
                config.key_column,
                "No column is left for the values of the records: add one, or set key.column to empty.",
            )
        return cls(config.topics[0], row, config.key_column, config.headers_column)

    def records(self, rows: pa.RecordBatch, partition: int, first: int) -> SinkBatch:
        """Return the records of some rows, numbered from ``first`` on.

        Raises :class:`~connect.errors.DataError`, which names the column and says what to cast, if a value would be
        lost.
        """
        length = rows.num_rows
        offsets = range(first, first + length)
        value = self._value(rows)
        return SinkBatch(
            topic=self.topic,
            key=self._column(rows, self.key) if self.key else ValueColumn(Constant(None, length), _TEXT),
            value=value,
            partitions=Constant(partition, length),
            timestamps=Constant(None, length),
            headers=self._headers(rows) if self.headers else Constant(NO_HEADERS, length),
            offsets=offsets,
            timestamp_types=Constant(TimestampType.NO_TIMESTAMP_TYPE, length),
            original_topic=self.topic,
            original_partitions=Constant(partition, length),
            original_offsets=offsets,
        )

    def _value(self, rows: pa.RecordBatch) -> Column:
        names = [name for name in self.row.field_names if name not in (self.key, self.headers)]
        if names == [VALUE_COLUMN]:
            return self._column(rows, VALUE_COLUMN)
        schema = Schema.struct({name: self._schema(name) for name in names})
        array: Any = rows.select(names).to_struct_array()
        return ArrowColumn(_conformed(array, schema), schema)

    def _column(self, rows: pa.RecordBatch, name: str) -> Column:
        schema = self._schema(name)
        struct: Any = _conformed(rows.select([name]).to_struct_array(), Schema.struct({name: schema}))
        return ArrowColumn(struct.field(0), schema)

    def _schema(self, name: str) -> Schema:
        field = self.row.field(name)
        assert field is not None
        return field.schema

    def _headers(self, rows: pa.RecordBatch) -> Sequence[Headers]:
        return [_read_headers(each, self.headers) for each in rows.column(self.headers).to_pylist()]


def _conformed(array: Any, schema: Schema) -> Any:
    try:
        return conform(array, schema)
    except DataError as error:
        if not any(_has_times(field.schema) for field in schema.fields):
            raise
        raise DataError(
            f"{error} Connect's timestamps count milliseconds: in Spark, date_trunc('MILLISECOND', column) drops the "
            "rest."
        ) from error


def _has_times(schema: Schema) -> bool:
    if schema.type is Type.STRUCT:
        return any(_has_times(field.schema) for field in schema.fields)
    parts: Iterator[Schema] = (part for part in (schema.key_schema, schema.value_schema) if part is not None)
    return (schema.name or "").endswith((".Timestamp", ".Time")) or any(map(_has_times, parts))


def _read_headers(items: Any, column: str) -> Headers:
    try:
        return Headers(Header(item["key"], item["value"], _TEXT) for item in items or ())
    except (TypeError, KeyError) as error:
        raise DataError(
            f"Column {column} does not hold headers: make it a list of structs of key and value, both strings, "
            "or a map with map_entries(...)."
        ) from error
