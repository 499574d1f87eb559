"""Writes Parquet files from the Python of Spark's tasks, where they can reach the store themselves.

The files have the names and types that Spark's own writer would give them. A task writes where nobody sees it, and
publishes its files at its end, so a visible file is complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final, Literal, Self

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.spark.stores.parts import PartPlace, PartStream

__all__ = ["PartFiles", "PartWriter"]

_GROUP: Final = 64 * 1024 * 1024
_LEAST_GROUP: Final = 1024 * 1024
_EXTENSIONS: Final[Mapping[str, str]] = {"none": "", "gzip": ".gz", "snappy": ".snappy", "zstd": ".zstd"}


@dataclass(frozen=True, slots=True)
class PartFiles:
    """The files for the rows of a pass; plain data, sent to the executors.

    ``mark`` is the UUID in the names of the files, ``most`` the maximum number of rows in a file, if limited. Once a
    file has reached ``size`` bytes the next one begins; because rows come in batches, it may be somewhat larger.
    ``columns`` are the columns of the files where they differ from those of the rows.
    """

    place: PartPlace
    mark: str
    codec: Literal["none", "gzip", "snappy", "zstd"]
    most: int | None = None
    size: int | None = None
    columns: pa.Schema | None = None

    def name(self, split: int, counter: int, attempt: int = 0) -> str:
        """Name the file at this place among those of a split, or of an attempt at it if files have a size limit.

        With a size limit, another attempt may divide the same rows differently.
        """
        parts = f"part-{split:05d}-{self.mark}" if self.size is None else f"{self.mark}-{split:05d}-{attempt}"
        return f"{parts}-c{counter:03d}{_EXTENSIONS[self.codec]}.parquet"

    @property
    def group(self) -> int:
        """The size in memory, in bytes, of the rows that are written as one row group."""
        return _GROUP if self.size is None else min(_GROUP, max(self.size // 4, _LEAST_GROUP))


class PartWriter:
    """Writes the files of one attempt at a split; nobody sees them before :meth:`finish`."""

    def __init__(self, files: PartFiles, columns: pa.Schema, split: int, attempt: int) -> None:
        self.names: list[str] = []
        """The files so far."""
        self._files = files
        self._columns = files.columns or columns
        self._name = partial(files.name, split, attempt=attempt)
        self._attempt = files.place.begin(split, attempt)
        self._waiting: list[pa.RecordBatch] = []
        self._size = self._rows = 0
        self._open: tuple[Any, PartStream] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clean up after an unfinished attempt, as far as possible."""
        self._attempt.discard()
        if self._open is not None:
            with suppress(Exception):
                self._close(*self._open)

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows."""
        while (room := self._room) is not None and room < len(rows):
            self._add(rows.slice(0, room))
            self._end_file()
            rows = rows.slice(room)
        self._add(rows)

    def finish(self) -> None:
        """Make the files count."""
        self._end_file()
        self._attempt.finish()

    @property
    def _room(self) -> int | None:
        """The number of rows that still fit into the file; ``None`` if unlimited."""
        return None if self._files.most is None else self._files.most - self._rows

    def _add(self, rows: pa.RecordBatch) -> None:
        if not len(rows):
            return
        self._waiting.append(rows)
        self._rows += len(rows)
        self._size += rows.nbytes
        if self._size >= self._files.group:
            self._write_group()

    def _write_group(self) -> None:
        if self._open is None:
            name = self._name(len(self.names))
            self.names.append(name)
            stream = self._attempt.open(name)
            self._open = (self._writer(stream), stream)
        group: Any = pa.Table.from_batches(self._waiting)
        self._open[0].write_table(group.cast(self._columns), row_group_size=len(group))
        self._waiting, self._size = [], 0
        if self._files.size is not None and self._open[1].tell() >= self._files.size:
            self._end_file()

    def _end_file(self) -> None:
        if self._waiting:
            self._write_group()
        if self._open is not None:
            self._close(*self._open)
        self._open, self._rows = None, 0

    def _writer(self, stream: Any) -> Any:
        # The types match those of Spark's files: a table may have files of both.
        return pq.ParquetWriter(
            stream, self._columns, compression=self._files.codec, store_schema=False, store_decimal_as_integer=True
        )

    @staticmethod
    def _close(writer: Any, stream: PartStream) -> None:
        writer.close()
        stream.close()
