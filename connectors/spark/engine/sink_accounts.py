"""Accounts that executors give the driver: how far their sink tasks have come, and why they ended."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from connect.data import TopicPartition
from connect.offset_set import OffsetSet
from connectors.spark.decoding.report import Rejection
from connectors.spark.engine.task_publisher import Outgoing

__all__ = ["Account", "Accounts", "Outcome"]


class Outcome(enum.Enum):
    """How a sink task's work in a load has ended. Later ones take precedence over earlier ones."""

    DONE = 0
    """All records of its ranges are durable, but for those it has rejected."""
    UNTOLD = 1
    """It goes on when those it has rejected are told of, where that is kept, or what it has published is sent."""
    BACK = 2
    """It wants to go on from other offsets."""
    AGAIN = 3
    """It could not do it now: the load is to be made again."""
    REFUSED = 4
    """It has rejected a record, and no record may be left out."""
    FAILED = 5
    """It has failed."""


@dataclass(slots=True)
class Account:
    """The account of one sink task, which worked on the partitions in one Spark partition."""

    outcome: Outcome = Outcome.DONE
    flushed: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The next offset of each partition after the records that are durable."""
    rejected: dict[TopicPartition, OffsetSet] = field(default_factory=dict)
    """The records that cannot be written, and are not given up yet."""
    first: Rejection | None = None
    """What is wrong with the first of them."""
    published: Sequence[Outgoing] = ()
    """The records that it has published to topics which the driver has to make."""
    back: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where it wants to go on from."""
    records: int = 0
    seconds: float = 0.0
    error: str = ""
    trace: str = ""
    retry_after: float | None = None

    @property
    def settled_rejections(self) -> dict[TopicPartition, OffsetSet]:
        """The rejected records that will not be looked at again, however the load continues."""
        if self.outcome in (Outcome.DONE, Outcome.UNTOLD):
            return self.rejected
        return {tp: offsets.between(0, self.flushed.get(tp, 0)) for tp, offsets in self.rejected.items()}


@dataclass(slots=True)
class Accounts:
    """The accounts of a load by Spark partition. A partition that is computed again replaces its account."""

    by_partition: dict[int, Account] = field(default_factory=dict)

    def merge(self, other: Self) -> Self:
        """These accounts and those of ``other``."""
        self.by_partition |= other.by_partition
        return self

    def __iter__(self) -> Iterator[Account]:
        return iter(self.by_partition.values())

    @property
    def worst(self) -> Account:
        """The account that decides the outcome of the load."""
        return max(self, key=lambda account: account.outcome.value, default=Account())

    @property
    def settled_rejections(self) -> dict[TopicPartition, OffsetSet]:
        """The rejected records that are not looked at again."""
        found = {tp: offsets for account in self for tp, offsets in account.settled_rejections.items()}
        return {tp: offsets for tp, offsets in found.items() if len(offsets)}

    @property
    def published(self) -> Iterator[Outgoing]:
        """The records that the driver has to publish."""
        return (record for account in self for record in account.published)

    @property
    def flushed(self) -> dict[TopicPartition, int]:
        """The next offset of each partition after the records that are durable."""
        return {tp: offset for account in self for tp, offset in account.flushed.items()}

    def back(self, known: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where tasks want to continue, in partitions that are not ``known``."""
        return {tp: offset for account in self for tp, offset in account.back.items() if tp not in known}
