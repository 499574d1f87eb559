"""Reads one partition of a topic from an offset, without a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from connect.errors import RetriableError
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientKind
from connect.internals.kafka.settings.properties import JAVA_DEFAULTS, layered, librdkafka_properties

__all__ = ["PartitionReader", "ReadMessage"]

_ANSWER_SECONDS: Final = 10.0
_MOST_MESSAGES: Final = 100


class ReadMessage(NamedTuple):
    """A record: its offset, key and value."""

    offset: int
    key: bytes | None
    value: bytes | None


class PartitionReader:
    """Reads partition 0 of a topic, from an offset or else from its current end. Used by one thread.

    ``settings`` are those of a Java consumer. Raises :class:`~connect.errors.RetriableError` while the topic cannot be
    read.
    """

    def __init__(self, topic: str, settings: Mapping[str, str], offset: int | None) -> None:
        self._topic = topic
        kind = ClientKind.CONSUMER
        # librdkafka creates no consumer without a group; this one is never joined.
        own = {"group.id": f"{topic}-reader", "enable.auto.commit": "false", "auto.offset.reset": "earliest"}
        properties = librdkafka_properties(layered(kind, {}, JAVA_DEFAULTS[kind], dict(settings), own), kind)
        self._consumer: Consumer = librdkafka.consumer(properties)
        try:
            start = self._end() if offset is None else offset
            self._consumer.assign([TopicPartition(topic, 0, start)])
        except KafkaException as error:
            self._consumer.close()
            raise self._unreadable(str(error.args[0].str())) from error

    def take(self, seconds: float) -> list[ReadMessage]:
        """Return the next records, none if none come in time."""
        found: list[ReadMessage] = []
        for message in self._consumer.consume(_MOST_MESSAGES, seconds):
            error, offset = message.error(), message.offset()
            if error is not None:
                raise self._unreadable(error.str())
            if offset is not None:
                found.append(ReadMessage(offset, _bytes(message.key()), _bytes(message.value())))
        return found

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    def _end(self) -> int:
        # Looked up once, so that no record that is written during the first look is missed.
        _, end = self._consumer.get_watermark_offsets(TopicPartition(self._topic, 0), timeout=_ANSWER_SECONDS)
        return int(end)

    def _unreadable(self, reason: str) -> RetriableError:
        return RetriableError(f"Topic {self._topic} cannot be read now: {reason}")


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
