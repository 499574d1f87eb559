"""The Kafka clients of one task, made on first use; admin clients are shared by the tasks of a process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from connect.internals.delivery.acknowledged_producer import AcknowledgedProducer
from connect.internals.kafka.auth.rights import ADMIN, CONSUMER, PRODUCER
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.clients.librdkafka import fail_without_login
from connect.internals.kafka.clients.statistics import TakeStatistics
from connect.internals.kafka.settings.client import ClientKind, ClientProperties, PropertyValue
from connect.internals.kafka.settings.java_keys import CLIENT_KEYS
from worker.kafka.clients import roles
from worker.kafka.clients.shared_admin import SharedAdmin
from worker.kafka.topics.admin import Creation, TopicCreator, create, describe, forbidden
from worker.kafka.topics.batch_limits import BatchLimits
from worker.kafka.topics.creation import NewTopic, TopicCreationGroups
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.metrics import ReportedStatistics
from worker.runtime.sink.predecessors import remove_predecessors
from worker.runtime.source.producer import RestingProducer
from worker.runtime.usage import starting_patient_threads
from worker.security.redaction import Redaction

__all__ = ["Clients", "Publisher"]

logger = logging.getLogger(__name__)
_TRANSACTION_TIMEOUT_MS: Final = 60_000
_BATCH_SIZE: Final = 1_000_000
_LATE_SECONDS: Final = 0.2
"""How late waits of a consumer's threads may end in a shared process."""
_OF_THE_JVM: Final = frozenset(
    {
        "config.providers",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "metric.reporters",
        "partitioner.class",
        "sasl.oauthbearer.jwt.validator.class",
        "security.providers",
        "value.deserializer",
        "value.serializer",
    }
)
_OF_CONNECTIONS: Final = (
    *(
        "bootstrap.",
        "broker.",
        "client.",
        "enable.sasl.",
        "enable.ssl.",
        "https.",
        "metadata.broker.list",
        "reconnect.",
    ),
    *("sasl.", "security.", "socket.", "ssl."),
)
"""How the settings begin that every kind of client has for its connections."""
_JAVA_KEYS: Final = CLIENT_KEYS[ClientKind.CONSUMER].keys() - _OF_THE_JVM
_PRODUCER_JAVA_KEYS: Final = CLIENT_KEYS[ClientKind.PRODUCER].keys() - _OF_THE_JVM
_RESETS: Final = {
    "beginning": "earliest",
    "smallest": "earliest",
    "end": "latest",
    "largest": "latest",
    "error": "none",
}


class Clients:
    """Makes the clients of one task, with the worker's and the connector's settings, for the caller to close.

    ``tell`` receives the statistics of those that move records. ``shares`` says whether the task shares its process.
    """

    def __init__(
        self,
        assembly: Assembly,
        task: int,
        tell: Callable[[messages.ClientMetrics], None] | None = None,
        *,
        shares: bool = False,
    ) -> None:
        self._worker = assembly.worker_props
        self._props = assembly.props
        self._task = task
        self._shares = shares
        self._tell = None if tell is None else _telling(tell, assembly.redaction)
        self._creates_topics = assembly.worker.topic_creation_enable
        self._internal_topics = assembly.internal_topics
        self._admin_client: AdminClient | None = None

    def source_producer(self) -> RestingProducer:
        """Return the producer of a source task."""
        properties = _with_warnings(self._source_producer_properties)
        if self._tell is None:
            return RestingProducer(lambda: _made(properties))
        statistics = ReportedStatistics(self._tell)
        return RestingProducer(lambda: _made(properties, statistics.take), statistics.rest)

    @property
    def source_producer_keeps_order(self) -> bool:
        """Whether the producer of a source task writes the records of a partition in order, whatever happens."""
        return roles.keeps_order(self._source_producer_properties)

    def transactional_producer(self) -> tuple[Producer, float]:
        """Return the producer of an exactly-once source task, and how many seconds a transaction may last."""
        properties = roles.source_producer_properties(self._worker, self._props, self._task, exactly_once=True)
        timeout = float(properties.properties.get("transaction.timeout.ms", _TRANSACTION_TIMEOUT_MS))
        return _producer(properties, self._statistics()), timeout / 1000

    @property
    def transactional_id(self) -> str:
        """The transactional id of an exactly-once source task."""
        return roles.transactional_id(self._worker["group.id"], self._props["name"], self._task)

    def dlq_producer(self) -> Producer:
        """Return the producer of a sink task's dead letter queue."""
        return _producer(roles.dlq_producer_properties(self._worker, self._props, self._task))

    def transactional_dlq_producer(self) -> tuple[Producer, float]:
        """Return the transactional producer of a sink's dead letter queue, and how many seconds a transaction
        may last.
        """
        properties = roles.dlq_producer_properties(self._worker, self._props, self._task, exactly_once=True)
        timeout = float(properties.properties.get("transaction.timeout.ms", _TRANSACTION_TIMEOUT_MS))
        return _producer(properties), timeout / 1000

    def publisher_settings(self) -> dict[str, PropertyValue]:
        """Return the settings of :meth:`dlq_producer` by librdkafka's names, for a producer in another process."""
        return dict(roles.dlq_producer_properties(self._worker, self._props, self._task).properties)

    def dlq_consumer(self) -> Consumer:
        """Return the consumer of the dead letter queue, which reports the ends of partitions."""
        return _consumer(roles.dlq_consumer_properties(self._worker, self._props, self._task))

    def dlq_topic(self, topic: NewTopic) -> None:
        """Create the topic of the dead letter queue if it is missing."""
        client = _admin(roles.dlq_admin_properties(self._worker, self._props, self._task))
        if describe(client, topic.name) is None and create(client, topic) is Creation.FORBIDDEN:
            raise forbidden(topic)

    def sink_consumer(self) -> Consumer:
        """Return the consumer of a sink task, which reports the ends of partitions."""
        if not self._shares:
            return _consumer(self._sink_consumer_properties, self._statistics())
        with starting_patient_threads(_LATE_SECONDS):
            return _consumer(self._sink_consumer_properties, self._statistics())

    def make_way(self) -> None:
        """Remove what is left of the sink task's former consumers from its group, before it joins."""
        own_id = roles.sink_client_id(self._props["name"], self._task)
        remove_predecessors(self._sink_consumer_properties, own_id, self.sink_admin)

    @cached_property
    def sink_admin(self) -> SharedAdmin:
        """The admin clients with the login and rights of the sink's consumer, shared by the sinks of this process."""
        properties = self._sink_consumer_properties
        kept = {key: value for key, value in properties.properties.items() if key.startswith(_OF_CONNECTIONS)}
        return SharedAdmin(replace(properties, properties=kept, ignored={}), _admin)

    def topic_creator(self) -> TopicCreator:
        """Return the creator of a source task's topics, by ``topic.creation.*``."""
        groups = TopicCreationGroups.parse(self._props) if self._creates_topics else None
        return TopicCreator(lambda: self.admin, groups, self._internal_topics)

    def batch_limits(self) -> BatchLimits:
        """Return the batch limits of topics that take smaller batches than a source's producer sends."""
        batch_size = self._source_producer_properties.properties.get("batch.size", _BATCH_SIZE)
        return BatchLimits(lambda: self.admin, int(batch_size))

    @property
    def admin(self) -> AdminClient:
        """The admin client of a task, which is kept until :meth:`rest`."""
        if self._admin_client is None:
            self._admin_client = _admin(roles.admin_properties(self._worker, self._props, self._task))
        return self._admin_client

    def rest(self) -> None:
        """Close the admin client until it is needed again."""
        self._admin_client = None

    @property
    def sink_group(self) -> str:
        """The consumer group of a sink task."""
        return str(self._sink_consumer_properties.properties["group.id"])

    @property
    def sink_is_cooperative(self) -> bool:
        """Whether rebalances of the sink's group are incremental (cooperative)."""
        properties = self._sink_consumer_properties.properties
        if properties.get("group.protocol") == "consumer":
            return True
        return "cooperative" in str(properties.get("partition.assignment.strategy", ""))

    @property
    def offset_reset(self) -> str:
        """Where a sink starts without a valid offset: ``earliest``, ``latest`` or ``none``."""
        reset = str(self._sink_consumer_properties.properties["auto.offset.reset"])
        return _RESETS.get(reset, reset)

    @property
    def max_poll_records(self) -> int:
        """The maximum number of records of one ``put``."""
        return int(self._sink_consumer_properties.runtime.get("max.poll.records", "500"))

    def _statistics(self) -> TakeStatistics | None:
        return None if self._tell is None else ReportedStatistics(self._tell).take

    def source_producer_java_properties(self) -> dict[str, str]:
        """Return the settings of a source's producer by their Java names, for a Java client."""
        self._source_producer_properties  # noqa: B018 - making them is the check
        overrides = _below("producer.override.", self._props)
        return {
            "bootstrap.servers": self._worker["bootstrap.servers"],
            **_below("producer.", self._worker),
            **{key: value for key, value in overrides.items() if key in _PRODUCER_JAVA_KEYS},
            "acks": "all",
        }

    def source_producer_settings(self) -> dict[str, PropertyValue]:
        """Return the settings of a source's producer by librdkafka's names, for a producer in another process."""
        return dict(_with_warnings(self._source_producer_properties).properties)

    def sink_consumer_java_properties(self) -> dict[str, str]:
        """Return the settings of the sink's consumer by their Java names, for a Java client.

        A connector's overrides were validated for librdkafka first: settings that would load a class into a JVM have no
        effect there, and are not passed on.
        """
        self._sink_consumer_properties  # noqa: B018 - making them is the check
        overrides = _below("consumer.override.", self._props)
        worker = {key: value for key, value in self._worker.items() if key == "bootstrap.servers"}
        return {
            **worker,
            **_below("consumer.", self._worker),
            **{key: value for key, value in overrides.items() if key in _JAVA_KEYS},
        }

    def sink_consumer_settings(self) -> dict[str, PropertyValue]:
        """Return the settings of the sink's consumer by librdkafka's names, for a consumer in another process."""
        return dict(self._sink_consumer_properties.properties)

    @cached_property
    def _source_producer_properties(self) -> ClientProperties:
        return roles.source_producer_properties(self._worker, self._props, self._task)

    @cached_property
    def _sink_consumer_properties(self) -> ClientProperties:
        return roles.sink_consumer_properties(self._worker, self._props, self._task, shares=self._shares)


def _telling(
    tell: Callable[[messages.ClientMetrics], None], redaction: Redaction
) -> Callable[[messages.ClientMetrics], None]:
    """Hide secrets in statistics: a ``client.id`` is a label of metrics and may come from a config provider (I8)."""
    return lambda report: tell(replace(report, client_id=redaction.redacted(report.client_id)))


def _below(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}


def _producer(properties: ClientProperties, on_statistics: TakeStatistics | None = None) -> Producer:
    return _made(_with_warnings(properties), on_statistics)


def _made(properties: ClientProperties, on_statistics: TakeStatistics | None = None) -> Producer:
    return librdkafka.producer(properties, fail_without_login(PRODUCER), on_statistics)


def _consumer(properties: ClientProperties, on_statistics: TakeStatistics | None = None) -> Consumer:
    with_ends = replace(properties, properties={**properties.properties, "enable.partition.eof": True})
    return librdkafka.consumer(_with_warnings(with_ends), fail_without_login(CONSUMER), on_statistics)


def _admin(properties: ClientProperties) -> AdminClient:
    return librdkafka.admin(properties, fail_without_login(ADMIN))


def _with_warnings(properties: ClientProperties) -> ClientProperties:
    for key, reason in properties.ignored.items():
        logger.warning("Client setting %s has no effect: %s", key, reason)
    return properties


class Publisher:
    """Publishes records that a sink task reports, such as the responses of a server, and creates missing topics."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._producers: dict[str, AcknowledgedProducer] = {}
        self._producer: Producer | None = None

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Send a record to a topic."""
        if topic not in self._producers:
            self._clients.dlq_topic(NewTopic(topic, 1))
            self._producer = self._producer or self._clients.dlq_producer()
            self._producers[topic] = AcknowledgedProducer(self._producer, f"The topic {topic}")
        self._producers[topic].send(topic, key, value)

    def flush(self) -> None:
        """Wait until everything is acknowledged; see :meth:`AcknowledgedProducer.flush`."""
        for producer in self._producers.values():
            producer.flush()
