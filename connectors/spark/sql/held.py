"""The query of a connector with windows: it is asked for the rows of complete windows, and the others are held.

The rows of a load are written first, with all their columns, beside those that were held before. If windows are
complete then, all these rows are divided at the end of the last one: the query is asked for those before it, and those
after it are written anew. What is held is named by the target's commit, with the offsets of the load (I3).

==========================  ========================================================================================
killed                      then
==========================  ========================================================================================
after the rows are written  no manifest names their folder: the next start removes it, and loads the records again
after they are divided      the same for both folders, and for the result, which is staged
after the commit            the manifest says what is held, and folders that it does not name are removed
==========================  ========================================================================================
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BooleanType, IntegerType, StructField, StructType

from connect.crash import crash_point
from connect.data import Schema, Type
from connect.data.logical import DATE_NAME, TIMESTAMP_NAME
from connect.errors import ConnectError
from connectors.spark.reader import kafka_partitions
from connectors.spark.sql.windows import OpenWindows, WindowPolicy
from connectors.spark.types import table_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from connectors.spark.loading.request import Output
    from connectors.spark.sql.query import Query, Result

__all__ = ["Held", "HoldingOutput", "WindowState"]

logger = logging.getLogger(__name__)

_PART: Final = "_sluice_part"
_LATE: Final = "_sluice_late"
_MOST_FOLDERS: Final = 64


@dataclass(frozen=True, slots=True)
class WindowState:
    """What a target keeps for the windows of one topic: ``before``, by table, is what it had before a load.

    Without a policy, because its keys were taken out of the configuration, nothing is held any more: what was, goes
    through the query with the rows of the load. ``new_folder`` names a folder of the target's that has never been used,
    ``uri`` is what Spark calls it.
    """

    policy: WindowPolicy | None
    before: Mapping[str, OpenWindows]
    new_folder: Callable[[], str]
    uri: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Held:
    """What a load leaves of a table: its windows, and how many rows the load has brought."""

    windows: OpenWindows
    rows: int


class HoldingOutput:
    """An :class:`~connectors.spark.loading.request.Output` that writes the result for complete windows to another."""

    def __init__(
        self, spark: SparkSession, query: Query, known: Mapping[str, Schema], output: Output, state: WindowState
    ) -> None:
        self._spark = spark
        self._query = query
        self._known = known
        self._output = output
        self._state = state
        self.results: dict[str, Result] = {}
        self.held: dict[str, Held] = {}

    @property
    def commits(self) -> bool:
        """As the target has it."""
        return self._output.commits

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:
        """Write the rows of a table beside those that are held, and the result for the windows that are complete."""
        before = self._state.before.get(table, OpenWindows())
        policy, columns = self._state.policy, from_arrow_schema(table_type(schema).columns)
        at = None if policy is None else _milliseconds(policy.column, schema, table)
        new = self._state.new_folder()
        rows, latest = self._keep(frame, columns, at, before, new)
        crash_point("after-hold")
        after = OpenWindows() if policy is None else before.after(policy, latest, time.time_ns() // 1_000_000)
        after = replace(after, folders=(*before.folders, new))
        self.results.pop(table, None)
        if after.cut != before.cut or policy is None or len(after.folders) > _MOST_FOLDERS:
            rest = self._divide(after, at, columns, lambda done: self._answer(done, table, attempt))
            after = replace(after, folders=rest)
        self.held[table] = Held(after, rows)

    def _keep(
        self, frame: DataFrame, columns: Any, at: Column | None, before: OpenWindows, folder: str
    ) -> tuple[int, dict[int, int | None]]:
        """Write the rows of the load, late ones too; how many there are, and the newest time of each partition."""
        late = f.expr("false") if at is None or before.cut is None else f.coalesce(at < before.cut, f.expr("false"))
        uri = self._state.uri(folder)
        frame.withColumn(_PART, f.spark_partition_id()).withColumn(_LATE, late).write.parquet(uri)
        written = self._read([folder], StructType([*columns.fields, StructField(_PART, IntegerType())]))
        newest = f.lit(None).cast("bigint") if at is None else f.max(at)
        counts = (f.count(f.lit(1)).alias("rows"), f.sum(f.col(_LATE).cast("int")).alias("late"))
        parts = written.groupBy(_PART).agg(newest.alias("newest"), *counts).collect()
        self._tell_late(sum(part.late for part in parts))
        latest: dict[int, int | None] = {}
        partitions = kafka_partitions(frame) if at is not None else {}
        for part in parts if at is not None else ():
            partition = partitions[part[_PART]]
            times = [each for each in (latest.get(partition), part.newest) if each is not None]
            latest[partition] = max(times, default=None)
        return sum(part.rows for part in parts), latest

    def _divide(
        self, after: OpenWindows, at: Column | None, columns: Any, ask: Callable[[DataFrame], None]
    ) -> tuple[str, ...]:
        """Have the query asked for all rows before the cut, and write the others anew; the folders that these are in.

        A row without a time belongs to no window that is still to come, and is before every cut.
        """
        whole = self._read(after.folders, columns)
        if self._state.policy is not None and self._state.policy.late == "drop":
            whole = whole.where(~f.col(_LATE))
        whole = whole.drop(_LATE)
        rest_rows, done = 0, whole
        rest: tuple[str, ...] = ()
        if at is not None:
            is_open = f.expr("true") if after.cut is None else f.coalesce(at >= after.cut, f.expr("false"))
            folder = self._state.new_folder()
            whole.where(is_open).write.parquet(self._state.uri(folder))
            rest_rows = self._read([folder], columns).count()
            crash_point("after-divide")
            rest, done = (folder,) if rest_rows else (), whole.where(~is_open)
        if whole.count() > rest_rows:
            ask(done)
        return rest

    def _read(self, folders: Iterable[str], columns: Any) -> DataFrame:
        """The rows of folders, with the columns that rows have by now: those that a file lacks are null."""
        schema = StructType([*columns.fields, StructField(_LATE, BooleanType())])
        found = self._spark.read.schema(schema).parquet(*map(self._state.uri, folders))
        return found.withColumn(_LATE, f.coalesce(f.col(_LATE), f.expr("false")))

    def _answer(self, done: DataFrame, table: str, attempt: int) -> None:
        result = self._query.answer(done, table, self._known.get(table))
        self._output.write(result.frame, table, result.schema, attempt)
        self.results[table] = result

    def _tell_late(self, rows: int) -> None:
        if rows and self._state.policy is not None:
            what = "left out" if self._state.policy.late == "drop" else "written as further rows of theirs"
            logger.warning(
                "%d records came after their windows were written, and are %s (sql.window.late).", rows, what
            )


def _milliseconds(path: str, schema: Schema, table: str) -> Column:
    """The time of a row in milliseconds since 1970, null where it has none that can be read."""
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
