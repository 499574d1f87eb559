"""Reads the same part of many messages at once, as numpy arrays. Importing this needs numpy.

A cursor has a position in each of its messages. All positions move over a field together, so that the cost of Python is
that of the fields, not of the messages. A message that turns out to be unusual (damaged, or of a shape that is not
worth the effort) is marked and no longer means anything: another decoder has to read it.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Cursor", "Messages", "Vector"]

Vector: TypeAlias = npt.NDArray[Any]

_ROOM: Final = 16
"""The bytes before and after the messages, so that a few bytes can be read on either side of any position."""
_MORE: Final = np.uint64(0x8080808080808080)
_PAYLOAD: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONE: Final = np.uint64(1)
_INT32: Final = np.uint64(0xFFFFFFFF)
_FOLDS: Final = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)


class Messages:
    """The bytes of many messages, one after the other, and which of the messages are marked."""

    __slots__ = ("data", "ends", "last", "marked", "starts")

    def __init__(self, data: bytes | memoryview, ends: Vector) -> None:
        """Take the bytes of all messages and the end of each."""
        size = len(data)
        padded = np.empty(_ROOM + size + _ROOM, np.uint8)
        padded[:_ROOM] = 0
        padded[_ROOM : _ROOM + size] = np.frombuffer(data, np.uint8)
        padded[_ROOM + size :] = 0
        self.data = padded
        self.ends = ends + _ROOM
        self.starts = np.empty_like(self.ends)
        self.starts[:1] = _ROOM
        self.starts[1:] = self.ends[:-1]
        self.last = _ROOM + size
        self.marked = np.zeros(len(ends), np.bool_)

    def body(self, header: int) -> Cursor:
        """Return a cursor for all messages, behind a header of so many bytes."""
        return Cursor(self, self.starts + header, self.ends, np.arange(len(self.ends)))

    def words(self, kind: str) -> Vector:
        """Return the numbers of a numpy type that begin at each of the bytes."""
        count = len(self.data) - np.dtype(kind).itemsize + 1
        return np.ndarray((count,), kind, self.data.data, strides=(1,))


class Cursor:
    """Positions ``at`` in messages ``rows``. A position behind its end stays there, so that the message gets marked."""

    __slots__ = ("at", "ends", "messages", "rows")

    def __init__(self, messages: Messages, at: Vector, ends: Vector, rows: Vector) -> None:
        self.messages = messages
        self.at = at
        self.ends = ends
        self.rows = rows

    def __len__(self) -> int:
        return len(self.at)

    def part(self, places: Vector) -> Cursor:
        """Return a cursor of its own for some of the positions."""
        return Cursor(self.messages, self.at[places], self.ends[places], self.rows[places])

    def mark(self, which: Vector) -> None:
        """Mark the messages for which the condition holds."""
        if which.any():
            self.messages.marked[self.rows[which]] = True

    def mark_at(self, places: Vector) -> None:
        """Mark the messages at these places."""
        self.messages.marked[self.rows[places]] = True

    def close(self) -> None:
        """Mark the messages that are not read to their end, or beyond it."""
        self.mark(self.at != self.ends)

    # -- numbers ---------------------------------------------------------------------------------------------------

    def byte(self) -> Vector:
        """Read one byte."""
        found: Vector = self.messages.data[np.minimum(self.at, self.messages.last)]
        self.at = self.at + 1
        return found

    def unsigned(self) -> Vector:
        """Read a number of seven bits a byte, up to 64 bits."""
        at = np.minimum(self.at, self.messages.last)
        first = self.messages.data[at]
        values = first.astype(np.uint64)
        self.at = self.at + 1
        if not len(first) or first.max() < 0x80:
            return values
        longer = np.flatnonzero(first > 0x7F)
        whole = len(longer) == len(first)
        more = slice(None) if whole else longer
        values[more], sizes = self._long(at[more], longer)
        self.at[more] += sizes
        return values

    def _long(self, at: Vector, places: Vector) -> tuple[Vector, Vector]:
        """Return the numbers at positions, and how many bytes they take beside the first."""
        word = self.messages.words("<u8")[at]
        last = ~word & _MORE
        below = (last & (~last + _ONE)) - _ONE
        values = word & below & _PAYLOAD
        for low, high, shift in _FOLDS:
            values = (values & low) | ((values & high) >> shift)
        sizes = (((below & _MORE) >> np.uint64(7)) * np.uint64(0x0101010101010101) >> np.uint64(56)).astype(np.int64)
        if not last.all():
            longest = np.flatnonzero(last == 0)
            values[longest], sizes[longest] = self._longest(values[longest], at[longest], places[longest])
        return values, sizes

    def _longest(self, values: Vector, at: Vector, places: Vector) -> tuple[Vector, Vector]:
        """Return the numbers of nine and ten bytes, of which the lowest 56 bits are known."""
        data, last = self.messages.data, self.messages.last
        ninth, tenth = data[np.minimum(at + 8, last)], data[np.minimum(at + 9, last)]
        goes_on = ninth > 0x7F
        self.mark_at(places[goes_on & (tenth > 1)])
        values = values | (ninth & 0x7F).astype(np.uint64) << np.uint64(56)
        values |= np.where(goes_on, tenth & 1, 0).astype(np.uint64) << np.uint64(63)
        return values, np.where(goes_on, 9, 8)

    def whole(self, *, is_int: bool = False) -> Vector:
        """Read an integer, of 32 bits if ``is_int``."""
        raw = self.unsigned()
        if is_int:
            self.mark(raw > _INT32)
        return (raw >> _ONE).view(np.int64) ^ -((raw & _ONE).view(np.int64))

    def fixed(self, kind: str) -> Vector:
        """Read a number of a numpy type."""
        found: Vector = self.messages.words(kind)[np.minimum(self.at, self.messages.last)]
        self.at = self.at + np.dtype(kind).itemsize
        return found

    # -- bytes -----------------------------------------------------------------------------------------------------

    def sized(self) -> tuple[Vector, Vector]:
        """Read bytes after their length: return where they begin and end. These never decrease."""
        return self.spans(self.whole())

    def exactly(self, size: int) -> tuple[Vector, Vector]:
        """Read that many bytes, as :meth:`sized`."""
        return self.spans(np.full(len(self), size, np.int64))

    def rest(self) -> tuple[Vector, Vector]:
        """Read all bytes to the end of the message, as :meth:`sized`."""
        return self.spans(self.ends - self.at)

    def spans(self, sizes: Vector) -> tuple[Vector, Vector]:
        """Read bytes of these lengths, as :meth:`sized`. A length beyond the end is 0, and its message marked."""
        bad = (sizes < 0) | (sizes > self.ends - self.at)
        if bad.any():
            self.mark(bad)
            sizes = np.where(bad, 0, sizes)
        starts = np.minimum(self.at, self.ends)
        self.at = self.at + sizes
        return starts, starts + sizes

    def count(self, least: int) -> Vector:
        """Read the number of elements in a group, each of at least ``least`` bytes; 0 after the last group."""
        counts = self.whole()
        negative = np.flatnonzero(counts < 0)
        if len(negative):
            # A negative count is followed by the group's size in bytes, which is meant for skipping the group.
            behind = self.part(negative)
            behind.whole()
            self.at[negative] = behind.at
            counts[negative] = -counts[negative]
        bad = (counts < 0) | (counts > (self.ends - self.at) // least)
        if bad.any():
            self.mark(bad)
            counts = np.where(bad, 0, counts)
        return counts
