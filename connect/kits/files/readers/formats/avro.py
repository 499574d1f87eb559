"""Avro container files: blocks of values in the schema at the head of the file.

Schemas and values are those of the Avro converter, so that a value from a file equals one from a topic.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from connect.data import ValueColumn
from connect.errors import DataError, SchemaError
from connect.kits.avro.avro_schema import parse_avro
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.decode import block_decoder
from connect.kits.avro.to_connect import connect_from_avro
from connect.kits.files.readers.formats.avro_block import CODECS, SYNC_BYTES, Frame, Frames, read_long, unpacked
from connect.kits.files.readers.formats.table import Block

__all__ = ["AvroTable"]

_MAGIC: Final = b"Obj\x01"
_LARGEST_HEADER: Final = 4 * 1024 * 1024
_MOST_VALUES: Final = 1_000
_UNPACKED: Final = 4
"""The maximum size of a block, as a multiple of the maximum length of a row."""


class AvroTable:
    """An Avro container file. It holds one decompressed block, and some of its values, in memory."""

    def __init__(self, path: str, longest_row: int) -> None:
        self._file = Path(path).open("rb")  # noqa: SIM115 - it is closed by close()
        try:
            self._limit = _UNPACKED * longest_row
            properties, sync, head = self._header()
            self.identity = f"avro:{zlib.crc32(head):08x}:{sync.hex()}"
            self._codec = properties.get("avro.codec", b"null").decode()
            if self._codec not in CODECS:
                raise DataError(f"its codec is {self._codec!r}; only {', '.join(CODECS)} are supported")
            config = AvroDataConfig.parse({})
            avro = parse_avro(properties.get("avro.schema", b"").decode())
            schema = connect_from_avro(avro, config)
            if schema is None:
                raise SchemaError("its values have no schema")
            self._schema = schema
            self._decode = block_decoder(avro, schema, config)
            self._frames = Frames(self._file, len(head), sync, self._limit)
        except UnicodeDecodeError as error:
            self.close()
            raise DataError(f"its header is damaged: {error}") from error
        except BaseException:
            self.close()
            raise

    def verify(self) -> int:
        """Decompress and decode every block; return the number of values."""
        return sum(sum(len(values) for values in self._values(frame, 0)) for frame in self._frames)

    def blocks(self, start: int) -> Iterator[Block]:
        """Yield the values from index ``start`` on; earlier blocks are not decompressed."""
        passed = 0
        for frame in self._frames:
            first = max(0, start - passed)
            passed += frame.count
            if first < frame.count:
                for values in self._values(frame, first):
                    yield Block(len(values), ValueColumn(values, self._schema))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _values(self, frame: Frame, first: int) -> Iterator[list[object]]:
        """Yield the values of a block from index ``first`` on, some at a time."""
        data = unpacked(self._codec, self._frames.data(frame), self._limit)
        if frame.count > len(data) + _MOST_VALUES:
            # Values of no bytes cost time all the same.
            raise DataError(f"the block at byte {frame.place} has {frame.count} values in {len(data)} bytes")
        place, done = 0, 0
        while done < frame.count:
            values, place = self._decode(data, place, min(_MOST_VALUES, frame.count - done))
            if done + len(values) > first:
                yield values[max(0, first - done) :]
            done += len(values)
        if place != len(data):
            raise DataError(f"the block at byte {frame.place} has {len(data) - place} bytes after its values")

    def _header(self) -> tuple[dict[str, bytes], bytes, bytes]:
        """Return the properties, the sync marker, and the bytes of the header."""
        if self._file.read(len(_MAGIC)) != _MAGIC:
            raise DataError("it is not an Avro container file")
        properties: dict[str, bytes] = {}
        while count := self._number():
            if count < 0:
                count = -count
                self._number()
            for _ in range(count):
                name = self._sized().decode()
                properties[name] = self._sized()
        sync = self._file.read(SYNC_BYTES)
        if len(sync) < SYNC_BYTES:
            raise DataError("it ends within its header")
        end = self._file.tell()
        self._file.seek(0)
        return properties, sync, self._file.read(end)

    def _number(self) -> int:
        number = read_long(self._file)
        if number is None or self._file.tell() > _LARGEST_HEADER:
            raise DataError(f"its header does not end within {_LARGEST_HEADER} bytes")
        return number

    def _sized(self) -> bytes:
        size = self._number()
        if not 0 <= size <= _LARGEST_HEADER:
            raise DataError("its header is damaged")
        data = self._file.read(size)
        if len(data) < size:
            raise DataError("it ends within its header")
        return data
