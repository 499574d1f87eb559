"""Which topics connectors may not use."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError, ConnectError
from connectors.mirror.config.source import MirrorSourceConfig
from worker.config.internal_topics import HANDED_KEY, InternalTopics

CLUSTER = {
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "statuses",
    "audit.topic": "audit",
}


@pytest.mark.parametrize(
    "topic",
    ["configs", "configs-history", "offsets", "statuses", "audit", "__consumer_offsets", "__cluster_metadata", "__x"],
)
def test_a_topic_of_kafka_or_of_the_worker_is_internal(topic: str) -> None:
    internal = InternalTopics(CLUSTER)
    assert internal.has(topic)
    with pytest.raises(ConnectError, match=rf"cannot be written to topic {topic}: .*internal\.topics\.allowlist"):
        internal.check(topic)


@pytest.mark.parametrize("topic", ["orders", "configs2", "Configs", "_schemas", "__debezium-heartbeat.shop", "history"])
def test_other_topics_are_for_connectors(topic: str) -> None:
    internal = InternalTopics(CLUSTER)
    assert not internal.has(topic)
    internal.check(topic)


def test_the_history_topic_may_have_a_name_of_its_own() -> None:
    internal = InternalTopics({**CLUSTER, "config.history.topic": "versions"})
    assert internal.has("versions") and not internal.has("configs-history")


def test_the_worker_s_file_may_allow_some() -> None:
    internal = InternalTopics({**CLUSTER, "connector.internal.topics.allowlist": "audit, __x*"})
    assert [topic for topic in ("audit", "__xy", "__y", "configs") if internal.has(topic)] == ["__y", "configs"]


def test_a_standalone_worker_has_those_of_kafka_alone() -> None:
    internal = InternalTopics({})
    assert internal.has("__consumer_offsets") and not internal.has("configs") and not internal.has("-history")


def test_errors_name_the_key_and_the_topic() -> None:
    internal = InternalTopics(CLUSTER)
    (error,) = internal.refused("topics", ["orders", "configs"])
    assert isinstance(error, ConfigError)
    assert str(error) == (
        "Invalid value configs for configuration topics: It is not for connectors: Kafka or this cluster of workers "
        "keeps its own state there. Name another topic, or have the worker's connector.internal.topics.allowlist "
        "changed"
    )


def test_source_offsets_may_be_in_the_topic_of_all_connectors() -> None:
    internal = InternalTopics(CLUSTER)
    assert [*internal.refused_offsets("offsets.storage.topic", "offsets")] == []
    assert [*internal.refused_offsets("offsets.storage.topic", None)] == []
    assert len([*internal.refused_offsets("offsets.storage.topic", "configs")]) == 1


def test_a_mirror_is_told_the_topics_of_the_worker_alone() -> None:
    assert InternalTopics({**CLUSTER, "connector.internal.topics.allowlist": "a*"}).named == (
        "configs",
        "configs-history",
        "offsets",
        "statuses",
    )
    assert HANDED_KEY in {key.name for key in MirrorSourceConfig.definitions() if key.internal}
