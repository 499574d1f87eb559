"""A terminal: what a process writes to it, and what is left to be seen."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import BinaryIO, Final

__all__ = ["Terminal"]

_ERASE: Final = "\r\x1b[K"


class Terminal:
    """A pseudo terminal of 100 columns. Processes write to ``stream``; a thread reads what they write."""

    def __init__(self) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.stream: BinaryIO = os.fdopen(theirs, "wb", buffering=0)
        self._written = bytearray()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[Terminal]:
        """Open a terminal for a ``with`` block."""
        terminal = cls()
        try:
            yield terminal
        finally:
            terminal.close()

    def close(self) -> None:
        """End it; what was written stays to be seen. Processes must have ended before."""
        if not self.stream.closed:
            self.stream.close()
            self._reader.join(10)
            os.close(self._ours)

    @property
    def written(self) -> str:
        """Everything that was written so far."""
        return bytes(self._written).decode(errors="replace").replace("\r\n", "\n")

    @property
    def rows(self) -> list[str]:
        """The rows as they are seen now."""
        return [row.rpartition(_ERASE)[2] for row in self.written.split("\n")]

    def _read(self) -> None:
        # A terminal that nobody writes to any more is an error to read.
        with contextlib.suppress(OSError):
            while part := os.read(self._ours, 65536):
                self._written += part
