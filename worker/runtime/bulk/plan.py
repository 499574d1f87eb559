"""Plans the next load of a bulk sink: which offset ranges, and for which reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from connect.bulk import OffsetRange
from connect.data import TopicPartition

__all__ = ["Limits", "Plan", "Waiting", "plan"]

_FLUSH_SIZE: Final = "flush.size"
_FLUSH_BYTES: Final = "flush.bytes"
_RECORD_TIME: Final = "rotate.record.interval.ms"
_WAIT: Final = "rotate.interval.ms"
_IDLE: Final = "rotate.idle.ms"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that make a load due, and its maximum size. Times are in seconds; ``None`` is no limit."""

    records: int
    """The number of records in one partition that makes a load due."""
    bytes: int
    """The estimated number of bytes in one partition that makes a load due."""
    load_bytes: int
    """The estimated maximum number of bytes of a load, over all partitions."""
    wait: float | None = None
    """The longest time that records wait."""
    idle: float | None = None
    """How long a topic gets no records before it is loaded."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The records of a partition that are not loaded yet: offsets ``first`` to ``end``, exclusive."""

    first: int
    end: int
    since: float
    """When the first of these records was seen."""
    grown: float
    """When the topic last got a record."""
    offset_bytes: float
    """The estimated bytes per offset."""
    cut: int | None = None
    """The first offset of the next window of record time, if known."""

    def __len__(self) -> int:
        return self.end - self.first

    def room(self, limits: Limits) -> int:
        """Return how many offsets one load may take."""
        most = min(len(self), limits.records, max(1, int(limits.bytes / self.offset_bytes)))
        return most if self.cut is None else min(most, self.cut - self.first)

    def due_by(self, limits: Limits, now: float) -> str | None:
        """Return the key of the limit that these records have reached, if any."""
        if len(self) >= limits.records:
            return _FLUSH_SIZE
        if len(self) * self.offset_bytes >= limits.bytes:
            return _FLUSH_BYTES
        if self.cut is not None:
            return _RECORD_TIME
        if limits.wait is not None and now - self.since >= limits.wait:
            return _WAIT
        return None

    def is_idle(self, limits: Limits, now: float) -> bool:
        """Return whether the topic has been idle for long enough."""
        return limits.idle is not None and now - self.grown >= limits.idle


@dataclass(frozen=True, slots=True)
class Plan:
    """The ranges of a load, in the order in which partitions take turns, and the key that made them due."""

    ranges: tuple[OffsetRange, ...]
    reason: str
    is_cut: bool = False
    """Whether a load of everything that is due would have been too large."""

    @property
    def is_by_size(self) -> bool:
        """Whether its size has made it due, rather than time."""
        return self.reason in (_FLUSH_SIZE, _FLUSH_BYTES, _RECORD_TIME)

    @property
    def records(self) -> int:
        """How many offsets there are in the ranges."""
        return sum(map(len, self.ranges))


def plan(
    waiting: Mapping[TopicPartition, Waiting],
    limits: Limits,
    now: float,
    *,
    due: str | None = None,
    after: TopicPartition | None = None,
) -> Plan | None:
    """Return the next load; ``None`` while none is due.

    ``due`` is a reason to load everything that waits: a schedule, or the end of a drained connector. When one partition
    has reached a limit, all partitions are loaded as far as they go, so that a load holds records of the same time; an
    idle topic is loaded alone. A load that would be too large takes as many partitions as fit, beginning ``after`` the
    last one of the previous load, so that each has its turn.
    """
    reason = due or next(filter(None, (item.due_by(limits, now) for item in waiting.values())), None)
    taken = waiting
    if reason is None:
        taken = {tp: item for tp, item in waiting.items() if item.is_idle(limits, now)}
        reason = _IDLE
    ranges = _bounded({tp: taken[tp] for tp in _in_turn(taken, after)}, limits)
    is_cut = len(ranges) < len(taken)
    return Plan(tuple(ranges), reason, is_cut) if ranges else None


def _in_turn(waiting: Mapping[TopicPartition, Waiting], after: TopicPartition | None) -> list[TopicPartition]:
    """Return all partitions in order, beginning after a given one."""
    return sorted(waiting, key=lambda tp: (after is not None and tp <= after, tp))


def _bounded(waiting: Mapping[TopicPartition, Waiting], limits: Limits) -> list[OffsetRange]:
    """Ranges of the first partitions, up to the size limit; one that does not fit completely is the last."""
    ranges: list[OffsetRange] = []
    left = float(limits.load_bytes)
    for tp, item in waiting.items():
        count = min(item.room(limits), max(int(left / item.offset_bytes), 0 if ranges else 1))
        if count == 0:
            break
        ranges.append(OffsetRange(tp.topic, tp.partition, item.first, item.first + count))
        left -= count * item.offset_bytes
    return ranges
