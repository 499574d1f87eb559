"""The context of a bulk sink task, for a process or test that is not a worker."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka import Producer

from connect.bulk import FailuresOf, Progress
from connect.data import TopicPartition
from connect.internals.chain.tolerance import ErrorCounts, Tolerance
from connect.internals.kafka.settings.client import PropertyValue
from connect.offset_set import OffsetSet
from worker.kafka.topics.creation import NewTopic
from worker.runtime.assembly import Assembly
from worker.runtime.bulk.bad_records import BadRecords
from worker.runtime.clients import Clients
from worker.runtime.dead_letters.loads import LoadDeadLetters
from worker.runtime.dead_letters.queue import ErrorHeaders
from worker.security.redaction import Redaction

__all__ = ["BulkContext"]

_BYTES: Final = "converters.byte_array.ByteArrayConverter"


class BulkContext:
    """The context of the task of the connector ``name``, with the worker's own handling of bad records."""

    def __init__(self, name: str, bootstrap: str, props: Mapping[str, str]) -> None:
        self.connector_name = name
        self.connector_properties = props
        assembly = self._assembly(bootstrap, name)
        clients = Clients(assembly, 0)
        self.consumer_properties: Mapping[str, str] = clients.sink_consumer_java_properties()
        self.consumer_settings: Mapping[str, PropertyValue] = clients.sink_consumer_settings()
        self.producer_settings = {"bootstrap.servers": bootstrap}
        self.published: list[str] = []
        """The topics of the published records."""
        self.stop = False
        self.last_progress = Progress("nothing yet")
        self.counts = ErrorCounts()
        self._left_out = self._made(assembly, bootstrap)
        self._producer = Producer(self.producer_settings)

    def _assembly(self, bootstrap: str, name: str) -> Assembly:
        own = {"name": name, "connector.class": "SparkSink", "topics": "t"}
        worker = {"bootstrap.servers": bootstrap, **dict.fromkeys(("key.converter", "value.converter"), _BYTES)}
        return Assembly.resolve(worker, {**self.connector_properties, **own}, Redaction())

    def _made(self, assembly: Assembly, bootstrap: str) -> BadRecords:
        config = assembly.config
        queues: list[LoadDeadLetters] = []
        if topic := config.errors_deadletterqueue_topic_name:
            # Connectors of one name would fence each other's queues: those of other tests are at the same broker.
            alone = f"{self.connector_name}-{topic}"
            clients = Clients(self._assembly(bootstrap, alone), 0)
            clients.dlq_topic(NewTopic(topic, 1, 1))
            headers = ErrorHeaders(self.connector_name, 0, assembly.redaction)
            queues.append(LoadDeadLetters(clients, topic, headers, alone, self.stopping))
        tolerance = Tolerance(config.error_policy, queues, self.wait, counts=self.counts)
        return BadRecords(tolerance, next(iter(queues), None), tells=False)

    def wait(self, seconds: float) -> bool:
        time.sleep(seconds)
        return True

    def stopping(self) -> bool:
        return self.stop

    def progress(self, progress: Progress) -> None:
        """Keep the task's latest progress."""
        self.last_progress = progress

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        self.published.append(topic)
        self._producer.produce(topic, value, key)

    def flush_published(self) -> None:
        assert self._producer.flush(30) == 0

    def leave_out(self, bad: Mapping[TopicPartition, OffsetSet], failures: FailuresOf) -> None:
        self._left_out.leave_out(bad, failures)
