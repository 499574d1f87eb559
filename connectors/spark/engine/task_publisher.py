"""What sink tasks publish in executors: sent there, or by the driver if the topic may have to be created first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from connect.internals.delivery.acknowledged_producer import AcknowledgedProducer
from connectors.spark.publishing.publisher import acknowledged_by

__all__ = ["Outgoing", "TaskPublisher"]

_MOST_HELD: Final = 1000


class Outgoing(NamedTuple):
    """A record that a task has published."""

    topic: str
    key: bytes | None
    value: bytes | None


class TaskPublisher:
    """Publishes for one sink task; a :class:`~connect.internals.chain.sink_context.Publishing`. Used by one thread."""

    def __init__(self, settings: Mapping[str, str | int | bool], topics: Collection[str]) -> None:
        self._settings = settings
        self._topics = topics
        self._sender: Callable[[str], AcknowledgedProducer] | None = None
        self._by_topic: dict[str, AcknowledgedProducer] = {}
        self.held: list[Outgoing] = []
        """The records for the driver to send, because their topics may not exist."""

    @property
    def is_full(self) -> bool:
        """Whether so many records are held that the driver should send them first."""
        return len(self.held) >= _MOST_HELD

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Send a record, or hold it for the driver."""
        if topic not in self._topics:
            self.held.append(Outgoing(topic, key, value))
            return
        if topic not in self._by_topic:
            self._sender = self._sender or acknowledged_by(self._settings)
            self._by_topic[topic] = self._sender(topic)
        self._by_topic[topic].send(topic, key, value)

    def flush(self) -> None:
        """Wait until Kafka has acknowledged what was sent; the driver takes care of what is held."""
        for producer in self._by_topic.values():
            producer.flush()
