"""Conversion of the client's messages to columns, one batch per topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import confluent_kafka
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
)

from connect.data import Constant, Lazy, TimestampType
from connect.internals.chain.raw_records import ConsumedBatch

__all__ = ["Fetching", "Message", "by_topic"]

Message: TypeAlias = Any
"""A ``confluent_kafka.Message``. Its stubs have every attribute optional, which only those of errors are."""

_MOMENT: Final = 0.005
_MANY: Final = 10
"""So many messages at once, and it pays to wait a moment for more: there are fewer and larger batches."""

# As functions, so that `map` asks them of many messages in half the time of a loop.
_key: Final[Callable[[Message], bytes | None]] = confluent_kafka.Message.key
_value: Final[Callable[[Message], bytes | None]] = confluent_kafka.Message.value
_headers: Final[Callable[[Message], Any]] = confluent_kafka.Message.headers
_partition: Final[Callable[[Message], Any]] = confluent_kafka.Message.partition
_offset: Final[Callable[[Message], Any]] = confluent_kafka.Message.offset

_TYPES: Final[Mapping[int, TimestampType]] = {
    TIMESTAMP_NOT_AVAILABLE: TimestampType.NO_TIMESTAMP_TYPE,
    TIMESTAMP_CREATE_TIME: TimestampType.CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME: TimestampType.LOG_APPEND_TIME,
}


class Fetching:
    """Fetches messages from a consumer in batches, without waiting for full ones."""

    def __init__(self, consumer: Consumer, moment: float = _MOMENT) -> None:
        self._consumer = consumer
        self._moment = moment
        self._many_come = False

    def fetch(self, most: int, seconds: float) -> list[Message]:
        """Wait for the first message. While many arrive, wait a moment longer for more."""
        if self._many_come:
            found: list[Message] = self._consumer.consume(most, timeout=min(seconds, self._moment))
            self._many_come = len(found) >= _MANY
            if found or seconds <= self._moment:
                return found
            seconds -= self._moment
        # Not poll: while that waits, it wakes up five times a second.
        first: list[Message] = self._consumer.consume(1, timeout=seconds)
        if not first:
            return []
        rest: list[Message] = self._consumer.consume(most - 1, timeout=0) if most > 1 else []
        self._many_come = len(rest) >= _MANY
        return first + rest


def by_topic(
    messages: Sequence[Message], only_topic: str | None, only_partition: int | None = None
) -> list[ConsumedBatch]:
    """Return the messages as batches of one topic each, in the order of each topic.

    ``only_topic`` is set if the task consumes a single topic, ``only_partition`` if it has a single partition: the
    messages are then not asked for theirs.
    """
    if not messages:
        return []
    if only_topic is not None:
        return [_batch(only_topic, messages, only_partition)]
    topics: dict[str, list[Message]] = {}
    for message in messages:
        topics.setdefault(message.topic(), []).append(message)
    return [_batch(topic, group, only_partition) for topic, group in topics.items()]


def _batch(topic: str, messages: Sequence[Message], only_partition: int | None) -> ConsumedBatch:
    length = len(messages)
    keys = list(map(_key, messages))
    headers = list(map(_headers, messages))
    stamps: Lazy[tuple[int, int]] = Lazy(length, lambda: [message.timestamp() for message in messages])
    return ConsumedBatch(
        topic=topic,
        keys=keys if keys.count(None) < length else Constant(None, length),
        values=list(map(_value, messages)),
        partitions=list(map(_partition, messages)) if only_partition is None else Constant(only_partition, length),
        offsets=Lazy(length, lambda: _Offsets(messages)),
        timestamps=Lazy(length, lambda: [_timestamp(stamp) for stamp in stamps]),
        timestamp_types=Lazy(length, lambda: [_TYPES[stamp[0]] for stamp in stamps]),
        headers=headers if headers.count(None) < length else Constant(None, length),
    )


def _timestamp(stamp: tuple[int, int]) -> int | None:
    kind, milliseconds = stamp
    return None if kind == TIMESTAMP_NOT_AVAILABLE else milliseconds


class _Offsets(Sequence[int]):
    """The offsets of messages, read from each message on access: often only the last one is needed."""

    __slots__ = ("_messages",)

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[int]:
        return map(_offset, self._messages)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return _Offsets(self._messages[index])
        return self._messages[index].offset()
