"""Reads tables from a bookmark to their end; positions are row numbers."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager

from connect.data import Constant
from connect.errors import DataError
from connect.kits.files.readers.bookmark import Bookmark, RowOffsets
from connect.kits.files.readers.content import file_errors
from connect.kits.files.readers.formats.table import Block, Table
from connect.kits.files.readers.options import FileFormat, FineTimes, ReadingOptions
from connect.kits.files.readers.row_reader import MalformedRow, Rows
from connect.kits.files.systems.system import SourceFile

__all__ = ["table_rows"]

_log = logging.getLogger(__name__)


def table_rows(
    config: ReadingOptions, file: SourceFile, path: str, form: FileFormat, place: Bookmark | None
) -> Generator[Rows, None, None]:
    """Yield the rows of the file that can be read at ``path``, from a place on.

    A damaged file yields nothing: it is decoded once beforehand.

    Raises :class:`~connect.errors.DataError` when the file cannot be read.
    """
    with _table_errors(file.path):
        table = open_table(config, path, form)
    with closing(table):
        start = _start(file, table, place)
        if place is not None and start == place.position and place.finished == file.size:
            return
        with _table_errors(file.path):
            total = table.verify()
            if start > total:
                _log.warning("%s has fewer rows than were already read: reading it from the beginning.", file.path)
                start = 0
            for block in table.blocks(start):
                finished = file.size if start + block.size == total else None
                yield _rows(file.path, block, start, table.identity, finished)
                start += block.size


def open_table(config: ReadingOptions, path: str, form: FileFormat) -> Table:
    """Open a file in one of the table formats."""
    if form is FileFormat.AVRO:
        # Imported late: the Avro converter's schemas take a while to load.
        from connect.kits.files.readers.formats.avro import AvroTable  # noqa: PLC0415 - as above

        return AvroTable(path, config.record_max_bytes)
    name, as_numbers = config.struct_name, config.fine_times is FineTimes.NUMBER
    try:
        if form is FileFormat.ORC:
            from connect.kits.files.readers.formats.orc import OrcTable  # noqa: PLC0415 - pyarrow may be missing

            return OrcTable(path, name, fine_as_numbers=as_numbers)
        from connect.kits.files.readers.formats.parquet import ParquetTable  # noqa: PLC0415 - as above
    except ImportError as error:
        raise DataError(f"{form} needs pyarrow: pip install 'sluice-connect[arrow]'") from error
    return ParquetTable(path, name, fine_as_numbers=as_numbers)


def _start(file: SourceFile, table: Table, place: Bookmark | None) -> int:
    """Return the first row to read."""
    if place is None:
        return 0
    if place.fingerprint in (table.identity, ""):
        return place.position
    _log.warning("%s was replaced by another file: reading it from the beginning.", file.path)
    return 0


def _rows(path: str, block: Block, start: int, identity: str, finished: int | None) -> Rows:
    after = range(start + 1, start + 1 + block.size)
    offsets = RowOffsets(after, after, Constant(None, block.size), identity, finished)
    if block.good is None:
        return Rows(block.column, offsets)
    malformed = [
        (index - number, _malformed(path, start + index + 1, offsets.bookmark(index), reason))
        for number, (index, reason) in enumerate(block.bad)
    ]
    return Rows(block.column, offsets.take(block.good), malformed)


def _malformed(path: str, row: int, after: Bookmark, reason: str) -> MalformedRow:
    error = DataError(f"{path}, row {row}: the row is malformed: {reason}.")
    return MalformedRow(f"row {row} of {path}", after, error)


@contextmanager
def _table_errors(path: str) -> Iterator[None]:
    """Name the file in the errors of its format."""
    with file_errors(path):
        try:
            yield
        except DataError as error:
            reason = str(error).rstrip(".")
            raise DataError(
                f"Cannot read {path}, which is damaged or in another format: {reason}. Replace it with an intact one, "
                "or exclude it with 'pattern'."
            ) from error
