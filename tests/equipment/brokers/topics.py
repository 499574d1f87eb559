"""What is on a topic, read with a client of its own."""

from __future__ import annotations

import uuid
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

__all__ = ["committed", "create_topic", "produce", "read_so_far", "read_topic"]


def create_topic(bootstrap: str, topic: str, partitions: int = 1, **settings: str) -> None:
    """Create a topic and wait for it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(30)


def produce(bootstrap: str, topic: str, values: list[bytes], partition: int = 0) -> None:
    """Produce values, in order."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(30) == 0


def read_topic(bootstrap: str, topic: str, seconds: float = 30.0, isolation: str = "read_committed") -> list[Any]:
    """Every message of a topic, partition by partition, in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{uuid.uuid4().hex}",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": isolation,
        }
    )
    try:
        metadata = consumer.list_topics(topic, timeout=seconds).topics[topic]
        messages: dict[int, list[Any]] = {partition: [] for partition in sorted(metadata.partitions)}
        consumer.assign([TopicPartition(topic, partition, 0) for partition in messages])
        unread = set(messages)
        while unread:
            message = consumer.poll(seconds)
            assert message is not None, f"{topic} could not be read to its end within {seconds} s"
            if message.error() is None:
                messages[message.partition()].append(message)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                unread.discard(message.partition())
        return [message for partition in messages.values() for message in partition]
    finally:
        consumer.close()


def read_so_far(bootstrap: str, topic: str, first: int = 0, seconds: float = 30.0) -> list[bytes]:
    """The values that are on partition 0 of a topic now, from an offset on, while others write on."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"reader-{uuid.uuid4().hex}"})
    try:
        partition = TopicPartition(topic, 0, first)
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
    """The offsets a group has committed, -1001 where it has none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        asked = [TopicPartition(topic, partition) for partition in range(partitions)]
        return [item.offset for item in consumer.committed(asked, timeout=30)]
    finally:
        consumer.close()
