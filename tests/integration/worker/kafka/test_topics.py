"""Topics are described, made and checked on a real broker."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka.admin import AdminClient

from connect.errors import ConfigError, ConnectError
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientKind
from equipment.waiting import wait_until
from worker.config.internal_topics import InternalTopics
from worker.kafka.clients import roles
from worker.kafka.topics import admin as topics
from worker.kafka.topics.admin import Creation, TopicCreator, TopicDescription
from worker.kafka.topics.creation import NewTopic, TopicCreationGroups

INTERNAL = InternalTopics({})
GROUPS = TopicCreationGroups.parse(
    {
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "3",
        "topic.creation.default.retention.ms": "1234567",
    }
)


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    worker = {"bootstrap.servers": bootstrap}
    return librdkafka.admin(roles.internal_properties(worker, ClientKind.ADMIN, "tests"))


def compacted(topic: str, **settings: str) -> NewTopic:
    return NewTopic(topic, partitions=2, replication_factor=1, settings=settings)


def test_a_missing_topic_is_not_described(admin: AdminClient, topic: str) -> None:
    assert topics.describe(admin, topic) is None
    assert topics.describe_settings(admin, topic) is None


def test_a_topic_is_made_as_its_group_says(admin: AdminClient, topic: str) -> None:
    TopicCreator(lambda: admin, GROUPS, INTERNAL).ensure(topic)
    assert topics.describe(admin, topic) == TopicDescription(topic, 3, 1)
    settings = topics.describe_settings(admin, topic)
    assert settings is not None
    assert settings["retention.ms"] == "1234567"


def test_a_topic_that_exists_is_left_as_it_is(admin: AdminClient, topic: str) -> None:
    assert topics.create(admin, NewTopic(topic, partitions=1, replication_factor=1)) is Creation.CREATED
    TopicCreator(lambda: admin, GROUPS, INTERNAL).ensure(topic)
    assert topics.describe(admin, topic) == TopicDescription(topic, 1, 1)
    assert topics.create(admin, NewTopic(topic)) is Creation.EXISTED


def test_a_topic_is_asked_for_once(admin: AdminClient, topic: str) -> None:
    creator = TopicCreator(lambda: admin, GROUPS, INTERNAL)
    creator.ensure(topic)
    admin.delete_topics([topic])[topic].result()
    wait_until("the topic is gone", lambda: topics.describe(admin, topic) is None)
    creator.ensure(topic)
    assert topics.describe(admin, topic) is None


def test_tasks_that_make_the_same_topic_at_once_all_succeed(admin: AdminClient, topic: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: TopicCreator(lambda: admin, GROUPS, INTERNAL).ensure(topic), range(8)))
    assert topics.describe(admin, topic) == TopicDescription(topic, 3, 1)


def test_without_groups_nothing_is_made(admin: AdminClient, topic: str) -> None:
    TopicCreator(lambda: admin, None, INTERNAL).ensure(topic)
    assert topics.describe(admin, topic) is None


def test_the_broker_s_defaults_are_used_where_asked_for(admin: AdminClient, topic: str) -> None:
    assert topics.create(admin, NewTopic(topic)) is Creation.CREATED
    wait_until("the topic shows", lambda: topics.describe(admin, topic) is not None)


@pytest.mark.parametrize(
    "impossible",
    [
        {"replication_factor": 9},
        {"settings": {"no.such.setting": "1"}},
        {"settings": {"retention.ms": "soon"}},
    ],
)
def test_what_the_broker_refuses_is_told(admin: AdminClient, topic: str, impossible: dict[str, object]) -> None:
    with pytest.raises(ConnectError, match=f"Unable to create topic\\(s\\) '{topic}': .+"):
        topics.create(admin, NewTopic(topic, **impossible))


def test_an_internal_topic_is_made_compacted(admin: AdminClient, topic: str) -> None:
    wanted = compacted(topic, **{"segment.bytes": "1048576", "cleanup.policy": "delete"})
    description = topics.ensure_compacted(admin, wanted, key="offset.storage.topic", purpose="offsets")
    assert description == TopicDescription(topic, 2, 1)
    settings = topics.describe_settings(admin, topic)
    assert settings is not None
    assert (settings["cleanup.policy"], settings["segment.bytes"]) == ("compact", "1048576")


def test_an_internal_topic_that_exists_keeps_its_partitions(admin: AdminClient, topic: str) -> None:
    for partitions in (2, 9):
        wanted = NewTopic(topic, partitions=partitions, replication_factor=1)
        description = topics.ensure_compacted(admin, wanted, key="offset.storage.topic", purpose="offsets")
        assert description.partitions == 2


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_an_internal_topic_that_is_not_only_compacted_is_refused(admin: AdminClient, topic: str, policy: str) -> None:
    topics.create(admin, compacted(topic, **{"cleanup.policy": policy}))
    with pytest.raises(ConfigError, match=r"required to have 'cleanup\.policy=compact'") as caught:
        topics.ensure_compacted(admin, compacted(topic), key="status.storage.topic", purpose="states")
    assert caught.value.key == "status.storage.topic"
    assert f"'cleanup.policy={policy}'" in str(caught.value)
