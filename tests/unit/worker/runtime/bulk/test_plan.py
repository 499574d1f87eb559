"""The rotation of a bulk sink: what is due when, and how large a load is."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.bulk import BulkSinkConfig, OffsetRange
from connect.data import TopicPartition
from connect.errors import ConfigError
from worker.runtime.bulk.plan import Limits, Waiting, plan
from worker.runtime.bulk.rotation import Clock, Rotation, last_due, limits_of

A, B, C = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
NOW = 1000.0


def limits(
    records: int = 100, size: int = 1 << 30, load: int = 1 << 40, wait: float | None = 60, idle: float | None = None
) -> Limits:
    return Limits(records, size, load, wait, idle)


def waits(
    first: int, end: int, since: float = NOW, grown: float = NOW, size: float = 1, cut: int | None = None
) -> Waiting:
    return Waiting(first, end, since, grown, size, cut)


@pytest.mark.parametrize(
    ("waiting", "limit", "due", "ranges", "reason"),
    [
        ({A: waits(0, 99)}, limits(), None, [], None),
        ({A: waits(10, 250), B: waits(5, 7)}, limits(), None, [(A, 10, 110), (B, 5, 7)], "flush.size"),
        ({A: waits(3, 4, since=NOW - 60)}, limits(), None, [(A, 3, 4)], "rotate.interval.ms"),
        ({A: waits(3, 4, since=NOW - 59)}, limits(), None, [], None),
        ({A: waits(3, 4, since=0)}, limits(wait=None), None, [], None),
        ({A: waits(3, 4)}, limits(wait=0), None, [(A, 3, 4)], "rotate.interval.ms"),
        ({A: waits(0, 20, size=50), B: waits(0, 1)}, limits(size=500), None, [(A, 0, 10), (B, 0, 1)], "flush.bytes"),
        ({A: waits(0, 3, size=900)}, limits(size=500), None, [(A, 0, 1)], "flush.bytes"),
        ({A: waits(0, 9, cut=4), B: waits(0, 2)}, limits(), None, [(A, 0, 4), (B, 0, 2)], "rotate.record.interval.ms"),
        ({A: waits(0, 900, cut=4)}, limits(), None, [(A, 0, 4)], "flush.size"),
        ({A: waits(0, 3), C: waits(0, 2, grown=NOW - 5)}, limits(idle=5), None, [(C, 0, 2)], "rotate.idle.ms"),
        ({A: waits(0, 3), C: waits(0, 2, grown=NOW - 4)}, limits(idle=5), None, [], None),
        ({A: waits(0, 3)}, limits(), "run.until=drained", [(A, 0, 3)], "run.until=drained"),
        ({}, limits(), "run.until=drained", [], None),
    ],
)
def test_what_is_due(
    waiting: dict[TopicPartition, Waiting],
    limit: Limits,
    due: str | None,
    ranges: list[tuple[TopicPartition, int, int]],
    reason: str | None,
) -> None:
    planned = plan(waiting, limit, NOW, due=due)
    assert (planned.ranges if planned else ()) == tuple(OffsetRange(*tp, first, end) for tp, first, end in ranges)
    assert (planned.reason if planned else None) == reason


def test_partitions_take_turns_in_loads_that_may_not_hold_them_all() -> None:
    waiting = {tp: waits(0, 10, size=10) for tp in (A, B, C)}
    first = plan(waiting, limits(load=150), NOW, due="now")
    assert first is not None
    assert first.ranges == (OffsetRange("t", 0, 0, 10), OffsetRange("t", 1, 0, 5))
    assert first.is_cut
    second = plan(waiting, limits(load=150), NOW, due="now", after=B)
    assert second is not None
    assert second.ranges == (OffsetRange("u", 0, 0, 10), OffsetRange("t", 0, 0, 5))


def test_one_record_is_loaded_however_large_it_is() -> None:
    planned = plan({A: waits(0, 10, size=1000), B: waits(0, 10)}, limits(load=10), NOW, due="now")
    assert planned is not None
    assert planned.ranges == (OffsetRange("t", 0, 0, 1),)


partitions = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 3))
offsets = st.dictionaries(partitions, st.integers(0, 1000))


@given(offsets, offsets, st.integers(1, 300), st.integers(1, 5000), st.floats(0.1, 50))
def test_planning_until_there_is_nothing_left_covers_every_offset_once(
    starts: dict[TopicPartition, int], ends: dict[TopicPartition, int], flush_size: int, load_bytes: int, size: float
) -> None:
    positions = {tp: starts.get(tp, 0) for tp in ends}
    after = None
    while True:
        waiting = {tp: waits(positions[tp], end, size=size) for tp, end in ends.items() if end > positions[tp]}
        planned = plan(waiting, limits(flush_size, load=load_bytes), NOW, due="now", after=after)
        if planned is None:
            break
        assert planned.records * size <= max(load_bytes, size)
        for item in planned.ranges:
            assert item.first == positions[item.topic_partition], "a range begins where the last one ended"
            assert 0 < len(item) <= flush_size
            positions[item.topic_partition] = item.end
        after = planned.ranges[-1].topic_partition
    assert positions == {tp: max(end, starts.get(tp, 0)) for tp, end in ends.items()}


# -- from one look to the next -----------------------------------------------------------------------------------------


@dataclass
class Looks:
    """A rotation whose time the test moves, and a target that takes what is planned."""

    props: dict[str, str]
    seconds: float = 0.0
    start: datetime = datetime(2026, 3, 1, 11, 59, 30, tzinfo=UTC)
    positions: dict[TopicPartition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        clock = Clock(lambda: self.seconds, lambda: self.start + timedelta(seconds=self.seconds))
        self._rotation = Rotation(BulkSinkConfig.parse(self.props), clock)

    def look(self, at: float, ends: dict[TopicPartition, int]) -> tuple[str, list[tuple[int, int]]] | None:
        """Why something is loaded at this moment, and what, which is then in the target."""
        self.seconds = at
        for tp in ends:
            self.positions.setdefault(tp, 0)
        load = self._rotation.next_load(self.positions, ends, {}, {}, draining=False)
        if load is None:
            return None
        self.positions |= {item.topic_partition: item.end for item in load.ranges}
        return load.reason, [(item.first, item.end) for item in load.ranges]


def test_records_wait_from_when_they_were_seen() -> None:
    looks = Looks({})
    assert looks.look(0, {A: 0}) is None
    assert looks.look(50, {A: 5}) is None
    assert looks.look(109, {A: 9}) is None
    assert looks.look(110, {A: 9}) == ("rotate.interval.ms", [(0, 9)])
    assert looks.look(120, {A: 10}) is None, "what came after a load waits anew"
    assert looks.look(179, {A: 10}) is None
    assert looks.look(180, {A: 10}) == ("rotate.interval.ms", [(9, 10)])


def test_what_a_load_by_time_had_no_room_for_follows_at_once() -> None:
    looks = Looks({"flush.size": "10", "rotate.interval.ms": "1000"})
    assert looks.look(0, {A: 4, B: 4}) is None
    assert looks.look(1, {A: 25, B: 5}) == ("flush.size", [(0, 10), (0, 5)])
    assert looks.look(1.1, {A: 25, B: 5}) == ("flush.size", [(10, 20)])
    assert looks.look(1.2, {A: 25, B: 5}) is None, "a load by size is no reason for a small one"
    assert looks.look(2.2, {A: 25, B: 5}) == ("rotate.interval.ms", [(20, 25)])
    by_bytes = Looks({"load.max.bytes": "10000", "rotate.interval.ms": "1000"})
    assert by_bytes.look(0, {A: 8, B: 8}) is None
    assert by_bytes.look(1, {A: 8, B: 8}) == ("rotate.interval.ms", [(0, 8), (0, 2)])
    assert by_bytes.look(1.1, {A: 8, B: 8}) == ("rotate.interval.ms", [(2, 8)])


def test_a_schedule_loads_what_there_was_at_its_times() -> None:
    looks = Looks({"rotate.schedule.interval.ms": "3600000", "flush.size": "10"})
    assert looks.look(0, {A: 3}) is None
    assert looks.look(29, {A: 4}) is None
    assert looks.look(31, {A: 15}) == ("rotate.schedule.interval.ms", [(0, 10)])
    assert looks.look(32, {A: 17}) == ("rotate.schedule.interval.ms", [(10, 17)])
    assert looks.look(33, {A: 18}) is None
    assert looks.look(3600, {A: 18}) is None, "rotate.interval.ms is for ever beside a schedule"
    assert looks.look(3631, {A: 18}) == ("rotate.schedule.interval.ms", [(17, 18)])


def test_a_topic_is_idle_when_none_of_its_partitions_grows() -> None:
    looks = Looks({"rotate.idle.ms": "10000"})
    assert looks.look(0, {A: 3, B: 3, C: 1}) is None
    assert looks.look(9, {A: 3, B: 4, C: 1}) is None
    assert looks.look(10, {A: 3, B: 4, C: 1}) == ("rotate.idle.ms", [(0, 1)])
    assert looks.look(19, {A: 3, B: 4, C: 1}) == ("rotate.idle.ms", [(0, 3), (0, 4)])


@pytest.mark.parametrize(
    ("now", "hours", "zone", "due"),
    [
        ("2026-03-01T11:59:30+00:00", 1, "UTC", "2026-03-01T11:00:00+00:00"),
        ("2026-03-01T12:00:00+00:00", 1, "UTC", "2026-03-01T12:00:00+00:00"),
        ("2026-03-01T22:30:00+00:00", 7, "UTC", "2026-03-01T21:00:00+00:00"),
        ("2026-03-02T00:30:00+00:00", 7, "UTC", "2026-03-02T00:00:00+00:00"),
        ("2026-03-01T11:00:00+00:00", 24, "Europe/Berlin", "2026-02-28T23:00:00+00:00"),
        ("2026-03-01T11:00:00+00:00", 24, "Asia/Kolkata", "2026-02-28T18:30:00+00:00"),
        ("2026-03-29T12:30:00+00:00", 12, "Europe/Berlin", "2026-03-29T11:00:00+00:00"),
    ],
)
def test_the_times_of_a_schedule(now: str, hours: int, zone: str, due: str) -> None:
    found = last_due(datetime.fromisoformat(now), timedelta(hours=hours), ZoneInfo(zone))
    assert found == datetime.fromisoformat(due)


@pytest.mark.parametrize(
    ("props", "wait"),
    [
        ({}, 60),
        ({"rotate.interval.ms": "-1"}, None),
        ({"rotate.interval.ms": "500", "rotate.idle.ms": "9"}, 0.5),
        ({"rotate.idle.ms": "9"}, None),
        ({"rotate.schedule.interval.ms": "9"}, None),
        ({"rotate.record.interval.ms": "9"}, None),
    ],
)
def test_how_long_records_wait_at_most(props: dict[str, str], wait: float | None) -> None:
    assert limits_of(BulkSinkConfig.parse(props)).wait == wait


@pytest.mark.parametrize(
    ("key", "value"),
    [("rotate.interval.ms", "-2"), ("timezone", "Mars/Olympus"), ("rotate.schedule.interval.ms", "86400001")],
)
def test_what_cannot_be_kept_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        BulkSinkConfig.parse({key: value})
