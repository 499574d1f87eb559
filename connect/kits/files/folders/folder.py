"""What a source does with a folder: which files it reads and how, what becomes of the rows and of the files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from connect.data import SourceBatch, SourceRecord
from connect.errors import DataError
from connect.kits.files.folders.finished_files import Finisher
from connect.kits.files.folders.listing import Listing
from connect.kits.files.readers.row_reader import Rows
from connect.kits.files.readers.visit import FileState, Reading

__all__ = ["Folder", "RowFault", "Shape"]

Shape: TypeAlias = Callable[[Rows, FileState, str | None], SourceBatch | list[SourceRecord]]
"""Makes records of the rows of a file, or of a member of an archive; raises :class:`RowFault` if one cannot be one."""


class RowFault(Exception):  # noqa: N818 - it never leaves the reader
    """A row that cannot become a record: its index, and the reason."""

    def __init__(self, index: int, error: DataError) -> None:
        super().__init__(str(error))
        self.index = index
        self.error = error


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder as a task reads it."""

    shown: str
    """The folder for users, and the key that names it."""
    key: str
    reading: Reading
    listing: Listing
    shape: Shape
    topic: str
    batch_size: int
    scan_seconds: float
    is_split: bool = False
    """Whether the files are those of a split, which is read to its present end."""
    finisher: Finisher | None = None
    """What happens to files that were read to their end; ``None`` leaves them."""
    rejecter: Finisher | None = None
    """What happens to files with a row that cannot be read; ``None`` reports such rows and reads on."""
    halts: bool = False
    """Whether the task fails once a file is rejected."""
