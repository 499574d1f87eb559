"""The rotation of a bulk sink: remembers waiting records between two checks of the topics, and plans loads.

``rotate.schedule.interval.ms`` sets times of the day at which the waiting records are loaded, and
``rotate.record.interval.ms`` the windows of record time whose records are loaded together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from connect.bulk import BulkSinkConfig
from connect.data import TopicPartition
from worker.runtime.bulk.plan import Limits, Plan, Waiting, plan

__all__ = ["Clock", "RecordWindows", "Rotation", "Search", "last_due", "limits_of"]

_SMALLEST_BYTES: Final = 1.0
_UNKNOWN_BYTES: Final = 1000.0
_SCHEDULE: Final = "rotate.schedule.interval.ms"
_DRAIN: Final = "run.until=drained"


@dataclass(frozen=True, slots=True)
class Clock:
    """Two clocks: a monotonic one, and the time of day."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@dataclass(slots=True)
class _Seen:
    """A partition as of the last check: its end, and when its first waiting record was seen."""

    end: int
    since: float


def limits_of(config: BulkSinkConfig) -> Limits:
    """Return the limits that a configuration sets."""
    wait = config.longest_wait_ms
    return Limits(
        config.flush_size,
        config.flush_bytes,
        config.load_max_bytes,
        None if wait is None else wait / 1000,
        None if config.rotate_idle_ms < 0 else config.rotate_idle_ms / 1000,
    )


class Rotation:
    """Decides what to load and when, from positions, ends and sizes that are given to it."""

    def __init__(self, config: BulkSinkConfig, clock: Clock = Clock()) -> None:
        self._limits = limits_of(config)
        self._zone = ZoneInfo(config.timezone)
        self._interval = timedelta(milliseconds=config.rotate_schedule_interval_ms)
        self._clock = clock
        self._seen: dict[TopicPartition, _Seen] = {}
        self._grown: dict[str, float] = {}
        self._last_due = self._boundary()
        self._due_ends: Mapping[TopicPartition, int] = {}
        self._after: TopicPartition | None = None

    def next_load(
        self,
        positions: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        offset_bytes: Mapping[str, float],
        cuts: Mapping[TopicPartition, int],
        *,
        draining: bool,
    ) -> Plan | None:
        """Return the load that is due, if any, and count it as begun.

        ``positions`` are the next offsets to load, ``ends`` those of the partitions, ``offset_bytes`` the known bytes
        per offset of each topic, and ``cuts`` the ends of windows of record time.
        """
        now = self._clock.monotonic()
        waiting = self._look(positions, ends, now, offset_bytes, cuts)
        self._keep_schedule(ends)
        due = _DRAIN if draining else _SCHEDULE if self._schedule_is_due(positions) else None
        load = plan(waiting, self._limits, now, due=due, after=self._after)
        if load is not None:
            self._after = load.ranges[-1].topic_partition if load.is_cut else None
            if load.is_by_size:
                # The records that such a load leaves start to wait now; those that any other load leaves are overdue,
                # and go with the next one.
                for item in load.ranges:
                    self._seen[item.topic_partition].since = now
        return load

    def _look(
        self,
        positions: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        now: float,
        offset_bytes: Mapping[str, float],
        cuts: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, Waiting]:
        for tp, end in ends.items():
            seen = self._seen.get(tp)
            if seen is None or end != seen.end:
                self._grown[tp.topic] = now
            if seen is None or seen.end <= positions[tp]:
                self._seen[tp] = _Seen(end, now)
            else:
                seen.end = end
        return {
            tp: Waiting(
                positions[tp],
                end,
                self._seen[tp].since,
                self._grown[tp.topic],
                max(offset_bytes.get(tp.topic, _UNKNOWN_BYTES), _SMALLEST_BYTES),
                cuts.get(tp),
            )
            for tp, end in ends.items()
            if end > positions[tp]
        }

    def _keep_schedule(self, ends: Mapping[TopicPartition, int]) -> None:
        boundary = self._boundary()
        if boundary != self._last_due:
            self._last_due, self._due_ends = boundary, dict(ends)

    def _schedule_is_due(self, positions: Mapping[TopicPartition, int]) -> bool:
        if all(positions.get(tp, end) >= end for tp, end in self._due_ends.items()):
            self._due_ends = {}
        return bool(self._due_ends)

    def _boundary(self) -> datetime | None:
        return last_due(self._clock.now(), self._interval, self._zone) if self._interval > timedelta(0) else None


def last_due(now: datetime, interval: timedelta, zone: tzinfo) -> datetime:
    """Return the latest due time up to ``now``: every ``interval`` from midnight in a time zone.

    Each day starts at midnight, so that 7 h means midnight, 7:00, 14:00 and 21:00. On a day on which clocks change, the
    times after the change are an hour off, since elapsed hours count.
    """
    midnight = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0).astimezone(UTC)
    return midnight + (now - midnight) // interval * interval


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
