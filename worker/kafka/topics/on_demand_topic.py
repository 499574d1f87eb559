"""A small topic that is read and written rarely: no client waits for records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from connect.errors import ConnectError
from connect.internals.kafka.auth.rights import WORKER, explained, on_topic
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientProperties
from worker.kafka.topics.compacted_clients import (
    is_transient,
    late_error,
    reader_properties,
    refused_write_error,
    writer_properties,
)

__all__ = ["OnDemandTopic"]

_AT_ONCE: Final = 500
_POLL_SECONDS: Final = 0.5
_LOOK_UP_SECONDS: Final = 10.0
_READ_SECONDS: Final = 30.0
_WRITE_SECONDS: Final = 30.0


class OnDemandTopic:
    """Reads a whole topic on request, and writes to it. Used by one thread; methods block.

    ``prepare`` is called before the first write. Methods raise :class:`~connect.errors.ConnectError`, or a
    ``RetriableError`` if the brokers do not answer in time.
    """

    def __init__(
        self, topic: str, consumer: ClientProperties, producer: ClientProperties, prepare: Callable[[], object]
    ) -> None:
        self._topic = topic
        self._reads = reader_properties(consumer)
        self._writes = writer_properties(producer, _WRITE_SECONDS)
        self._prepare = prepare
        self._producer: Producer | None = None

    def read(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Yield the key and value of each record up to the current end; none if the topic does not exist."""
        deadline = time.monotonic() + _READ_SECONDS
        consumer = librdkafka.consumer(self._reads)
        try:
            unread = _partitions(consumer, self._topic)
            consumer.assign([TopicPartition(self._topic, partition, OFFSET_BEGINNING) for partition in unread])
            while unread:
                if time.monotonic() > deadline:
                    raise late_error(self._topic, "was not read to its end")
                for message in consumer.consume(_AT_ONCE, _POLL_SECONDS):
                    if (error := message.error()) is None:
                        yield message.key(), message.value()
                    elif error.code() == KafkaError._PARTITION_EOF:
                        unread.discard(message.partition() or 0)
                    # The client looks up its group's coordinator, which is not needed here.
                    elif not is_transient(error) and error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                        raise KafkaException(error)
        except KafkaException as error:
            reason = explained(error.args[0], WORKER, on_topic(self._topic, "Read"))
            raise ConnectError(f"Topic '{self._topic}' cannot be read: {reason}") from error
        finally:
            consumer.close()

    def write(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Write records. Returns once all replicas have them."""
        if self._producer is None:
            self._prepare()
            self._producer = librdkafka.producer(self._writes)
        refusals: list[KafkaError] = []
        for key, value in records:
            self._producer.produce(
                self._topic, value, key, on_delivery=lambda error, _: refusals.append(error) if error else None
            )
            self._producer.poll(0)
        if self._producer.flush(_WRITE_SECONDS):
            raise late_error(self._topic, "could not be written to")
        if refusals:
            raise refused_write_error(self._topic, refusals[0])

    def close(self) -> None:
        """Deliver pending records."""
        if self._producer is not None:
            self._producer.flush(_WRITE_SECONDS)


def _partitions(consumer: Consumer, topic: str) -> set[int]:
    try:
        described = consumer.list_topics(topic, _LOOK_UP_SECONDS).topics.get(topic)
    except KafkaException as error:
        if is_transient(error.args[0]):
            raise late_error(topic, "could not be looked up") from error
        raise
    if described is None or (described.error is not None and not described.partitions):
        if described is not None and described.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise KafkaException(described.error)
        return set()
    return set(described.partitions)
