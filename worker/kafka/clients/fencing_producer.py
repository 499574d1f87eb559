"""A producer that is unique in a cluster: a worker that claims it fences the previous owner (KIP-618).

Crash point: records that are written together are one transaction. If the worker is killed within it, none of them
counts, and the next claim aborts it. A broker that is killed may have decided a transaction without writing the marker
to the topic, where it stays open for ``read_committed`` consumers; the end of the writer's next transaction ends both.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from connect.errors import ConnectError
from connect.internals.kafka.auth.rights import WORKER, explained, is_denial, on_topic, on_transactional_id
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientProperties
from worker.errors import FencedError

__all__ = ["FencingProducer"]

logger = logging.getLogger(__name__)

_FENCED = frozenset((KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH))


class FencingProducer:
    """Writes to a topic in transactions with a transactional id. Has its own thread; methods return at once."""

    def __init__(
        self,
        topic: str,
        properties: ClientProperties,
        transactional_id: str,
        timeout: float,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_lost`` is called in the producer's thread when nothing can be written before the next claim."""
        self._topic = topic
        self._on_lost = on_lost
        self._timeout = timeout
        milliseconds = int(timeout * 1000)
        self._properties = replace(
            properties,
            properties={
                **properties.properties,
                "transactional.id": transactional_id,
                "enable.idempotence": True,
                "linger.ms": 0,
                # Neither a record nor a request may outlive its transaction.
                "message.timeout.ms": milliseconds,
                "transaction.timeout.ms": milliseconds,
                "socket.timeout.ms": min(
                    milliseconds, int(properties.properties.get("socket.timeout.ms", milliseconds))
                ),
            },
        )
        self._transactional_id = transactional_id
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name=f"topic-{topic}-leader", daemon=True)
        self._producer: Producer | None = None

    def start(self) -> None:
        """Start the producer's thread."""
        self._thread.start()

    def claim(self, record: tuple[bytes, bytes | None]) -> Future[None]:
        """Fence the worker that wrote with this id before, and write a record that changes nothing.

        After that, no transaction is open, whatever happened to the last one, because this record has ended it.
        """
        return self._ask(partial(self._claim, [record]))

    def write(self, records: Sequence[tuple[bytes, bytes | None]]) -> Future[None]:
        """Write records in one transaction.

        Fails with :class:`~worker.errors.FencedError` if another worker has claimed the id since, or this one never
        did.
        """
        return self._ask(partial(self._write, list(records)))

    def close(self) -> None:
        """Finish the requests made so far, then end the thread."""
        self._inbox.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def _ask(self, action: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()

        def attempt() -> None:
            try:
                action()
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(None)

        self._inbox.put(attempt)
        return future

    def _loop(self) -> None:
        while (action := self._inbox.get()) is not None:
            action()
        self._producer = None

    def _claim(self, records: list[tuple[bytes, bytes | None]]) -> None:
        if self._producer is not None:
            try:
                self._write(records)
            except FencedError:
                logger.debug("Another worker has written to topic '%s' since this one led", self._topic)
            else:
                return
        self._producer = self._new_producer()
        self._write(records)

    def _new_producer(self) -> Producer:
        producer = librdkafka.producer(self._properties)
        try:
            producer.init_transactions(self._timeout)
        except KafkaException as error:
            raise ConnectError(
                f"Write privileges for topic '{self._topic}' could not be claimed under the transactional id "
                f"{self._transactional_id}: {self._explained(error)}"
            ) from error
        return producer

    def _write(self, records: list[tuple[bytes, bytes | None]]) -> None:
        if self._producer is None:
            raise FencedError(f"Cannot write to topic '{self._topic}' without claiming write privileges first")
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failures.append(error)

        try:
            self._producer.begin_transaction()
            for key, value in records:
                self._producer.produce(self._topic, value=value, key=key, on_delivery=delivered)
            self._producer.commit_transaction(self._timeout)
        except (KafkaException, BufferError) as error:
            self._give_up(self._producer, error, failures)

    def _give_up(self, producer: Producer, error: Exception, failures: list[KafkaError]) -> None:
        """Discard a producer that failed: the topic shows whether its transaction was committed."""
        self._producer = None
        causes: list[Any] = [*error.args[:1], *failures]
        if any(isinstance(cause, KafkaError) and cause.code() in _FENCED for cause in causes):
            self._on_lost()
            raise FencedError(
                f"Another worker writes to topic '{self._topic}' now: it has become the leader"
            ) from error
        try:
            producer.abort_transaction(self._timeout)
        except KafkaException as unfinished:
            logger.debug("The broker will end the transaction itself: %s", _text(unfinished))
            self._on_lost()
        else:
            self._producer = producer
        denied = next((cause for cause in causes if isinstance(cause, KafkaError) and is_denial(cause.code())), None)
        reason = self._explained(error if denied is None else KafkaException(denied))
        raise ConnectError(f"Topic '{self._topic}' could not be written to: {reason}") from error

    def _explained(self, error: Exception) -> str:
        cause = error.args[0] if error.args else error
        if not isinstance(cause, KafkaError):
            return _text(error)
        rights = (on_topic(self._topic, "Write"), on_transactional_id(self._transactional_id, "Write"))
        return explained(cause, WORKER, *rights)


def _text(error: Exception) -> str:
    cause = error.args[0] if error.args else error
    return cause.str() if isinstance(cause, KafkaError) else str(cause)
