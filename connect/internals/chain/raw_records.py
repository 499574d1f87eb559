"""Records as bytes: as consumed, before the converters, and as they will be produced, after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from connect.data import Constant, Offset, TimestampType, TopicPartition

__all__ = ["ConsumedBatch", "EncodedBatch", "RawHeaders", "RawRecord", "first_offsets", "next_offsets"]

RawHeaders: TypeAlias = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A consumed record as it was on the topic."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: RawHeaders


@dataclass(slots=True)
class ConsumedBatch:
    """Consumed records of one topic, by column."""

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
        """Return the record at an offset, or ``None`` if it is not in this batch."""
        if origin.topic != self.topic:
            return None
        places = enumerate(zip(self.partitions, self.offsets, strict=True))
        return next((self.raw(index) for index, place in places if place == (origin.partition, offset)), None)

    def raw(self, index: int) -> RawRecord:
        """Return the record at ``index``, for a report."""
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


def next_offsets(batch: ConsumedBatch) -> dict[TopicPartition, int]:
    """Return the offset after the last record of each partition in the batch."""
    if isinstance(batch.partitions, Constant):
        return {TopicPartition(batch.topic, batch.partitions.value): batch.offsets[-1] + 1}
    # A later index overwrites an earlier one, so the last record of each partition remains.
    last = dict(zip(batch.partitions, range(len(batch)), strict=True))
    return {TopicPartition(batch.topic, partition): batch.offsets[index] + 1 for partition, index in last.items()}


def first_offsets(batch: ConsumedBatch) -> dict[TopicPartition, int]:
    """Return the offset of the first record of each partition in the batch."""
    first = dict(zip(reversed(batch.partitions), range(len(batch) - 1, -1, -1), strict=True))
    return {TopicPartition(batch.topic, partition): batch.offsets[index] for partition, index in first.items()}


@dataclass(slots=True)
class EncodedBatch:
    """Records of one topic that will be produced, by column. ``source_offsets`` is empty if nobody needs them."""

    topic: str
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    partitions: Sequence[int | None]
    timestamps: Sequence[int | None]
    headers: Sequence[RawHeaders | None]
    source_offsets: Sequence[Offset] = ()

    def __len__(self) -> int:
        return len(self.values)
