"""Runs a query with windows: it processes the rows of complete windows, and other rows are held.

The rows of a load are first written, with all their columns, beside those held from earlier loads. If windows are then
complete, all these rows are divided at the end of the last complete window: the query runs for the rows before it, and
the rows after it are written to a new folder. The target's commit names what is held, together with the load's offsets
(I3).

==========================  ========================================================================================
killed                      then
==========================  ========================================================================================
after the rows are written  no commit names their folder: the next start removes it, and loads the records again
after they are divided      the same for both folders, and for the result, which is not committed
after the commit            the commit says what is held; folders that it does not name are removed
==========================  ========================================================================================
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BooleanType, IntegerType, StructField, StructType

from connect.data import Schema, Type
from connect.data.logical import DATE_NAME, TIMESTAMP_NAME
from connect.errors import ConnectError, RetriableError
from connect.internals.crash import crash_point
from connect.offset_set import OffsetSet
from connectors.spark.arrow_types import table_type
from connectors.spark.sink.sql.query import without_rows
from connectors.spark.sink.sql.windows import OpenWindows, WindowState

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from connectors.spark.sink.loading.request import Loaded, LoadRequest, Result
    from connectors.spark.sink.sql.query import Query

__all__ = ["WindowOutput"]

logger = logging.getLogger(__name__)

_PART: Final = "_sluice_part"
_LATE: Final = "_sluice_late"
_MOST_FOLDERS: Final = 64
_LATE_ARE: Final = {
    "emit": "written as further rows of theirs",
    "drop": "left out",
    "dead-letter": "left out for the dead letter queue",
}


@dataclass(frozen=True, slots=True)
class _Kept:
    """The rows of a load that were written for a table beside those it holds: their number, and their ``folder``."""

    schema: Schema
    folder: str
    rows: int
    late: int
    latest: Mapping[int, int | None]


class WindowOutput:
    """An :class:`~connectors.spark.sink.loading.request.Output` that keeps rows until :meth:`finish` divides them.

    The query's result for the rows in complete windows goes to another output. Readers see nothing before that.
    """

    commits = False

    def __init__(self, spark: SparkSession, query: Query, request: LoadRequest, state: WindowState) -> None:
        self._spark = spark
        self._query = query
        self._known = request.known
        self._output = request.output
        self._splits = request.splits or request.ranges
        self._state = state
        self._kept: dict[str, _Kept] = {}
        self.results: dict[str, Result] = {}
        self.held: dict[str, OpenWindows] = {}

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:  # noqa: ARG002
        """Write the rows of a table, including late ones, beside those it holds."""
        if self._state.is_done(table):
            return
        at, is_late = self._times(schema, table)
        folder = self._state.new_folder()
        uri = self._state.uri(folder)
        frame.withColumn(_PART, f.spark_partition_id()).withColumn(_LATE, is_late).write.parquet(uri)
        columns = StructType([*_columns(schema).fields, StructField(_PART, IntegerType())])
        newest = f.lit(None).cast("bigint") if at is None else f.max(at)
        counts = (f.count(f.lit(1)).alias("rows"), f.sum(f.col(_LATE).cast("int")).alias("late"))
        parts = self._read([folder], columns).groupBy(_PART).agg(newest.alias("newest"), *counts).collect()
        latest: dict[int, int | None] = {}
        for part in parts if at is not None else ():
            partition = self._splits[part[_PART]].partition
            times = [each for each in (latest.get(partition), part.newest) if each is not None]
            latest[partition] = max(times, default=None)
        rows, late = sum(part.rows for part in parts), sum(part.late for part in parts)
        self._kept[table] = _Kept(schema, folder, rows, late, latest)
        crash_point("after-hold")

    @property
    def refused(self) -> Mapping[str, Schema]:
        """The tables with late rows that belong in the dead letter queue, with the schemas of their rows."""
        policy = self._state.policy
        if policy is None or policy.late != "dead-letter":
            return {}
        return {table: kept.schema for table, kept in self._kept.items() if kept.late}

    def late_offsets(self, frame: DataFrame, table: str, metadata: str) -> Mapping[int, OffsetSet]:
        """Return the offsets of the late rows among these, whose origin is in the column ``metadata``."""
        _, is_late = self._times(self._kept[table].schema, table)
        places = frame.where(is_late).select(f.col(f"`{metadata}`.partition"), f.col(f"`{metadata}`.offset"))
        found: dict[int, list[int]] = {}
        for row in places.toLocalIterator():
            found.setdefault(row.partition, []).append(row.offset)
        return {partition: OffsetSet.of(offsets) for partition, offsets in found.items()}

    def finish(self, loaded: Loaded) -> None:
        """Divide the held rows at the end of the last complete window, and write the result for those before it."""
        for table, kept in self._kept.items():
            written = sum(report.written for report in loaded.reports[table])
            if kept.rows != written:
                raise RetriableError(
                    f"Spark kept {kept.rows} of {written} rows for the windows of table {table}. Nothing is "
                    "committed; the load is repeated."
                )
            self._finish(table, kept, loaded.attempt)

    def _finish(self, table: str, kept: _Kept, attempt: int) -> None:
        before, policy = self._state.before.get(table, OpenWindows()), self._state.policy
        self._tell_late(kept.late)
        after = OpenWindows() if policy is None else before.after(policy, kept.latest, time.time_ns() // 1_000_000)
        after = replace(after, folders=(*before.folders, kept.folder))
        done: DataFrame | None = None
        if after.cut != before.cut or policy is None or len(after.folders) > _MOST_FOLDERS:
            rest, done = self._divided(after, table, kept.schema)
            after = replace(after, folders=rest)
        self.held[table] = after
        known = self._known.get(table)
        if self._state.keep is not None:
            self._state.keep(table, after, kept.schema)
            if done is None:
                rows = self._read([kept.folder], _columns(kept.schema)).drop(_LATE)
                self._write(without_rows(self._query.answer(rows, table, known)), table, attempt)
        if done is not None:
            self._write(self._query.answer(done, table, known), table, attempt)

    def _write(self, result: Result, table: str, attempt: int) -> None:
        self._output.write(result.frame, table, result.schema, attempt)
        self.results[table] = result

    def _divided(self, after: OpenWindows, table: str, schema: Schema) -> tuple[tuple[str, ...], DataFrame | None]:
        """Write the rows after the cut to a new folder; return the folders that remain, and the rows before the cut.

        A row without a time belongs to no future window, so it counts as before every cut.
        """
        at, _ = self._times(schema, table)
        whole = self._read(after.folders, _columns(schema))
        if self._state.policy is not None and self._state.policy.late != "emit":
            whole = whole.where(~f.col(_LATE))
        whole = whole.drop(_LATE)
        rest_rows, done = 0, whole
        rest: tuple[str, ...] = ()
        if at is not None:
            is_open = f.expr("true") if after.cut is None else f.coalesce(at >= after.cut, f.expr("false"))
            folder = self._state.new_folder()
            whole.where(is_open).write.parquet(self._state.uri(folder))
            rest_rows = self._read([folder], _columns(schema)).count()
            crash_point("after-divide")
            rest, done = (folder,) if rest_rows else (), whole.where(~is_open)
        return rest, done if whole.count() > rest_rows else None

    def _times(self, schema: Schema, table: str) -> tuple[Column | None, Column]:
        """Return the time of a row, if there are windows, and whether it is late."""
        policy, before = self._state.policy, self._state.before.get(table, OpenWindows())
        at = None if policy is None else _milliseconds(policy.column, schema, table)
        if at is None or before.cut is None:
            return at, f.expr("false")
        return at, f.coalesce(at < before.cut, f.expr("false"))

    def _read(self, folders: Iterable[str], columns: StructType) -> DataFrame:
        """Return the rows of folders with the current columns; columns that a file lacks are null."""
        schema = StructType([*columns.fields, StructField(_LATE, BooleanType())])
        found = self._spark.read.schema(schema).parquet(*map(self._state.uri, folders))
        return found.withColumn(_LATE, f.coalesce(f.col(_LATE), f.expr("false")))

    def _tell_late(self, rows: int) -> None:
        if rows and self._state.policy is not None:
            what = _LATE_ARE[self._state.policy.late]
            logger.warning(
                "%d records arrived after their windows were written, and are %s (sql.window.late).", rows, what
            )


def _columns(schema: Schema) -> Any:
    """Return the columns of rows of this schema, in Spark's types."""
    return from_arrow_schema(table_type(schema).columns)


def _milliseconds(path: str, schema: Schema, table: str) -> Column:
    """Return the time of a row in milliseconds since 1970, null if it has none that can be parsed."""
    found: Schema | None = schema
    for name in path.split("."):
        inner = found.field(name) if found is not None and found.type is Type.STRUCT else None
        found = None if inner is None else inner.schema
    column = ".".join(f"`{name}`" for name in path.split("."))
    if found is not None and found.name in (TIMESTAMP_NAME, DATE_NAME):
        return f.unix_millis(f.col(column).cast("timestamp"))
    if found is not None and found.name is None and found.type is Type.INT64:
        return f.col(column)
    if found is not None and found.type is Type.STRING:
        return f.unix_millis(f.col(column).try_cast("timestamp"))
    what = "no column" if found is None else f"a column of type {found.type.value}"
    raise ConnectError(
        f"sql.window.time={path} is {what} of the records of table {table}, which have "
        f"{', '.join(schema.field_names)}: name one with a timestamp, a date, milliseconds since 1970, or text in the "
        "form of ISO 8601."
    )
