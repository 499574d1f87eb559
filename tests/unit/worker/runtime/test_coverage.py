"""When a sink task joins its group anew, since partitions of its topics were left over."""

from __future__ import annotations

from collections.abc import Collection

from confluent_kafka import KafkaError, KafkaException

from connect.data import TopicPartition
from worker.runtime.sink.coverage import Coverage

PRESENT = {"t": (0, 1)}
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


class Group:
    """A group at a time: what its members have, and how often it was asked."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked = 0
        self.members: Collection[TopicPartition] | None = ()
        self.error: KafkaException | None = None
        self.coverage = Coverage(self._tell, lambda: self.now)

    def _tell(self) -> Collection[TopicPartition] | None:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.members

    def look(self, own: Collection[TopicPartition] = ()) -> set[TopicPartition]:
        return self.coverage.left_over(PRESENT, own)

    def joined_anew_at(self, until: float) -> list[float]:
        """The times at which the member joins anew, if it looks whenever that is due."""
        self.coverage.divided()
        times = []
        while self.coverage.due is not None and self.coverage.due <= until:
            self.now = self.coverage.due
            if self.look():
                times.append(self.now)
        return times


def test_a_member_that_has_all_partitions_asks_nobody() -> None:
    group = Group()
    group.coverage.divided()
    assert group.look((FIRST, SECOND)) == set()
    assert group.coverage.due is None
    assert group.asked == 0


def test_partitions_that_other_members_have_are_not_left_over() -> None:
    group = Group()
    group.members = {SECOND}
    group.coverage.divided()
    assert group.look((FIRST,)) == set()
    assert group.coverage.due is None


def test_what_no_member_has_for_three_seconds_is_left_over() -> None:
    group = Group()
    group.members = {FIRST}
    group.coverage.divided()
    assert group.look() == set()
    group.now = 2.9
    assert group.look() == set()
    group.now = 3.0
    assert group.look() == {SECOND}


def test_a_member_that_joins_anew_in_vain_waits_twice_as_long_each_time() -> None:
    assert Group().joined_anew_at(100) == [3, 9, 21, 45, 93]


def test_nothing_is_left_over_while_the_group_divides() -> None:
    group = Group()
    group.members = None
    group.coverage.divided()
    for second in range(10):
        group.now = float(second)
        assert group.look() == set()
        assert group.coverage.due == second + 1
    group.members = {FIRST, SECOND}
    assert group.look() == set()
    assert group.coverage.due is None


def test_what_the_brokers_do_not_tell_is_left_alone() -> None:
    group = Group()
    group.error = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    assert group.joined_anew_at(100) == []
    assert group.coverage.due is None
