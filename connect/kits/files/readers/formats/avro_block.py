"""The blocks of an Avro container file: framing and decompression.

Both are limited, since sizes in a file need not be true, and a few bytes can decompress to gigabytes.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import IO, Any, Final

from connect.errors import DataError

__all__ = ["CODECS", "SYNC_BYTES", "Frame", "Frames", "read_long", "unpacked"]

SYNC_BYTES: Final = 16
_MOST_BYTES: Final = 10
_CRC_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """One compressed block: the number of its values, and where its ``size`` bytes begin."""

    count: int
    place: int
    size: int


class Frames:
    """The frames of a file, from the first one on."""

    def __init__(self, file: IO[bytes], start: int, sync: bytes, limit: int) -> None:
        self._file = file
        self._start = start
        self._sync = sync
        self._limit = limit

    def __iter__(self) -> Iterator[Frame]:
        place = self._start
        while True:
            self._file.seek(place)
            count = read_long(self._file)
            if count is None:
                return
            size = read_long(self._file)
            begin = self._file.tell()
            if size is None or count < 0 or size < 0:
                raise DataError(f"the block at byte {place} is damaged or incomplete")
            if size > self._limit:
                raise DataError(f"the block at byte {place} has {size} bytes, more than {self._limit}")
            self._file.seek(begin + size)
            if self._file.read(SYNC_BYTES) != self._sync:
                raise DataError(f"the block at byte {place} is damaged or incomplete")
            yield Frame(count, begin, size)
            place = begin + size + SYNC_BYTES

    def data(self, frame: Frame) -> bytes:
        """Return the compressed bytes of a block."""
        self._file.seek(frame.place)
        data = self._file.read(frame.size)
        if len(data) < frame.size:
            raise DataError("it was truncated while it was read")
        return data


def read_long(file: IO[bytes]) -> int | None:
    """Read an Avro integer; ``None`` at the end of the file."""
    number = 0
    for position in range(_MOST_BYTES):
        byte = file.read(1)
        if not byte:
            if position:
                raise DataError("it ends in the middle of a number")
            return None
        number |= (byte[0] & 0x7F) << 7 * position
        if byte[0] < 0x80:
            return number >> 1 ^ -(number & 1)
    raise DataError("a number has too many bytes")


def unpacked(codec: str, data: bytes, limit: int) -> bytes:
    """Return the decompressed bytes of a block, of which there may be at most ``limit``."""
    try:
        result = CODECS[codec](data, limit)
    except (zlib.error, OSError, lzma.LZMAError, EOFError, ValueError, IndexError) as error:
        raise DataError(f"a block cannot be decompressed: {error}") from error
    if len(result) > limit:
        raise DataError(f"a block has more than {limit} bytes after decompression")
    return result


def _plain(data: bytes, limit: int) -> bytes:  # noqa: ARG001 - as the other codecs
    return data


def _deflate(data: bytes, limit: int) -> bytes:
    made = zlib.decompressobj(-zlib.MAX_WBITS)
    result = made.decompress(data, limit + 1)
    if not made.eof and len(result) <= limit:
        raise EOFError("it ends too early")
    return result


def _streamed(new: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]) -> Callable[[bytes, int], bytes]:
    def unpack(data: bytes, limit: int) -> bytes:
        made = new()
        result = made.decompress(data, limit + 1)
        if not made.eof and len(result) <= limit:
            raise EOFError("it ends too early")
        return result

    return unpack


def _snappy(data: bytes, limit: int) -> bytes:
    body, checksum = data[:-_CRC_BYTES], data[-_CRC_BYTES:]
    size, shift = 0, 0
    for byte in body[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    result = _sized("snappy", body, size, limit)
    if zlib.crc32(result).to_bytes(_CRC_BYTES, "big") != checksum:
        raise ValueError("its checksum does not match")
    return result


def _lz4(data: bytes, limit: int) -> bytes:
    return _sized("lz4_raw", data[4:], int.from_bytes(data[:4], "little"), limit)


def _sized(name: str, data: bytes, size: int, limit: int) -> bytes:
    """Decompress bytes of known size with Arrow."""
    if size > limit:
        raise DataError(f"a block has more than {limit} bytes after decompression")
    if not size:
        return b""
    result: bytes = _arrow(name).Codec(name).decompress(data, size, asbytes=True)
    return result


def _zstandard(data: bytes, limit: int) -> bytes:
    arrow = _arrow("zstandard")
    with arrow.CompressedInputStream(arrow.BufferReader(data), "zstd") as stream:
        result: bytes = stream.read(limit + 1)
    return result


def _arrow(codec: str) -> Any:
    if find_spec("pyarrow") is None:
        raise DataError(f"the codec {codec} needs pyarrow: pip install 'sluice-connect[arrow]'")
    import pyarrow as pa  # noqa: PLC0415 - it may be missing

    return pa


CODECS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "null": _plain,
    "deflate": _deflate,
    "bzip2": _streamed(bz2.BZ2Decompressor),
    "xz": _streamed(lzma.LZMADecompressor),
    "snappy": _snappy,
    "zstandard": _zstandard,
    "lz4": _lz4,
}
"""How blocks are packed, by the names in the header of a file."""
