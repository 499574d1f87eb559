"""Splits a stream of bytes into lines, many at a time, with the byte position after each."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Final, overload

from connect.data import Lazy, Offset

__all__ = ["LineBuffer", "Lines", "LongLine", "Positions", "decode"]

_BATCH_BYTES: Final = 1024 * 1024
_HEAD_BYTES: Final = 1024
_JAVA_REPLACE: Final = "replace-as-java"


class Positions(Sequence[Offset]):
    """The source offsets of lines, ``{"position": n}``: only the last is stored, the others are computed."""

    __slots__ = ("_ends", "_last")

    def __init__(self, ends: Sequence[int], last: int) -> None:
        self._ends = ends
        self._last = last

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> Offset: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Offset]: ...
    def __getitem__(self, index: int | slice) -> Offset | Sequence[Offset]:
        if isinstance(index, slice):
            return [{"position": end} for end in self._ends[index]]
        if index in (-1, len(self._ends) - 1):
            return {"position": self._last}
        return {"position": self._ends[index]}


@dataclass(frozen=True, slots=True)
class Lines:
    """Consecutive lines; ``ends`` are the byte positions after each, and ``end`` is the last of them."""

    values: list[str]
    ends: Sequence[int]
    end: int

    @classmethod
    def joined(cls, parts: Sequence[Lines]) -> Lines:
        """Concatenate ``parts``, of which there must be at least one."""
        if len(parts) == 1:
            return parts[0]
        values = list(chain.from_iterable(part.values for part in parts))
        ends = Lazy(len(values), lambda: list(chain.from_iterable(part.ends for part in parts)))
        return cls(values, ends, parts[-1].end)

    @property
    def source_offsets(self) -> Positions:
        """The source offset of each line."""
        return Positions(self.ends, self.end)


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line that is longer than allowed. ``end`` is ``None`` until the end of the line has been read."""

    start: int
    end: int | None
    head: str


class LineBuffer:
    r"""Takes bytes as they are read and returns complete lines; an incomplete line waits for its end.

    A line ends with ``\n``, ``\r\n`` or ``\r``. Memory is bounded by the bytes of one :meth:`feed` plus ``max_bytes``,
    the length of the longest line kept (I9).
    """

    def __init__(self, position: int, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._ready: deque[_Block | LongLine] = deque()
        self.restart(position)

    def restart(self, position: int) -> None:
        """Continue at another position; complete lines already fed are kept."""
        self._position = position
        self._parts: list[bytes] = []
        self._skipping = False
        self.unfinished = 0

    def feed(self, data: bytes) -> None:
        """Add the next bytes."""
        if self._parts and self._parts[-1].endswith(b"\r"):
            # Only now is it known whether this \r is a line ending or half of one.
            self._parts[-1] = self._parts[-1][:-1]
            data = b"\r" + data
            self.unfinished -= 1
        cut = _last_line_end(data)
        if cut == 0:
            self._hold(data)
            return
        whole, rest = b"".join([*self._parts, data[:cut]]), data[cut:]
        if self._skipping:
            whole = self._skip_to_line(whole)
        self._parts, self.unfinished, self._skipping = [], 0, False
        self._add(whole)
        if rest:
            self._hold(rest)

    def finish(self) -> None:
        """End the input: the remaining bytes are the last line, even without a line ending."""
        rest = b"".join(self._parts)
        if rest and not self._skipping:
            end = self._position + len(rest)
            self._ready.append(_Block([decode(rest.removesuffix(b"\r"))], rest, self._position))
            self._position = end
        self.restart(self._position)

    def take(self, count: int) -> Lines | LongLine | None:
        """Return the next lines, at most ``count``, or one that is too long; ``None`` if more bytes are needed."""
        if self._ready and isinstance(long := self._ready[0], LongLine):
            self._ready.popleft()
            return long
        parts: list[Lines] = []
        while count > 0 and self._ready and isinstance(block := self._ready[0], _Block):
            parts.append(block.take(count))
            count -= len(parts[-1].values)
            if not block:
                self._ready.popleft()
        return Lines.joined(parts) if parts else None

    def holds(self, count: int) -> bool:
        """Return whether :meth:`take` would return ``count`` lines, or as many bytes as it returns at once."""
        blocks = [block for block in self._ready if isinstance(block, _Block)]
        return sum(map(len, blocks)) >= count or sum(block.size for block in blocks) >= _BATCH_BYTES

    def _hold(self, data: bytes) -> None:
        """Keep an incomplete line; of one that is too long keep only the last byte, which may be half of its line
        ending.
        """
        self._parts.append(data)
        self.unfinished += len(data)
        if not self._skipping and self.unfinished - data.endswith(b"\r") <= self._max_bytes:
            return
        held = b"".join(self._parts)
        if not self._skipping:
            self._ready.append(LongLine(self._position, None, decode(held[:_HEAD_BYTES])))
        self._skipping = True
        self._position += len(held) - 1
        self._parts, self.unfinished = [held[-1:]], 1

    def _skip_to_line(self, whole: bytes) -> bytes:
        end = len(whole.splitlines(keepends=True)[0])
        self._position += end
        return whole[end:]

    def _add(self, whole: bytes) -> None:
        """Add the lines of bytes that end with a line ending."""
        start = self._position
        self._position += len(whole)
        if len(whole) <= self._max_bytes:
            if whole:
                self._ready.append(_Block.of(whole, start))
            return
        run: list[bytes] = []
        for line in whole.splitlines(keepends=True):
            text = line.rstrip(b"\r\n")
            if len(text) > self._max_bytes:
                self._add_run(run, start)
                start += sum(map(len, run))
                self._ready.append(LongLine(start, start + len(line), decode(text[:_HEAD_BYTES])))
                start, run = start + len(line), []
            else:
                run.append(line)
        self._add_run(run, start)

    def _add_run(self, run: list[bytes], start: int) -> None:
        if run:
            self._ready.append(_Block.of(b"".join(run), start))


class _Block:
    """The lines of a contiguous piece of bytes, consumed from the front."""

    __slots__ = ("_ends", "_lines", "_next", "_position", "size")

    def __init__(self, lines: list[str], data: bytes, start: int) -> None:
        self._lines = lines
        self._next = 0
        self.size = len(data)
        self._position = start
        # If every character is one byte and every line ending one character, positions follow from line lengths.
        simple = sum(map(len, lines)) + len(lines) == len(data)
        self._ends = None if simple else _ends(data, start)

    @classmethod
    def of(cls, data: bytes, start: int) -> _Block:
        text = decode(data)
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        lines.pop()
        return cls(lines, data, start)

    def __len__(self) -> int:
        return len(self._lines) - self._next

    def take(self, count: int) -> Lines:
        first, start = self._next, self._position
        values = self._lines[first : first + count]
        self._next += len(values)
        if self._ends is not None:
            ends: Sequence[int] = self._ends[first : first + count]
            self._position = ends[-1]
        else:
            self._position += sum(map(len, values)) + len(values)
            ends = Lazy(len(values), lambda: _ends_of(values, start))
        return Lines(values, ends, self._position)


def decode(data: bytes) -> str:
    """Decode UTF-8; as in Java, a malformed sequence, including a surrogate, becomes one U+FFFD."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors=_JAVA_REPLACE)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    start, data = error.start, error.object
    if data[start] == 0xED and data[start + 1 : start + 2] >= b"\xa0" and _continues(data, start + 1):
        return "\ufffd", start + 2 + _continues(data, start + 2)
    return "\ufffd", error.end


def _continues(data: bytes, index: int) -> bool:
    return index < len(data) and data[index] & 0xC0 == 0x80


codecs.register_error(_JAVA_REPLACE, _replace)


def _last_line_end(data: bytes) -> int:
    """Return the index after the last complete line ending."""
    after = data.rfind(b"\n") + 1
    # A \r in the last place may be half of \r\n: it counts when the next byte is known.
    carriage_return = data.rfind(b"\r", after, len(data) - 1) + 1
    return max(after, carriage_return)


def _ends(data: bytes, start: int) -> list[int]:
    ends = accumulate(map(len, data.splitlines(keepends=True)), initial=start)
    return list(ends)[1:]


def _ends_of(lines: list[str], start: int) -> list[int]:
    ends = accumulate((len(line) + 1 for line in lines), initial=start)
    return list(ends)[1:]
