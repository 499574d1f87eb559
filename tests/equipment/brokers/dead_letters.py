"""The contents of a dead letter queue."""

from __future__ import annotations

from confluent_kafka import Consumer, Message, TopicPartition

__all__ = ["dead_letters"]


def dead_letters(bootstrap: str, queue: str) -> list[Message]:
    """The committed records of a queue with one partition, in order."""
    settings = {"bootstrap.servers": bootstrap, "group.id": queue, "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True, "fetch.wait.max.ms": 20})
    consumer.assign([TopicPartition(queue, 0, 0)])
    found: list[Message] = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        found.append(message)
    consumer.close()
    return found
