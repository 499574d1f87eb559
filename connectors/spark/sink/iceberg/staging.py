"""The files of a load that are written but not committed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from connect.data import Schema
from connect.errors import ConnectError, RetriableError
from connectors.spark.decoding.changes import CHANGE_COLUMN, key_columns
from connectors.spark.decoding.part_files import PartFiles
from connectors.spark.iceberg.catalog import Change, TableName
from connectors.spark.schema import widen
from connectors.spark.sink.iceberg.data_files import DataFiles, DataWriting
from connectors.spark.sink.iceberg.merge import Merge, Written
from connectors.spark.sink.tables.upsert import without_change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from connectors.spark.decoding.report import Reports
    from connectors.spark.sink.loading.request import Loaded

__all__ = ["Staged", "Staging"]


class Staged:
    """The files of a load in one branch of a table, and the table change they are written for."""

    def __init__(
        self,
        change: Change,
        branch: str,
        columns: Schema,
        options: dict[str, str],
        writing: DataWriting | None = None,
    ) -> None:
        self.change = change
        self.branch = branch
        self.columns = columns
        self._before = columns
        self.files: list[Any] = []
        self.replaced: list[Any] = []
        self.merges = False
        self.keys: tuple[str, ...] = ()
        self._options = options
        self._writing = writing
        self._widened = False

    def widen(self, schema: Schema) -> None:
        """Add the columns for rows of ``schema`` to the table, if it lacks any."""
        columns = widen(self.columns, schema)
        if columns == self.columns:
            return
        self.change.widen(columns, self._before)
        self.columns = columns
        self._widened = True

    def data_files(self, schema: Schema) -> DataFiles | None:
        """Return the files for rows of ``schema`` that the executors are to write, unless Spark's writer has to."""
        if self._writing is None:
            return None
        return self._writing.files(self.change.metadata, self.change.data_location, schema)

    def append(self, frame: DataFrame) -> Written:
        """Let Spark write rows."""
        return Written(self.change.write(frame, self._options))

    def found(self, files: DataFiles, names: Iterable[str]) -> Written:
        """Return the files, written by executors, that count."""
        return Written(self.change.data_files(files.places(names)))

    def discard(self, written: Written | DataFiles) -> None:
        """Delete the files a pass has written in vain."""
        if isinstance(written, DataFiles):
            self.change.discard_places(written.all_places)
        else:
            self.change.discard(written.files)

    def merge(self, frame: DataFrame, schema: Schema) -> Written:
        """Let Spark write the rows that result from changes of this schema."""
        self.merges, self.keys = True, key_columns(schema)
        return Merge(self.change, self.branch, schema, self._options).write(frame)

    def repeat_on(self, change: Change) -> None:
        """Apply the same column changes to another table change; raises if the files do not fit it."""
        if self._widened:
            change.widen(self.columns, self._before)
        ours, theirs = self.change.metadata, change.metadata
        if ours.layout != theirs.layout or ours.schema != theirs.schema:
            raise RetriableError(f"Table {change.name} was altered during the load, which is repeated.")
        if self.merges and ours.head(self.branch) != theirs.head(self.branch):
            raise RetriableError(f"Rows of table {change.name} were changed during the load, which is repeated.")


class Staging:
    """The :class:`~connectors.spark.sink.loading.request.Output` of a step's loads: files that belong to no table yet.

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
        self._passes: dict[tuple[str, int], Written | DataFiles] = {}
        self._parts: list[Staging] = []

    def part(self) -> Staging:
        """Return the output for the records of one topic. Topics that are loaded at the same time have their own
        tables.
        """
        part = Staging(self._begin, self.naming, self._done)
        part._staged = self._staged
        self._parts.append(part)
        return part

    def of(self, name: TableName) -> Staged | None:
        """Return the files of a table, if there are any."""
        return self._staged.get(name)

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:
        """Write the rows of a table, or the result of changes to them."""
        name = self.naming(table)
        if str(name) in self._done:
            return
        is_change = schema.field(CHANGE_COLUMN) is not None
        if is_change and not key_columns(schema):
            # No change can have this schema; running the job finds the record that does, and reports it.
            frame.write.format("noop").mode("overwrite").save()
            return
        if is_change:
            self._check_single(name, table)
            staged = self._widened(name, without_change(schema))
        else:
            staged = self._for_attempt(name, schema, attempt)
        self._passes[table, attempt] = staged.merge(frame, schema) if is_change else staged.append(frame)

    def files(self, table: str, schema: Schema, attempt: int) -> PartFiles | None:
        """Return the files that executors write for a table's rows; ``None`` if the rows have to go to
        :meth:`write`.
        """
        name = self.naming(table)
        if str(name) in self._done or schema.field(CHANGE_COLUMN) is not None:
            return None
        files = self._for_attempt(name, schema, attempt).data_files(schema)
        if files is None:
            return None
        self._passes[table, attempt] = files
        return files.parts

    def _for_attempt(self, name: TableName, columns: Schema, attempt: int) -> Staged:
        """Return the table change for the files of an attempt."""
        if self._gives_up(name, attempt):
            del self._staged[name]
        return self._widened(name, columns)

    def _widened(self, name: TableName, columns: Schema) -> Staged:
        staged = self._staged.get(name)
        if staged is None:
            staged = self._staged[name] = self._begin(name, columns)
        staged.widen(columns)
        return staged

    def _gives_up(self, name: TableName, attempt: int) -> bool:
        """Return whether a new table has only files of earlier attempts, with other columns; these are deleted."""
        staged = self._staged.get(name)
        before = [key for key in self._passes if self.naming(key[0]) == name]
        if staged is None or not before or any(each == attempt for _, each in before):
            return False
        if staged.files or not staged.change.is_new:
            return False
        for key in before:
            staged.discard(self._passes.pop(key))
        return True

    def _check_single(self, name: TableName, table: str) -> None:
        """Reject changes under two names for one table: the second ones would not see the rows of the first."""
        for other, _ in self._passes:
            if other != table and self.naming(other) == name:
                raise ConnectError(
                    f"A transformation sends changes of one topic to {other} and {table}, which are both table "
                    f"{name}: remove it, or give each a table of its own (table.name.format)."
                )

    def keep(self, loaded: Loaded) -> set[TableName]:
        """Keep the files of the attempt that counts; returns the tables that they change."""
        changed: set[TableName] = set()
        for (table, attempt), each in self._passes.items():
            name = self.naming(table)
            staged = self._staged[name]
            if attempt != loaded.attempt:
                staged.discard(each)
                continue
            written = staged.found(each, _names(loaded.reports[table])) if isinstance(each, DataFiles) else each
            expected = written.rows if staged.merges else _rows_of(loaded, table)
            found = sum(int(file.recordCount()) for file in written.files)
            if expected != found:
                raise ConnectError(
                    f"Spark has written {found} of {expected} rows into the files of table {name}. Nothing is "
                    "committed; the load is repeated."
                )
            staged.files += written.files
            staged.replaced += written.replaced
            if found or written.replaced:
                changed.add(name)
        self._passes = {}
        return changed

    @property
    def written(self) -> tuple[int, int]:
        """Return the bytes and the number of files written."""
        files = [file for staged in self._staged.values() for file in staged.files]
        return sum(int(file.fileSizeInBytes()) for file in files), len(files)

    def discard(self) -> None:
        """Delete all files."""
        for part in (self, *self._parts):
            for (table, _), written in part._passes.items():
                self._staged[self.naming(table)].discard(written)
        for staged in self._staged.values():
            staged.change.discard(staged.files)


def _names(reports: Reports) -> list[str]:
    """Return the files that executors have reported."""
    return [name for report in reports for name in report.files]


def _rows_of(loaded: Loaded, table: str) -> int:
    """Return the number of rows the executors have produced for a table."""
    result = loaded.results.get(table)
    return sum(report.written for report in loaded.reports[table]) if result is None else result.rows
