"""Records as bytes, on either side of the converters: what was consumed, and what is to be produced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from connect.data import TimestampType, TopicPartition
from worker.runtime.tolerance import RawRecord

__all__ = ["ConsumedBatch", "EncodedBatch", "RawHeaders", "client_timestamp"]

_NO_TIMESTAMP: Final = -1
_NOW: Final = 0

RawHeaders: TypeAlias = Sequence[tuple[str, bytes | None]]


@dataclass(slots=True)
class ConsumedBatch:
    """Records of one topic as they were consumed, by column."""

    topic: str
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    partitions: Sequence[int]
    offsets: Sequence[int]
    timestamps: Sequence[int | None]
    timestamp_types: Sequence[TimestampType]
    headers: Sequence[RawHeaders | None]

    def __len__(self) -> int:
        return len(self.values)

    def find(self, origin: TopicPartition, offset: int) -> RawRecord | None:
        """The record at an offset, whole; ``None`` if it is not in this batch."""
        if origin.topic != self.topic:
            return None
        places = enumerate(zip(self.partitions, self.offsets, strict=True))
        return next((self.raw(index) for index, place in places if place == (origin.partition, offset)), None)

    def raw(self, index: int) -> RawRecord:
        """One record whole, for a report."""
        return RawRecord(
            self.topic,
            self.partitions[index],
            self.offsets[index],
            self.timestamps[index],
            self.timestamp_types[index].value,
            self.keys[index],
            self.values[index],
            self.headers[index] or (),
        )


@dataclass(slots=True)
class EncodedBatch:
    """Records for one topic as they are to be produced, by column."""

    topic: str
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    partitions: Sequence[int | None]
    timestamps: Sequence[int | None]
    headers: Sequence[RawHeaders | None]

    def __len__(self) -> int:
        return len(self.values)


def client_timestamp(timestamp: int | None) -> int:
    """The timestamp of a record as the client is given it, for whom 0 is now.

    As in Java, -1 is no timestamp. The first millisecond of 1970 cannot be said, so that it becomes the second.
    """
    if timestamp is None or timestamp == _NO_TIMESTAMP:
        return _NOW
    return timestamp or 1
