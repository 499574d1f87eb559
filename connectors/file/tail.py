"""Follows a file that grows, is rotated and is truncated, and reads the standard input the same way."""

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

# Blocks that stay in the processor's cache, and below the size from which malloc asks the kernel for each.
_READ_BYTES: Final = 64 * 1024

_log = logging.getLogger(__name__)


class LineInput(Protocol):
    """Something that lines are read from."""

    @property
    def unfinished(self) -> int:
        """How many bytes were read of a line whose end is not there yet."""

    def take(self, count: int) -> Lines | LongLine | None:
        """The next lines, at most ``count``; ``None`` when there is nothing to read now."""

    def drained(self) -> bool:
        """Whether the last :meth:`take` gave nothing because all was read."""

    def remaining(self) -> int | None:
        """How many bytes were not taken yet; ``None`` if nobody knows."""

    def close(self) -> None:
        """Release the file."""


class Tail:
    """The lines of a regular file from ``position`` on, and of the files that take its place.

    At the end of the file it looks whether the file was truncated (it begins at 0 then) or another one stands
    at the path. The old one is read to its end first, and given up only when the new one has content: until
    then a writer may still be at the old.
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
        """How many bytes were read of a line whose end is not there yet."""
        return self._buffer.unfinished

    def take(self, count: int) -> Lines | LongLine | None:
        """The next lines, at most ``count``; ``None`` when there is nothing to read now."""
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
        """Whether the last :meth:`take` gave nothing because all was read."""
        return self._drained

    def remaining(self) -> int | None:
        """How many bytes of the file were not taken yet, half a line at its end included."""
        return max(0, os.fstat(self._file).st_size - self._taken)

    def close(self) -> None:
        """Release the file."""
        os.close(self._file)

    def _go_to(self, position: int) -> None:
        size = os.fstat(self._file).st_size
        if position > size:
            _log.warning(
                "File %s has %d bytes but was read up to %d before: it is another file or was truncated. "
                "Reading it from the beginning.",
                self._path,
                size,
                position,
            )
            position = 0
        elif position > 0 and os.pread(self._file, 1, position - 1) not in (b"\n", b"\r"):
            _log.warning(
                "Position %d of file %s is not at the beginning of a line: it may not be the file that was "
                "read before. Continuing there; reset the connector's offsets to read it from the beginning.",
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
            # Written between the last read and the look at the path.
            return True
        self._follow()
        return True

    def _follow(self) -> None:
        """Close the file that was rotated away, and begin the one that is now at the path."""
        if self._buffer.unfinished:
            _log.warning("The rotated file %s ends without a line end; publishing its last line as it is.", self._path)
            self._buffer.finish()
        try:
            file = _open(self._path)
        except FileNotFoundError:
            return
        os.close(self._file)
        self._file = file
        _log.info("There is a new file at %s: reading it from the beginning.", self._path)
        self._go_to(0)


class StandardInput:
    """The lines of the standard input. At its end the last line is complete, whatever it ends with."""

    def __init__(self, line_max_bytes: int) -> None:
        # That of the worker, and not of the process it runs its task in.
        self._file = 0 if sys.__stdin__ is None else sys.__stdin__.fileno()
        self._buffer = LineBuffer(0, line_max_bytes)
        self._ended = False

    @property
    def unfinished(self) -> int:
        """How many bytes were read of a line whose end is not there yet."""
        return self._buffer.unfinished

    def take(self, count: int) -> Lines | LongLine | None:
        """The next lines, at most ``count``; ``None`` when there is nothing to read now."""
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
        """Whether the end of the input was read."""
        return self._ended

    def remaining(self) -> int | None:
        """``None``: the rest of the input is unknown."""
        return None

    def close(self) -> None:
        """Leave the standard input as it is."""


def _open(path: str) -> int:
    """Open a regular file; a missing one is a ``FileNotFoundError``."""
    # Opening a pipe without a writer would block, so the kind of the file is looked at first.
    if not stat.S_ISREG(Path(path).stat().st_mode):
        raise ConnectError(
            f"Cannot read {path}: it is not a regular file. Name a file in 'file', or remove 'file' "
            "and connect a pipe to the standard input."
        )
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
