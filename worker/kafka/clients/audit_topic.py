"""Writes audit events to a topic."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from connect.errors import ConnectError
from connect.internals.kafka.clients.librdkafka import producer
from connect.internals.kafka.settings.client import ClientKind
from worker.kafka.clients.roles import internal_properties

__all__ = ["AuditTopic"]

logger = logging.getLogger(__name__)
_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.5
_TYPE: Final = ("content-type", b"application/cloudevents+json; charset=UTF-8")


class AuditTopic:
    """Writes events to a topic with the worker's own Kafka settings; each is delivered within 10 s or never.

    If it ``waits``, a write returns when all replicas have acknowledged the event. Otherwise, events that could not be
    delivered are logged.
    """

    def __init__(self, topic: str, worker: Mapping[str, str], *, waits: bool) -> None:
        limits = {"delivery.timeout.ms": str(int(_SECONDS * 1000)), "max.block.ms": str(int(_SECONDS * 1000))}
        self._topic = topic
        self._waits = waits
        self._producer = producer(internal_properties(worker, ClientKind.PRODUCER, "audit", limits))
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="audit-topic", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Send an event."""
        delivered: Future[None] = Future()

        def report(error: KafkaError | None, _message: Any) -> None:
            if error is None:
                delivered.set_result(None)
                return
            delivered.set_exception(ConnectError(error.str()))
            if not self._waits:
                logger.error("An audit event could not be delivered: %s. It was: %s", error.str(), line.decode())

        try:
            self._producer.produce(self._topic, line, on_delivery=report, headers=[_TYPE])
            if self._waits:
                delivered.result(_SECONDS + 2 * _POLL_SECONDS)
        except (KafkaException, BufferError, ConnectError, FutureTimeoutError) as error:
            reason = error.args[0].str() if isinstance(error, KafkaException) else str(error) or "no answer in time"
            raise ConnectError(f"The audit topic {self._topic} cannot be written to: {reason}") from error

    def close(self) -> None:
        """Deliver pending events."""
        self._closed.set()
        self._thread.join()
        self._producer.flush(_SECONDS)

    def _poll(self) -> None:
        while not self._closed.is_set():
            self._producer.poll(_POLL_SECONDS)
