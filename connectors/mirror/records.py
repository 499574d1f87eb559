"""The records of a mirror's internal topics: offset syncs, checkpoints and heartbeats, byte for byte as Java's."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, Self

from connect.errors import DataError

__all__ = ["Checkpoint", "Fields", "Heartbeat", "OffsetSync", "text_bytes"]

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_TWO_INT64: Final = struct.Struct(">qq")
_VERSION: Final = 0
_LONGEST_TEXT: Final = 0x7FFF


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """The offsets of one record at the source and at the target. ``topic`` is the source's name."""

    topic: str
    partition: int
    upstream: int
    downstream: int

    def key(self) -> bytes:
        """Return the key of the record."""
        return text_bytes(self.topic) + _INT32.pack(self.partition)

    def value(self) -> bytes:
        """Return the value of the record, which has no version."""
        return _TWO_INT64.pack(self.upstream, self.downstream)

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Self:
        """Decode a record; raise :class:`~connect.errors.DataError` if it is malformed."""
        keys, values = Fields(key, "offset sync"), Fields(value, "offset sync")
        sync = cls(keys.text(), keys.int32(), values.int64(), values.int64())
        keys.end()
        values.end()
        return sync


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The offset of a group at the source and its translation at the target. ``topic`` is the target's name."""

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""

    def key(self) -> bytes:
        """Return the key of the record."""
        return text_bytes(self.group) + text_bytes(self.topic) + _INT32.pack(self.partition)

    def value(self) -> bytes:
        """Return the value of the record."""
        offsets = _TWO_INT64.pack(self.upstream, self.downstream)
        return _INT16.pack(_VERSION) + offsets + text_bytes(self.metadata)

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Self:
        """Decode a record; raise :class:`~connect.errors.DataError` if it is malformed."""
        keys, values = Fields(key, "checkpoint"), Fields(value, "checkpoint")
        values.version(_VERSION)
        upstream, downstream = values.int64(), values.int64()
        checkpoint = cls(keys.text(), keys.text(), keys.int32(), upstream, downstream, values.text())
        keys.end()
        values.end()
        return checkpoint


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat of a flow from one cluster to another; ``timestamp`` is in milliseconds."""

    source_alias: str
    target_alias: str
    timestamp: int

    def key(self) -> bytes:
        """Return the key of the record."""
        return text_bytes(self.source_alias) + text_bytes(self.target_alias)

    def value(self) -> bytes:
        """Return the value of the record."""
        return _INT16.pack(_VERSION) + _INT64.pack(self.timestamp)

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Self:
        """Decode a record; raise :class:`~connect.errors.DataError` if it is malformed."""
        keys, values = Fields(key, "heartbeat"), Fields(value, "heartbeat")
        values.version(_VERSION)
        heartbeat = cls(keys.text(), keys.text(), values.int64())
        keys.end()
        values.end()
        return heartbeat


def text_bytes(text: str) -> bytes:
    """Encode a string of Kafka's protocol: two bytes of length, then UTF-8."""
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) > _LONGEST_TEXT:
        raise DataError(f"A text of {len(encoded)} bytes does not fit into a record: shorten {text[:40]!r}...")
    return _INT16.pack(len(encoded)) + encoded


class Fields:
    """Reads the fields of a record in order. Each method raises ``DataError`` if the bytes end too soon."""

    def __init__(self, data: bytes | None, what: str) -> None:
        self._data = data or b""
        self._what = what
        self._position = 0

    def int16(self) -> int:
        """Read a two-byte integer."""
        return int(_INT16.unpack(self.bytes(2))[0])

    def int32(self) -> int:
        """Read a four-byte integer."""
        return int(_INT32.unpack(self.bytes(4))[0])

    def int64(self) -> int:
        """Read an eight-byte integer."""
        return int(_INT64.unpack(self.bytes(8))[0])

    def text(self) -> str:
        """Read a string of Kafka's protocol."""
        length = self.int16()
        try:
            return self.bytes(length).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise DataError(f"The {self._what} has a text that is not UTF-8: {error}") from error

    def bytes(self, length: int) -> bytes:
        """That many bytes."""
        end = self._position + length
        if length < 0 or end > len(self._data):
            raise DataError(
                f"The {self._what} ends after {len(self._data)} bytes, where a field of {length} bytes begins "
                f"at {self._position}."
            )
        part = self._data[self._position : end]
        self._position = end
        return part

    def varint(self) -> int:
        """Read a zigzag varint of at most ten bytes."""
        result = 0
        for shift in range(0, 70, 7):
            byte = self.bytes(1)[0]
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (result >> 1) ^ -(result & 1)
        raise DataError(f"The {self._what} has a number of more than ten bytes.")

    def version(self, known: int) -> None:
        """Read the version, which must be ``known``."""
        found = self.int16()
        if found != known:
            raise DataError(f"The {self._what} has version {found}; only {known} is known.")

    def end(self) -> None:
        """Check that no bytes are left."""
        left = len(self._data) - self._position
        if left:
            raise DataError(f"The {self._what} has {left} bytes too many.")
