"""Which records of a dead letter queue are read: functions of what is asked for and of where its partitions end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Range", "ranges_after", "ranges_of", "ranges_to_replay", "rest_of"]


@dataclass(frozen=True, slots=True)
class Range:
    """The records of one partition from ``first`` on and before ``end``."""

    partition: int
    first: int
    end: int


def ranges_after(after: tuple[int, int] | None, begins: Mapping[int, int], ends: Mapping[int, int]) -> list[Range]:
    """All that is after one record, partition by partition; without one all there is."""
    partition, offset = after or (-1, -1)
    wanted = {number: end for number, end in ends.items() if number >= partition}
    return _there(
        [Range(number, offset + 1 if number == partition else 0, end) for number, end in wanted.items()], begins, ends
    )


def ranges_of(
    selection: Sequence[tuple[int, int, int]], begins: Mapping[int, int], ends: Mapping[int, int]
) -> list[Range]:
    """What is selected and there."""
    return _there([Range(*item) for item in selection], begins, ends)


def ranges_to_replay(
    position: Mapping[int, int], until: Mapping[int, int], begins: Mapping[int, int], ends: Mapping[int, int]
) -> list[Range]:
    """What was not replayed yet, up to ``until``."""
    wanted = [Range(number, position.get(number, 0), until.get(number, 0)) for number in ends]
    return _there(wanted, begins, ends)


def rest_of(ranges: Sequence[Range], reached: Mapping[int, int]) -> list[Range]:
    """What remains to be read; ``reached`` has the next offset in each range that was begun, by its index."""
    left = [Range(item.partition, reached.get(index, item.first), item.end) for index, item in enumerate(ranges)]
    return [item for item in left if item.first < item.end]


def _there(ranges: Sequence[Range], begins: Mapping[int, int], ends: Mapping[int, int]) -> list[Range]:
    found = [
        Range(item.partition, max(item.first, begins[item.partition]), min(item.end, ends[item.partition]))
        for item in ranges
        if item.partition in ends
    ]
    return sorted((item for item in found if item.first < item.end), key=lambda item: (item.partition, item.first))
