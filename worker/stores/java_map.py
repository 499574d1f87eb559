"""A Java ``HashMap<byte[], byte[]>`` in Java's serialisation format: the offsets file of standalone mode.

Only what that one class writes is understood (Java Object Serialization Specification, chapter 6). The class is named
and its parts have fixed sizes, so there is no object graph to build and nothing of it is executed.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

__all__ = ["read_map", "write_map"]

_HEADER: Final = bytes.fromhex("aced0005")
# TC_OBJECT, TC_CLASSDESC java.util.HashMap with its serialVersionUID, flags and the fields loadFactor and threshold.
_HASH_MAP: Final = (
    b"sr\x00\x11java.util.HashMap"
    + bytes.fromhex("0507dac1c31660d103")
    + b"\x00\x02F\x00\nloadFactorI\x00\tthreshold"
    + b"xp"
)
# TC_CLASSDESC [B with its serialVersionUID; later arrays refer to it by its handle.
_BYTES: Final = b"r\x00\x02[B" + bytes.fromhex("acf317f8060854e002") + b"\x00\x00xp"
_BYTES_AGAIN: Final = b"q\x00~\x00\x02"
_ARRAY: Final = b"u"
_NULL: Final = b"p"
_END: Final = b"x"
_LOAD_FACTOR: Final = 0.75


def write_map(values: Mapping[bytes, bytes]) -> bytes:
    """The map as Java would write it."""
    capacity = 16
    while capacity * _LOAD_FACTOR < len(values):
        capacity *= 2
    threshold = int(capacity * _LOAD_FACTOR)
    parts = [_HEADER, _HASH_MAP, struct.pack(">fi", _LOAD_FACTOR, threshold)]
    parts.append(b"w\x08" + struct.pack(">ii", capacity, len(values)))
    described = _BYTES
    for pair in values.items():
        for item in pair:
            parts.append(_ARRAY + described + struct.pack(">i", len(item)) + item)
            described = _BYTES_AGAIN
    parts.append(_END)
    return b"".join(parts)


def read_map(data: bytes) -> dict[bytes, bytes]:
    """The map that Java, or :func:`write_map`, wrote; ``ValueError`` says where ``data`` is something else."""
    reader = _Reader(data)
    reader.expect(_HEADER, "the header of Java's serialisation")
    reader.expect(_HASH_MAP, "a java.util.HashMap")
    reader.skip(8)
    reader.expect(b"w\x08", "the size of the map")
    reader.skip(4)
    size = reader.integer()
    described = _BYTES
    values: dict[bytes, bytes] = {}
    for _ in range(size):
        pair: list[bytes | None] = []
        for _ in range(2):
            if reader.accept(_NULL):
                pair.append(None)
                continue
            reader.expect(_ARRAY + described, "a byte array")
            pair.append(reader.take(reader.integer()))
            described = _BYTES_AGAIN
        key, value = pair
        if key is not None and value is not None:
            values[key] = value
    reader.expect(_END, "the end of the map")
    return values


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def accept(self, token: bytes) -> bool:
        found = self._data.startswith(token, self._at)
        self._at += len(token) * found
        return found

    def expect(self, token: bytes, what: str) -> None:
        if not self.accept(token):
            raise ValueError(f"{what} was expected at byte {self._at}")

    def skip(self, count: int) -> None:
        self.take(count)

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._data):
            raise ValueError(f"it ends before byte {self._at + max(count, 0)}")
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken

    def integer(self) -> int:
        number: int = struct.unpack(">i", self.take(4))[0]
        return number
