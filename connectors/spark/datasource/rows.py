"""Turns source records into the rows of a DataFrame, as Arrow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from connect.data import Column, Headers, Offset, Schema, SourceBatch, SourceRecord, ValueColumn
from connect.data.arrow import schema_from_arrow
from connect.data.logical import TIMESTAMP_NAME, timestamp_from_milliseconds
from connect.errors import DataError, SchemaError
from connect.internals.chain.tolerance import Failure, Stage, Tolerance
from connectors.spark.arrow_types import table_type
from connectors.spark.datasource.config import DataSourceConfig
from connectors.spark.decoding.report import Report
from connectors.spark.decoding.rows import Rows
from connectors.spark.schema import Evolution

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["RowShape", "header_column"]

_DECLARED: Final = Evolution(adds=False, widens=False)
_TEXT: Final = Schema.string(optional=True)
_HEADERS: Final = Schema.array(Schema.struct({"key": _TEXT, "value": _TEXT}, optional=True), optional=True)
_METADATA: Final = Schema.struct(
    {
        "topic": _TEXT,
        "partition": Schema.int32(optional=True),
        "timestamp": Schema.int64(optional=True, name=TIMESTAMP_NAME, version=1),
        "source_partition": _TEXT,
        "source_offset": _TEXT,
    },
    optional=True,
)


@dataclass(frozen=True, slots=True)
class RowShape:
    """The columns of a DataFrame: those of the records' values, and the requested ones for keys, headers and origin."""

    table: Schema
    """All columns, as the fields of a struct."""
    is_declared: bool
    """Whether the user declared the columns. If not, they come from the first records."""
    key: str = ""
    headers: str = ""
    metadata: str = ""

    @classmethod
    def seen(cls, batches: Sequence[SourceBatch], config: DataSourceConfig) -> RowShape:
        """Return the columns of these records; raises a :class:`~connect.errors.SchemaError` that says which type
        Spark lacks.
        """
        beside = (config.key_column, config.headers_column, config.metadata_column)
        report = Report("")
        for batch in batches:
            cls(Schema.struct({}), False, *beside)._rows(batch).survey(report)
        table = report.seen[""]
        if not table.fields:
            raise SchemaError(
                "The first records hold only nulls and empty values, which show no types: declare the columns "
                "with .schema(...)."
            )
        table_type(table)
        return cls(table, False, *beside)

    @classmethod
    def declared(cls, schema: StructType, config: DataSourceConfig) -> RowShape:
        """Return the columns the user declares; raises a :class:`~connect.errors.SchemaError` that says which type
        Connect lacks.
        """
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - only where Spark is

        table = schema_from_arrow(to_arrow_schema(schema))
        asked = (config.key_column, config.headers_column, config.metadata_column)
        return cls(table, True, *(name if table.field(name) else "" for name in asked))

    def spark_schema(self) -> StructType:
        """Return the columns in Spark's types."""
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - as above

        return from_arrow_schema(table_type(self.table).columns)

    def rows(self, batch: SourceBatch, tolerance: Tolerance, task_class: str) -> pa.RecordBatch:
        """Return the records as rows of these columns; records that do not fit are skipped, which may raise."""
        report = Report(batch.topic)
        fitted = self._rows(batch).fit(self.table, report, may_grow=False)
        assert fitted is not None  # the columns never grow
        if report.pending:
            reasons = {rejection.offset: rejection.reason for rejection in report.rejections}
            for index in report.pending:
                reason = reasons.get(index, "it does not fit, like those before it")
                (record,) = batch.slice(index, index + 1)
                error = self._failure(record, reason)
                tolerance.give_up(Failure(Stage.TASK_POLL, task_class, error, record=record))
        return fitted.rows

    def _rows(self, batch: SourceBatch) -> Rows:
        places = pa.array(range(len(batch)), pa.int64())
        evolution = _DECLARED if self.is_declared else Evolution()
        return Rows("", batch.value, tuple(self._beside(batch)), places, None, evolution)

    def _beside(self, batch: SourceBatch) -> Iterator[tuple[str, Column]]:
        for name, option in ((self.key, "key"), (self.headers, "headers"), (self.metadata, "metadata")):
            if name and batch.value_schema is not None and batch.value_schema.field(name) is not None:
                raise SchemaError(
                    f"The records have a field {name}, and {option}.column={name} asks for another column of that "
                    f"name: give {option}.column another one."
                )
        if self.key:
            yield self.key, _typed(batch.key)
        if self.headers:
            yield self.headers, header_column(batch.headers)
        if self.metadata:
            yield self.metadata, ValueColumn(_origins(batch), _METADATA)

    def _failure(self, record: SourceRecord, reason: str) -> DataError:
        place = f"source partition {_json(record.source_partition)}, offset {_json(record.source_offset)}"
        remedy = "Correct the columns in .schema(...)" if self.is_declared else "Say what they are, with .schema(...)"
        return DataError(
            f"A record of {record.topic} ({place}) does not fit the columns of the DataFrame: {reason} {remedy}, or "
            "leave such records out with errors.tolerance=all."
        )


def header_column(headers: Sequence[Headers]) -> Column:
    """Headers as lists of structs of key and value, both strings."""
    lists = [[{"key": header.key, "value": _shown(header.value)} for header in each] for each in headers]
    return ValueColumn(lists, _HEADERS)


def _typed(column: Column) -> Column:
    """Return the keys; as strings if nothing determines a type."""
    if column.schema is None and all(value is None for value in column):
        return ValueColumn(column.values(), _TEXT)
    return column


def _origins(batch: SourceBatch) -> list[dict[str, object]]:
    rows = zip(batch.partitions, batch.timestamps, batch.source_partitions, batch.source_offsets, strict=True)
    return [
        {
            "topic": batch.topic,
            "partition": partition,
            "timestamp": None if timestamp is None else timestamp_from_milliseconds(timestamp),
            "source_partition": _json(source_partition),
            "source_offset": _json(source_offset),
        }
        for partition, timestamp, source_partition, source_offset in rows
    ]


def _shown(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        return json.dumps(value, default=str)
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise DataError("A header is not valid text: remove it (DropHeaders), or do not set headers.column.") from error


def _json(part: Offset) -> str:
    return json.dumps(dict(part))
