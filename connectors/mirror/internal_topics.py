"""Creates the internal topics of a mirror, reads them from their beginnings, and follows them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from connect.errors import ConfigError, ConnectError, RetriableError
from connectors.mirror.patience import Patience, refusal

__all__ = ["READING", "InternalTopics", "create_compacted"]

READING: Final = {
    "enable.partition.eof": "true",
    "allow.auto.create.topics": "false",
    "isolation.level": "read_committed",
}
"""Settings that every consumer of internal topics has."""

_MESSAGES: Final = 1000
_SLICE_SECONDS: Final = 0.1
_LOOK_UP_SECONDS: Final = 5.0
_LOOK_AGAIN_SECONDS: Final = 1.0


class InternalTopics:
    """Reads partition 0 of some topics with a consumer of its own, which it closes. For one thread.

    A topic that does not exist is looked for repeatedly, and never created.
    """

    def __init__(self, consumer: Consumer, topics: Collection[str], patience: Patience) -> None:
        self._consumer = consumer
        self._patience = patience
        self._missing = set(topics)
        self._look_at = 0.0
        self._behind: dict[str, int] = {}
        """The end that each topic had when it was found, until it has been read up to there."""

    def to_end(self) -> Iterator[Message]:
        """Yield the records up to the current end of each topic, however fast it grows.

        Raises a ``ConnectError`` if they cannot be read, and :class:`~connectors.mirror.patience.StoppedError`.
        """
        self._look_for_missing()
        deadline = time.monotonic() + self._patience.seconds
        while self._behind:
            self._patience.raise_if_stopped()
            for message in self._taken(_SLICE_SECONDS):
                deadline = time.monotonic() + self._patience.seconds
                yield message
            if self._behind and time.monotonic() > deadline:
                raise RetriableError(
                    f"The cluster {self._patience.cluster} has stopped returning records of {self._names()}."
                )

    def new(self) -> Iterator[Message]:
        """Yield the records that have arrived since."""
        if self._missing and time.monotonic() >= self._look_at:
            self._look_for_missing()
        while taken := list(self._taken(0)):
            yield from taken

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _taken(self, seconds: float) -> Iterator[Message]:
        try:
            messages = self._consumer.consume(_MESSAGES, seconds)
        except KafkaException as error:
            raise refusal(self._patience.cluster, f"read {self._names()}", error.args[0]) from error
        for message in messages:
            failure = message.error()
            if failure is None:
                yield message
                self._note_read(message.topic() or "", (message.offset() or 0) + 1)
            elif failure.code() == KafkaError._PARTITION_EOF:
                # Transaction markers may follow the last record; they are not returned.
                self._behind.pop(message.topic() or "", None)
            elif not failure.retriable():
                raise refusal(self._patience.cluster, f"read {message.topic()}", failure)

    def _note_read(self, topic: str, position: int) -> None:
        # The client reports an end only when it waits there, which it never does while others keep writing.
        if position >= self._behind.get(topic, position + 1):
            del self._behind[topic]

    def _look_for_missing(self) -> None:
        found = {topic: self._end(topic) for topic in sorted(self._missing) if self._exists(topic)}
        self._look_at = time.monotonic() + _LOOK_AGAIN_SECONDS
        if found:
            self._missing -= found.keys()
            self._behind |= found
            self._consumer.incremental_assign([TopicPartition(topic, 0, 0) for topic in sorted(found)])

    def _exists(self, topic: str) -> bool:
        self._patience.raise_if_stopped()
        try:
            described = self._consumer.list_topics(topic, timeout=min(_LOOK_UP_SECONDS, self._patience.seconds)).topics[
                topic
            ]
        except KafkaException as error:
            raise refusal(self._patience.cluster, f"describe the topic {topic}", error.args[0]) from error
        if described.error is None:
            return 0 in described.partitions
        if described.error.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE}:
            return False
        raise refusal(self._patience.cluster, f"describe the topic {topic}", described.error)

    def _end(self, topic: str) -> int:
        timeout = min(_LOOK_UP_SECONDS, self._patience.seconds)
        try:
            return self._consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=timeout)[1]
        except KafkaException as error:
            raise refusal(self._patience.cluster, f"report where the topic {topic} ends", error.args[0]) from error

    def _names(self) -> str:
        return " and ".join(sorted(self._behind)) or "its internal topics"


def create_compacted(admin: AdminClient, patience: Patience, topic: str, replicas_key: str, replicas: int) -> None:
    """Create a topic of one partition unless it exists; ``replicas_key`` is the key that ``replicas`` comes from.

    Raises a ``ConnectError`` if the cluster refuses, and :class:`~connectors.mirror.patience.StoppedError`.
    """
    seconds = patience.seconds
    described = admin.describe_topics(TopicCollection([topic]), request_timeout=seconds)[topic]
    if not isinstance(patience.answers("describe a topic", {topic: described})[topic], ConnectError):
        return
    new = NewTopic(topic, 1, replicas, config={"cleanup.policy": "compact"})
    created = admin.create_topics([new], request_timeout=seconds)[topic]
    found = patience.answers(f"create the topic {topic}", {topic: created})[topic]
    if not isinstance(found, ConnectError):
        return
    match _code(created):
        case KafkaError.TOPIC_ALREADY_EXISTS:
            return
        case KafkaError.INVALID_REPLICATION_FACTOR:
            reason = f"The cluster {patience.cluster} has fewer brokers than that and cannot create {topic}. Lower it"
            raise ConfigError(replicas_key, replicas, reason)
    raise found


def _code(asked: Future[None]) -> int | None:
    error = asked.exception() if asked.done() else None
    return error.args[0].code() if isinstance(error, KafkaException) else None
