from typing import Any, cast

import pytest
from confluent_kafka import Consumer

from connect.data import TopicPartition
from worker.config.connector import SinkConnectorConfig
from worker.config.internal_topics import InternalTopics
from worker.runtime.sink.progress import EndOffsets, PartitionProgress, SinkProgress
from worker.runtime.sink.topic_choice import TopicChoice

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_what_is_not_durable_begins_after_the_last_commit_or_where_the_partition_was_entered() -> None:
    progress = SinkProgress({A: PartitionProgress(), B: PartitionProgress()})
    progress.enter({A: 5})
    progress.enter({A: 7})
    assert progress.resumptions() == {A: 5}
    progress[A].committed = 9
    assert progress.resumptions() == {A: 9}


@pytest.mark.parametrize(("expected", "behind"), [(3, {A: (3, 5)}), (5, {}), (7, {}), (None, {})])
def test_records_before_the_first_one_are_missed_if_they_were_expected(
    expected: int | None, behind: dict[TopicPartition, tuple[int, int]]
) -> None:
    progress = SinkProgress({A: PartitionProgress()})
    progress.expect({} if expected is None else {A: expected})
    assert progress.enter({A: 5}) == behind
    assert progress.enter({A: 9}) == {}


def test_a_partition_that_is_rewound_is_not_at_its_end_any_more() -> None:
    partition = PartitionProgress(entered=0, delivered=8, committed=8, at_end=10)
    assert partition.position == 10
    partition.rewind(3)
    assert (partition.position, partition.resume) == (3, 3)


def test_what_was_delivered_of_a_partition_that_is_gone_counts_no_more() -> None:
    progress = SinkProgress({A: PartitionProgress()})
    progress.deliver({A: 3, B: 4})
    assert progress.delivered() == {A: 3}
    assert progress.delivered([B]) == {}


def test_a_pattern_matches_whole_names_and_no_internal_topics() -> None:
    config = {"name": "c", "connector.class": "C", "topics.regex": r"a|__.*|b\d+"}
    choice = TopicChoice(SinkConnectorConfig.parse(config), InternalTopics({"offset.storage.topic": "b1"}))
    assert choice.matching(["b12", "a", "ab", "xa", "b", "b1", "__consumer_offsets", "__mine"]) == ("a", "b12")


class Ends:
    """A consumer that knows where partitions begin and end."""

    def __init__(self, ends: dict[int, tuple[int, int]]) -> None:
        self.ends = ends

    def get_watermark_offsets(self, partition: Any, timeout: float, *, cached: bool) -> tuple[int, int]:
        return self.ends[partition.partition]


def drain(left: int, total: int) -> dict[str, float]:
    return {"sink-drain-left": left, "sink-drain-total": total}


def test_how_much_there_is_to_drain_is_known_once_each_partition_has_a_position() -> None:
    ends = EndOffsets(cast(Consumer, Ends({0: (10, 110), 1: (0, 50)})))
    progress = SinkProgress({A: PartitionProgress(), B: PartitionProgress()})
    assert ends.gauges([A, B], progress) == {}, "the ends were not looked at yet"
    assert not ends.reached([A, B], progress.positions())
    assert ends.gauges([A, B], progress) == {}, "it is not known where the group is"
    progress.enter({A: 10, B: 20})
    progress.deliver({A: 30, B: 20})
    assert ends.gauges([A, B], progress) == drain(110, 130)
    progress[A].rewind(15)
    assert ends.gauges([A, B], progress) == drain(125, 130), "it goes back, but the whole stays"
    progress.deliver({A: 150, B: 50})
    assert ends.gauges([A, B], progress) == drain(0, 130), "what came later does not count"


def test_an_empty_partition_has_nothing_to_drain() -> None:
    ends = EndOffsets(cast(Consumer, Ends({0: (7, 7)})))
    progress = SinkProgress({A: PartitionProgress()})
    assert ends.reached([A], {})
    assert ends.gauges([A], progress) == drain(0, 0)
