"""The contents of a dead letter queue."""

from __future__ import annotations

import time
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

__all__ = ["dead_letters"]

_COMMITS_SECONDS: Final = 5.0
"""For so long a committed transaction may still be without its marker on the topic."""


def dead_letters(bootstrap: str, queue: str) -> list[Message]:
    """The committed records of a queue with one partition, in order."""
    settings = {"bootstrap.servers": bootstrap, "group.id": queue, "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True, "fetch.wait.max.ms": 20})
    place = TopicPartition(queue, 0, 0)
    consumer.assign([place])
    found: list[Message] = []
    deadline = time.monotonic() + _COMMITS_SECONDS
    patience = 30.0
    while (message := consumer.poll(patience)) is not None or time.monotonic() < deadline:
        if message is None:
            continue
        if message.error() is None:
            found.append(message)
            continue
        is_end = message.error().code() == KafkaError._PARTITION_EOF
        if not is_end or message.offset() >= consumer.get_watermark_offsets(place, 30)[1]:
            break
        patience = 0.2
    consumer.close()
    return found
