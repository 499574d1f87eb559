"""Parquet files, read in parts of a row group."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from connect.errors import DataError
from connect.kits.files.readers.formats.arrow_rows import ArrowRows
from connect.kits.files.readers.formats.table import BLOCK_BYTES, MOST_ROWS, Block

__all__ = ["ParquetTable", "arrow_errors", "identity_of"]

_TAIL_BYTES: Final = 64 * 1024
_READ_AHEAD: Final = 1024 * 1024
_LARGEST_FOOTER: Final = 64 * 1024 * 1024


class ParquetTable:
    """A Parquet file. Column chunks are streamed, so that a row group may be larger than memory."""

    def __init__(self, path: str, name: str, *, fine_as_numbers: bool) -> None:
        with arrow_errors():
            self.identity = identity_of(path)
            self._file = pq.ParquetFile(
                path,
                memory_map=False,
                buffer_size=_READ_AHEAD,
                pre_buffer=False,
                coerce_int96_timestamp_unit="us",
                thrift_string_size_limit=_LARGEST_FOOTER,
                thrift_container_size_limit=1_000_000,
                page_checksum_verification=True,
            )
            self._rows = ArrowRows(self._file.schema_arrow, name, fine_as_numbers=fine_as_numbers)

    def verify(self) -> int:
        """Decode every column of every row."""
        with arrow_errors():
            groups = range(self._file.num_row_groups)
            found = sum(batch.num_rows for group in groups for batch in self._batches(group))
        if found != self._file.metadata.num_rows:
            raise DataError(f"it has {found} rows, but its footer says {self._file.metadata.num_rows}")
        return found

    def blocks(self, start: int) -> Iterator[Block]:
        """Yield the rows from index ``start`` on; earlier row groups are not read."""
        with arrow_errors():
            for group in range(self._file.num_row_groups):
                rows = self._file.metadata.row_group(group).num_rows
                if start < rows:
                    yield from self._blocks(group, start)
                start = max(0, start - rows)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _blocks(self, group: int, start: int) -> Iterator[Block]:
        for batch in self._batches(group):
            if start < batch.num_rows:
                yield self._rows.block(batch.slice(start))
            start = max(0, start - batch.num_rows)

    def _batches(self, group: int) -> Iterator[pa.RecordBatch]:
        about = self._file.metadata.row_group(group)
        a_row = max(1, about.total_byte_size // max(1, about.num_rows))
        size = max(1, min(MOST_ROWS, BLOCK_BYTES // a_row))
        return iter(self._file.iter_batches(size, row_groups=[group], use_threads=False))


def identity_of(path: str) -> str:
    """Return the size of a file and a checksum of its end, where the metadata is."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _TAIL_BYTES))
        return f"end:{size}:{zlib.crc32(file.read()):08x}"


@contextmanager
def arrow_errors() -> Iterator[None]:
    """Turn Arrow's errors about a damaged file into a ``DataError``."""
    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise DataError(str(error)) from error
