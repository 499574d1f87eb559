"""The progress of a sink task in its topic partitions, and how far it is from their ends."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import confluent_kafka
from confluent_kafka import Consumer, KafkaException

from connect.data import TopicPartition

__all__ = ["EndOffsets", "PartitionProgress", "SinkProgress", "lag"]

logger = logging.getLogger(__name__)
_TIMEOUT: Final = 10.0


@dataclass(slots=True)
class PartitionProgress:
    """The progress in one topic partition. Offsets are next offsets: ``delivered`` follows the last record put."""

    entered: int | None = None
    delivered: int | None = None
    committed: int | None = None
    at_end: int | None = None

    @property
    def resume(self) -> int | None:
        """The first offset that may not be durable: the last commit, or where the partition was entered."""
        return self.entered if self.committed is None else self.committed

    @property
    def position(self) -> int | None:
        """The next offset; at the end of the partition it is past control records, which are never delivered."""
        known = [offset for offset in (self.delivered, self.at_end) if offset is not None]
        return max(known, default=None)

    def rewind(self, offset: int) -> None:
        """Continue from ``offset``."""
        self.entered = self.delivered = offset
        self.committed = self.at_end = None


class SinkProgress(dict[TopicPartition, PartitionProgress]):
    """The progress of a task in each of its topic partitions."""

    def enter(self, first_offsets: Mapping[TopicPartition, int]) -> None:
        """Note where partitions were entered, by the first records consumed from them; later records have no effect."""
        for partition, offset in first_offsets.items():
            progress = self[partition]
            if progress.entered is None:
                progress.entered = offset

    def deliver(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note that everything before ``offsets`` was put."""
        for partition, offset in offsets.items():
            if partition in self:
                self[partition].delivered = offset

    def delivered(self, partitions: Collection[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """The offsets of these partitions, or all, that may be committed once they are durable."""
        return {
            partition: progress.delivered
            for partition, progress in self.items()
            if progress.delivered is not None and (partitions is None or partition in partitions)
        }

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of each partition that has one."""
        return {partition: at for partition, progress in self.items() if (at := progress.position) is not None}

    def resumptions(self) -> dict[TopicPartition, int]:
        """The offsets to return to if records that were put cannot be made durable."""
        return {partition: at for partition, progress in self.items() if (at := progress.resume) is not None}


class EndOffsets:
    """The ends of partitions, as of the first look at each."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._ends: dict[TopicPartition, int] = {}

    def reached(self, partitions: Collection[TopicPartition], positions: Mapping[TopicPartition, int]) -> bool:
        """Whether every partition is consumed up to its end, which is 0 for an empty one."""
        try:
            for partition in partitions:
                if partition not in self._ends:
                    low, high = _watermarks(self._consumer, partition, cached=False)
                    self._ends[partition] = high if high > low else 0
        except KafkaException as error:
            logger.warning("The ends of the partitions cannot be looked up yet; trying again: %s", error)
            return False
        return all(positions.get(partition, 0) >= self._ends[partition] for partition in partitions)


def lag(
    consumer: Consumer, partitions: Collection[TopicPartition], positions: Mapping[TopicPartition, int]
) -> int | None:
    """How many offsets the positions are behind the ends that the client knows.

    ``None`` while the position or end of any partition is unknown, since the sum would be too small.
    """
    behind = 0
    for partition in partitions:
        _, high = _watermarks(consumer, partition, cached=True)
        if high < 0 or partition not in positions:
            return None
        behind += max(0, high - positions[partition])
    return behind


def _watermarks(consumer: Consumer, partition: TopicPartition, *, cached: bool) -> tuple[int, int]:
    client = confluent_kafka.TopicPartition(*partition)
    low, high = consumer.get_watermark_offsets(client, timeout=_TIMEOUT, cached=cached)
    return low, high
