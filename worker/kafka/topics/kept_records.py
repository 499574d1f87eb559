"""Reads the last record of each key of a topic as it is, and writes such records to a topic."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from connect.errors import ConnectError
from connect.internals.kafka.clients.librdkafka import consumer, producer
from connect.internals.kafka.settings.client import ClientProperties
from worker.kafka.topics.compacted_clients import reader_properties, writer_properties

__all__ = ["KeptRecord", "read_kept", "write_kept"]

_SECONDS: Final = 30.0
_FLUSH_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """A record, whose bytes are in base64. ``role`` is the key of the worker that names its topic."""

    role: str
    partition: int
    key: str | None
    value: str | None
    headers: list[tuple[str, str | None]]
    timestamp: int


def read_kept(properties: ClientProperties, role: str, topic: str) -> list[KeptRecord]:
    """Return the last record of each key of a topic; none if it does not exist.

    Raises :class:`~connect.errors.ConnectError` if it cannot be read to its end.
    """
    reader = consumer(reader_properties(properties))
    try:
        return [_kept(role, message) for message in _last_of_each(reader, topic)]
    except KafkaException as error:
        raise ConnectError(f"Topic {topic} cannot be read: {error.args[0].str()}") from error
    finally:
        reader.close()


def _last_of_each(reader: Any, topic: str) -> Iterable[Any]:
    seen = reader.list_topics(topic, timeout=_SECONDS).topics[topic]
    # A topic that may not be seen has no partitions either, and is not an empty one.
    if seen.error is not None and seen.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise KafkaException(seen.error)
    partitions = seen.partitions
    reader.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
    last: dict[tuple[int, bytes | None], Any] = {}
    ended: set[int] = set()
    while len(ended) < len(partitions):
        message = reader.poll(_SECONDS)
        if message is None:
            raise ConnectError(f"Topic {topic} could not be read to its end: the brokers do not answer.")
        error = message.error()
        if error is None:
            # A key comes where its last record is.
            last.pop((message.partition(), message.key()), None)
            last[message.partition(), message.key()] = message
        elif error.code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
        elif not error.retriable():
            raise KafkaException(error)
    return last.values()


def write_kept(properties: ClientProperties, topic: str, records: Iterable[KeptRecord]) -> None:
    """Write records to a topic, each to the partition it came from, if there is one of that number.

    Raises :class:`~connect.errors.ConnectError` if one is not acknowledged.
    """
    client = producer(writer_properties(properties))
    count = len(client.list_topics(topic, timeout=_SECONDS).topics[topic].partitions)
    refused: list[str] = []

    def note(error: Any, _: Any) -> None:
        if error is not None:
            refused.append(error.str())

    for record in records:
        # Otherwise the partitioner decides by the key, as always.
        place: dict[str, Any] = {"partition": record.partition} if record.partition < count else {}
        headers: list[tuple[str, str | bytes | None]] = [(name, _bytes(value)) for name, value in record.headers]
        client.produce(
            topic,
            key=_bytes(record.key),
            value=_bytes(record.value),
            headers=headers,
            timestamp=record.timestamp,
            on_delivery=note,
            **place,
        )
        client.poll(0)
    if client.flush(_FLUSH_SECONDS) or refused:
        reason = refused[0] if refused else f"the brokers did not answer within {_FLUSH_SECONDS:g} s"
        raise ConnectError(f"Not all records were written to topic {topic}: {reason}. Repeat this command.")


def _kept(role: str, message: Any) -> KeptRecord:
    headers = [(name, _text(value)) for name, value in message.headers() or ()]
    key, value = _text(message.key()), _text(message.value())
    return KeptRecord(role, message.partition(), key, value, headers, message.timestamp()[1])


def _text(data: bytes | str | None) -> str | None:
    raw = data.encode() if isinstance(data, str) else data
    return None if raw is None else b64encode(raw).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)
