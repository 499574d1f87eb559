from hypothesis import given
from hypothesis import strategies as st

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from worker.runtime.bulk.plan import plan_ranges

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_nothing_is_planned_while_there_is_too_little() -> None:
    assert plan_ranges({A: 0}, {A: 99}, flush_size=100, overdue=False) == ()


def test_a_full_partition_takes_the_others_along() -> None:
    planned = plan_ranges({A: 10, B: 5}, {A: 250, B: 7}, flush_size=100, overdue=False)
    assert planned == (OffsetRange("t", 0, 10, 110), OffsetRange("t", 1, 5, 7))


def test_what_has_waited_long_enough_is_loaded() -> None:
    assert plan_ranges({A: 3}, {A: 4, B: 0}, flush_size=100, overdue=True) == (OffsetRange("t", 0, 3, 4),)


partitions = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 3))
offsets = st.dictionaries(partitions, st.integers(0, 1000))


@given(offsets, offsets, st.integers(1, 300))
def test_planning_until_there_is_nothing_left_covers_every_offset_once(
    starts: dict[TopicPartition, int], ends: dict[TopicPartition, int], flush_size: int
) -> None:
    positions = dict(starts)
    while ranges := plan_ranges(positions, ends, flush_size=flush_size, overdue=True):
        for item in ranges:
            assert item.first == positions.get(item.topic_partition, 0), "a range begins where the last one ended"
            assert 0 < len(item) <= flush_size
            positions[item.topic_partition] = item.end
    for partition, end in ends.items():
        assert positions.get(partition, 0) == max(end, starts.get(partition, 0))
