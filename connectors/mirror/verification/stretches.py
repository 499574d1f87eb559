"""Reads stretches of partitions in the order of their offsets."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, KafkaError, KafkaException, Message, TopicPartition

from connect.errors import RetriableError
from connectors.mirror.internal_topics import READING
from connectors.mirror.patience import Patience, refusal

__all__ = ["STRETCHES", "Content", "Stretch", "StretchReader"]

Content: TypeAlias = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int | None]
"""Key, value, headers and timestamp, which is ``None`` if a broker has set it."""

STRETCHES: Final = {**READING, "auto.offset.reset": "earliest", "fetch.max.wait.ms": "50"}
"""Settings of the consumer of a :class:`StretchReader`."""

_MOST_MESSAGES: Final = 10_000
_SLICE_SECONDS: Final = 0.1
_NEAR: Final = 20_000
"""Up to so many records, reading on is faster than seeking."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The records of a partition between two offsets, as far as they were ``reached``."""

    records: Mapping[int, Content]
    reached: int
    start: int = 0
    """The first offset of the partition: earlier records have expired."""

    is_compacted: bool = False

    def may_lack(self, offset: int) -> bool:
        """Return whether a record may be missing without a defect."""
        return self.is_compacted or offset < self.start


class StretchReader:
    """Reads one cluster with a consumer of its own, which it closes. For one thread.

    It is fast if each stretch begins near the end of the last one.
    """

    def __init__(self, consumer: Consumer, patience: Patience) -> None:
        self._consumer = consumer
        self._patience = patience
        self._place: tuple[str, int] | None = None
        self._next = 0
        self._ahead: deque[Message] = deque()
        self._end: int | None = None
        """The end of the partition, while the consumer is there."""

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the first and the end offset of a partition; raise a ``ConnectError`` if they cannot be read."""
        try:
            found = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), self._patience.seconds)
        except KafkaException as error:
            raise refusal(
                self._patience.cluster, f"report the offsets of {topic}-{partition}", error.args[0]
            ) from error
        if found is None:
            raise RetriableError(
                f"The cluster {self._patience.cluster} did not report the offsets of {topic}-{partition}."
            )
        return int(found[0]), int(found[1])

    def read(self, topic: str, partition: int, first: int, end: int) -> dict[int, Content]:
        """Return the records from ``first`` up to ``end``, by offset; :attr:`reached` says how far they go.

        Raises a ``ConnectError`` if they cannot be read.
        """
        self._go_to(topic, partition, first)
        records: dict[int, Content] = {}
        deadline = time.monotonic() + self._patience.seconds
        while self._next < end and self._end is None:
            if self._ahead:
                self._take(end, records)
            elif self._fetched():
                deadline = time.monotonic() + self._patience.seconds
            elif time.monotonic() > deadline:
                raise RetriableError(
                    f"The cluster {self._patience.cluster} has stopped returning records of {topic}-{partition}."
                )
        return {offset: content for offset, content in records.items() if offset >= first}

    @property
    def reached(self) -> int:
        """The offset up to which the last stretch was read: its end, or that of the partition if it comes earlier."""
        return self._next

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _go_to(self, topic: str, partition: int, first: int) -> None:
        self._end = None
        if (topic, partition) == self._place and self._next <= first <= self._next + _NEAR:
            return
        self._ahead.clear()
        self._place, self._next = (topic, partition), first
        self._consumer.assign([TopicPartition(topic, partition, first)])

    def _fetched(self) -> bool:
        self._patience.raise_if_stopped()
        found = self._consumer.consume(_MOST_MESSAGES, _SLICE_SECONDS)
        self._ahead.extend(found)
        return bool(found)

    def _take(self, end: int, records: dict[int, Content]) -> None:
        """Take records that were fetched, up to ``end``."""
        while self._ahead and self._next < end and self._end is None:
            message = self._ahead[0]
            offset = message.offset()
            error = message.error()
            if error is not None:
                self._ahead.popleft()
                self._hear(error, offset)
            elif offset is not None and offset >= end:
                self._next = end
            else:
                self._ahead.popleft()
                assert offset is not None
                records[offset] = _content(message)
                self._next = offset + 1

    def _hear(self, error: KafkaError, offset: int | None) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            self._end = offset
            self._next = max(self._next, offset or 0)
        elif not error.retriable():
            topic, partition = self._place or ("", 0)
            raise refusal(self._patience.cluster, f"read {topic}-{partition}", error)


def _content(message: Message) -> Content:
    kind, timestamp = message.timestamp()
    # Consumers return headers as pairs with bytes; the stubs declare what producers accept.
    headers: Any = tuple(message.headers() or ())
    return message.key(), message.value(), headers, timestamp if kind == TIMESTAMP_CREATE_TIME else None
