"""Sets of offsets of one topic partition, such as the offsets of records that a load skips."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import merge

__all__ = ["OffsetSet"]


class OffsetSet:
    """A sorted set of offsets stored as spans: consecutive offsets cost as much memory as a single one, 16 bytes."""

    __slots__ = ("_ends", "_firsts", "_size")

    def __init__(self, spans: Iterable[tuple[int, int]] = ()) -> None:
        """Make a set from spans of first and end offset (exclusive), sorted by the first; they may touch and "
        "overlap."""
        self._firsts = array("q")
        self._ends = array("q")
        for first, end in spans:
            if self._ends and first <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            elif first < end:
                self._firsts.append(first)
                self._ends.append(end)
        self._size = sum(self._ends) - sum(self._firsts)

    @classmethod
    def of(cls, offsets: Iterable[int]) -> OffsetSet:
        """Make a set from offsets in any order."""
        return cls((offset, offset + 1) for offset in sorted(offsets))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        for first, end in self.spans():
            yield from range(first, end)

    def __contains__(self, offset: int) -> bool:
        place = bisect_right(self._firsts, offset) - 1
        return place >= 0 and offset < self._ends[place]

    def __or__(self, other: OffsetSet) -> OffsetSet:
        return OffsetSet(merge(self.spans(), other.spans()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetSet) and (self._firsts, self._ends) == (other._firsts, other._ends)

    def __hash__(self) -> int:
        return hash((tuple(self._firsts), tuple(self._ends)))

    def __repr__(self) -> str:
        return f"OffsetSet({list(self.spans())})"

    def spans(self) -> Iterator[tuple[int, int]]:
        """Iterate over the spans as pairs of first and end offset. They neither touch nor overlap."""
        return zip(self._firsts, self._ends, strict=True)

    def between(self, first: int, end: int) -> OffsetSet:
        """Return the offsets from ``first`` (inclusive) to ``end`` (exclusive)."""
        begin = max(0, bisect_right(self._firsts, first) - 1)
        stop = bisect_right(self._firsts, end)
        places = range(begin, stop)
        return OffsetSet((max(first, self._firsts[place]), min(end, self._ends[place])) for place in places)

    def least(self, count: int) -> OffsetSet:
        """Return the ``count`` lowest offsets."""
        spans: list[tuple[int, int]] = []
        for first, end in self.spans():
            if count <= 0:
                break
            spans.append((first, min(end, first + count)))
            count -= end - first
        return OffsetSet(spans)
