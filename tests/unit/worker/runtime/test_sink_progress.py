from connect.data import TopicPartition
from worker.config.connector import SinkConnectorConfig
from worker.config.internal_topics import InternalTopics
from worker.runtime.sink.progress import PartitionProgress, SinkProgress
from worker.runtime.sink.topic_choice import TopicChoice

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_what_is_not_durable_begins_after_the_last_commit_or_where_the_partition_was_entered() -> None:
    progress = SinkProgress({A: PartitionProgress(), B: PartitionProgress()})
    progress.enter({A: 5})
    progress.enter({A: 7})
    assert progress.resumptions() == {A: 5}
    progress[A].committed = 9
    assert progress.resumptions() == {A: 9}


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
