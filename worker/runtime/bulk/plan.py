"""The plan of a bulk sink's next load: offset ranges, by what is loaded, what there is and how long it has waited."""

from __future__ import annotations

from collections.abc import Mapping

from connect.bulk import OffsetRange
from connect.data import TopicPartition

__all__ = ["plan_ranges"]


def plan_ranges(
    positions: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    *,
    flush_size: int,
    overdue: bool,
) -> tuple[OffsetRange, ...]:
    """The ranges of the next load; none while there is too little.

    A partition with ``flush_size`` records or more gives that many. When any does, or ``overdue`` says that records
    have waited long enough, the others give what they have, so that a load holds what belongs together in time.
    ``positions`` are the next offsets to load, ``ends`` the ends of the partitions.
    """
    waiting = {tp: end - positions.get(tp, 0) for tp, end in ends.items() if end > positions.get(tp, 0)}
    if not overdue and all(count < flush_size for count in waiting.values()):
        return ()
    return tuple(
        OffsetRange(tp.topic, tp.partition, positions.get(tp, 0), positions.get(tp, 0) + min(count, flush_size))
        for tp, count in sorted(waiting.items())
    )
