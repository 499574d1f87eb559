"""A connector's dead letter queue as it is read: its records, and up to where they were replayed.

That is kept as the offsets of the consumer group ``connect-NAME-dlq``, which has no members. Crash point: they are
committed after the records were delivered, so a kill between the two replays these again (invariant I3).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from connect.errors import ConnectError
from worker.errors import BadRequestError
from worker.kafka import clients as kafka_clients
from worker.kafka.client_kind import ClientProperties
from worker.kafka.clients import sink_group_id
from worker.kafka.consumer_groups import ConsumerGroup
from worker.kafka.log_offsets import LogOffsets
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients
from worker.runtime.consume import by_topic
from worker.runtime.errant_origins import internal_topics
from worker.runtime.errant_ranges import Range
from worker.runtime.errant_record import ErrantRecord

__all__ = ["ErrantQueue", "Page"]

_KEY: Final = "errors.deadletterqueue.topic.name"
_READ_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 1.0
_MOST_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Page:
    """Records in order, and for each range that was begun, by its index, the next offset in it."""

    records: Sequence[ErrantRecord]
    reached: Mapping[int, int]


class ErrantQueue:
    """The queue that a connector's configuration names; :class:`BadRequestError` if it names none."""

    def __init__(self, assembly: Assembly) -> None:
        topic = assembly.config.errors_deadletterqueue_topic_name
        if not topic:
            raise BadRequestError(
                f"Connector {assembly.config.name} has no dead letter queue: set {_KEY} in its configuration (and "
                "errors.tolerance=all), and the records that it cannot process from then on are kept there."
            )
        if topic in internal_topics(assembly.worker_props):
            raise BadRequestError(
                f"Topic {topic} is no dead letter queue: Kafka or this cluster keeps its own state there. Set {_KEY} "
                "to a topic for the connector's records alone."
            )
        self.topic = topic
        self._connector = assembly.config.name
        self._assembly = assembly

    @cached_property
    def _admin(self) -> Any:
        return kafka_clients.admin(self._admin_properties)

    @property
    def _admin_properties(self) -> ClientProperties:
        return kafka_clients.dlq_admin_properties(self._assembly.worker_props, self._assembly.props, 0)

    @property
    def _group(self) -> ConsumerGroup:
        return ConsumerGroup(self._admin, self._admin_properties, f"{sink_group_id(self._connector)}-dlq")

    def bounds(self) -> tuple[dict[int, int], dict[int, int]]:
        """The first offset and the end of each partition; none if the topic is not there."""
        log = LogOffsets(self._admin)
        places = log.partitions([self.topic])
        begins, ends = log.earliest(places), log.latest(places)
        return {place[1]: begins[place] for place in places}, {place[1]: ends[place] for place in places}

    def position(self) -> dict[int, int]:
        """The offset in each partition up to which all were replayed."""
        return {partition: at for (topic, partition), at in self._group.offsets().items() if topic == self.topic}

    def move_position(self, position: Mapping[int, int]) -> None:
        """Keep that all up to these offsets were replayed."""
        if position:
            self._group.alter({(self.topic, partition): offset for partition, offset in position.items()})

    def read(self, ranges: Sequence[Range], limit: int) -> Page:
        """This connector's records in these ranges, ``limit`` and some MiB of them at most."""
        deadline = time.monotonic() + _READ_SECONDS
        consumer = Clients(self._assembly, 0).sink_consumer()
        named = self._assembly.config.errors_deadletterqueue_context_headers_enable
        page = _Reading(self.topic, partial(ErrantRecord.belongs_to, connector=self._connector, named=named), limit)
        try:
            for index, item in enumerate(ranges):
                if page.is_full:
                    break
                consumer.assign([confluent_kafka.TopicPartition(self.topic, item.partition, item.first)])
                page.begin(index, item)
                while not page.is_full and not page.is_through and time.monotonic() < deadline:
                    page.take(consumer.poll(_POLL_SECONDS))
        except KafkaException as error:
            raise ConnectError(f"The dead letter queue {self.topic} cannot be read: {error.args[0].str()}") from error
        finally:
            consumer.close()
        if not page.records and ranges and not page.reached:
            raise ConnectError(
                f"The dead letter queue {self.topic} gave nothing within {_READ_SECONDS:g} s; try again."
            )
        return Page(page.records, page.reached)


class _Reading:
    """What was read so far."""

    def __init__(self, topic: str, is_own: Callable[[ErrantRecord], bool], limit: int) -> None:
        self.records: list[ErrantRecord] = []
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


def _record(topic: str, message: Message) -> ErrantRecord:
    (batch,) = by_topic([message], topic)
    raw = batch.raw(0)
    return ErrantRecord(
        topic, raw.partition, raw.offset, raw.timestamp, raw.timestamp_type, raw.key, raw.value, raw.headers
    )
