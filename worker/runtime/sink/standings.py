"""Where a sink task stands in each of its topic partitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from connect.data import TopicPartition

__all__ = ["Standing", "Standings"]


@dataclass(slots=True)
class Standing:
    """One topic partition. Offsets are the next ones: ``delivered`` is that after the last record put."""

    entered: int | None = None
    delivered: int | None = None
    committed: int | None = None
    at_end: int | None = None

    @property
    def resume(self) -> int | None:
        """Where what was put and is not durable begins: after the last commit, or where the partition was entered."""
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


class Standings(dict[TopicPartition, Standing]):
    """All topic partitions of a task."""

    def enter(self, first_offsets: Mapping[TopicPartition, int]) -> None:
        """Records were consumed; of a partition that had none yet, this is where it was entered."""
        for partition, offset in first_offsets.items():
            standing = self[partition]
            if standing.entered is None:
                standing.entered = offset

    def deliver(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Everything before ``offsets`` was put."""
        for partition, offset in offsets.items():
            if partition in self:
                self[partition].delivered = offset

    def delivered(self, partitions: Collection[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """What may be committed if it is durable, of these partitions or all."""
        return {
            partition: standing.delivered
            for partition, standing in self.items()
            if standing.delivered is not None and (partitions is None or partition in partitions)
        }

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of each partition that has one yet."""
        return {partition: at for partition, standing in self.items() if (at := standing.position) is not None}

    def resumptions(self) -> dict[TopicPartition, int]:
        """Where to go back to when what was put cannot be made durable."""
        return {partition: at for partition, standing in self.items() if (at := standing.resume) is not None}
