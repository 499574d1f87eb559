"""Which of the messages that a consumer has fetched belong to ranges, and when those are read to their ends."""

from __future__ import annotations

from confluent_kafka import KafkaError, Message

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from connect.internals.consumption.ranges import RangeEnds


def records(first: int, end: int, partition: int = 0) -> list[Message]:
    return [Message(topic="t", partition=partition, offset=at) for at in range(first, end)]


def end_of_partition(offset: int) -> Message:
    return Message(topic="t", partition=0, offset=offset, error=KafkaError(KafkaError._PARTITION_EOF))


def test_the_last_records_of_a_range_may_come_together_with_the_end_of_their_partition() -> None:
    ends = RangeEnds([OffsetRange("t", 0, 0, 3), OffsetRange("t", 1, 0, 3)])
    last, others = records(0, 3), records(0, 2, 1)
    assert ends.take([*last, end_of_partition(3), *others]) == ([*last, *others], [TopicPartition("t", 0)])
    assert ends.left == {TopicPartition("t", 1): 3}


def test_records_behind_a_range_are_left_out() -> None:
    ends = RangeEnds([OffsetRange("t", 0, 0, 3), OffsetRange("t", 1, 0, 3)])
    first, others = records(0, 3), records(0, 3, 1)
    assert ends.take([*first, *records(3, 5)]) == (first, [TopicPartition("t", 0)])
    # They have been fetched before the partition was paused.
    assert ends.take([*records(5, 8), *others[:1]]) == (others[:1], [])
    assert ends.take(others[1:]) == (others[1:], [TopicPartition("t", 1)])
    assert not ends.left


def test_a_partition_that_ends_before_the_range_does_is_read_on() -> None:
    ends = RangeEnds([OffsetRange("t", 0, 0, 3)])
    found = records(0, 2)
    assert ends.take([*found, end_of_partition(2)]) == (found, [])
    assert ends.take([end_of_partition(3)]) == ([], [TopicPartition("t", 0)])
