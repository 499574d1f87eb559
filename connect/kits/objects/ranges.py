"""Opens files in stores that support range reads."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, Final, cast

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["open_ranges"]

_READ_AHEAD: Final = 1 << 16


def open_ranges(size: int, read: Callable[[int, int], bytes], close: Callable[[], None] | None = None) -> BinaryIO:
    """Return a file of ``size`` bytes for random reads. ``read`` returns a number of bytes from a position on."""
    return cast("BinaryIO", io.BufferedReader(_Ranges(size, read, close), _READ_AHEAD))


class _Ranges(io.RawIOBase):
    """Reads from a seekable position."""

    def __init__(self, size: int, read: Callable[[int, int], bytes], close: Callable[[], None] | None) -> None:
        self._size = size
        self._read = read
        self._close = close
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        size = max(0, min(len(view), self._size - self._position))
        if size:
            view[:size] = self._read(self._position, size)
        self._position += size
        return size

    def close(self) -> None:
        if not self.closed and self._close is not None:
            self._close()
        super().close()
