"""Delivery of records to Kafka, and the outcome of each record.

Every record has a callback: one on the last record of a batch alone would miss a record in the middle that the broker
refuses. The producer's queue is bounded (``buffer.memory``); when it is full, sending waits (invariant I9).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, repeat, starmap
from operator import length_hint
from typing import Any, Final, Protocol, TypeAlias

from confluent_kafka import KafkaError, KafkaException

from connect.data import Constant
from connect.errors import ConnectError
from connect.internals.chain.raw_records import EncodedBatch, RawRecord
from connect.internals.chain.tolerance import StopRequested
from connect.internals.delivery.submissions import (
    BatchOutcomes,
    Delivered,
    Refusal,
    SentRecords,
    Submission,
    raw_record,
)

__all__ = [
    "PRODUCER_FAILURES",
    "Delivery",
    "ProduceFailure",
    "RecordProducer",
    "TopicLimits",
    "client_timestamp",
    "kafka_error",
]


class RecordProducer(Protocol):
    """The producer interface that a delivery needs.

    The producer itself may exist only while there is something to send.
    """

    @property
    def produce(self) -> Callable[..., Any]:
        """Hand over a record. The method is looked up once for several consecutive records."""

    def poll(self, timeout: float = ..., /) -> int:
        """Run callbacks, waiting up to this many seconds for the first."""

    def flush(self, timeout: float = ..., /) -> int:
        """Wait up to this many seconds until everything is delivered. Return how many records are still in flight."""

    def list_topics(self, topic: str, /, *, timeout: float) -> Any:
        """Ask the brokers about a topic, which also makes its new partitions known."""


class TopicLimits(Protocol):
    """Knows the largest batch that each topic accepts."""

    def of(self, topic: str) -> int | None:
        """Return the maximum batch size of a topic in bytes; ``None`` if unknown, or beyond what the producer makes."""

    def forget(self, topic: str) -> None:
        """Discard what is known about a topic."""


ProduceFailure: TypeAlias = Callable[[Refusal], None]
"""Called with a record that Kafka did not take; raises to fail the task."""

_SERVE: Final = 0.1
_ANY_PARTITION: Final = -1
_NO_TIMESTAMP: Final = -1
_NOW: Final = 0
_AT_ONCE: Final = 1000
_NEW_PARTITION: Final = 3.0
"""Seconds that a partition is waited for which a topic seems to lack."""
_BATCH_BYTES: Final = 64
_RECORD_BYTES: Final = 36
_HEADER_BYTES: Final = 10
"""What Kafka's format adds at most to the bytes of a batch, a record and a header."""


class Delivery:
    """Sends encoded batches with a producer. Used only by the task's thread, which also runs the callbacks.

    If ``limits`` knows how much a topic accepts at once, no more than that is in flight to it, unless a single record
    is larger: the topic then accepts whatever batches the producer makes, or refuses that record alone. Otherwise, with
    ``resends``, a record that a broker refused together with others is sent again alone, after what was in flight; this
    is impossible in a transaction, which the first refusal spoils. ``keeps_order`` says whether the producer writes and
    reports the records of a partition in the order in which they were sent, whatever happens.
    """

    def __init__(
        self,
        producer: RecordProducer,
        on_failure: ProduceFailure,
        is_stopping: Callable[[], bool],
        limits: TopicLimits,
        sent: SentRecords,
        *,
        resends: bool = True,
        keeps_order: bool = False,
    ) -> None:
        self._producer = producer
        self._on_failure = on_failure
        self._is_stopping = is_stopping
        self._limits = limits
        self._sent = sent
        self._resends = resends
        self._keeps_order = keeps_order
        self._refused: deque[Refusal] = deque()
        self._unflushed: dict[str, int] = {}
        self._patience: dict[str, float] = {}

    def send(self, batch: EncodedBatch, submission: Submission) -> None:
        """Send all records of a batch, or of a part of it; acknowledgements decrement ``submission.remaining``.

        Waits while the producer's queue is full. If the task must stop meanwhile, raises :class:`StopRequested`, and
        the rest of the batch is not sent. Raises what the failure callback raises.
        """
        if not isinstance(batch.topic, str) or not batch.topic:
            raise ConnectError(
                f"A record has the invalid topic name {batch.topic!r}: make the source, or the transformation that "
                "sets it, use a valid name."
            )
        most = self._limits.of(batch.topic)
        timestamps = _client_timestamps(batch.timestamps)
        outcomes = BatchOutcomes(batch, timestamps, submission, self._refused)
        callbacks = outcomes.callbacks(in_order=self._keeps_order and _is_for_one_partition(batch))
        produce = self._producer.produce if _least(timestamps) >= 0 else self._produce_if_valid
        rows, first = _arguments(batch, timestamps, callbacks), 0
        while some := list(islice(rows, _AT_ONCE if most is None else 1)):
            if most is not None:
                self._make_room(raw_record(*some[0]), most)
            self._send_some(some, first, produce, outcomes, submission)
            first += len(some)
        self.serve()

    def serve(self, seconds: float = 0.0) -> None:
        """Run the callbacks of acknowledged and refused records, waiting up to this many seconds for the first."""
        self._producer.poll(seconds)
        self._raise_refused()

    def flush(self, seconds: float) -> bool:
        """Wait until everything sent is acknowledged or refused. Return whether that happened in time."""
        left = self._producer.flush(seconds)
        self._raise_refused()
        return not left

    def forget(self) -> None:
        """Forget refused records: their transaction is aborted, and with it everything sent in it."""
        self._refused.clear()
        self._sent.discard()

    def _send_some(
        self,
        rows: Sequence[tuple[Any, ...]],
        first: int,
        produce: Callable[..., Any],
        outcomes: BatchOutcomes,
        submission: Submission,
    ) -> None:
        """Send the records of a batch from the index ``first`` that have these arguments."""
        left = iter(rows)
        while True:
            try:
                # All of them, without a step of Python's for each.
                deque(starmap(produce, left), maxlen=0)
            except (BufferError, KafkaException) as error:
                place = len(rows) - length_hint(left) - 1
                refusal = self._produce_again(rows[place], error)
                if refusal is not None:
                    outcomes.not_sent(first + place)
                    self._refused.append(Refusal(submission, raw_record(*rows[place]), refusal, sent=False))
            else:
                return

    def _produce_again(self, arguments: tuple[Any, ...], error: Exception) -> KafkaError | None:
        """Produce a record that the client rejected at first, if possible; return the error if not."""
        try:
            if isinstance(error, BufferError):
                self._produce_later(arguments)
                return None
        except KafkaException as later:
            error = later
        refusal: KafkaError = error.args[0]
        return None if _lacks_partition(refusal) and self._produce_to_new(arguments) else refusal

    def _make_room(self, record: RawRecord, most: int) -> None:
        topic, size = record.topic, _size(record)
        if self._unflushed.get(topic, _BATCH_BYTES) + size > most:
            self._flush_or_stop()
            self._unflushed.clear()
        self._unflushed[topic] = self._unflushed.get(topic, _BATCH_BYTES) + size

    def _produce_later(self, arguments: tuple[Any, ...]) -> None:
        while True:
            self.serve(_SERVE)
            if self._is_stopping():
                raise StopRequested
            try:
                self._producer.produce(*arguments)
            except BufferError:
                continue
            return

    def _produce_to_new(self, arguments: tuple[Any, ...]) -> bool:
        """Produce to a partition added since the client last asked for metadata. Return whether that succeeded.

        Java's producer waits for it too; here that is not repeated for every record of a topic without the partition.
        """
        topic = arguments[0]
        deadline = time.monotonic() + self._patience.get(topic, _NEW_PARTITION)
        while True:
            # That the brokers do not answer is seen by the records that are under way.
            with suppress(KafkaException):
                self._producer.list_topics(topic, timeout=_NEW_PARTITION)
            try:
                self._produce_later(arguments)
            except KafkaException as error:
                if not _lacks_partition(error.args[0]):
                    return False
            else:
                self._patience.pop(topic, None)
                return True
            if time.monotonic() >= deadline:
                self._patience[topic] = 0.0
                return False

    def _produce_if_valid(self, *arguments: Any) -> None:
        """Like Java's producer, refuse records from before 1970, which librdkafka and the brokers would accept."""
        *_, timestamp, _ = arguments
        if timestamp < 0:
            raise KafkaException(KafkaError(KafkaError.INVALID_TIMESTAMP, f"Invalid record timestamp {timestamp}"))
        self._producer.produce(*arguments)

    def _raise_refused(self) -> None:
        while self._refused:
            refusal: Refusal | None = self._refused.popleft()
            assert refusal is not None
            submission = refusal.submission
            if refusal.error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                self._limits.forget(refusal.record.topic)
            if self._resends and refusal.may_be_of_another:
                refusal = self._send_alone(refusal)
            if refusal is not None:
                self._on_failure(refusal)
                self._sent.give_up()
            # It may be left out, so its offset may be passed; until here it held it back (invariant I1).
            submission.remaining -= 1

    def _send_alone(self, refusal: Refusal) -> Refusal | None:
        """Send a record again when nothing else is in flight, because brokers refuse whole batches for one record.

        If it is at fault itself, it is refused again.
        """
        record = refusal.record
        outcome: list[KafkaError | None] = []
        self._flush_or_stop()
        self._producer.produce(
            record.topic,
            record.value,
            record.key,
            record.partition,
            headers=list(record.headers),
            timestamp=client_timestamp(record.timestamp),
            on_delivery=lambda error, _: outcome.append(error),
        )
        self._flush_or_stop()
        return None if outcome[0] is None else replace(refusal, error=outcome[0])

    def _flush_or_stop(self) -> None:
        while self._producer.flush(_SERVE):
            if self._is_stopping():
                raise StopRequested


def _lacks_partition(error: KafkaError) -> bool:
    return bool(error.code() == KafkaError._UNKNOWN_PARTITION)


def client_timestamp(timestamp: int | None) -> int:
    """Return the timestamp of a record for the client, to which 0 means now.

    As in Java, -1 means no timestamp. The first millisecond of 1970 cannot be expressed and becomes the second.
    """
    if timestamp is None or timestamp == _NO_TIMESTAMP:
        return _NOW
    return timestamp or 1


def _arguments(
    batch: EncodedBatch, timestamps: Sequence[int], callbacks: Iterable[Delivered]
) -> Iterator[tuple[Any, ...]]:
    """Return the positional arguments of ``Producer.produce``, one tuple per record."""
    topics = repeat(batch.topic)
    partitions = _given(batch.partitions, _ANY_PARTITION)
    no_headers = _is_null(batch.headers)
    if no_headers and isinstance(timestamps, Constant) and timestamps.value == _NOW:
        return zip(topics, batch.values, batch.keys, partitions, callbacks, strict=False)
    headers = repeat(None) if no_headers else [None if item is None else list(item) for item in batch.headers]
    return zip(topics, batch.values, batch.keys, partitions, callbacks, repeat(None), timestamps, headers, strict=False)


def _client_timestamps(column: Sequence[int | None]) -> Sequence[int]:
    """Convert a column as :func:`client_timestamp` does; if all values are equal, only one is looked at."""
    if isinstance(column, Constant):
        return Constant(client_timestamp(column.value), len(column))
    given: list[Any] = list(column)
    if None not in given and min(given, default=1) > 0:
        return given
    return list(map(client_timestamp, given))


def _least(timestamps: Sequence[int]) -> int:
    return timestamps.value if isinstance(timestamps, Constant) else min(timestamps, default=_NOW)


def _is_for_one_partition(batch: EncodedBatch) -> bool:
    return isinstance(batch.partitions, Constant) and batch.partitions.value is not None


def _given(column: Sequence[int | None], otherwise: int) -> Iterable[int]:
    """Return the column with another value for null; if all values are equal, only one is looked at."""
    if isinstance(column, Constant):
        return repeat(otherwise if column.value is None else column.value)
    return (otherwise if item is None else item for item in column)


def _is_null(column: Iterable[Any]) -> bool:
    return isinstance(column, Constant) and column.value is None


def _size(record: RawRecord) -> int:
    """Return the maximum number of bytes that a record takes in a batch."""
    headers = sum(_HEADER_BYTES + 4 * len(name) + len(content or b"") for name, content in record.headers)
    return _RECORD_BYTES + len(record.key or b"") + len(record.value or b"") + headers


PRODUCER_FAILURES: Final = (KafkaException, SystemError)
"""The errors that calls of a producer raise: a ``SystemError`` if a callback runs while a fatal error is raised."""


def kafka_error(error: BaseException) -> KafkaError:
    """Return the client's ``KafkaError`` inside this error; raise the error again if there is none."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KafkaException):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        raise error
    refusal: KafkaError = cause.args[0]
    return refusal
