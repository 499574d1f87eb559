"""The pieces of an upload: what is written to a file is cut into them, and they are sent in few calls."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final

__all__ = ["LargeReads", "PieceStream"]


class PieceStream:
    """Passes a file on to ``send`` in pieces of a fixed size, and finally the rest: at least one piece."""

    def __init__(self, size: int, send: Callable[[bytes], None]) -> None:
        self.sent = 0
        """The number of bytes sent."""
        self.closed = False
        self._size = size
        self._send = send
        self._waiting = bytearray()

    def write(self, data: Any, /) -> int:
        """Send complete pieces; data written to a closed stream is dropped."""
        if not self.closed:
            self._waiting += data
            while len(self._waiting) >= self._size:
                self._send_piece(self._size)
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self.sent + len(self._waiting)

    def flush(self) -> None:
        """Do nothing: pieces have a fixed size."""

    def close(self) -> None:
        """Send the rest."""
        if not self.closed:
            self.closed = True
            if self._waiting or not self.sent:
                self._send_piece(len(self._waiting))

    def drop(self) -> None:
        """Send nothing more."""
        self.closed = True

    def _send_piece(self, size: int) -> None:
        piece = bytes(self._waiting[:size])
        del self._waiting[:size]
        self._send(piece)
        self.sent += size


class LargeReads(io.RawIOBase):
    """Content that a client sends in few calls, whatever size it reads.

    After each call a thread waits for the interpreter's lock, up to 5 ms while another one computes: in pieces of the
    client's own size an upload makes hardly any progress beside a task that encodes records.
    """

    _LEAST: Final = 4 << 20

    def __init__(self, data: bytes | bytearray) -> None:
        super().__init__()
        self._data = memoryview(data)
        self._place = 0

    def read(self, size: int = -1) -> memoryview:
        """Return the next bytes: more than asked for, and not copied."""
        end = len(self._data) if size < 0 else self._place + max(size, self._LEAST)
        found = self._data[self._place : end]
        self._place += len(found)
        return found

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: len(self._data)}[whence]
        self._place = min(max(start + offset, 0), len(self._data))
        return self._place

    def tell(self) -> int:
        return self._place
