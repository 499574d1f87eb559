"""Rows and changes of tables as records: rows as they are, or in Debezium's envelope."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from connect.data import Schema
from connectors.spark.sources.record_frame import RecordFrame, RowReading
from connectors.spark.sources.rows import KEY, TIMESTAMP, VALUE
from connectors.spark.sources.tables.lake_table import CHANGE, DELETED, INSERTED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Origin", "TableRecords"]

_BEFORE: Final = "before"
_AFTER: Final = "after"
_ROW: Final = "row"
_ID: Final = "id"
_SOURCE: Final = Schema.struct(
    {
        "version": Schema.string(optional=True),
        "connector": Schema.string(optional=True),
        "name": Schema.string(optional=True),
        "ts_ms": Schema.int64(optional=True),
        "snapshot": Schema.string(optional=True),
        "table": Schema.string(optional=True),
        "table_version": Schema.int64(optional=True),
    },
    optional=True,
)


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a load's rows, which the envelope states for each of them."""

    connector: str
    table_format: str
    table: str
    version: int
    time: int
    """When the version was committed, in milliseconds since 1970."""
    now: int
    is_snapshot: bool = False


class TableRecords:
    """Turns the rows of one table into records of one topic."""

    def __init__(self, reading: RowReading, topic: str, origin: Origin, *, enveloped: bool) -> None:
        self._reading = reading
        self._topic = topic
        self._origin = origin
        self._enveloped = enveloped

    def rows(self, frame: DataFrame) -> RecordFrame:
        """Records for rows that exist now."""
        if not self._enveloped:
            return self._reading.frame(frame, self._topic)
        operation = "r" if self._origin.is_snapshot else "c"
        value = self._envelope(self._no_row(), self._reading.value(), f.lit(operation))
        return self._records(frame.select(*self._beside(""), value.alias(VALUE)))

    def changes(self, frame: DataFrame) -> RecordFrame:
        """Records for changes, made of the rows of a version that existed before it and those that exist after it.

        A row before and a row after with the same key make one change. Without keys, every row is its own change. Rows
        that are the same before and after are no change.
        """
        changed = self._paired(frame).where(f"NOT (to_json({_BEFORE}) <=> to_json({_AFTER}))")
        whole = changed.withColumn(_ROW, f.coalesce(f.col(_AFTER), f.col(_BEFORE)))
        after, before = (self._if_there(name) for name in (_AFTER, _BEFORE))
        if self._enveloped:
            operation = f.when(f.col(_BEFORE).isNull(), "c").when(f.col(_AFTER).isNull(), "d").otherwise("u")
            value = self._envelope(before, after, operation)
        else:
            value = after
        return self._records(whole.select(*self._beside(_ROW), value.alias(VALUE)))

    def _paired(self, frame: DataFrame) -> DataFrame:
        """One row for each change, with the structs ``before`` and ``after``, one of which may be null."""
        names = self._reading.columns_used
        row = f.struct(*[f.col(_quoted(name)) for name in names])
        keys = [f.col(_quoted(name)) for name in self._reading.options.key_columns or names]
        rows = frame.select(f.col(CHANGE), row.alias(_ROW), f.to_json(f.struct(*keys)).alias(_ID))
        # Among rows with the same key, or identical rows, the first one before is paired with the first one after, and
        # so on.
        numbered = rows.withColumn("n", f.row_number().over(Window.partitionBy(CHANGE, _ID).orderBy(_ID)))
        before = numbered.where(f.col(CHANGE) == DELETED).select(_ID, "n", f.col(_ROW).alias(_BEFORE))
        after = numbered.where(f.col(CHANGE) == INSERTED).select(_ID, "n", f.col(_ROW).alias(_AFTER))
        return before.join(after, [_ID, "n"], "full_outer")

    def _if_there(self, name: str) -> Column:
        return f.when(f.col(name).isNotNull(), self._reading.value(name))

    def _beside(self, prefix: str) -> tuple[Column, Column]:
        return self._reading.key(prefix).alias(KEY), self._reading.timestamp(prefix).alias(TIMESTAMP)

    def _records(self, frame: DataFrame) -> RecordFrame:
        row = self._reading.value_schema.as_optional()
        if not self._enveloped:
            return RecordFrame(frame, self._reading.plan(self._topic, row))
        envelope = Schema.struct(
            {
                _BEFORE: row,
                _AFTER: row,
                "source": _SOURCE,
                "op": Schema.string(optional=True),
                "ts_ms": Schema.int64(optional=True),
            },
            name=f"{self._topic}.Envelope",
        )
        return RecordFrame(frame, self._reading.plan(self._topic, envelope))

    def _envelope(self, before: Column, after: Column, operation: Column) -> Column:
        origin = self._origin
        source = f.struct(
            f.lit(importlib.metadata.version("sluice-connect")).alias("version"),
            f.lit(origin.table_format).alias("connector"),
            f.lit(origin.connector).alias("name"),
            f.lit(origin.time).cast("long").alias("ts_ms"),
            f.lit(str(origin.is_snapshot).lower()).alias("snapshot"),
            f.lit(origin.table).alias("table"),
            f.lit(origin.version).cast("long").alias("table_version"),
        )
        fields = (before.alias(_BEFORE), after.alias(_AFTER), source.alias("source"), operation.alias("op"))
        return f.struct(*fields, f.lit(origin.now).cast("long").alias("ts_ms"))

    def _no_row(self) -> Column:
        fields = [spark.StructField(name, self._reading.columns[name].dataType) for name in self._reading.value_names]
        return f.lit(None).cast(spark.StructType(fields))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
