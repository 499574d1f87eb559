"""The preview of a sink: reads records of its topics without joining its group, and does not start its task."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from connect.bulk import OffsetRange
from connect.errors import ConnectError
from connect.internals.chain.record_trace import trace_sink
from connect.internals.chain.sink import SinkChain
from connect.internals.chain.steps import Steps, transformation_steps
from connect.internals.chain.tolerance import Tolerance
from connect.internals.consumption.messages import Message, by_topic
from connect.internals.kafka.auth.rights import CONSUMER, explained, on_topic
from connect.internals.kafka.clients import librdkafka
from worker.config.connector import SinkConnectorConfig
from worker.kafka.clients import roles
from worker.kafka.groups.offsets import ConsumerGroup
from worker.kafka.topics.log_offsets import LogOffsets, Place
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients
from worker.runtime.preview.documents import CUT, MORE, LimitedDocuments, RecordDocuments
from worker.runtime.sink.topic_choice import TopicChoice, topic_found

__all__ = ["SinkPreview"]

_SLICE_SECONDS: Final = 0.5
_LIST_TIMEOUT_SECONDS: Final = 30.0


class SinkPreview:
    """Passes the next records of a sink to ``show``, each as its task would receive it."""

    def __init__(
        self,
        assembly: Assembly,
        tolerance: Tolerance,
        documents: RecordDocuments,
        show: LimitedDocuments,
    ) -> None:
        self._assembly = assembly
        self._tolerance = tolerance
        self._documents = documents
        self._show = show
        self._steps = transformation_steps(assembly.registry, assembly.config.transformations())
        self._decoder = SinkChain(Steps((), tolerance), assembly.converters(), tolerance)
        self._admin_properties = roles.admin_properties(assembly.worker_props, assembly.props)
        self._admin = librdkafka.admin(self._admin_properties)
        self._log = LogOffsets(self._admin)

    def run(self, records: int, deadline: float, *, from_beginning: bool) -> str:
        """Show up to this many records until a deadline. Return why there are no more."""
        begins, ends, starts = self._bounds(from_beginning=from_beginning)
        if not ends:
            return "none of its topics exists"
        places = list(ends)
        unread = {place: ends[place] for place in places if starts[place] < ends[place]}
        if not unread:
            if any(begins[place] < ends[place] for place in places):
                return "its group has consumed all there is; a preview from the beginning shows what is in the topics"
            return "there is nothing in its topics"
        return self._read(records, deadline, {place: starts[place] for place in unread}, unread)

    def ranges(self, records: int, *, from_beginning: bool) -> list[OffsetRange]:
        """Return the next offsets of each partition, up to this many."""
        _, ends, starts = self._bounds(from_beginning=from_beginning)
        return [
            OffsetRange(*place, first, min(first + records, ends[place]))
            for place, first in sorted(starts.items())
            if first < ends[place]
        ]

    def _bounds(self, *, from_beginning: bool) -> tuple[dict[Place, int], dict[Place, int], dict[Place, int]]:
        """Return the beginnings and ends of the partitions, and where to continue."""
        places = self._log.partitions(self._topics())
        if not places:
            return {}, {}, {}
        begins, ends = self._log.earliest(places), self._log.latest(places)
        return begins, ends, begins if from_beginning else self._starts(begins, ends)

    def _topics(self) -> tuple[str, ...]:
        config = self._assembly.config
        assert isinstance(config, SinkConnectorConfig)
        choice = TopicChoice(config, self._assembly.internal_topics)
        if not choice.is_pattern:
            return choice.names
        try:
            return choice.matching(self._admin.list_topics(timeout=_LIST_TIMEOUT_SECONDS).topics)
        except KafkaException as error:
            raise ConnectError(f"The broker does not list the topics: {error.args[0].str()}") from error

    def _starts(self, begins: dict[Place, int], ends: dict[Place, int]) -> dict[Place, int]:
        """Return where the tasks would continue: at the committed offsets of the group, or where it would start."""
        worker, props = self._assembly.worker_props, self._assembly.props
        group = str(roles.sink_consumer_properties(worker, props, 0).properties["group.id"])
        committed = ConsumerGroup(self._admin_properties, group).offsets()
        entries = ends if Clients(self._assembly, 0).offset_reset == "latest" else begins
        return {place: max(committed.get(place, entries[place]), begin) for place, begin in begins.items()}

    def _read(self, records: int, deadline: float, starts: dict[Place, int], unread: dict[Place, int]) -> str:
        shown = 0
        with closing(self._consumer()) as consumer:
            # Partitions are assigned directly, without joining the group: no member notices, and nothing can be
            # committed.
            self._check_rights(consumer, {topic for topic, _ in starts})
            consumer.assign([TopicPartition(*place, offset) for place, offset in starts.items()])
            while unread:
                if shown >= records or self._show.full:
                    return CUT if self._show.full else MORE
                if time.monotonic() >= deadline:
                    return "the time is up"
                for message in consumer.consume(records - shown, _SLICE_SECONDS):
                    shown += self._take(message, unread)
        return "that is all there is"

    def _check_rights(self, consumer: Consumer, topics: set[str]) -> None:
        for topic in sorted(topics):
            try:
                topic_found(consumer, topic)
            except KafkaException as error:
                reason = explained(error.args[0], CONSUMER, on_topic(topic, "Read"))
                raise ConnectError(f"The topics cannot be read: {reason}") from error

    def _take(self, message: Message, unread: dict[Place, int]) -> int:
        """Show a message, unless it is after the end as of the start."""
        error = message.error()
        place = (message.topic(), message.partition())
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                unread.pop(place, None)
                return 0
            # A consumer must have a group id; this group is never joined.
            if error.retriable() or error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                return 0
            reason = explained(error, CONSUMER, on_topic(message.topic() or "", "Read"))
            raise ConnectError(f"The topics cannot be read: {reason}")
        if message.offset() + 1 >= unread.get(place, 0):
            unread.pop(place, None)
        (batch,) = by_topic([message], None)
        trace = trace_sink(batch, 0, self._steps, self._decoder, self._tolerance)
        self._show(self._documents.of_sink(batch.raw(0), trace))
        return 1

    def _consumer(self) -> Any:
        properties = roles.sink_consumer_properties(self._assembly.worker_props, self._assembly.props, 0)
        settings = {
            **properties.properties,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "client.id": f"preview-{self._assembly.config.name}",
        }
        return librdkafka.consumer(replace(properties, properties=settings))
