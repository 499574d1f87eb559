"""From the client's messages to batches of one partition each, as bytes: nothing is decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import confluent_kafka

from connect.data import BytesHeaders, Constant, Offset, Schema, SourceBatch, TopicPartition, ValueColumn
from connectors.mirror.source.offsets import source_offset

__all__ = ["Message", "RecordOffsets", "by_partition", "mirrored"]

Message: TypeAlias = Any
"""A ``confluent_kafka.Message``. Its stubs have every attribute optional, which only those of errors are."""

# As functions, so that `map` asks them of many messages in half the time of a loop.
_key: Final[Callable[[Message], bytes | None]] = confluent_kafka.Message.key
_value: Final[Callable[[Message], bytes | None]] = confluent_kafka.Message.value
_headers: Final[Callable[[Message], Any]] = confluent_kafka.Message.headers
_offset: Final[Callable[[Message], Any]] = confluent_kafka.Message.offset
_topic: Final[Callable[[Message], Any]] = confluent_kafka.Message.topic
_partition: Final[Callable[[Message], Any]] = confluent_kafka.Message.partition

_BYTES: Final = Schema.bytes(optional=True)


class RecordOffsets(Sequence[Offset]):
    """The source offsets of records, made of their ``numbers`` when they are looked at: mostly only the last one is."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return RecordOffsets(self.numbers[index])
        return source_offset(self.numbers[index])


def by_partition(
    messages: Sequence[Message], only: TopicPartition | None
) -> Iterator[tuple[TopicPartition, Sequence[Message]]]:
    """The messages of each partition, in order; ``only`` is given when there is one."""
    if only is not None:
        if messages:
            yield only, messages
        return
    groups: dict[tuple[str, int], list[Message]] = {}
    places = zip(map(_topic, messages), map(_partition, messages), strict=True)
    for message, place in zip(messages, places, strict=True):
        group = groups.get(place)
        if group is None:
            groups[place] = [message]
        else:
            group.append(message)
    for place, group in groups.items():
        yield TopicPartition(*place), group


def mirrored(messages: Sequence[Message], topic: str, partition: int, source_partition: Offset) -> SourceBatch:
    """Messages of one partition as records of ``topic``: the same partition, keys, values, headers and timestamps."""
    length = len(messages)
    keys = list(map(_key, messages))
    headers = list(map(_headers, messages))
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
