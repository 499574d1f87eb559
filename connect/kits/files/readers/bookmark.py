"""Bookmarks: how far a file has been read, and the source offsets of its rows."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, overload

from connect.data import Offset
from connect.errors import ConnectError

__all__ = ["HEAD_BYTES", "Bookmark", "RowOffsets", "check_offset", "fingerprint_of", "has_fingerprint"]

HEAD_BYTES: Final = 1024


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A place in a file: the byte after the last row read, and the number of rows and lines before it.

    In a table the position is the number of rows, and there are no lines. ``fingerprint`` distinguishes the file from
    others of the same name. ``finished`` is set at the end of a compressed file or a table, to its size: while the file
    has that size it need not be unpacked again.
    """

    position: int = 0
    row: int = 0
    line: int | None = 0
    fingerprint: str = ""
    finished: int | None = None

    @classmethod
    def from_offset(cls, offset: Offset | None) -> Self | None:
        """Return the bookmark of a source offset; ``row`` and ``line``, which are only informative, may be missing."""
        if offset is None:
            return None
        check_offset(offset)
        given = {name: offset[name] for name in ("row", "line", "fingerprint", "finished") if name in offset}
        return cls(position=offset["position"], **given)

    def to_offset(self) -> dict[str, Any]:
        """Return the source offset of the last row before this place."""
        offset: dict[str, Any] = {
            "position": self.position,
            "row": self.row,
            "line": self.line,
            "fingerprint": self.fingerprint,
        }
        if self.line is None:
            del offset["line"]
        if self.finished is not None:
            offset["finished"] = self.finished
        return offset


class RowOffsets(Sequence[Offset]):
    """The source offsets of rows, each created on access."""

    __slots__ = ("_fingerprint", "_finished", "_lines", "_positions", "_rows")

    def __init__(
        self,
        rows: Sequence[int],
        positions: Sequence[int],
        lines: Sequence[int | None],
        fingerprint: str,
        finished: int | None = None,
    ) -> None:
        self._rows = rows
        self._positions = positions
        self._lines = lines
        self._fingerprint = fingerprint
        self._finished = finished

    def bookmark(self, index: int) -> Bookmark:
        """Return the place after a row."""
        finished = self._finished if index in (-1, len(self) - 1) else None
        position, row, line = self._positions[index], self._rows[index], self._lines[index]
        return Bookmark(position, row, line, self._fingerprint, finished)

    def take(self, indices: Sequence[int]) -> RowOffsets:
        """Return the offsets of some rows, in their order."""
        last = bool(indices) and indices[-1] == len(self) - 1
        return RowOffsets(
            [self._rows[index] for index in indices],
            [self._positions[index] for index in indices],
            [self._lines[index] for index in indices],
            self._fingerprint,
            self._finished if last else None,
        )

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, index: int) -> Offset: ...
    @overload
    def __getitem__(self, index: slice) -> RowOffsets: ...
    def __getitem__(self, index: int | slice) -> Offset | RowOffsets:
        if isinstance(index, slice):
            last = index.indices(len(self))[1] == len(self)
            return RowOffsets(
                self._rows[index],
                self._positions[index],
                self._lines[index],
                self._fingerprint,
                self._finished if last else None,
            )
        return self.bookmark(index).to_offset()


def check_offset(offset: Offset) -> None:
    """Raise :class:`~connect.errors.ConnectError` for an offset that is not one of this connector's."""
    position = offset.get("position")
    if not isinstance(position, int) or isinstance(position, bool) or position < 0:
        raise ConnectError(
            f"The value for the 'position' key in the offset is {position!r}: give the byte position after the last "
            "row to skip (for Avro, Parquet and ORC files the number of rows to skip), or 0 to read the file from the "
            "beginning."
        )


def fingerprint_of(head: bytes) -> str:
    """Return the fingerprint of a file that begins with ``head``: length and checksum of its first 1024 bytes."""
    head = head[:HEAD_BYTES]
    return f"{len(head)}:{zlib.crc32(head):08x}"


def has_fingerprint(head: bytes, fingerprint: str) -> bool:
    """Return whether a file that begins with ``head`` has that fingerprint; it may have grown since."""
    length, _, _ = fingerprint.partition(":")
    if not length.isdecimal():
        return fingerprint == ""
    return len(head) >= int(length) and fingerprint_of(head[: int(length)]) == fingerprint
