"""Reads the dead letter queue of a connector, and stores the position up to which it was replayed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from connect.errors import ConnectError
from connect.internals.consumption.messages import by_topic
from connect.internals.kafka.auth.rights import CONSUMER, explained, on_topic
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientProperties
from worker.errors import BadRequestError
from worker.kafka.clients import roles
from worker.kafka.clients.roles import dlq_group_id
from worker.kafka.groups.offsets import ConsumerGroup
from worker.kafka.topics.log_offsets import LogOffsets
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients
from worker.runtime.dead_letters.dead_letter import DeadLetter
from worker.runtime.sink.topic_choice import topic_found

__all__ = ["DeadLetterReader", "Page", "Range", "ranges_after", "ranges_of", "ranges_to_replay", "rest_of"]

_KEY: Final = "errors.deadletterqueue.topic.name"
_READ_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 1.0
_MOST_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Range:
    """The records of one partition from ``first`` on and before ``end``."""

    partition: int
    first: int
    end: int


def ranges_after(after: tuple[int, int] | None, begins: Mapping[int, int], ends: Mapping[int, int]) -> list[Range]:
    """Return the ranges after a record, by partition; without one, the whole queue."""
    partition, offset = after or (-1, -1)
    wanted = {number: end for number, end in ends.items() if number >= partition}
    return _clipped(
        [Range(number, offset + 1 if number == partition else 0, end) for number, end in wanted.items()], begins, ends
    )


def ranges_of(
    selection: Sequence[tuple[int, int, int]], begins: Mapping[int, int], ends: Mapping[int, int]
) -> list[Range]:
    """Return the selected ranges, clipped to existing offsets."""
    return _clipped([Range(*item) for item in selection], begins, ends)


def ranges_to_replay(
    position: Mapping[int, int], until: Mapping[int, int], begins: Mapping[int, int], ends: Mapping[int, int]
) -> list[Range]:
    """Return the ranges that were not replayed yet, up to ``until``."""
    wanted = [Range(number, position.get(number, 0), until.get(number, 0)) for number in ends]
    return _clipped(wanted, begins, ends)


def rest_of(ranges: Sequence[Range], reached: Mapping[int, int]) -> list[Range]:
    """Return the remaining ranges; ``reached`` has the next offset of each range that was begun, by its index."""
    left = [Range(item.partition, reached.get(index, item.first), item.end) for index, item in enumerate(ranges)]
    return [item for item in left if item.first < item.end]


def _clipped(ranges: Sequence[Range], begins: Mapping[int, int], ends: Mapping[int, int]) -> list[Range]:
    found = [
        Range(item.partition, max(item.first, begins[item.partition]), min(item.end, ends[item.partition]))
        for item in ranges
        if item.partition in ends
    ]
    return sorted((item for item in found if item.first < item.end), key=lambda item: (item.partition, item.first))


@dataclass(frozen=True, slots=True)
class Page:
    """Records in order, and the next offset of each range that was begun, by its index."""

    records: Sequence[DeadLetter]
    reached: Mapping[int, int]


class DeadLetterReader:
    """The queue of a connector. Raises :class:`BadRequestError` if its configuration names none."""

    def __init__(self, assembly: Assembly) -> None:
        topic = assembly.config.errors_deadletterqueue_topic_name
        if not topic:
            raise BadRequestError(
                f"Connector {assembly.config.name} has no dead letter queue: set {_KEY} in its configuration (and "
                "errors.tolerance=all), and the records that it cannot process from then on are kept there."
            )
        for refused in assembly.internal_topics.refused(_KEY, [topic]):
            raise BadRequestError(str(refused)) from refused
        self.topic = topic
        self._connector = assembly.config.name
        self._assembly = assembly

    @cached_property
    def _admin(self) -> Any:
        return librdkafka.admin(self._admin_properties)

    @property
    def _admin_properties(self) -> ClientProperties:
        return roles.dlq_admin_properties(self._assembly.worker_props, self._assembly.props, 0)

    @property
    def _group(self) -> ConsumerGroup:
        return ConsumerGroup(self._admin_properties, dlq_group_id(self._connector))

    def bounds(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return the first offset and the end of each partition; empty if the topic does not exist."""
        log = LogOffsets(self._admin)
        places = log.partitions([self.topic])
        begins, ends = log.earliest(places), log.latest(places)
        return {place[1]: begins[place] for place in places}, {place[1]: ends[place] for place in places}

    def position(self) -> dict[int, int]:
        """Return the offset in each partition up to which all records were replayed."""
        return {partition: at for (topic, partition), at in self._group.offsets().items() if topic == self.topic}

    def move_position(self, position: Mapping[int, int]) -> None:
        """Store that all records up to these offsets were replayed."""
        if position:
            self._group.alter({(self.topic, partition): offset for partition, offset in position.items()})

    def read(self, ranges: Sequence[Range], limit: int) -> Page:
        """Read this connector's records in these ranges, at most ``limit`` and a few MiB."""
        deadline = time.monotonic() + _READ_SECONDS
        consumer = Clients(self._assembly, 0).dlq_consumer()
        named = self._assembly.config.errors_deadletterqueue_context_headers_enable
        page = _Reading(self.topic, partial(DeadLetter.belongs_to, connector=self._connector, named=named), limit)
        try:
            topic_found(consumer, self.topic)
            for index, item in enumerate(ranges):
                if page.is_full:
                    break
                consumer.assign([confluent_kafka.TopicPartition(self.topic, item.partition, item.first)])
                page.begin(index, item)
                while not page.is_full and not page.is_through and time.monotonic() < deadline:
                    page.take(consumer.poll(_POLL_SECONDS))
        except KafkaException as error:
            reason = explained(error.args[0], CONSUMER, on_topic(self.topic, "Read"))
            raise ConnectError(f"The dead letter queue {self.topic} cannot be read: {reason}") from error
        finally:
            consumer.close()
        if not page.records and ranges and not page.reached:
            raise ConnectError(
                f"The dead letter queue {self.topic} returned nothing within {_READ_SECONDS:g} s; try again."
            )
        return Page(page.records, page.reached)


class _Reading:
    """The page so far."""

    def __init__(self, topic: str, is_own: Callable[[DeadLetter], bool], limit: int) -> None:
        self.records: list[DeadLetter] = []
        self.reached: dict[int, int] = {}
        self.is_through = False
        self._topic = topic
        self._is_own = is_own
        self._limit = limit
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        return len(self.records) >= self._limit or self._bytes >= _MOST_BYTES

    def begin(self, index: int, item: Range) -> None:
        self._index, self._range = index, item
        self.is_through = False

    def take(self, message: Message | None) -> None:
        if message is None:
            return
        if (error := message.error()) is not None:
            if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                return  # A consumer must have a group id; this group is never joined.
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            self._is_read()
            return
        record = _record(self._topic, message)
        if record.offset >= self._range.end:
            self._is_read()
            return
        self.reached[self._index] = record.offset + 1
        if self._is_own(record):
            self.records.append(record)
            self._bytes += record.size
        if record.offset + 1 == self._range.end:
            self._is_read()

    def _is_read(self) -> None:
        self.reached[self._index] = self._range.end
        self.is_through = True


def _record(topic: str, message: Message) -> DeadLetter:
    (batch,) = by_topic([message], topic)
    raw = batch.raw(0)
    return DeadLetter(
        topic, raw.partition, raw.offset, raw.timestamp, raw.timestamp_type, raw.key, raw.value, raw.headers
    )
