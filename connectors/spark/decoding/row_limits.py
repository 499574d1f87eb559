"""The limits that a target sets to the values of rows: a record with a value beyond them is a bad one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyarrow import compute, types

from connect.errors import DataError
from connectors.spark.decoding.changes import CHANGE_COLUMN
from connectors.spark.decoding.placement import field_of
from connectors.spark.folder_fields import NULL_FOLDER, FolderField

__all__ = ["RowLimits"]

_MOST_OF_A_BYTE: Final = 3
_UUID: Final = "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"


@dataclass(frozen=True, slots=True)
class RowLimits:
    """What rows may not have in a table; plain data, sent to the executors."""

    folders: Sequence[FolderField] = ()
    hive: bool = True
    """Whether folders are named as Hive does it, and readers take the values from there; otherwise as Iceberg does."""
    longest: int | None = None
    """The most bytes in the name of a folder, if limited."""
    single: str | None = None
    """The format of files that cannot tell null in the only column that they have, if it is one."""
    lines: bool = False
    """Whether that column is a line of text."""
    required: Sequence[Sequence[str]] = ()
    """The paths of columns, and of fields in them, that must not be null."""
    required_always: bool = False
    """Whether they must not be null even where their struct is."""
    uuids: Sequence[Sequence[str]] = ()
    """The paths of those whose texts must be UUIDs."""

    def mistakes(self, rows: pa.RecordBatch) -> dict[int, DataError]:
        """Return the rows that are beyond the limits, with the reasons."""
        found: dict[int, DataError] = {}
        for index, reason in (*self._missing(rows), *self._misnaming(rows), *self._unwritable(rows)):
            found.setdefault(index, DataError(reason))
        if found and CHANGE_COLUMN in rows.schema.names:
            # What is deleted is not written.
            kept = set(_marked(compute.invert(field_of(rows, (CHANGE_COLUMN, "deleted")))))
            return {index: error for index, error in found.items() if index in kept}
        return found

    def _missing(self, rows: pa.RecordBatch) -> Iterator[tuple[int, str]]:
        """Rows without a value of a kind that the table requires."""
        for path in self.required:
            missing: Any = compute.is_null(field_of(rows, path))
            if len(path) > 1 and not self.required_always:
                missing = compute.and_(missing, compute.is_valid(field_of(rows, path[:-1])))
            for index in _marked(missing):
                yield index, f"{'.'.join(path)} is null, which the table does not allow: give it a value"
        for path in self.uuids:
            array = field_of(rows, path)
            if types.is_string(array.type):
                for index in _marked(compute.invert(compute.match_substring_regex(array, _UUID))):
                    yield index, f"{'.'.join(path)} is no UUID, as the table's column is: correct it at its source"

    def _misnaming(self, rows: pa.RecordBatch) -> Iterator[tuple[int, str]]:
        """Rows whose folders do not tell their values: readers take the empty text for null, for one."""
        for folder in self.folders:
            array = field_of(rows, folder.path)
            if types.is_string(array.type):
                for index in _marked(self._doubtful(array, folder)):
                    if (reason := self._mistake(folder, array[index].as_py())) is not None:
                        yield index, f"The field {folder.label}, whose values name folders, {reason}"

    def _doubtful(self, array: Any, folder: FolderField) -> Any:
        """Mark the values that are worth a closer look."""
        lengths: Any = compute.binary_length(array)
        shortest: Any = pa.scalar(1 if self.hive else 0, pa.int32())
        doubtful: Any = compute.or_(compute.less(lengths, shortest), compute.equal(array, _reserved()))
        if self.longest is None:
            return doubtful
        safe: Any = pa.scalar(max(0, self.longest // _MOST_OF_A_BYTE - len(folder.label.encode()) - 1), pa.int32())
        return compute.or_(doubtful, compute.greater(lengths, safe))

    def _mistake(self, folder: FolderField, value: str) -> str | None:
        if self.hive and value in ("", NULL_FOLDER):
            return f'is "{value}", whose folder readers take for null: give it another text, or none'
        if self.longest is not None and folder.size(value, hive=self.hive) > self.longest:
            return f"has {len(value)} characters, and the name of a folder at most {self.longest} bytes: shorten it"
        return None

    def _unwritable(self, rows: pa.RecordBatch) -> Iterator[tuple[int, str]]:
        """Rows that are nothing, or more than one, in a file."""
        labels = {folder.label for folder in self.folders}
        columns = [name for name in rows.schema.names if name not in labels]
        if self.single is None or len(columns) != 1:
            return
        array = rows.column(columns[0])
        where, remedy = f"The only column {columns[0]}", f"which files of format.class={self.single} cannot"
        for index in _marked(compute.is_null(array)):
            yield index, f"{where} is null, {remedy} tell from no row: give it a value, or use JsonFormat"
        if self.lines and types.is_string(array.type):
            for index in _marked(compute.match_substring_regex(array, "[\r\n]")):
                yield index, f"{where} has a line break, {remedy} hold: remove it, or use JsonFormat or CsvFormat"


def _marked(mask: Any) -> list[int]:
    found: list[int] = compute.indices_nonzero(mask).to_pylist()
    return found


def _reserved() -> Any:
    return pa.scalar(NULL_FOLDER)
