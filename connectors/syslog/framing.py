"""Messages in a stream of bytes (RFC 6587): counted ones, and lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

__all__ = ["ENDS", "Framer", "Frames"]

ENDS: Final = b"\r\n\0"
"""What senders put after a message, and is no part of it."""

_COUNTED: Final = re.compile(rb"([1-9][0-9]{0,8}) <")
_MAYBE_COUNTED: Final = re.compile(rb"[1-9][0-9]{0,8} ?\Z")
_ZERO: Final = 0x30
_NINE: Final = 0x39


@dataclass(slots=True)
class Frames:
    """Some messages, and the places of those that were cut: too long, or the connection ended within them."""

    messages: list[bytes] = field(default_factory=list)
    cut: set[int] = field(default_factory=set)

    def add(self, message: bytes | bytearray, *, cut: bool = False) -> None:
        """Add a message without what ends it; an empty one is none."""
        if stripped := bytes(message).rstrip(ENDS):
            if cut:
                self.cut.add(len(self.messages))
            self.messages.append(stripped)


class Framer:
    """Divides a stream. A message that begins with a length and ``<`` has this length, any other ends with its line.

    Each is at most ``most_bytes`` long: what a longer one has beyond that is skipped as it comes.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: bytes | bytearray = b""
        self._searched = 0
        self._skipped_bytes = 0
        self._skips_line = False

    @property
    def is_within_message(self) -> bool:
        """Whether a message has begun and not ended."""
        return bool(self._kept) or self._skipped_bytes > 0 or self._skips_line

    def feed(self, data: bytes) -> Frames:
        """Return the messages that end in these bytes."""
        frames = Frames()
        work = self._extended(data)
        position, end = 0, len(work)
        while position < end:
            moved = self._step(work, position, end, frames)
            if moved == position:
                break
            position = moved
        self._keep(work, position)
        return frames

    def finish(self) -> Frames:
        """Return what is left at the end of the stream: a last line without its end, or a part of a counted message."""
        frames = Frames()
        if not (self._skipped_bytes or self._skips_line):
            counted = _COUNTED.match(self._kept)
            rest = self._kept[counted.end() - 1 :] if counted else self._kept
            frames.add(rest, cut=counted is not None)
        self._kept = b""
        return frames

    def _extended(self, data: bytes) -> bytes | bytearray:
        """Return the bytes to divide: copied only where something was kept."""
        if not self._kept:
            return data
        if not isinstance(self._kept, bytearray):
            self._kept = bytearray(self._kept)
        self._kept += data
        return self._kept

    def _keep(self, work: bytes | bytearray, position: int) -> None:
        if isinstance(work, bytearray):
            del work[:position]
            self._kept = work
        else:
            self._kept = work[position:]
        self._searched = max(0, self._searched - position)

    def _step(self, work: bytes | bytearray, position: int, end: int, frames: Frames) -> int:
        """Take one message, or skip; return where the next begins, which is ``position`` if more bytes are needed."""
        if self._skipped_bytes:
            skipped = min(self._skipped_bytes, end - position)
            self._skipped_bytes -= skipped
            return position + skipped
        if self._skips_line:
            found = work.find(b"\n", position)
            self._skips_line = found < 0
            return end if found < 0 else found + 1
        if _ZERO < work[position] <= _NINE:
            if (counted := _COUNTED.match(work, position)) is not None:
                return self._counted(work, position, counted.end() - 1, int(counted[1]), frames)
            if _MAYBE_COUNTED.match(work, position):
                return position
        return self._line(work, position, end, frames)

    def _counted(self, work: bytes | bytearray, position: int, start: int, length: int, frames: Frames) -> int:
        taken = min(length, self._most_bytes)
        if len(work) - start < taken:
            return position
        frames.add(work[start : start + taken], cut=taken < length)
        self._skipped_bytes = length - taken
        return start + taken

    def _line(self, work: bytes | bytearray, position: int, end: int, frames: Frames) -> int:
        found = work.find(b"\n", max(position, self._searched))
        stop = end if found < 0 else found
        if stop - position > self._most_bytes:
            frames.add(work[position : position + self._most_bytes], cut=True)
            self._skips_line = True
            return position + self._most_bytes
        if found < 0:
            self._searched = end
            return position
        frames.add(work[position:found])
        return found + 1
