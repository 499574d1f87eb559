"""Merges changes into an Iceberg table: every file that has a row with one of their keys is rewritten.

Iceberg's own ``MERGE`` commits by itself, and would admit a driver that has lost its table. So the files are written
here, and replace the others in the commit that carries the offsets. Every reader understands such tables: they need no
delete files.

The files with rows of the keys are found by a join on the key columns alone, among the files that statistics do not
rule out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from connect.data import Schema, Type
from connectors.spark.decoding.changes import CHANGE_COLUMN, key_columns
from connectors.spark.iceberg.catalog import Change
from connectors.spark.sink.tables.upsert import last_changes, quoted, without_change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Merge", "Written"]

_CHANGES_A_PART: Final = 50_000
_FILE: Final = "_sluice_file"
_ORDERED: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.STRING)


@dataclass(frozen=True, slots=True)
class Written:
    """The output of a job for a table: files, the files they replace, and their expected number of rows.

    The files are Java objects.
    """

    files: Sequence[Any] = ()
    replaced: Sequence[Any] = ()
    rows: int = 0


class Merge:
    """Merges changes of this ``schema`` into the rows of a branch as they are before the change."""

    def __init__(self, change: Change, branch: str, schema: Schema, options: Mapping[str, str]) -> None:
        self._change = change
        self._branch = branch
        self._schema = schema
        self._options = options
        self._columns = [quoted(name) for name in without_change(schema).field_names]
        self._keys = {name: f"_sluice_key_{number}" for number, name in enumerate(key_columns(schema))}
        self._same = " AND ".join(f"{quoted(name)} = {alias}" for name, alias in self._keys.items())

    def write(self, frame: DataFrame) -> Written:
        """Write the files that apply the changes."""
        # Persisted, so that changes are read from Kafka and decoded only once.
        changes = last_changes(frame).persist()
        try:
            return self._written(changes)
        finally:
            changes.unpersist()

    def _written(self, changes: DataFrame) -> Written:
        total, written, bounds = self._counted(changes)
        if not total:
            return Written()
        # Spark does not join the 200 parts of what is persisted, each of which would be a file.
        changes = changes.coalesce(-(-total // _CHANGES_A_PART))
        new = changes.where(f"NOT {CHANGE_COLUMN}.deleted").selectExpr(*self._columns)
        keys = changes.selectExpr(*(f"{_key(name)} AS {alias}" for name, alias in self._keys.items()))
        tasks = self._change.planned(self._branch, bounds)
        touched = self._touched(tasks, keys) if tasks else {}
        if not touched:
            return Written(self._change.write(new, self._options) if written else (), rows=written)
        chosen = [task for task in tasks if str(task.file().location()) in touched]
        with self._change.rows(chosen) as rows:
            kept = self._joined(rows, keys, "left_anti")
            files = self._change.write(kept.unionByName(new, allowMissingColumns=True), self._options)
        return Written(files, [task.file() for task in chosen], sum(touched.values()) + written)

    def _touched(self, tasks: Sequence[Any], keys: DataFrame) -> dict[str, int]:
        """Return the locations of the files that have rows with the keys, and how many other rows each of them has."""
        with self._change.rows(tasks) as rows:
            there = rows.selectExpr(f"input_file_name() AS {_FILE}", *map(quoted, self._keys))
            found = self._joined(there, keys, "left").groupBy(_FILE)
            hits = f"count({next(iter(self._keys.values()))})"
            counts = found.agg(_expression(f"{hits} AS hits"), _expression("count(*) AS total")).where("hits > 0")
            return {row[_FILE]: row["total"] - row["hits"] for row in counts.collect()}

    def _joined(self, rows: DataFrame, keys: DataFrame, how: str) -> DataFrame:
        return rows.join(keys, _expression(self._same), how)

    def _counted(self, changes: DataFrame) -> tuple[int, int, dict[str, tuple[Any, Any]]]:
        """Return the number of changes, the number that write a row, and the minimum and maximum of their keys."""
        ordered = [name for name in self._keys if self._is_ordered(name)]
        ends = [f"{end}({_key(name)})" for name in ordered for end in ("min", "max")]
        row = changes.selectExpr("count(*)", f"count_if(NOT {CHANGE_COLUMN}.deleted)", *ends).collect()[0]
        bounds = {name: (row[2 + 2 * place], row[3 + 2 * place]) for place, name in enumerate(ordered)}
        return row[0], row[1], bounds

    def _is_ordered(self, name: str) -> bool:
        """Return whether Iceberg and Spark sort a column the same way, and Iceberg can refer to it by name."""
        field = self._schema.field(name)
        return field is not None and field.schema.type in _ORDERED and field.schema.name is None and "." not in name


def _key(name: str) -> str:
    return f"{CHANGE_COLUMN}.key.{quoted(name)}"


def _expression(text: str) -> Any:
    from pyspark.sql.functions import expr  # noqa: PLC0415 - pyspark takes half a second to import

    return expr(text)
