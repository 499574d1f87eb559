"""Parquet files that the tasks of Spark write from Python, where they can reach the folder themselves.

They have the names and the types that Spark's own writer would give them. A task writes beside, under a hidden name
that is its attempt's alone, and gives the file its name at its end: so a file with the name of a part is whole. Where
two attempts come to their ends, the files of the first stay: the driver may be about to commit them. Both have the
same rows in the same files, so an attempt that was killed between two names is completed by the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

import pyarrow as pa
import pyarrow.parquet as pq

from connect.crash import crash_point

__all__ = ["PartFiles", "PartWriter"]

_GROUP: Final = 64 * 1024 * 1024
"""The bytes of rows in memory that are written as one row group."""
_EXTENSIONS: Final[Mapping[str, str]] = {"none": "", "gzip": ".gz", "snappy": ".snappy", "zstd": ".zstd"}


@dataclass(frozen=True, slots=True)
class PartFiles:
    """Where the rows of a pass go; plain data, for it is sent to the executors.

    ``mark`` is the UUID in the names of the files, ``most`` the rows of a file if these are limited.
    """

    folder: str
    mark: str
    codec: Literal["none", "gzip", "snappy", "zstd"]
    most: int | None = None

    def path(self, number: int, counter: int) -> Path:
        """The file with this place among those of a task of Spark."""
        return Path(self.folder, f"part-{number:05d}-{self.mark}-c{counter:03d}{_EXTENSIONS[self.codec]}.parquet")


class PartWriter:
    """Writes the files of one attempt at a task; nobody sees them before :meth:`finish`."""

    def __init__(self, files: PartFiles, columns: pa.Schema, number: int, attempt: int) -> None:
        self._files = files
        self._columns = columns
        self._number = number
        self._attempt = attempt
        self._waiting: list[pa.RecordBatch] = []
        self._size = self._rows = 0
        self._writer: Any = None
        self._written: list[tuple[Path, Path]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave nothing behind of an attempt that is not finished, as far as that is possible."""
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()
        for beside, _ in self._written:
            beside.unlink(missing_ok=True)

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows."""
        while (room := self._room) is not None and room < len(rows):
            self._add(rows.slice(0, room))
            self._end_file()
            rows = rows.slice(room)
        self._add(rows)

    def finish(self) -> None:
        """Give the files their names."""
        self._end_file()
        for beside, path in self._written:
            with suppress(FileExistsError):
                path.hardlink_to(beside)
            crash_point("mid-link")
            beside.unlink()

    @property
    def _room(self) -> int | None:
        """How many rows the file still takes; ``None`` if as many as come."""
        return None if self._files.most is None else self._files.most - self._rows

    def _add(self, rows: pa.RecordBatch) -> None:
        if not len(rows):
            return
        self._waiting.append(rows)
        self._rows += len(rows)
        self._size += rows.nbytes
        if self._size >= _GROUP:
            self._write_group()

    def _write_group(self) -> None:
        if self._writer is None:
            self._writer = self._opened()
        group: Any = pa.Table.from_batches(self._waiting, self._columns)
        self._writer.write_table(group, row_group_size=len(group))
        self._waiting, self._size = [], 0

    def _end_file(self) -> None:
        if self._waiting:
            self._write_group()
        if self._writer is not None:
            self._writer.close()
        self._writer, self._rows = None, 0

    def _opened(self) -> Any:
        path = self._files.path(self._number, len(self._written))
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{self._attempt}")
        self._written.append((beside, path))
        # The types are those of Spark's files: a table may have files of both.
        return pq.ParquetWriter(
            beside, self._columns, compression=self._files.codec, store_schema=False, store_decimal_as_integer=True
        )
