"""Avro container files: a header with the schema, and blocks of records.

Schema and records are those of the Avro converter, so a topic that is read by it and written here keeps its schema.
"""

from __future__ import annotations

import bz2
import hashlib
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from connect.data import Column, Schema
from connect.kits.avro.avro_text import avro_text
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.encode import Encode, encoder
from connect.kits.avro.from_connect import avro_from_connect
from connect.kits.avro.wire_format import varint
from connect.kits.schema_frame import HEADER

__all__ = ["AvroCodec", "AvroFormat"]

AvroCodec = Literal["null", "deflate", "snappy", "bzip2", "xz", "zstandard"]

_MAGIC: Final = b"Obj\x01"
_BLOCK_BYTES: Final = 64_000
"""The size from which on a block is written, that of Java's library."""
_RAW_DEFLATE: Final = -15
_NO_ID: Final = 0


@dataclass(frozen=True)
class AvroFormat:
    """Container files with one codec; ``suffix`` ends their names."""

    codec: AvroCodec = "null"
    data: AvroDataConfig = field(default_factory=AvroDataConfig)
    suffix: str = ".avro"
    needs_struct = False

    @property
    def extension(self) -> str:
        """The end of the names of files."""
        return self.suffix

    def writer(self, sink: Callable[[bytes], object], schema: Schema | None, seed: str) -> _ContainerWriter:
        """Return the writer of a file. The mark between its blocks is derived from ``seed``."""
        mark = hashlib.md5(seed.encode("utf-8", "replace"), usedforsecurity=False).digest()
        return _ContainerWriter(sink, *_encoding(schema, self.data), self.codec, mark)


@lru_cache(maxsize=256)
def _encoding(schema: Schema | None, data: AvroDataConfig) -> tuple[Encode, str]:
    """Return what encodes values of a schema, which is compiled once for all files, and the Avro schema as text."""
    avro = avro_from_connect(schema, data)
    return encoder(schema, avro, _NO_ID, data), avro_text(avro)


class _ContainerWriter:
    """Collects encoded records into blocks."""

    def __init__(
        self, sink: Callable[[bytes], object], encode: Encode, schema: str, codec: AvroCodec, mark: bytes
    ) -> None:
        self._sink = sink
        self._encode = encode
        self._compress = _compressor(codec)
        self._mark = mark
        self._block = bytearray()
        self._records = 0
        # A file without any record, too, has its head.
        self._head: bytes | None = _head(schema, codec, mark)

    @property
    def held(self) -> int:
        return len(self._block)

    def write(self, column: Column) -> None:
        for message in self._encode(column.values()):
            self._block += message[HEADER:]
            self._records += 1
            if len(self._block) >= _BLOCK_BYTES:
                self._end_block()

    def close(self) -> None:
        self._end_block()

    def _end_block(self) -> None:
        if self._head is not None:
            self._sink(self._head)
            self._head = None
        if self._records:
            data = self._compress(bytes(self._block))
            self._sink(_long(self._records) + _long(len(data)) + data + self._mark)
            self._block.clear()
            self._records = 0


def _head(schema: str, codec: str, mark: bytes) -> bytes:
    entries = {"avro.schema": schema, "avro.codec": codec}
    written = b"".join(_text(key) + _text(value) for key, value in entries.items())
    return _MAGIC + _long(len(entries)) + written + _long(0) + mark


def _long(number: int) -> bytes:
    return varint(number << 1)


def _text(text: str) -> bytes:
    data = text.encode()
    return _long(len(data)) + data


def _compressor(codec: AvroCodec) -> Callable[[bytes], bytes]:
    match codec:
        case "deflate":
            return _deflated
        case "bzip2":
            return bz2.compress
        case "xz":
            return lzma.compress
        case "snappy" | "zstandard":
            return _by_arrow(codec)
    return bytes


def _deflated(data: bytes) -> bytes:
    compressor = zlib.compressobj(-1, zlib.DEFLATED, _RAW_DEFLATE)
    return compressor.compress(data) + compressor.flush()


def _by_arrow(codec: str) -> Callable[[bytes], bytes]:
    import pyarrow as pa  # noqa: PLC0415 - only where it is needed

    if codec == "zstandard":
        zstd: Any = pa.Codec("zstd")
        return lambda data: bytes(zstd.compress(data, asbytes=True))
    snappy: Any = pa.Codec("snappy")
    return lambda data: bytes(snappy.compress(data, asbytes=True)) + zlib.crc32(data).to_bytes(4, "big")
