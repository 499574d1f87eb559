"""Stretches of partitions: read in the order of their offsets, and asked for what they have at each."""

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
"""Key, value, headers and timestamp; no timestamp if a broker has set it."""

STRETCHES: Final = {**READING, "auto.offset.reset": "earliest", "fetch.max.wait.ms": "50"}
"""What a consumer has to be made with for :class:`StretchReader`."""

_MOST: Final = 10_000
_SLICE: Final = 0.1
_NEAR: Final = 20_000
"""Over so many records it is quicker to read on than to ask the broker for another place."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The records of a partition between two offsets, as far as they were ``reached``."""

    records: Mapping[int, Content]
    reached: int
    start: int = 0
    """The offset at which the partition begins: what lay before has expired."""

    is_compacted: bool = False

    def may_lack(self, offset: int) -> bool:
        """Whether a record that was there may be gone without a defect."""
        return self.is_compacted or offset < self.start


class StretchReader:
    """Reads one cluster with a consumer of its own, which it closes. For one thread.

    It is quick where each stretch begins near the end of the last one.
    """

    def __init__(self, consumer: Consumer, patience: Patience) -> None:
        self._consumer = consumer
        self._patience = patience
        self._place: tuple[str, int] | None = None
        self._next = 0
        self._ahead: deque[Message] = deque()
        self._end: int | None = None
        """Where the partition ends, while the consumer stands there."""

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Where a partition begins, and where it ends; raise a ``ConnectError`` if the cluster does not tell."""
        try:
            found = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), self._patience.seconds)
        except KafkaException as error:
            raise refusal(self._patience.cluster, f"tell the ends of {topic}-{partition}", error.args[0]) from error
        if found is None:
            raise RetriableError(f"The cluster {self._patience.cluster} does not tell the ends of {topic}-{partition}.")
        return int(found[0]), int(found[1])

    def read(self, topic: str, partition: int, first: int, end: int) -> dict[int, Content]:
        """The records from ``first`` up to ``end``, by their offsets; :attr:`reached` tells how far they go.

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
                    f"The cluster {self._patience.cluster} does not give {topic}-{partition} to its end."
                )
        return {offset: content for offset, content in records.items() if offset >= first}

    @property
    def reached(self) -> int:
        """The offset up to which the last stretch was read: its end, or that of the partition before it."""
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
        found = self._consumer.consume(_MOST, _SLICE)
        self._ahead.extend(found)
        return bool(found)

    def _take(self, end: int, records: dict[int, Content]) -> None:
        """Take what has come, up to ``end``."""
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
    # Consumers give headers as a list of pairs with bytes; the types allow what producers take.
    headers: Any = tuple(message.headers() or ())
    return message.key(), message.value(), headers, timestamp if kind == TIMESTAMP_CREATE_TIME else None
