"""Turns the client's messages into batches of one partition each, as bytes: nothing is decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, TypeAlias

import confluent_kafka

from connect.data import BytesHeaders, Constant, Offset, Schema, SourceBatch, TopicPartition, ValueColumn
from connectors.mirror.source_offsets import RecordOffsets

__all__ = ["Message", "Provenance", "by_partition", "foreign", "mirrored", "size"]

Message: TypeAlias = Any
"""A ``confluent_kafka.Message``. Its stubs declare every attribute optional, though only those of errors are."""

# Taken as functions, because `map` calls them on many messages in half the time of a loop.
_key: Final[Callable[[Message], bytes | None]] = confluent_kafka.Message.key
_value: Final[Callable[[Message], bytes | None]] = confluent_kafka.Message.value
_headers: Final[Callable[[Message], Any]] = confluent_kafka.Message.headers
_offset: Final[Callable[[Message], Any]] = confluent_kafka.Message.offset
_topic: Final[Callable[[Message], Any]] = confluent_kafka.Message.topic
_partition: Final[Callable[[Message], Any]] = confluent_kafka.Message.partition


_BYTES: Final = Schema.bytes(optional=True)


def by_partition(
    messages: Sequence[Message], only: TopicPartition | None
) -> Iterator[tuple[TopicPartition, Sequence[Message]]]:
    """Yield the messages of each partition, in order. Pass ``only`` if there is just one partition."""
    if only is not None:
        if messages:
            yield only, messages
        return
    groups: dict[tuple[str, int], list[Message]] = {}
    start = 0
    topics, partitions = list(map(_topic, messages)), list(map(_partition, messages))
    # Messages arrive in long runs of one partition, which `groupby` finds without a step of Python for each message.
    is_of_one = topics.count(topics[0]) == len(topics) if topics else True
    for _, run in groupby(partitions if is_of_one else zip(topics, partitions, strict=True)):
        stop = start + len(list(run))
        groups.setdefault((topics[start], partitions[start]), []).extend(messages[start:stop])
        start = stop
    for place, group in groups.items():
        yield TopicPartition(*place), group


def mirrored(
    messages: Sequence[Message],
    topic: str,
    partition: int,
    source_partition: Offset,
    provenance: Provenance | None = None,
) -> SourceBatch:
    """Return messages of one partition as records of ``topic``, with all but their offsets unchanged."""
    length = len(messages)
    keys = list(map(_key, messages))
    headers = list(map(_headers, messages))
    if provenance is not None:
        headers = [provenance.added(each) for each in headers]
    return SourceBatch.of(
        topic,
        ValueColumn(list(map(_value, messages)), _BYTES),
        key=ValueColumn(keys if keys.count(None) < length else Constant(None, length), _BYTES),
        source_partition=source_partition,
        source_offsets=RecordOffsets(list(map(_offset, messages))),
        timestamps=[message.timestamp()[1] for message in messages],
        partitions=Constant(partition, length),
        headers=BytesHeaders(headers) if headers.count(None) < length else None,
    )


def foreign(messages: Sequence[Message], provenance: Provenance) -> Sequence[Message]:
    """Return the messages that have not been at the target."""
    return [message for message in messages if not provenance.comes_from_target(message.headers())]


def size(messages: Sequence[Message]) -> int:
    """Return the number of bytes in the keys, values and headers of messages."""
    total = sum(map(len, messages)) + sum(map(len, filter(None, map(_key, messages))))
    headers = (header for of in filter(None, map(_headers, messages)) for header in of)
    return total + sum(len(name) + len(value or b"") for name, value in headers)


Pairs: TypeAlias = Sequence[tuple[str, Any]]
"""The headers of a record as the client returns them."""


class Provenance:
    """Reads and adds the header ``name``, of which a record has one for each cluster that it came from."""

    def __init__(self, name: str, source_alias: str, target_alias: str) -> None:
        self._own = (name, source_alias.encode())
        self._back = (name, target_alias.encode())

    def comes_from_target(self, headers: Pairs | None) -> bool:
        """Return whether a record with these headers has been at the target."""
        return headers is not None and self._back in headers

    def added(self, headers: Pairs | None) -> list[tuple[str, Any]]:
        """Return the headers for the copy of a record."""
        return [*(headers or ()), self._own]
