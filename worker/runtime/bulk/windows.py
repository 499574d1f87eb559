"""Windows of record time: where in a partition the first record of a later window is (``rotate.record.interval.ms``).

Brokers return the first offset at or after a time. So the window of a record is found without reading records, by a
binary search for all partitions at once: steps back from now double, and are halved then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from connect.data import TopicPartition

__all__ = ["RecordWindows", "Search"]

_LATEST: Final = 1 << 61


@dataclass(slots=True)
class Search:
    """The search for the first window that begins after the record at ``position``.

    ``low`` begins a window, in steps of ``interval`` from 1970 on, that does not begin after it, ``high`` one that
    does; ``None`` until one is found. ``cut`` is the first offset of the window of ``high``, if it has records yet.
    """

    position: int
    interval: int
    low: int | None = None
    high: int | None = None
    cut: int | None = None
    _step: int = 1
    _guess: int = 0

    @classmethod
    def near(cls, position: int, interval: int, now_ms: int) -> Search:
        """Return a search for a record about which nothing is known, except that it is probably not in the future."""
        return cls(position, interval, _guess=(now_ms // interval + 1) * interval)

    @property
    def is_over(self) -> bool:
        """Whether ``high`` is the first of the windows after the record's."""
        return self.low is not None and self.high is not None and self.high - self.low <= self.interval

    @property
    def probe(self) -> int:
        """The time to look up next, in ms since 1970."""
        if self.low is None:
            return self._guess if self.high is None else max(0, self.high - self._step * self.interval)
        if self.high is None:
            return min(_LATEST, self.low + self._step * self.interval)
        return self.low + (self.high - self.low) // self.interval // 2 * self.interval

    def narrow(self, offset: int | None) -> None:
        """Take in the first offset at or after :attr:`probe`, if there is one."""
        probe = self.probe
        is_after = offset is None or offset > self.position
        if self.low is None or self.high is None:
            self._step *= 1 if self.low is None and self.high is None else 2
        if not is_after and probe < _LATEST:
            self.low = probe
        else:
            self.high, self.cut = probe, offset
            if probe <= 0:
                # Records without a timestamp come before all windows.
                self.low = probe - self.interval


@dataclass(frozen=True, slots=True)
class _Found:
    low: int
    cut: int | None
    end: int


class RecordWindows:
    """Finds where the windows of partitions end. ``offsets_at`` looks up the first offsets at times."""

    def __init__(
        self,
        interval_ms: int,
        offsets_at: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int | None]],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._interval = interval_ms
        self._offsets_at = offsets_at
        self._now = now
        self._found: dict[TopicPartition, _Found] = {}

    def cuts(self, waiting: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, int]:
        """Return the first offset of a later window among the waiting records of each partition, where there is one.

        ``waiting`` has the first offset and the end of each.
        """
        if self._interval <= 0:
            return {}
        searches = {tp: search for tp, (first, end) in waiting.items() if (search := self._search(tp, first, end))}
        while open_ones := {tp: search for tp, search in searches.items() if not search.is_over}:
            found = self._offsets_at({tp: search.probe for tp, search in open_ones.items()})
            for tp, search in open_ones.items():
                search.narrow(found[tp])
        for tp, search in searches.items():
            assert search.low is not None
            self._found[tp] = _Found(search.low, search.cut, waiting[tp][1])
        cuts = {tp: self._found[tp].cut for tp in waiting}
        return {tp: cut for tp, cut in cuts.items() if cut is not None and waiting[tp][0] < cut < waiting[tp][1]}

    def _search(self, tp: TopicPartition, first: int, end: int) -> Search | None:
        """Return the search that is necessary; ``None`` if the last result is still valid."""
        found = self._found.get(tp)
        if found is None:
            return Search.near(first, self._interval, int(self._now() * 1000))
        if (found.cut is None and found.end != end) or (found.cut is not None and found.cut <= first):
            return Search(first, self._interval, low=found.low)
        return None
