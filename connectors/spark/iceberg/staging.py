"""The files of a load, written and not committed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from connect.data import Schema
from connect.errors import ConnectError, RetriableError, SchemaError
from connectors.spark.iceberg.catalog import Change, TableName
from connectors.spark.schema import widen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from connectors.spark.loader import Loaded

__all__ = ["Staged", "Staging"]


class Staged:
    """The files of a load in one table, and the change of it that they are written for."""

    def __init__(self, change: Change, columns: Schema, options: dict[str, str], *, may_grow: bool = True) -> None:
        self.change = change
        self._may_grow = may_grow
        self.columns = columns
        self.files: list[Any] = []
        self._options = options
        self._widened = False

    def widen(self, schema: Schema) -> None:
        """Give the table the columns for rows of ``schema``, if it lacks any."""
        columns = widen(self.columns, schema)
        if columns == self.columns:
            return
        if not self._may_grow:
            raise SchemaError(
                f"The records need other columns than table {self.change.name} has, and "
                "iceberg.tables.evolve-schema-enabled is false: alter the table, or leave the fields out."
            )
        self.change.widen(columns)
        self.columns = columns
        self._widened = True

    def write(self, frame: DataFrame) -> list[Any]:
        """Have Spark write rows; the answer is their files."""
        return self.change.write(frame, self._options)

    def repeat_on(self, change: Change) -> None:
        """Make the same change of the columns in another change; an error says if the files do not fit it."""
        if self._widened:
            change.widen(self.columns)
        ours, theirs = self.change.metadata, change.metadata
        if ours.layout != theirs.layout or ours.schema != theirs.schema:
            raise RetriableError(f"Somebody has altered table {change.name} during the load, which is made again.")


class Staging:
    """The :class:`~connectors.spark.loader.Output` of the loads of one step: files that belong to no table yet.

    Tables in ``done`` have the records of the step already; nothing is written for them.
    """

    commits = False

    def __init__(
        self,
        begin: Callable[[TableName, Schema], Staged],
        naming: Callable[[str], TableName],
        done: Collection[str],
    ) -> None:
        self.naming = naming
        self._begin = begin
        self._done = done
        self._staged: dict[TableName, Staged] = {}
        self._passes: dict[tuple[str, int], list[Any]] = {}

    def begin(self, topic: str) -> None:  # noqa: ARG002 - the passes of a topic are told apart from those of others
        """Begin with the records of another topic."""
        self._passes = {}

    def of(self, name: TableName) -> Staged | None:
        """The files of a table, if there are any."""
        return self._staged.get(name)

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:
        """Write the rows of a table."""
        name = self.naming(table)
        if str(name) in self._done:
            return
        staged = self._staged.get(name)
        if staged is None:
            staged = self._staged[name] = self._begin(name, schema)
        staged.widen(schema)
        self._passes[table, attempt] = staged.write(frame)

    def keep(self, loaded: Loaded) -> set[TableName]:
        """Keep the files of the attempt that counts; the answer is the tables that have rows in them."""
        with_rows: set[TableName] = set()
        for (table, attempt), files in self._passes.items():
            name = self.naming(table)
            staged = self._staged[name]
            if attempt != loaded.attempt:
                staged.change.discard(files)
                continue
            result = loaded.results.get(table)
            reports = loaded.reports[table]
            written = sum(report.written for report in reports) if result is None else result.rows
            found = sum(int(file.recordCount()) for file in files)
            if written != found:
                raise ConnectError(
                    f"Spark has written {found} of {written} rows into the files of table {name}: nothing is "
                    "committed, and the load is made again."
                )
            staged.files += files
            if found:
                with_rows.add(name)
        self._passes = {}
        return with_rows

    def discard(self) -> None:
        """Delete all files."""
        for (table, _), files in self._passes.items():
            self._staged[self.naming(table)].change.discard(files)
        for staged in self._staged.values():
            staged.change.discard(staged.files)
