"""``topic.creation.*`` tells how the topics of a source connector are made."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from worker.kafka.topics.creation import NewTopic, TopicCreationGroups

DEFAULT = {"topic.creation.default.replication.factor": "3", "topic.creation.default.partitions": "5"}
GROUPS = DEFAULT | {
    "topic.creation.groups": "compacted, logs",
    "topic.creation.compacted.include": "table-.*,state",
    "topic.creation.compacted.exclude": "table-tmp.*",
    "topic.creation.compacted.partitions": "1",
    "topic.creation.compacted.cleanup.policy": "compact",
    "topic.creation.logs.include": ".*-log",
    "topic.creation.logs.replication.factor": "-1",
    "topic.creation.default.compression.type": "lz4",
}


def parsed(connector: dict[str, str]) -> TopicCreationGroups:
    groups = TopicCreationGroups.parse(connector)
    assert groups is not None
    return groups


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("table-a", NewTopic("table-a", 1, 3, {"cleanup.policy": "compact"})),
        ("state", NewTopic("state", 1, 3, {"cleanup.policy": "compact"})),
        ("table-log", NewTopic("table-log", 1, 3, {"cleanup.policy": "compact"})),
        ("table-tmp-log", NewTopic("table-tmp-log", 5, -1, {})),
        ("states", NewTopic("states", 5, 3, {"compression.type": "lz4"})),
        ("my-table-a", NewTopic("my-table-a", 5, 3, {"compression.type": "lz4"})),
    ],
)
def test_a_topic_is_made_as_the_first_group_that_matches_says(topic: str, expected: NewTopic) -> None:
    assert parsed(GROUPS).new_topic(topic) == expected


def test_groups_are_asked_in_their_order_and_default_last() -> None:
    groups = parsed(GROUPS | {"topic.creation.groups": "logs,default,compacted"})
    assert [group.name for group in groups.groups] == ["logs", "compacted", "default"]
    assert groups.group_of("table-log").name == "logs"


def test_the_default_group_takes_every_topic_whatever_it_is_told() -> None:
    told = DEFAULT | {"topic.creation.default.include": "x", "topic.creation.default.exclude": ".*"}
    assert parsed(told).new_topic("y") == NewTopic("y", 5, 3, {})


def test_a_group_that_includes_nothing_matches_nothing() -> None:
    groups = parsed(DEFAULT | {"topic.creation.groups": "none", "topic.creation.none.partitions": "9"})
    assert not groups.groups[0].matches("t")


def test_a_connector_without_such_settings_leaves_topics_to_the_broker() -> None:
    assert TopicCreationGroups.parse({"name": "c", "topic": "t"}) is None


@pytest.mark.parametrize(
    ("settings", "key", "told"),
    [
        (
            {"topic.creation.default.partitions": "1"},
            "topic.creation.default.replication.factor",
            "no default value",
        ),
        (
            {"topic.creation.default.replication.factor": "1"},
            "topic.creation.default.partitions",
            "no default value",
        ),
        ({"topic.creation.groups": "a"}, "topic.creation.default.replication.factor", "no default value"),
        (
            DEFAULT | {"topic.creation.default.partitions": "0"},
            "topic.creation.default.partitions",
            "Number of partitions must be positive, or -1 to use the broker's default",
        ),
        (
            DEFAULT | {"topic.creation.default.partitions": "many"},
            "topic.creation.default.partitions",
            "Not a number",
        ),
        (
            DEFAULT | {"topic.creation.default.replication.factor": "40000"},
            "topic.creation.default.replication.factor",
            "Replication factor must be positive and not larger than the number of brokers",
        ),
        (
            DEFAULT | {"topic.creation.groups": "a,a"},
            "topic.creation.groups",
            "Duplicate alias provided.",
        ),
        (
            DEFAULT | {"topic.creation.groups": "a", "topic.creation.a.include": "["},
            "topic.creation.a.include",
            "Syntax error in regular expression",
        ),
    ],
)
def test_what_is_wrong_is_told_in_kafka_s_words(settings: dict[str, str], key: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TopicCreationGroups.parse(settings)
    assert caught.value.key == key
    assert told in str(caught.value)


def test_a_topic_is_shown_with_what_it_is_made_with() -> None:
    assert str(NewTopic("orders", 3, 1, {"cleanup.policy": "compact"})) == (
        "orders (partitions=3, replication.factor=1, cleanup.policy=compact)"
    )
    assert str(NewTopic("orders", replication_factor=2)) == "orders (replication.factor=2)"
    assert str(NewTopic("orders")) == "orders (as the broker makes topics)"
