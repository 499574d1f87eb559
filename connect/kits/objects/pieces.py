"""Cuts what is written to a file into the pieces of an upload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["PieceStream"]


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
