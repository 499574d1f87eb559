"""The ends of a task's topic partitions: for draining them, and for the lag."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Final

import confluent_kafka
from confluent_kafka import Consumer, KafkaException

from connect.data import TopicPartition

__all__ = ["EndOffsets", "lag"]

logger = logging.getLogger(__name__)
_TIMEOUT: Final = 10.0


class EndOffsets:
    """The ends of partitions as they were when each was first asked about."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._ends: dict[TopicPartition, int] = {}

    def reached(self, partitions: Collection[TopicPartition], positions: Mapping[TopicPartition, int]) -> bool:
        """Whether every partition is consumed up to its end; one that was empty is."""
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
    """How many offsets the positions are behind the ends that the client heard of last.

    ``None`` while the position or the end of any of the partitions is unknown: what is known of others is too small.
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
