"""What a broker answers when a topic cannot be described or made, and what is made of it."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from connect.errors import ConnectError, RetriableError
from connect.internals.kafka.clients.librdkafka import until_answered
from worker.config.internal_topics import InternalTopics
from worker.kafka.topics import admin as topics
from worker.kafka.topics.admin import Creation, TopicCreator, TopicDescription
from worker.kafka.topics.creation import NewTopic, TopicCreationGroups

GROUPS = TopicCreationGroups.parse(
    {"topic.creation.default.replication.factor": "1", "topic.creation.default.partitions": "1"}
)
TIMEOUTS = [KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT, KafkaError._TRANSPORT]
FORBIDDEN = [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED]


class RefusingBroker:
    """An admin client of a broker that answers each kind of request with one error."""

    def __init__(self, *, describe: int = KafkaError.UNKNOWN_TOPIC_OR_PART, create: int = 0, configs: int = 0) -> None:
        self._describe = describe
        self._create = create
        self._configs = configs

    def describe_topics(self, wanted: Any, **_: Any) -> dict[str, Future[Any]]:
        return {name: _refusal(self._describe) for name in wanted.topic_names}

    def create_topics(self, wanted: list[Any], **_: Any) -> dict[str, Future[Any]]:
        return {topic.topic: _refusal(self._create) for topic in wanted}

    def describe_configs(self, wanted: list[Any], **_: Any) -> dict[Any, Future[Any]]:
        return {resource: _refusal(self._configs) for resource in wanted}

    def poll(self, timeout: float) -> int:
        return 0


class SlowBroker(RefusingBroker):
    """An admin client of a broker that creates topics, and shows one when it has been asked for it a few times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    def create_topics(self, wanted: list[Any], **_: Any) -> dict[str, Future[Any]]:
        return {topic.topic: _answer(None) for topic in wanted}

    def describe_topics(self, wanted: Any, **_: Any) -> dict[str, Future[Any]]:
        self._looks -= 1
        if self._looks >= 0:
            return super().describe_topics(wanted)
        partition = SimpleNamespace(replicas=[1])
        return {
            name: _answer(SimpleNamespace(partitions=[partition], authorized_operations=None))
            for name in wanted.topic_names
        }


def _answer(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def _refusal(code: int) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(KafkaException(KafkaError(code, "as told")))
    return future


@pytest.mark.parametrize("code", TIMEOUTS)
def test_a_broker_that_does_not_answer_may_be_asked_again(code: int) -> None:
    broker: Any = RefusingBroker(describe=code, create=code, configs=code)
    with pytest.raises(RetriableError, match="describing topics 't'"):
        topics.describe(broker, "t")
    with pytest.raises(RetriableError, match="creating topic"):
        topics.create(broker, NewTopic("t"))
    with pytest.raises(RetriableError, match="topic config for topic 't'"):
        topics.describe_settings(broker, "t")


def test_brokers_that_go_away_are_asked_again() -> None:
    """What is under way when a connection ends fails at once: a worker that starts then must not end."""
    brokers: list[Any] = [RefusingBroker(create=KafkaError._TRANSPORT), RefusingBroker(create=KafkaError._TIMED_OUT)]
    brokers.append(RefusingBroker(create=KafkaError.TOPIC_ALREADY_EXISTS))
    asked = iter(brokers)
    assert until_answered(lambda: topics.create(next(asked), NewTopic("t")), 60) is Creation.EXISTED


def test_brokers_that_stay_away_are_given_up() -> None:
    broker: Any = RefusingBroker(create=KafkaError._TRANSPORT)
    with pytest.raises(RetriableError, match="creating topic"):
        until_answered(lambda: topics.create(broker, NewTopic("t")), 0.2)


def test_a_topic_that_was_created_can_be_described() -> None:
    """The controller answers a moment before the brokers know the topic."""
    broker: Any = SlowBroker(looks=2)
    assert topics.create(broker, NewTopic("t")) is Creation.CREATED
    assert topics.describe(broker, "t") == TopicDescription("t", 1, 1)


@pytest.mark.parametrize("code", FORBIDDEN)
def test_a_topic_that_may_not_be_described_fails_the_task(code: int) -> None:
    broker: Any = RefusingBroker(describe=code)
    with pytest.raises(
        ConnectError, match=r"Not authorized to describe.*right Describe on topic t: kafka-acls"
    ) as caught:
        TopicCreator(lambda: broker, GROUPS, InternalTopics({})).ensure("t")
    assert not isinstance(caught.value, RetriableError)


@pytest.mark.parametrize("code", FORBIDDEN)
def test_a_missing_topic_that_may_not_be_made_fails_the_task(code: int) -> None:
    broker: Any = RefusingBroker(create=code)
    with pytest.raises(ConnectError, match="Ensure that the task is authorized to create topics"):
        TopicCreator(lambda: broker, GROUPS, InternalTopics({})).ensure("t")
    with pytest.raises(ConnectError, match=r"'config\.storage\.topic' property does not exist"):
        topics.ensure_compacted(broker, NewTopic("t"), key="config.storage.topic", purpose="configs")


@pytest.mark.parametrize("code", FORBIDDEN)
def test_settings_that_may_not_be_read_are_unknown(code: int) -> None:
    broker: Any = RefusingBroker(configs=code)
    assert topics.describe_settings(broker, "t") is None


def test_any_other_error_is_told() -> None:
    broker: Any = RefusingBroker(
        describe=KafkaError.TOPIC_EXCEPTION, create=KafkaError.POLICY_VIOLATION, configs=KafkaError.INVALID_REQUEST
    )
    with pytest.raises(ConnectError, match="describe topics 't': as told"):
        topics.describe(broker, "t")
    with pytest.raises(ConnectError, match=r"Unable to create topic\(s\) 't': as told"):
        topics.create(broker, NewTopic("t"))
    with pytest.raises(ConnectError, match="config for topic 't': as told"):
        topics.describe_settings(broker, "t")
