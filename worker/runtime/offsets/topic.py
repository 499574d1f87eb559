"""Source offsets in a Kafka topic that a task or connector reads and writes itself.

This is the connector's own ``offsets.storage.topic`` and, with exactly-once support, also the worker's, where offsets
are written in the transactions of their records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import orjson
from confluent_kafka import KafkaError, KafkaException

from connect.data import Offset
from connect.internals.delivery.delivery import RecordProducer
from connect.internals.kafka.auth.rights import PRODUCER, explained, on_topic
from connect.internals.kafka.settings.client import ClientProperties
from worker.kafka.topics.compacted import CompactedTopic, TopicRecord
from worker.messages import messages
from worker.runtime.offsets.offsets import Written
from worker.stores.offset.kafka import OffsetView
from worker.stores.offset.store import offset_key, offset_value, parse_offset

__all__ = ["MergedOffsetReader", "OffsetReader", "TopicOffsetReader", "TopicOffsetWriter"]

_READ_TIMEOUT_SECONDS: Final = 120.0
_SERVE_SECONDS: Final = 0.1


class OffsetReader(Protocol):
    """Reads the offsets of one connector."""

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        """Return the stored offset of each source partition; ``None`` where there is none."""

    def offset(self, partition: Offset) -> Offset | None:
        """Return the stored offset of one source partition."""

    def close(self) -> None:
        """Release its clients."""


class TopicOffsetReader:
    """Reads offsets of one connector from a topic, up to its end each time.

    It waits for open transactions on the topic: Kafka ends them after their timeout, which is within the two minutes
    that a read may take. The first read opens the topic and passes to ``end_lost`` the partitions with open
    transactions, since some may never end otherwise.
    """

    def __init__(
        self,
        topic: str,
        connector: str,
        consumer: ClientProperties,
        producer: ClientProperties,
        end_lost: Callable[[Sequence[int]], None] | None = None,
    ) -> None:
        self._connector = connector
        self._prefix = orjson.dumps([connector])[:-1] + b","
        # Written by the topic's thread, and read only after that has reported the end of the topic.
        self._view = OffsetView()
        self._topic = CompactedTopic(topic, consumer, producer, self._take)
        self._end_lost = end_lost
        self._started = False

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        """Return the stored offset of each source partition; ``None`` where there is none."""
        keys = [offset_key(self._connector, partition) for partition in partitions]
        if self._started:
            self._topic.read_to_end(_READ_TIMEOUT_SECONDS).result()
        else:
            if self._end_lost is not None and (under_way := self._topic.under_way(_READ_TIMEOUT_SECONDS)):
                self._end_lost(under_way)
            self._topic.start(_READ_TIMEOUT_SECONDS)
            self._started = True
        return [parse_offset(self._view.get(key)) for key in keys]

    def offset(self, partition: Offset) -> Offset | None:
        """Return the stored offset of one source partition."""
        return self.offsets([partition])[0]

    def close(self) -> None:
        """Release its clients."""
        self._topic.close(0.0)

    def _take(self, record: TopicRecord) -> None:
        if record.key is not None and record.key.startswith(self._prefix):
            self._view.read(record)


class MergedOffsetReader:
    """Reads the offset of a source partition from ``first``, or else from ``second``."""

    def __init__(self, first: OffsetReader, second: OffsetReader) -> None:
        self._first = first
        self._second = second

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        """Return the stored offset of each source partition; ``None`` where there is none."""
        found = self._first.offsets(partitions)
        missing = [partition for partition, offset in zip(partitions, found, strict=True) if offset is None]
        others = iter(self._second.offsets(missing) if missing else ())
        return [next(others) if offset is None else offset for offset in found]

    def offset(self, partition: Offset) -> Offset | None:
        """Return the stored offset of one source partition."""
        return self.offsets([partition])[0]

    def close(self) -> None:
        """Close both."""
        self._first.close()
        self._second.close()


class TopicOffsetWriter:
    """Writes offsets of one connector to a topic, with the producer of the task's records.

    ``on_written`` receives acknowledged offsets. In a transaction they are stored only by its commit.
    """

    def __init__(
        self,
        topic: str,
        connector: str,
        producer: RecordProducer,
        on_written: Callable[[messages.OffsetPairs], None] = lambda _: None,
    ) -> None:
        self._topic = topic
        self._connector = connector
        self._producer = producer
        self._on_written = on_written
        self._pairs: messages.OffsetPairs = []
        self._unsent: deque[tuple[dict[str, Any], dict[str, Any] | None]] = deque()
        self._errors: list[KafkaError | None] = []

    def begin(self, pairs: messages.OffsetPairs) -> None:
        """Send as many offsets as the producer has room for; :meth:`outcome` sends the rest."""
        self._pairs, self._unsent, self._errors = pairs, deque(pairs), []
        self._produce()

    def outcome(self) -> Written | None:
        """Return the outcome, once all are acknowledged or refused; ``None`` until then."""
        self._producer.poll(0)
        self._produce()
        if len(self._errors) < len(self._pairs):
            return None
        error = next((error for error in self._errors if error is not None), None)
        if error is not None:
            reason = explained(error, PRODUCER, on_topic(self._topic, "Write"))
            return Written(f"Kafka did not take them for topic {self._topic}: {reason}")
        self._on_written(self._pairs)
        return Written()

    def wait(self, seconds: float) -> None:
        """Wait for acknowledgements."""
        self._producer.poll(min(seconds, _SERVE_SECONDS))

    def _produce(self) -> None:
        errors = self._errors

        def delivered(error: KafkaError | None, _: Any) -> None:
            errors.append(error)

        while self._unsent:
            partition, offset = self._unsent[0]
            key = offset_key(self._connector, partition)
            try:
                self._producer.produce(self._topic, value=offset_value(offset), key=key, on_delivery=delivered)
            except BufferError:
                return
            except KafkaException as error:
                errors.append(error.args[0])
            self._unsent.popleft()
