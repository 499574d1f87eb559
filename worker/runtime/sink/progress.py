"""The progress of a sink task in its topic partitions: entered, delivered, committed, at the end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from connect.data import TopicPartition

__all__ = ["PartitionProgress", "SinkProgress"]


@dataclass(slots=True)
class PartitionProgress:
    """The progress in one topic partition. Offsets are the next ones: ``delivered`` follows the last record put."""

    entered: int | None = None
    delivered: int | None = None
    committed: int | None = None
    at_end: int | None = None

    @property
    def resume(self) -> int | None:
        """The first offset that may not be durable: after the last commit, or where the partition was entered."""
        return self.entered if self.committed is None else self.committed

    @property
    def position(self) -> int | None:
        """The next offset; at the end that is past control records, which are never delivered."""
        known = [offset for offset in (self.delivered, self.at_end) if offset is not None]
        return max(known, default=None)

    def rewind(self, offset: int) -> None:
        """Continue from ``offset``, whatever was before."""
        self.entered = self.delivered = offset
        self.committed = self.at_end = None


class SinkProgress(dict[TopicPartition, PartitionProgress]):
    """The progress of a task in each of its topic partitions."""

    def enter(self, first_offsets: Mapping[TopicPartition, int]) -> None:
        """Note where partitions were entered, by the first records consumed of them; later ones change nothing."""
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
        """The offsets, of these partitions or all, that may be committed once they are durable."""
        return {
            partition: progress.delivered
            for partition, progress in self.items()
            if progress.delivered is not None and (partitions is None or partition in partitions)
        }

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of each partition that has one yet."""
        return {partition: at for partition, progress in self.items() if (at := progress.position) is not None}

    def resumptions(self) -> dict[TopicPartition, int]:
        """The offsets to go back to when records that were put cannot be made durable."""
        return {partition: at for partition, progress in self.items() if (at := progress.resume) is not None}
