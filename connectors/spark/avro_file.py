"""Avro files as far as they are read without decoding a value: the metadata, and the rows of the blocks."""

from __future__ import annotations

import io
import json
from typing import Any, BinaryIO, Final

__all__ = ["avro_rows", "avro_schema"]

_MAGIC: Final = b"Obj\x01"
_SYNC: Final = 16
_LONGEST: Final = 10


def avro_schema(file: BinaryIO) -> Any:
    """The schema in the header, as JSON reads it."""
    return json.loads(_metadata(file).get("avro.schema", b"null"))


def avro_rows(file: BinaryIO) -> int:
    """The rows of all blocks, from their headers; ``ValueError`` if the file is broken."""
    _metadata(file)
    sync = _exactly(file, _SYNC)
    rows = 0
    while byte := file.read(1):
        count = _long(file, byte)
        size = _long(file)
        if count < 0 or size < 0:
            raise ValueError("it has a block of a negative size")
        file.seek(size, io.SEEK_CUR)
        if _exactly(file, _SYNC) != sync:
            raise ValueError("a block does not end with the marker of the file")
        rows += count
    return rows


def _metadata(file: BinaryIO) -> dict[str, bytes]:
    """The map in the header: blocks of pairs of a text and bytes, until an empty one."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it is not an Avro file")
    found: dict[str, bytes] = {}
    while count := _long(file):
        if count < 0:
            _long(file)
        for _ in range(abs(count)):
            name = _exactly(file, _long(file)).decode()
            found[name] = _exactly(file, _long(file))
    return found


def _long(file: BinaryIO, first: bytes = b"") -> int:
    """A number, of which ``first`` is read already."""
    number = 0
    for place in range(_LONGEST):
        byte = first or _exactly(file, 1)
        first = b""
        number |= (byte[0] & 0x7F) << (7 * place)
        if byte[0] < 0x80:
            return (number >> 1) ^ -(number & 1)
    raise ValueError("it has a number that is too long")


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size) if size >= 0 else b""
    if len(data) != size:
        raise ValueError("it ends too early")
    return data
