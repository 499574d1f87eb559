from connect.data import TopicPartition
from worker.config.connector import SinkConnectorConfig
from worker.runtime.sink.standings import Standing, Standings
from worker.runtime.sink.topic_choice import TopicChoice

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_what_is_not_durable_begins_after_the_last_commit_or_where_the_partition_was_entered() -> None:
    standings = Standings({A: Standing(), B: Standing()})
    standings.enter({A: 5})
    standings.enter({A: 7})
    assert standings.resumptions() == {A: 5}
    standings[A].committed = 9
    assert standings.resumptions() == {A: 9}


def test_a_partition_that_is_rewound_is_not_at_its_end_any_more() -> None:
    standing = Standing(entered=0, delivered=8, committed=8, at_end=10)
    assert standing.position == 10
    standing.rewind(3)
    assert (standing.position, standing.resume) == (3, 3)


def test_what_was_delivered_of_a_partition_that_is_gone_counts_no_more() -> None:
    standings = Standings({A: Standing()})
    standings.deliver({A: 3, B: 4})
    assert standings.delivered() == {A: 3}
    assert standings.delivered([B]) == {}


def test_a_pattern_matches_whole_names_and_no_internal_topics() -> None:
    config = {"name": "c", "connector.class": "C", "topics.regex": r"a|__.*|b\d+"}
    choice = TopicChoice(SinkConnectorConfig.parse(config))
    assert choice.matching(["b12", "a", "ab", "xa", "b", "__consumer_offsets", "__mine"]) == ("__mine", "a", "b12")
