"""Gaps of a mirror, where records cannot be copied any more or their copies are gone, and how they are handled."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from connect.data import Constant, Schema, SourceBatch, TopicPartition, ValueColumn
from connect.errors import ConnectError
from connect.source import OffsetStorageReader
from connectors.mirror.source_offsets import RESET, RecordOffsets, source_offset, source_partition

__all__ = ["Gap", "GapPolicy", "Gaps", "Reason", "Renewals"]

logger = logging.getLogger(__name__)

GapPolicy: TypeAlias = Literal["fail", "continue", "mark"]

_BYTES: Final = Schema.bytes(optional=True)
_MS: Final = 1000


class Reason(StrEnum):
    """The reason for a gap."""

    EXPIRED = "expired"
    """The oldest records of the source have been deleted."""

    LOST = "lost"
    """The source ends before the next record: its topic was recreated, or has lost records."""

    SOURCE_ANEW = "source made anew"
    """The source topic has another id than before."""

    TARGET_ANEW = "target made anew"
    """The target topic has another id than before, or has lost records: the copies are gone."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The missing records of a partition, from the offset ``first`` to ``last`` if that is known.

    Mirroring continues at ``next``.
    """

    partition: TopicPartition
    reason: Reason
    first: int
    last: int | None
    next: int

    def __str__(self) -> str:
        name = f"{self.partition.topic}-{self.partition.partition}"
        match self.reason:
            case Reason.EXPIRED:
                return f"Offsets {self.first} to {self.last} of {name} were deleted before they could be mirrored."
            case Reason.LOST:
                return (
                    f"{name} ends before offset {self.first} at the source, where reading should continue: it was "
                    "recreated, or has lost records."
                )
            case Reason.SOURCE_ANEW:
                return (
                    f"Topic {self.partition.topic} was recreated at the source, so the stored offset of partition "
                    f"{self.partition.partition} does not apply to it."
                )
            case Reason.TARGET_ANEW:
                return (
                    f"The topic that {name} is mirrored to was recreated at the target, or has lost records: copies "
                    f"of records before offset {self.next} of the source are gone."
                )

    @property
    def remedy(self) -> str:
        """What to do if the mirror may not continue by itself."""
        if self.reason is Reason.EXPIRED:
            return "To continue after the gap, set the offset of the partition with the REST API"
        return "To mirror the topic from its beginning, reset the offset of the partition with the REST API"

    def key(self) -> bytes:
        """Return the key of the record that marks the gap, the same one however often it is written."""
        place = {"topic": self.partition.topic, "partition": self.partition.partition}
        return json.dumps({**place, "first": self.first, "reason": self.reason}).encode()

    def value(self, alias: str, noticed: int) -> bytes:
        """Return the value of the record that marks the gap; ``noticed`` is in milliseconds since 1970."""
        return json.dumps(
            {
                "source": alias,
                "topic": self.partition.topic,
                "partition": self.partition.partition,
                "reason": self.reason,
                "first": self.first,
                "last": self.last,
                "next": self.next,
                "noticed": noticed,
            }
        ).encode()


class Gaps:
    """Handles the gaps of a task according to ``mirror.gap.policy``. For the task's thread.

    The record that marks a gap is sent to ``topic`` like any other, with the source offset before the one at which
    mirroring continues. So it is written no later than the first record after the gap, and with exactly-once support
    once.
    """

    def __init__(self, policy: GapPolicy, alias: str, topic: str) -> None:
        self._policy = policy
        self._alias = alias
        self._topic = topic
        self._counts: Counter[TopicPartition] = Counter()
        self._marks: deque[SourceBatch] = deque()

    @property
    def counts(self) -> Mapping[TopicPartition, int]:
        """The number of gaps of each partition."""
        return self._counts

    def meet(self, gap: Gap) -> None:
        """Note a gap; raise :class:`~connect.errors.ConnectError` if the task must not pass it."""
        if self._policy == "fail":
            raise ConnectError(f"{gap} {gap.remedy}. To pass gaps, set mirror.gap.policy to continue or mark.")
        logger.error("%s Continuing at offset %d.", gap, gap.next)
        self._counts[gap.partition] += 1
        if self._policy == "mark":
            self._marks.append(self._mark(gap))

    def take_mark(self) -> SourceBatch | None:
        """Return the next record that marks a gap, or ``None``."""
        return self._marks.popleft() if self._marks else None

    def _mark(self, gap: Gap) -> SourceBatch:
        now = int(time.time() * _MS)
        return SourceBatch.of(
            self._topic,
            ValueColumn([gap.value(self._alias, now)], _BYTES),
            key=ValueColumn([gap.key()], _BYTES),
            source_partition=source_partition(self._alias, gap.partition),
            source_offsets=RecordOffsets([gap.next - 1]),
            timestamps=[now],
            partitions=Constant(0, 1),
        )


_LOOK_AGAIN_SECONDS: Final = 0.5


class Renewals:
    """Partitions of recreated topics, which wait until their stored offset no longer refers to the former topic.

    That is once the offset is :data:`~connectors.mirror.source_offsets.RESET`, which the task passes. Only then may the
    new topic id be written, and only then are the partitions read. For the task's thread.

    Crash points: before the offset is reset, the next start finds another topic id than the one written, and starts
    over. After the reset, and before the topic id is written, the next start finds no offset to continue from. After
    that, offsets of the new topic are stored like any other.
    """

    def __init__(self, alias: str, offsets: OffsetStorageReader) -> None:
        self._alias = alias
        self._offsets = offsets
        self._waiting: set[TopicPartition] = set()
        self._look_at = 0.0

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions to wait for."""
        self._waiting.update(partitions)

    def ready(self) -> list[TopicPartition]:
        """Return the partitions whose offset has been reset. Call it at every poll: it asks at most twice a second."""
        if not self._waiting or time.monotonic() < self._look_at:
            return []
        self._look_at = time.monotonic() + _LOOK_AGAIN_SECONDS
        waiting = sorted(self._waiting)
        stored = self._offsets.offsets([source_partition(self._alias, each) for each in waiting])
        return [each for each, offset in zip(waiting, stored, strict=True) if offset == source_offset(RESET)]

    def end(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop waiting for these partitions, which are read again."""
        self._waiting.difference_update(partitions)
