"""Publishes what sink tasks send beside their data."""

from __future__ import annotations

from confluent_kafka import Producer

from connect.delivery.acknowledged_producer import AcknowledgedProducer
from worker.kafka.topics.creation import NewTopic
from worker.runtime.clients import Clients

__all__ = ["Publisher"]


class Publisher:
    """Publishes what a sink task tells of its work, such as the answers of a server; makes topics that are missing."""

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
