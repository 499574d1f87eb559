"""Progress marks: rows that executors emit while they read, so that Spark can count the records read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

__all__ = ["MARKS", "MARK_COLUMN", "RECORDS_OF_MARK", "ProgressMarks"]

MARK_COLUMN: Final = "sluice_mark"
MARKS: Final = pa.schema([pa.field(MARK_COLUMN, pa.binary())])
"""The columns of marks."""
RECORDS_OF_MARK: Final = 1000
"""The number of records a mark stands for."""
_MARK: Final = bytes(1024)
"""Padding, because PySpark sends 64 kB at a time: it keeps the number of marks in transit small."""


class ProgressMarks:
    """The marks of one task."""

    def __init__(self) -> None:
        self._given = 0

    def up_to(self, records: int) -> Iterator[pa.RecordBatch]:
        """Yield the marks due once this many records have been read in total."""
        count = records // RECORDS_OF_MARK - self._given
        if count > 0:
            self._given += count
            yield pa.RecordBatch.from_arrays([pa.repeat(_MARK, count)], schema=MARKS)
