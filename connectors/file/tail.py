"""Follows a file that grows, is rotated or truncated, and reads standard input through the same interface."""

from __future__ import annotations

import logging
import os
import select
import stat
import sys
from pathlib import Path
from typing import Final, Protocol

from connect.errors import ConnectError
from connectors.file.lines import LineBuffer, Lines, LongLine

__all__ = ["LineInput", "StandardInput", "Tail"]

# Blocks that fit into the CPU cache, and stay below the size at which malloc requests memory from the kernel.
_READ_BYTES: Final = 64 * 1024

_log = logging.getLogger(__name__)


class LineInput(Protocol):
    """An input of lines."""

    @property
    def unfinished(self) -> int:
        """The number of bytes read of an incomplete line."""

    def take(self, count: int) -> Lines | LongLine | None:
        """Return the next lines, at most ``count``; ``None`` if nothing can be read now."""

    def drained(self) -> bool:
        """Return whether the last :meth:`take` returned nothing because everything was read."""

    def remaining(self) -> int | None:
        """Return the number of bytes not yet taken; ``None`` if unknown."""

    def total(self) -> int | None:
        """Return the number of bytes, taken or not; ``None`` if unknown."""

    def close(self) -> None:
        """Close the file."""


class Tail:
    """The lines of a regular file from ``position`` on, and of the files that replace it.

    At the end of the file it checks whether the file was truncated, in which case it starts again at 0, or replaced. A
    replaced file is read to its end first, and dropped only when the new one has content: until then a writer may still
    be appending to the old one.
    """

    def __init__(self, path: str, position: int, line_max_bytes: int) -> None:
        self._path = path
        self._file = _open(path)
        self._buffer = LineBuffer(0, line_max_bytes)
        self._drained = False
        self._taken = 0
        self._go_to(position)

    @property
    def unfinished(self) -> int:
        """The number of bytes read of an incomplete line."""
        return self._buffer.unfinished

    def take(self, count: int) -> Lines | LongLine | None:
        """Return the next lines, at most ``count``; ``None`` if nothing can be read now."""
        self._drained = False
        while not self._buffer.holds(count) and self._read():
            pass
        while (lines := self._buffer.take(count)) is None:
            if not (self._read() or self._was_truncated() or self._was_rotated()):
                self._drained = True
                return None
        self._taken = lines.start if isinstance(lines, LongLine) else lines.end
        return lines

    def drained(self) -> bool:
        """Return whether the last :meth:`take` returned nothing because everything was read."""
        return self._drained

    def remaining(self) -> int | None:
        """Return the number of bytes of the file not yet taken, including an incomplete last line."""
        return max(0, self.total() - self._taken)

    def total(self) -> int:
        """Return the number of bytes of the file."""
        return os.fstat(self._file).st_size

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _go_to(self, position: int) -> None:
        size = os.fstat(self._file).st_size
        if position > size:
            _log.warning(
                "File %s has %d bytes but was already read up to byte %d: it was replaced or truncated. Reading it "
                "from the beginning.",
                self._path,
                size,
                position,
            )
            position = 0
        elif position > 0 and os.pread(self._file, 1, position - 1) not in (b"\n", b"\r"):
            _log.warning(
                "Position %d of file %s is not at the beginning of a line, so the file may have been replaced. "
                "Continuing there; reset the connector's offsets to read it from the beginning.",
                position,
                self._path,
            )
        os.lseek(self._file, position, os.SEEK_SET)
        self._read_to = self._taken = position
        self._buffer.restart(position)

    def _read(self) -> bool:
        data = os.read(self._file, _READ_BYTES)
        if not data:
            return False
        self._read_to += len(data)
        self._buffer.feed(data)
        return True

    def _was_truncated(self) -> bool:
        if os.fstat(self._file).st_size >= self._read_to:
            return False
        self._go_to(self._read_to)
        return True

    def _was_rotated(self) -> bool:
        try:
            there = Path(self._path).stat()
        except FileNotFoundError:
            return False
        here = os.fstat(self._file)
        if (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino) or there.st_size == 0:
            return False
        if self._read():
            # Lines written between the last read and the check of the path.
            return True
        self._follow()
        return True

    def _follow(self) -> None:
        """Close the rotated file, and start with the file that is now at the path."""
        if self._buffer.unfinished:
            _log.warning(
                "The rotated file %s ends without a line ending; publishing its last line as it is.", self._path
            )
            self._buffer.finish()
        try:
            file = _open(self._path)
        except FileNotFoundError:
            return
        os.close(self._file)
        self._file = file
        _log.info("Found a new file at %s: reading it from the beginning.", self._path)
        self._go_to(0)


class StandardInput:
    """The lines of standard input. At its end the last line counts as complete."""

    def __init__(self, line_max_bytes: int) -> None:
        # The worker's standard input, not that of the task's process.
        self._file = 0 if sys.__stdin__ is None else sys.__stdin__.fileno()
        self._buffer = LineBuffer(0, line_max_bytes)
        self._ended = False

    @property
    def unfinished(self) -> int:
        """The number of bytes read of an incomplete line."""
        return self._buffer.unfinished

    def take(self, count: int) -> Lines | LongLine | None:
        """Return the next lines, at most ``count``; ``None`` if nothing can be read now."""
        while (lines := self._buffer.take(count)) is None:
            if self._ended or not select.select([self._file], [], [], 0)[0]:
                return None
            if data := os.read(self._file, _READ_BYTES):
                self._buffer.feed(data)
            else:
                self._ended = True
                self._buffer.finish()
        return lines

    def drained(self) -> bool:
        """Return whether the end of the input has been read."""
        return self._ended

    def remaining(self) -> int | None:
        """``None``: the length of the input is unknown."""
        return None

    def total(self) -> int | None:
        """``None`` as well."""
        return None

    def close(self) -> None:
        """Do nothing: standard input stays open."""


def _open(path: str) -> int:
    """Open a regular file. Raises ``FileNotFoundError`` if it is missing."""
    # Opening a pipe without a writer would block, so check the kind of the file first.
    if not stat.S_ISREG(Path(path).stat().st_mode):
        raise ConnectError(
            f"Cannot read {path}: it is not a regular file. Set 'file' to a regular file, or remove it and connect a "
            "pipe to standard input."
        )
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
