"""A producer for additional records that Kafka must acknowledge before offsets advance past their causes (I4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, Producer

from connect.errors import ConnectError, RetriableError
from connect.internals.delivery.delivery import PRODUCER_FAILURES, client_timestamp, kafka_error
from connect.internals.kafka.auth.rights import PRODUCER, explained, is_denial, on_topic

__all__ = ["AcknowledgedProducer"]

_FLUSH_TIMEOUT: Final = 60.0
_SERVE: Final = 0.1

MessageHeaders = Sequence[tuple[str, str | bytes | None]]


class AcknowledgedProducer:
    """Sends records to ``what``, such as a dead letter queue. Used by the task's thread only.

    ``on_refused`` is called for each record that is refused.
    """

    def __init__(self, producer: Producer, what: str, on_refused: Callable[[], None] = lambda: None) -> None:
        self._producer = producer
        self._what = what
        self._on_refused = on_refused
        self._refused: KafkaError | None = None
        self._topic = ""

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: MessageHeaders = (),
        timestamp: int | None = None,
    ) -> None:
        """Send a record. :meth:`flush` reports whether it was acknowledged."""
        self._topic = topic
        try:
            self._produce(topic, value, key, list(headers), client_timestamp(timestamp))
        except PRODUCER_FAILURES as error:
            self._refuse(kafka_error(error))

    def _produce(self, topic: str, value: bytes | None, key: bytes | None, headers: list[Any], timestamp: int) -> None:
        while True:
            try:
                self._producer.produce(
                    topic, value, key, headers=headers, on_delivery=self._delivered, timestamp=timestamp
                )
            except BufferError:
                self._producer.poll(_SERVE)
            else:
                break
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until all records are acknowledged; raise :class:`~connect.errors.RetriableError` after a minute.

        Raises :class:`~connect.errors.ConnectError`, from then on at every call, if a record was refused: offsets must
        not advance past a record that nobody has (invariant I4).
        """
        left = 0
        try:
            left = self._producer.flush(_FLUSH_TIMEOUT)
        except PRODUCER_FAILURES as error:
            self._refused = kafka_error(error)
        if self._refused is not None:
            if is_denial(self._refused.code()):
                reason = explained(self._refused, PRODUCER, on_topic(self._topic, "Write"))
                raise ConnectError(f"{self._what} did not take a record: {reason}.")
            raise ConnectError(
                f"{self._what} did not take a record: {self._refused.str()}. Check that the topic exists, "
                "and that max.message.bytes and the connector's "
                "producer.override.max.request.size are large enough."
            )
        if left:
            raise RetriableError(f"{self._what} did not acknowledge {left} records within {_FLUSH_TIMEOUT:.0f} s")

    def _delivered(self, error: KafkaError | None, _message: Any) -> None:
        if error is not None:
            self._refuse(error)

    def _refuse(self, error: KafkaError) -> None:
        self._refused = error
        self._on_refused()
