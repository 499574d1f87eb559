"""Bounded ranges of offsets, read to their ends by a separate consumer that belongs to no group."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.raw_records import ConsumedBatch
from connect.internals.consumption.messages import Fetching, Message, by_topic

__all__ = ["RangeEnds", "RangeReader", "RangesGoneError", "RangesStalledError"]

logger = logging.getLogger(__name__)
_POLL: Final = 0.5
_PATIENCE_SECONDS: Final = 60.0
_BATCH_BYTES: Final = 16 * 1024 * 1024
"""The target size of a batch: records are in memory several times while they become rows."""
_FEW: Final = 100
"""The size of the first batch, which shows how large records are, and the minimum size of any batch, in records."""
_LOGIN: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})
_OF_MEMBERS: Final = frozenset(
    {"group.instance.id", "group.protocol", "group.remote.assignor", "partition.assignment.strategy"}
)
_OWN: Final[Mapping[str, str | int | bool]] = {
    # What the broker no longer has is an error, never a smaller range (invariant I4).
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
}
_DEFAULTS: Final[Mapping[str, str | int | bool]] = {
    # At the end of a partition the broker tells of it after this time, and until then of nothing else.
    "fetch.wait.max.ms": 10,
}
_error: Final[Callable[[Message], KafkaError | None]] = confluent_kafka.Message.error
_topic: Final[Callable[[Message], Any]] = confluent_kafka.Message.topic
_partition: Final[Callable[[Message], Any]] = confluent_kafka.Message.partition


class RangesGoneError(ConnectError):
    """Kafka no longer has some records of a range, or reading them is not allowed."""


class RangesStalledError(RetriableError):
    """No more records of a range have arrived for a long time."""


class RangeEnds:
    """Tracks how far ranges still have to be read."""

    def __init__(self, ranges: Sequence[OffsetRange]) -> None:
        self.left = {item.topic_partition: item.end for item in ranges if len(item)}
        """The ends of the ranges that are not read to their ends."""

    def take(self, found: Sequence[Message]) -> tuple[Sequence[Message], list[TopicPartition]]:
        """Return the records of the ranges among fetched messages, and the partitions that are now read to their ends.

        A partition's end is reported after its records, and may come before a record with a range's last offset: the
        end markers of transactions and records removed by compaction have none.
        """
        records, reached = found, {}
        if any(map(_error, found)):
            records = [message for message in found if message.error() is None]
            ends = (message for message in filter(_error, found) if message.error().code() == KafkaError._PARTITION_EOF)
            reached = {_place(message): message.offset() for message in ends}
        # A later record overwrites an earlier one: the last of each partition remains.
        last = dict(zip(zip(map(_topic, records), map(_partition, records), strict=True), records, strict=True))
        reached = {TopicPartition(*tp): message.offset() + 1 for tp, message in last.items()} | reached
        if all(at < self.left.get(tp, 0) for tp, at in reached.items()):
            return records, []
        wanted = [message for message in records if message.offset() < self.left.get(_place(message), 0)]
        ended = [tp for tp, at in reached.items() if tp in self.left and at >= self.left[tp]]
        for tp in ended:
            del self.left[tp]
        return wanted, ended


def _place(message: Message) -> TopicPartition:
    return TopicPartition(message.topic(), message.partition())


class RangeReader:
    """Reads ranges of several partitions at once, each in order. Used by one thread; close it afterwards.

    ``settings`` are librdkafka's settings for a consumer. A batch has at most ``most`` records, fewer if they are
    large. If nothing arrives for ``patience`` seconds it raises :class:`RangesStalledError`.
    """

    def __init__(
        self,
        settings: Mapping[str, str | int | bool],
        ranges: Sequence[OffsetRange],
        most: int,
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        self.go_on(ranges)
        self._most = most
        self._now = min(most, _FEW)
        self._patience = patience
        self._reported = "the brokers report no error"
        self._consumer = self._made(settings)
        self._fetching = Fetching(self._consumer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the consumer."""
        self._consumer.close()

    def go_on(self, ranges: Sequence[OffsetRange]) -> None:
        """Read these ranges next, of partitions not read before, with the existing consumer."""
        self._ends = RangeEnds(ranges)
        self._firsts = {item.topic_partition: item.first for item in ranges if len(item)}
        topics = {tp.topic for tp in self._firsts}
        self._only_topic = min(topics) if len(topics) == 1 else None
        self._only_partition = min(self._firsts).partition if len(self._firsts) == 1 else None

    def batches(self) -> Iterator[ConsumedBatch]:
        """Yield all records of the ranges, in batches of one topic each."""
        starts = [confluent_kafka.TopicPartition(*tp, first) for tp, first in self._firsts.items()]
        self._consumer.assign(starts)
        due = time.monotonic() + self._patience
        while self._ends.left:
            found = self._fetching.fetch(self._now, _POLL)
            if found:
                due = time.monotonic() + self._patience
            elif time.monotonic() >= due:
                raise self._stalled()
            batches = self._taken(found)
            # Records that were dealt with need not be kept until the next ones are there.
            found = []
            while batches:
                self._adapt(batches[0])
                yield batches.pop(0)

    def _adapt(self, batch: ConsumedBatch) -> None:
        """Have as many records in the next batch as are of the right size together, if they are like these."""
        size = sum(map(len, filter(None, batch.values)))
        fitting = _BATCH_BYTES * len(batch) // max(size, 1)
        self._now = min(self._most, max(fitting, _FEW))

    def _taken(self, found: list[Message]) -> list[ConsumedBatch]:
        for message in filter(_error, found):
            self._hear(message, message.error())
        records, ended = self._ends.take(found)
        if ended and self._ends.left:
            self._consumer.pause([confluent_kafka.TopicPartition(*tp) for tp in ended])
        return by_topic(records, self._only_topic, self._only_partition)

    def _hear(self, message: Message, error: KafkaError) -> None:
        """React to the client's errors. It retries by itself, except after errors that it cannot recover from."""
        topic, partition = message.topic() or "", message.partition()
        if error.code() == KafkaError._PARTITION_EOF:
            return
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            first = self._firsts.get(TopicPartition(topic, partition), 0)
            raise RangesGoneError(
                f"Some of the records to load from topic {topic}, partition {partition}, offset {first} no longer "
                "exist: retention has removed them, or the topic was deleted and recreated. Set the connector's "
                f"offsets to where it should continue ({error.str()})."
            )
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise RangesGoneError(
                f"The consumer's user is not allowed to read topic {topic}. Give it the right Read on topic {topic}: "
                f"kafka-acls.sh --add --allow-principal User:NAME --operation Read --topic {topic}"
            )
        if error.fatal():
            raise KafkaException(error)
        self._note(error)

    def _stalled(self) -> RangesStalledError:
        (topic, partition), end = min(self._ends.left.items())
        return RangesStalledError(
            f"No more records of topic {topic}, partition {partition} before offset {end} came for "
            f"{self._patience:.0f} s: {self._reported}."
        )

    def _note(self, error: KafkaError) -> None:
        self._reported = error.str()
        logger.warning("The consumer reports: %s", self._reported)

    def _heard(self, error: KafkaError) -> None:
        """Raise, where the client is polled, if its login is refused: it would retry forever."""
        if error.code() in _LOGIN:
            raise ConnectError(f"The brokers refuse the login of the connector's consumer: {error.str()}")
        self._note(error)

    def _made(self, settings: Mapping[str, str | int | bool]) -> Consumer:
        kept = {key: value for key, value in settings.items() if key not in _OF_MEMBERS}
        try:
            return Consumer({**_DEFAULTS, **kept, **_OWN, "error_cb": self._heard, "logger": logger})
        except (KafkaException, ValueError, TypeError):
            # What the client says may hold a secret (I8), and the worker has made a consumer of the same settings.
            raise ConnectError(
                "A Spark process cannot create a Kafka consumer from the connector's consumer.override.* and the "
                "worker's consumer.* settings. Check that files they name, such as ssl.truststore.location, exist "
                "there too."
            ) from None
