"""Gaps of a mirror: records that it cannot copy any more, or whose copies are gone, and what becomes of them."""

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
    """Why there is a gap."""

    EXPIRED = "expired"
    """The oldest records of the source are gone."""

    LOST = "lost"
    """The source ends before the next record: its topic was made anew, or has lost records."""

    SOURCE_ANEW = "source made anew"
    """The topic of the source is another than before, by its id."""

    TARGET_ANEW = "target made anew"
    """The topic at the target is another than before, by its id, or has lost records: the copies are gone."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The records of a partition from the offset ``first`` on, up to ``last`` if that is known.

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
                return (
                    f"Offsets {self.first} to {self.last} of {name} are gone at the source before they were mirrored."
                )
            case Reason.LOST:
                return (
                    f"{name} ends at the source before offset {self.first}, which was to be read next: the topic was "
                    "made anew, or has lost records."
                )
            case Reason.SOURCE_ANEW:
                return (
                    f"Topic {self.partition.topic} was made anew at the source, so that the stored offset of partition "
                    f"{self.partition.partition} means nothing in it."
                )
            case Reason.TARGET_ANEW:
                return (
                    f"The topic that {name} is mirrored to was made anew at the target, or has lost records: what was "
                    f"mirrored before offset {self.next} of the source is not there any more."
                )

    @property
    def remedy(self) -> str:
        """What to do where the mirror may not go on by itself."""
        if self.reason is Reason.EXPIRED:
            return "Set the offset of the partition by the REST API to continue there"
        return "Reset the offsets of the partition by the REST API to mirror the topic from its beginning"

    def key(self) -> bytes:
        """The key of the record that marks it: one for each gap, however often it is written."""
        place = {"topic": self.partition.topic, "partition": self.partition.partition}
        return json.dumps({**place, "first": self.first, "reason": self.reason}).encode()

    def value(self, alias: str, noticed: int) -> bytes:
        """The record that marks it; ``alias`` is that of the source, ``noticed`` when it was, in ms since 1970."""
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
    """Deals with the gaps of a task as ``mirror.gap.policy`` says. For the task's thread.

    A record that marks a gap goes to ``topic`` the way of all records, with the source offset before the one at which
    mirroring continues: so it is there no later than what comes after the gap, and with exactly-once support once.
    """

    def __init__(self, policy: GapPolicy, alias: str, topic: str) -> None:
        self._policy = policy
        self._alias = alias
        self._topic = topic
        self._counts: Counter[TopicPartition] = Counter()
        self._marks: deque[SourceBatch] = deque()

    @property
    def counts(self) -> Mapping[TopicPartition, int]:
        """How many gaps each partition has had."""
        return self._counts

    def meet(self, gap: Gap) -> None:
        """Take note of a gap; raise :class:`~connect.errors.ConnectError` if the task is not to pass it."""
        if self._policy == "fail":
            raise ConnectError(f"{gap} {gap.remedy}, or set mirror.gap.policy=continue, or mark.")
        logger.error("%s Going on at offset %d.", gap, gap.next)
        self._counts[gap.partition] += 1
        if self._policy == "mark":
            self._marks.append(self._mark(gap))

    def take_mark(self) -> SourceBatch | None:
        """The next record that marks a gap, if one is to be written."""
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


_LOOK_AGAIN: Final = 0.5


class Renewals:
    """Partitions that wait until nothing that is stored speaks of their former topic. For the task's thread.

    That is once their offset is :data:`~connectors.mirror.source_offsets.RESET`, which the task passes. Only then may
    it be written which topic they have now, and only then are they read.

    Crash points: before the offset is reset, the next start finds another topic than the one that is written, and
    begins with this again. After it, and before the topic is written, it finds that there is nothing to begin with.
    After that, the first offset of the new topic is stored as every other.
    """

    def __init__(self, alias: str, offsets: OffsetStorageReader) -> None:
        self._alias = alias
        self._offsets = offsets
        self._waiting: set[TopicPartition] = set()
        self._look_at = 0.0

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Wait for these as well."""
        self._waiting.update(partitions)

    def ready(self) -> list[TopicPartition]:
        """Return those whose offset is reset. It may be called at every poll: it asks twice a second at most."""
        if not self._waiting or time.monotonic() < self._look_at:
            return []
        self._look_at = time.monotonic() + _LOOK_AGAIN
        waiting = sorted(self._waiting)
        stored = self._offsets.offsets([source_partition(self._alias, each) for each in waiting])
        return [each for each, offset in zip(waiting, stored, strict=True) if offset == source_offset(RESET)]

    def end(self, partitions: Iterable[TopicPartition]) -> None:
        """These are read again."""
        self._waiting.difference_update(partitions)
