"""Creates, fills and reads topics with separate clients."""

from __future__ import annotations

import time
import uuid
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from equipment.waiting import wait_until

__all__ = [
    "admin_client",
    "committed",
    "create_topic",
    "make_anew",
    "make_at_once",
    "ordered_producer",
    "produce",
    "read_so_far",
    "read_topic",
]

_NOT_READY: Final = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
"""The errors of a broker that has only just started."""
_COMMITTING: Final = 3.0
"""Seconds to wait for an open transaction: the broker shows it as committed a moment later."""


def admin_client(bootstrap: str) -> AdminClient:
    """An admin client that does not create a topic anew which it has just deleted, by looking it up."""
    return AdminClient({"bootstrap.servers": bootstrap, "allow.auto.create.topics": False})


def ordered_producer(bootstrap: str, **settings: Any) -> Producer:
    """A producer whose records keep their order, whatever is sent again.

    Idempotence would do the same, and has each producer wait half a second for its id at first.
    """
    return Producer({"bootstrap.servers": bootstrap, "max.in.flight.requests.per.connection": 1, **settings})


def create_topic(bootstrap: str, topic: str, partitions: int = 1, **settings: str) -> None:
    """Create a topic and wait for it."""
    admin = admin_client(bootstrap)
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(30)
    # The controller answers, and the broker may hear of it later.
    wait_until(f"{topic} is there", lambda: topic in admin.list_topics(timeout=30).topics)


def make_anew(bootstrap: str, topic: str) -> None:
    """Delete a topic, and create another one of the same name."""
    admin = admin_client(bootstrap)
    admin.delete_topics([topic])[topic].result(30)
    wait_until("the topic is gone", lambda: topic not in admin.list_topics(timeout=30).topics)
    create_topic(bootstrap, topic)


def make_at_once(bootstrap: str, topic: str, partitions: int = 1) -> None:
    """Delete a topic and create it as soon as the controller allows it, unless a consumer of it was faster."""
    admin = admin_client(bootstrap)
    admin.delete_topics([topic])[topic].result(30)
    error = admin.create_topics([NewTopic(topic, partitions, 1)])[topic].exception(30)
    assert error is None or error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS


def produce(bootstrap: str, topic: str, values: list[bytes], partition: int = 0) -> None:
    """Produce values, in order.

    The half second until an idempotent producer has its id is that in which a broker learns of a topic that was created
    again: sooner, records may be written to the former one.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(30) == 0


def read_topic(bootstrap: str, topic: str, seconds: float = 30.0, isolation: str = "read_committed") -> list[Any]:
    """Read every message of a topic, partition by partition, in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{uuid.uuid4().hex}",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 20,
        }
    )
    try:
        metadata = consumer.list_topics(topic, timeout=seconds).topics[topic]
        messages: dict[int, list[Any]] = {partition: [] for partition in sorted(metadata.partitions)}
        consumer.assign([TopicPartition(topic, partition, 0) for partition in messages])
        unread, in_transactions, until = set(messages), set[int](), 0.0
        while unread or (in_transactions and time.monotonic() < until):
            message = consumer.poll(seconds if unread else max(0.0, until - time.monotonic()))
            if message is None:
                assert not unread, f"{topic} could not be read to its end within {seconds} s"
            elif message.error() is None:
                messages[message.partition()].append(message)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                partition = message.partition()
                unread.discard(partition)
                in_transactions.discard(partition)
                if message.offset() < consumer.get_watermark_offsets(TopicPartition(topic, partition), cached=True)[1]:
                    in_transactions.add(partition)
                    until = time.monotonic() + _COMMITTING
        return [message for partition in messages.values() for message in partition]
    finally:
        consumer.close()


def read_so_far(bootstrap: str, topic: str, first: int = 0, seconds: float = 30.0) -> list[bytes]:
    """The values on partition 0 of a topic now, from an offset on, even while others create it and write to it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"reader-{uuid.uuid4().hex}"})
    try:
        partition = TopicPartition(topic, 0, first)
        there = consumer.list_topics(topic, timeout=seconds).topics.get(topic)
        if there is None or not there.partitions:
            return []
        _, end = consumer.get_watermark_offsets(partition, timeout=seconds)
        consumer.assign([partition])
        values: list[bytes] = []
        at = first
        while at < end:
            message = consumer.poll(seconds)
            assert message is not None, f"{topic} could not be read to offset {end} within {seconds} s"
            assert message.error() is None, message.error()
            values.append(message.value())
            at = message.offset() + 1
        return values
    finally:
        consumer.close()


def committed(bootstrap: str, group: str, topic: str, partitions: int = 1) -> list[int]:
    """The committed offsets of a group, -1001 where it has none; waits until the broker is ready to answer."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    asked = [TopicPartition(topic, partition) for partition in range(partitions)]

    def committed() -> list[TopicPartition]:
        try:
            found: list[TopicPartition] = consumer.committed(asked, timeout=30)
        except KafkaException as error:
            if error.args[0].code() in _NOT_READY:
                return []
            raise
        return found

    try:
        return [item.offset for item in wait_until(f"the coordinator of {group} is ready", committed)]
    finally:
        consumer.close()
