"""The clients of tasks on a real broker."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, KafkaException, Message

from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientKind
from worker.kafka.clients import roles
from worker.kafka.topics import admin as topics
from worker.kafka.topics.creation import NewTopic


@pytest.fixture
def worker(bootstrap: str, topic: str) -> dict[str, str]:
    worker = {"bootstrap.servers": bootstrap, "group.id": f"cluster-{topic}"}
    admin = librdkafka.admin(roles.internal_properties(worker, ClientKind.ADMIN, "tests"))
    topics.create(admin, NewTopic(topic, partitions=1, replication_factor=1))
    return worker


def read(consumer: Consumer, count: int) -> list[Message]:
    messages: list[Message] = []
    deadline = time.monotonic() + 60
    while len(messages) < count:
        assert time.monotonic() < deadline, f"{len(messages)} of {count} records"
        messages += consumer.consume(count - len(messages), 0.5)
    return messages


def test_what_a_source_writes_a_sink_reads_in_order(worker: dict[str, str], topic: str) -> None:
    connector = {"name": topic, "producer.override.compression.type": "lz4"}
    producer = librdkafka.producer(roles.source_producer_properties(worker, connector, 0))
    for number in range(1000):
        producer.produce(topic, value=b"%d" % number, key=b"k")
    assert producer.flush(60) == 0
    consumer = librdkafka.consumer(roles.sink_consumer_properties(worker, connector, 0))
    try:
        consumer.subscribe([topic])
        assert [message.value() for message in read(consumer, 1000)] == [b"%d" % n for n in range(1000)]
    finally:
        consumer.close()


def test_a_sink_commits_nothing_by_itself(worker: dict[str, str], topic: str) -> None:
    connector = {"name": topic}
    producer = librdkafka.producer(roles.source_producer_properties(worker, connector, 0))
    producer.produce(topic, value=b"v")
    assert producer.flush(60) == 0
    for _ in range(2):
        consumer = librdkafka.consumer(roles.sink_consumer_properties(worker, connector, 0))
        consumer.subscribe([topic])
        assert [message.value() for message in read(consumer, 1)] == [b"v"]
        consumer.close()


def test_a_pattern_does_not_match_internal_topics(worker: dict[str, str], topic: str) -> None:
    connector = {"name": topic, "topics.regex": f"(__consumer_offsets|{topic})"}
    consumer = librdkafka.consumer(roles.sink_consumer_properties(worker, connector, 0))
    try:
        consumer.subscribe([f"^{connector['topics.regex']}$"])
        deadline = time.monotonic() + 60
        while not consumer.assignment():
            assert time.monotonic() < deadline
            consumer.consume(1, 0.2)
        assert {assigned.topic for assigned in consumer.assignment()} == {topic}
    finally:
        consumer.close()


def test_a_second_exactly_once_producer_of_a_task_fences_the_first(worker: dict[str, str], topic: str) -> None:
    properties = roles.source_producer_properties(worker, {"name": topic}, 0, exactly_once=True)
    first, second = librdkafka.producer(properties), librdkafka.producer(properties)
    first.init_transactions(60)
    first.begin_transaction()
    first.produce(topic, value=b"zombie")
    second.init_transactions(60)
    second.begin_transaction()
    second.produce(topic, value=b"alive")
    second.commit_transaction(60)
    with pytest.raises(KafkaException):
        first.commit_transaction(60)
    connector = {"name": topic, "consumer.override.isolation.level": "read_committed"}
    consumer = librdkafka.consumer(roles.sink_consumer_properties(worker, connector, 0))
    try:
        consumer.subscribe([topic])
        assert [message.value() for message in read(consumer, 1)] == [b"alive"]
    finally:
        consumer.close()
