"""The progress of a sink task in its topic partitions, and how far it is from their ends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import confluent_kafka
from confluent_kafka import Consumer, KafkaException

from connect.data import SinkBatch, TopicPartition
from connect.internals.chain.raw_records import ConsumedBatch
from connect.internals.consumption.messages import Message

__all__ = [
    "DRAIN",
    "EndOffsets",
    "PartitionProgress",
    "Pending",
    "SinkProgress",
    "first_offset",
    "lag",
    "tell_of_deleted",
    "with_offsets",
    "without",
]

DRAIN: Final = "sink-drain-"
"""What the names of :meth:`EndOffsets.gauges` begin with."""

logger = logging.getLogger(__name__)
_TIMEOUT_SECONDS: Final = 10.0
_SOON_SECONDS: Final = 2.0


@dataclass(slots=True)
class PartitionProgress:
    """The progress in one topic partition. Offsets are next offsets: ``delivered`` follows the last record put."""

    entered: int | None = None
    delivered: int | None = None
    committed: int | None = None
    at_end: int | None = None
    expected: int | None = None
    """The offset of the group at which the partition was assigned."""
    had_offset: bool | None = None
    """Whether the group had an offset when the partition was entered; ``None`` until that was looked up."""

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

    def expect(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note where partitions should be entered."""
        for partition, offset in offsets.items():
            self[partition].expected = offset

    def enter(self, first_offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[int, int]]:
        """Note where partitions were entered, by the first records consumed from them; later records have no effect.

        Return those that were entered behind the offset that was expected: that offset, and the entered one.
        """
        behind: dict[TopicPartition, tuple[int, int]] = {}
        for partition, offset in first_offsets.items():
            progress = self[partition]
            if progress.entered is None:
                progress.entered = offset
                if progress.expected is not None and progress.expected < offset:
                    behind[partition] = progress.expected, offset
        return behind

    def deliver(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note that everything before ``offsets`` was put."""
        for partition, offset in offsets.items():
            if partition in self:
                self[partition].delivered = offset

    def delivered(self, partitions: Collection[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """Return the offsets of these partitions, or all, that may be committed once they are durable."""
        return {
            partition: progress.delivered
            for partition, progress in self.items()
            if progress.delivered is not None and (partitions is None or partition in partitions)
        }

    def committable(
        self, wanted: Mapping[TopicPartition, int], delivered: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Return those of the offsets that a task wants to commit which it was given, and which are not committed."""
        checked: dict[TopicPartition, int] = {}
        for partition, offset in wanted.items():
            if partition not in delivered or offset > delivered[partition]:
                logger.warning(
                    "The sink wants to commit %s at %d, an offset that it was not given; this is ignored",
                    partition,
                    offset,
                )
            elif self[partition].committed != offset:
                checked[partition] = offset
        return checked

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset of each partition that has one."""
        return {partition: at for partition, progress in self.items() if (at := progress.position) is not None}

    def resumptions(self) -> dict[TopicPartition, int]:
        """Return the offsets to return to if records that were put cannot be made durable."""
        return {partition: at for partition, progress in self.items() if (at := progress.resume) is not None}

    def under_way(self) -> int:
        """Return how many records were put and cannot be relied on to be durable yet."""
        resumptions = self.resumptions()
        return sum(max(0, at - resumptions.get(partition, at)) for partition, at in self.positions().items())

    def uncommitted(self, had_offsets: Callable[[Collection[TopicPartition]], Collection[TopicPartition]]) -> int:
        """Count the partitions with delivered records in which the group has never committed an offset.

        ``had_offsets`` returns those of some partitions in which the group has an offset; each is asked for once.
        """
        open_ = {tp: item for tp, item in self.items() if item.delivered is not None and item.committed is None}
        if unknown := [tp for tp, item in open_.items() if item.had_offset is None]:
            had = had_offsets(unknown)
            for tp in unknown:
                self[tp].had_offset = tp in had
        return sum(item.had_offset is False for item in open_.values())


class EndOffsets:
    """The ends of partitions, as of the first look at each."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._ends: dict[TopicPartition, int] = {}
        self._starts: dict[TopicPartition, int] = {}

    def reached(self, partitions: Collection[TopicPartition], positions: Mapping[TopicPartition, int]) -> bool:
        """Return whether every partition is consumed up to its end, which is 0 for an empty one."""
        try:
            for partition in partitions:
                if partition not in self._ends:
                    low, high = _watermarks(self._consumer, partition, cached=False)
                    self._ends[partition] = high if high > low else 0
        except KafkaException as error:
            logger.warning("The ends of the partitions cannot be looked up yet; trying again: %s", error)
            return False
        return all(positions.get(partition, 0) >= self._ends[partition] for partition in partitions)

    def gauges(
        self, partitions: Collection[TopicPartition], progress: Mapping[TopicPartition, PartitionProgress]
    ) -> dict[str, float]:
        """Return how many offsets there are to the ends in all, and how many are left; nothing while that is unknown.

        They count from where the task entered a partition, even if it has gone back since.
        """
        total = left = 0
        for partition in partitions:
            item, end = progress[partition], self._ends.get(partition)
            if end is None or (end and item.position is None):
                return {}
            at = min(end, item.position or 0)
            first = min(self._starts.get(partition, at), at if item.entered is None else item.entered)
            self._starts[partition] = first
            total, left = total + end - first, left + end - at
        return {f"{DRAIN}total": float(total), f"{DRAIN}left": float(left)}


def lag(
    consumer: Consumer, partitions: Collection[TopicPartition], positions: Mapping[TopicPartition, int]
) -> int | None:
    """Return how many offsets the positions are behind the ends that the client knows.

    ``None`` while the position or end of any partition is unknown, since the sum would be too small.
    """
    behind = 0
    for partition in partitions:
        _, high = _watermarks(consumer, partition, cached=True)
        if high < 0 or partition not in positions:
            return None
        behind += max(0, high - positions[partition])
    return behind


def with_offsets(consumer: Consumer, partitions: Collection[TopicPartition]) -> Collection[TopicPartition]:
    """Return those partitions in which the group has an offset; all of them if the broker does not say in time."""
    asked = [confluent_kafka.TopicPartition(*partition) for partition in partitions]
    try:
        found = consumer.committed(asked, timeout=_SOON_SECONDS)
    except KafkaException:
        return partitions
    return {TopicPartition(item.topic, item.partition) for item in found if item.offset >= 0 or item.error is not None}


def without(messages: Sequence[Message], partitions: Collection[TopicPartition]) -> Sequence[Message]:
    """Return the messages that are not of these partitions, which are to continue elsewhere."""
    if not partitions:
        return messages
    return [each for each in messages if TopicPartition(each.topic(), each.partition()) not in partitions]


def tell_of_deleted(consumer: Consumer, behind: Mapping[TopicPartition, tuple[int, int]]) -> None:
    """Say which records were deleted since the last commit: the client passes them silently (I4).

    ``behind`` are the partitions that were entered behind their offsets. What compaction removed is not missed.
    """
    for partition, (expected, entered) in behind.items():
        try:
            first = first_offset(consumer, partition, "earliest")
        except KafkaException as error:
            logger.debug("Where %s begins cannot be looked up: %s", partition, error)
            continue
        if expected < first:
            logger.error(
                "The records %d to %d of %s-%d were not consumed, and are left out: those before %d were deleted "
                "meanwhile. Is the retention of the topic long enough?",
                expected,
                entered - 1,
                *partition,
                first,
            )


def first_offset(consumer: Consumer, partition: TopicPartition, reset: str) -> int:
    """Return the offset at which a consumer without one starts by ``auto.offset.reset``.

    Raises ``KafkaException`` if the broker does not answer.
    """
    low, high = _watermarks(consumer, partition, cached=False)
    return high if reset == "latest" else low


def _watermarks(consumer: Consumer, partition: TopicPartition, *, cached: bool) -> tuple[int, int]:
    client = confluent_kafka.TopicPartition(*partition)
    low, high = consumer.get_watermark_offsets(client, timeout=_TIMEOUT_SECONDS, cached=cached)
    return low, high


@dataclass(frozen=True, slots=True)
class Pending:
    """A batch to put, the records that it was made of, and the offsets that are delivered once it is put.

    ``born`` is the time of the first record in seconds since 1970; 0 if there is none.
    """

    batch: SinkBatch | None
    consumed: ConsumedBatch
    offsets: Mapping[TopicPartition, int]
    born: float = 0.0

    def without(self, partitions: Collection[TopicPartition]) -> Pending:
        """Return the same without these partitions."""
        offsets = {partition: offset for partition, offset in self.offsets.items() if partition not in partitions}
        if self.batch is None:
            return replace(self, offsets=offsets)
        kept = [index for index, origin in enumerate(self.batch.origins) if origin not in partitions]
        return replace(self, batch=self.batch.take(kept) if kept else None, offsets=offsets)
