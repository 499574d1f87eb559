"""ORC files, read in parts of a stripe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import orc
from pyarrow.fs import LocalFileSystem

from connect.errors import DataError
from connect.kits.files.readers.formats.arrow_rows import ArrowRows
from connect.kits.files.readers.formats.parquet import arrow_errors, identity_of
from connect.kits.files.readers.formats.table import BLOCK_BYTES, MOST_ROWS, Block

__all__ = ["OrcTable"]

_PACKED: Final = 8
"""How many times smaller rows are taken to be in the file."""


class OrcTable:
    """An ORC file."""

    def __init__(self, path: str, name: str, *, fine_as_numbers: bool) -> None:
        with arrow_errors():
            self.identity = identity_of(path)
            about = orc.ORCFile(path)
            self._row_count = about.nrows
            self._rows = ArrowRows(about.schema, name, fine_as_numbers=fine_as_numbers)
            a_row = max(1, _PACKED * about.content_length // max(1, about.nrows))
            self._size = max(1, min(MOST_ROWS, BLOCK_BYTES // a_row))
            self._fragment = ds.OrcFileFormat().make_fragment(path, LocalFileSystem())

    def verify(self) -> int:
        """Decode every column of every row."""
        with arrow_errors():
            found = sum(batch.num_rows for batch in self._batches())
        if found != self._row_count:
            raise DataError(f"it has {found} rows, but its footer says {self._row_count}")
        return found

    def blocks(self, start: int) -> Iterator[Block]:
        """Yield the rows from index ``start`` on; earlier rows are decoded and dropped."""
        with arrow_errors():
            for batch in self._batches():
                if start < batch.num_rows:
                    yield self._rows.block(batch.slice(start))
                start = max(0, start - batch.num_rows)

    def close(self) -> None:
        """Do nothing: the file is open only while it is read."""

    def _batches(self) -> Iterator[pa.RecordBatch]:
        # Nothing is read ahead.
        return iter(
            self._fragment.to_batches(batch_size=self._size, use_threads=False, batch_readahead=0, fragment_readahead=0)
        )
