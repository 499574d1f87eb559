"""Accounts that executors send the driver: how far their sink tasks got, and why they ended."""

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
    """How a sink task's work in a load has ended. Later outcomes take precedence over earlier ones."""

    DONE = 0
    """All records of the task's ranges are durable, except those it has rejected."""
    UNTOLD = 1
    """The task can continue once its rejected records are reported, or the records it has published are sent."""
    BACK = 2
    """The task requests to continue from other offsets."""
    AGAIN = 3
    """The task could not do the work now: the load has to be repeated."""
    REFUSED = 4
    """The task has rejected a record, and no record may be left out."""
    FAILED = 5
    """The task has failed."""


@dataclass(slots=True)
class Account:
    """The account of one sink task, which worked on the partitions in one Spark partition."""

    outcome: Outcome = Outcome.DONE
    flushed: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The next offset of each partition after the durable records."""
    rejected: dict[TopicPartition, OffsetSet] = field(default_factory=dict)
    """The records that cannot be written and have not been given up yet."""
    first: Rejection | None = None
    """The first of them, with the reason."""
    published: Sequence[Outgoing] = ()
    """The records the task has published to topics that the driver has to create."""
    back: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where the task wants to continue."""
    records: int = 0
    seconds: float = 0.0
    error: str = ""
    trace: str = ""
    retry_after: float | None = None

    @property
    def settled_rejections(self) -> dict[TopicPartition, OffsetSet]:
        """The rejected records that will not be read again, however the load continues."""
        if self.outcome in (Outcome.DONE, Outcome.UNTOLD):
            return self.rejected
        return {tp: offsets.between(0, self.flushed.get(tp, 0)) for tp, offsets in self.rejected.items()}


@dataclass(slots=True)
class Accounts:
    """The accounts of a load by Spark partition. A partition that is computed again replaces its account."""

    by_partition: dict[int, Account] = field(default_factory=dict)

    def merge(self, other: Self) -> Self:
        """Combine these accounts and those of ``other``."""
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
        """The rejected records that will not be read again."""
        found = {tp: offsets for account in self for tp, offsets in account.settled_rejections.items()}
        return {tp: offsets for tp, offsets in found.items() if len(offsets)}

    @property
    def published(self) -> Iterator[Outgoing]:
        """The records for the driver to publish."""
        return (record for account in self for record in account.published)

    @property
    def flushed(self) -> dict[TopicPartition, int]:
        """The next offset of each partition after the durable records."""
        return {tp: offset for account in self for tp, offset in account.flushed.items()}

    def back(self, known: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where tasks want to continue, in partitions that are not ``known``."""
        return {tp: offset for account in self for tp, offset in account.back.items() if tp not in known}
