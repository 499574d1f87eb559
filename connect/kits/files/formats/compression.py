"""Compression of whole files: what is written is compressed as it comes, in bounded memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

__all__ = ["COMPRESSION_EXTENSIONS", "CompressedSink", "Compression", "compressed"]

Compression = Literal["none", "gzip", "snappy", "zstd"]
COMPRESSION_EXTENSIONS: Final = {"none": "", "gzip": ".gz", "snappy": ".snappy", "zstd": ".zst"}

_GZIP: Final = 16 + zlib.MAX_WBITS
_BLOCK_BYTES: Final = 1 << 20
_SNAPPY_BLOCK_BYTES: Final = 32 * 1024
_SNAPPY_MAGIC: Final = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2
"""The head of a file of xerial's SnappyOutputStream, which is what Java's sinks write."""


class CompressedSink(Protocol):
    """Takes the bytes of a file, and passes them on compressed."""

    def write(self, data: bytes) -> None:
        """Compress bytes."""

    def close(self) -> None:
        """Pass on what is left."""

    @property
    def held(self) -> int:
        """Return how many bytes wait for more."""


def compressed(sink: Callable[[bytes], object], kind: Compression, level: int = -1) -> CompressedSink:
    """Return what compresses into ``sink``. The same bytes give the same file, which has no time in it."""
    if kind == "gzip":
        return _Gzip(sink, level)
    if kind == "none":
        return _Plain(sink)
    return _Blocks(sink, kind)


class _Plain:
    """Passes bytes on as they are."""

    held = 0

    def __init__(self, sink: Callable[[bytes], object]) -> None:
        self._sink = sink

    def write(self, data: bytes) -> None:
        self._sink(data)

    def close(self) -> None:
        """There is nothing left."""


class _Gzip:
    """Compresses by zlib, with an empty time in the header."""

    held = 0

    def __init__(self, sink: Callable[[bytes], object], level: int) -> None:
        self._sink = sink
        self._compressor = zlib.compressobj(level, zlib.DEFLATED, _GZIP)

    def write(self, data: bytes) -> None:
        if part := self._compressor.compress(data):
            self._sink(part)

    def close(self) -> None:
        self._sink(self._compressor.flush())


class _Blocks:
    """Compresses blocks of one size on their own: frames of Zstandard, or blocks as xerial's Snappy frames them."""

    def __init__(self, sink: Callable[[bytes], object], kind: Literal["snappy", "zstd"]) -> None:
        import pyarrow as pa  # noqa: PLC0415 - only where it is needed

        self._sink = sink
        self._codec: Any = pa.Codec(kind)
        self._is_snappy = kind == "snappy"
        self._size = _SNAPPY_BLOCK_BYTES if self._is_snappy else _BLOCK_BYTES
        self._waiting = bytearray()
        if self._is_snappy:
            sink(_SNAPPY_MAGIC)

    @property
    def held(self) -> int:
        return len(self._waiting)

    def write(self, data: bytes) -> None:
        self._waiting += data
        whole = len(self._waiting) // self._size * self._size
        for start in range(0, whole, self._size):
            self._pass_on(bytes(self._waiting[start : start + self._size]))
        del self._waiting[:whole]

    def close(self) -> None:
        if self._waiting or not self._is_snappy:
            self._pass_on(bytes(self._waiting))
            self._waiting.clear()

    def _pass_on(self, block: bytes) -> None:
        packed: bytes = self._codec.compress(block, asbytes=True)
        self._sink(len(packed).to_bytes(4, "big") + packed if self._is_snappy else packed)
