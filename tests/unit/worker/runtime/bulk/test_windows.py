"""Where a window of record time ends, found by asking for first offsets at times."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from connect.data import TopicPartition
from worker.runtime.bulk.rotation import RecordWindows

HOUR = 3_600_000
NOW = 1_790_000_000_000
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Logs:
    """Partitions whose records have these times, and a broker that tells the first offset at or after one."""

    def __init__(self, times: Mapping[TopicPartition, list[int]]) -> None:
        self.times = {tp: list(of_records) for tp, of_records in times.items()}
        self.requests = 0

    def offsets_at(self, asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        self.requests += 1
        return {tp: self._first(tp, time) for tp, time in asked.items()}

    def _first(self, tp: TopicPartition, time: int) -> int | None:
        # The first of all records at or after a time is the first at which the running maximum is.
        offset = bisect_left(list(accumulate(self.times[tp], max)), time)
        return offset if offset < len(self.times[tp]) else None

    def windows(self, interval: int = HOUR) -> RecordWindows:
        return RecordWindows(interval, self.offsets_at, lambda: NOW / 1000)

    def waiting(self, **first: int) -> dict[TopicPartition, tuple[int, int]]:
        return {tp: (first.get(f"p{tp.partition}", 0), len(times)) for tp, times in self.times.items()}


def test_a_load_ends_where_a_later_hour_begins() -> None:
    logs = Logs({A: [NOW - 5 * HOUR, NOW - 5 * HOUR + 1, NOW - 2 * HOUR, NOW], B: [NOW]})
    windows = logs.windows()
    assert windows.cuts(logs.waiting()) == {A: 2}
    assert windows.cuts(logs.waiting(p0=2)) == {A: 3}
    assert windows.cuts(logs.waiting(p0=3)) == {}, "the last hour may not be over"
    logs.times[A].append(NOW + HOUR)
    assert windows.cuts(logs.waiting(p0=3)) == {A: 4}


def test_brokers_are_asked_only_for_what_may_have_changed() -> None:
    logs = Logs({A: [NOW - 24 * 365 * HOUR, NOW], B: [NOW]})
    windows = logs.windows()
    windows.cuts(logs.waiting())
    assert logs.requests < 40, "an hour a year ago is found by halving"
    for _ in range(3):
        logs.requests = 0
        windows.cuts(logs.waiting())
        assert logs.requests == 0
    logs.times[B].append(NOW)
    windows.cuts(logs.waiting())
    assert logs.requests == 1


def test_without_windows_nobody_is_asked() -> None:
    logs = Logs({A: [NOW - HOUR, NOW]})
    assert logs.windows(-1).cuts(logs.waiting()) == {}
    assert logs.requests == 0


def test_records_without_a_time_are_before_all_windows() -> None:
    logs = Logs({A: [-1, -1, 5, NOW], B: [-1, -1]})
    assert logs.windows().cuts(logs.waiting()) == {A: 2}
    assert logs.windows().cuts(logs.waiting(p0=2)) == {A: 3}


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(1, 7))
def test_loads_in_a_row_have_one_window_each(times: list[int], interval: int) -> None:
    logs = Logs({A: times})
    windows = RecordWindows(interval, logs.offsets_at, lambda: 0.02)
    highest = list(accumulate(times, max))
    first = 0
    while first < len(times):
        cut = windows.cuts(logs.waiting(p0=first)).get(A, len(times))
        assert {highest[offset] // interval for offset in range(first, cut)} == {highest[first] // interval}
        assert cut == len(times) or highest[cut] // interval > highest[first] // interval
        first = cut
