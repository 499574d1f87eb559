"""Reads one file, or one member of an archive, from a bookmark to its current end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from connect.data import Column
from connect.errors import DataError
from connect.kits.files.readers.bookmark import Bookmark, RowOffsets
from connect.kits.files.readers.content import Content, file_errors
from connect.kits.files.readers.layout import Layout
from connect.kits.files.readers.options import ReadingOptions
from connect.kits.files.readers.records import Records

__all__ = ["FileReader", "MalformedRow", "Rows"]

_BLOCK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MalformedRow:
    """A row that cannot be read: its text, the place after it, and the error."""

    text: str
    after: Bookmark
    error: DataError


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in order with their offsets, and the malformed ones: ``(n, row)`` comes before the ``n``-th good row."""

    column: Column
    offsets: RowOffsets
    malformed: Sequence[tuple[int, MalformedRow]] = ()

    def __len__(self) -> int:
        return len(self.column)

    def slice(self, start: int, stop: int) -> Rows:
        """Return some of the good rows."""
        return Rows(self.column.slice(start, stop), self.offsets[start:stop])


class FileReader:
    """Reads the rows of a file block by block, holding one block in memory, or one row if that is longer (I9)."""

    def __init__(self, config: ReadingOptions, content: Content, layout: Layout, bookmark: Bookmark) -> None:
        self._settle_seconds = config.settle_ms / 1000
        self._max_bytes = config.record_max_bytes
        self._encoding = config.encoding
        self._content = content
        self._layout = layout
        self._place = bookmark
        self._rest = b""
        self._ended = False
        content.seek(bookmark.position)

    def read(self) -> Rows | None:
        """Return the next rows; ``None`` if the file has no more complete rows for now."""
        with file_errors(self._content.name):
            records = self._next_records()
            return self._rows(records) if records is not None else None

    @property
    def is_complete(self) -> bool:
        """Whether everything has been read, without an incomplete row left at the end."""
        return self._ended and not self._rest

    def _next_records(self) -> Records | None:
        size = _BLOCK_BYTES
        self._fill(size)
        while not len(records := self._layout.cut(self._rest, self._is_final())):
            # Blank lines are consumed without a record.
            self._advance(records, 0)
            if self._ended:
                return None
            self._check_length(len(self._rest))
            size = max(_BLOCK_BYTES, 2 * len(self._rest))
            self._fill(size)
        if len(records.data) > self._max_bytes:
            for start, end in zip(records.starts, records.ends, strict=True):
                self._check_length(end - start)
        return records

    def _check_length(self, length: int) -> None:
        if length > self._max_bytes:
            raise DataError(
                f"{self._content.name}, after line {self._place.line}: a row is longer than "
                f"record.max.bytes={self._max_bytes}, so the rest of the file is not read. Raise record.max.bytes, or "
                "correct the file."
            )

    def _advance(self, records: Records, rows: int) -> None:
        """Move past the records that were cut off."""
        here = self._place
        self._place = Bookmark(
            here.position + records.consumed,
            here.row + rows,
            (here.line or 0) + records.data.count(b"\n", 0, records.consumed),
            here.fingerprint,
        )
        self._rest = self._rest[records.consumed :]

    def _fill(self, size: int) -> None:
        """Read until ``size`` bytes are buffered, or to the end."""
        missing = size - len(self._rest)
        if missing <= 0 or (self._ended and self._content.is_fixed):
            return
        data = self._content.read(missing)
        self._ended = len(data) < missing
        self._rest += data

    def _is_final(self) -> bool:
        return self._ended and (self._content.is_fixed or self._content.is_settled(self._settle_seconds))

    def _rows(self, records: Records) -> Rows:
        start, parsed = self._place, self._layout.parse(records)
        self._advance(records, len(records))
        if not self._rest:
            # Whether this is the end must be known before the last row is returned.
            self._fill(_BLOCK_BYTES)
        finished = self._content.size if self.is_complete and self._content.is_fixed else None
        offsets = RowOffsets(
            range(start.row + 1, start.row + 1 + len(records)),
            [start.position + end for end in records.ends],
            [(start.line or 0) + line for line in records.lines],
            start.fingerprint,
            finished,
        )
        if parsed.good is None:
            return Rows(parsed.column, offsets)
        malformed = [
            (bad.index - number, self._malformed(records, offsets, start, bad.index, bad.reason))
            for number, bad in enumerate(parsed.bad)
        ]
        return Rows(parsed.column, offsets.take(parsed.good), malformed)

    def _malformed(
        self, records: Records, offsets: RowOffsets, start: Bookmark, index: int, reason: str
    ) -> MalformedRow:
        line = (start.line or 0) + records.first_line(index) + 1
        text = records.raw(index).decode(self._encoding, errors="replace")
        error = DataError(f"{self._content.name}, line {line}: the row is malformed: {reason}.")
        return MalformedRow(text, offsets.bookmark(index), error)
