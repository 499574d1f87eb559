"""Sending records to Kafka, and hearing what became of each.

Every record carries its callback: a callback on the last of a batch alone would miss a record in its middle that the
broker refuses. The producer's queue is bounded (``buffer.memory``); when it is full, sending waits (invariant I9).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Producer

from connect.data import Constant
from worker.runtime.records import EncodedBatch
from worker.runtime.submitted import Submission
from worker.runtime.tolerance import StopRequested

__all__ = ["Delivery", "ProduceFailure"]

ProduceFailure: TypeAlias = Callable[[str, KafkaError, bool], None]
"""Called with the topic and the error of a record that Kafka did not take, and whether it had been sent; raises to
fail the task."""

_SERVE: Final = 0.1
_ANY_PARTITION: Final = -1
_NOW: Final = 0


@dataclass(frozen=True, slots=True)
class _Refused:
    submission: Submission
    topic: str
    error: KafkaError
    message: Any = None
    """The record as it was sent, if a broker refused it."""


class Delivery:
    """Sends encoded batches with a producer. Used by the task's thread alone, which also runs the callbacks.

    With ``resends`` a record that a broker refused together with others is sent again alone: not in a transaction,
    which is spoiled by the first that is refused.
    """

    def __init__(
        self,
        producer: Producer,
        on_failure: ProduceFailure,
        is_stopping: Callable[[], bool],
        *,
        resends: bool = True,
    ) -> None:
        self._producer = producer
        self._on_failure = on_failure
        self._is_stopping = is_stopping
        self._resends = resends
        self._refused: deque[_Refused] = deque()

    def send(self, batch: EncodedBatch, submission: Submission) -> None:
        """Send every record of a batch; their acknowledgements count down ``submission.remaining``.

        Waits while the producer's queue is full; if the task is to stop meanwhile, raises :class:`StopRequested`, and
        the rest of the batch is not sent. Raises what the failure callback raises.
        """
        produce, delivered = self._producer.produce, self._callback(submission)
        for arguments in _arguments(batch, delivered):
            try:
                produce(*arguments)
            except BufferError:
                self._produce_later(submission, arguments)
            except KafkaException as error:
                self._refused.append(_Refused(submission, batch.topic, error.args[0]))
        self.serve()

    def serve(self, seconds: float = 0.0) -> None:
        """Run the callbacks of records that were acknowledged or refused, waiting so long for the first."""
        self._producer.poll(seconds)
        self._raise_refused()

    def flush(self, seconds: float) -> bool:
        """Wait until everything sent is acknowledged or refused; whether that came about in time."""
        left = self._producer.flush(seconds)
        self._raise_refused()
        return not left

    def forget(self) -> None:
        """Forget what was refused: its transaction is aborted, and so is everything that was sent in it."""
        self._refused.clear()

    def _produce_later(self, submission: Submission, arguments: tuple[Any, ...]) -> None:
        while True:
            self.serve(_SERVE)
            if self._is_stopping():
                raise StopRequested
            try:
                self._producer.produce(*arguments)
            except BufferError:
                continue
            except KafkaException as error:
                self._refused.append(_Refused(submission, arguments[0], error.args[0]))
            return

    def _callback(self, submission: Submission) -> Callable[[KafkaError | None, Any], None]:
        refused = self._refused

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                submission.remaining -= 1
            else:
                refused.append(_Refused(submission, message.topic(), error, message))

        return delivered

    def _raise_refused(self) -> None:
        while self._refused:
            refused = self._refused.popleft()
            error: KafkaError | None = refused.error
            sent = refused.message is not None
            if sent and self._resends and refused.error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                error = self._send_alone(refused.message)
            if error is not None:
                self._on_failure(refused.topic, error, sent)
            # It may be left out, so its offset may be passed; until here it held it back (invariant I1).
            refused.submission.remaining -= 1

    def _send_alone(self, message: Any) -> KafkaError | None:
        """Send a record again, when nothing else is under way; a broker refuses whole batches for their size.

        Its error, if it is too large by itself.
        """
        outcome: list[KafkaError | None] = []
        self._flush_or_stop()
        self._producer.produce(
            message.topic(),
            message.value(),
            message.key(),
            message.partition(),
            headers=message.headers() or [],
            timestamp=message.timestamp()[1],
            on_delivery=lambda error, _: outcome.append(error),
        )
        self._flush_or_stop()
        return outcome[0]

    def _flush_or_stop(self) -> None:
        while self._producer.flush(_SERVE):
            if self._is_stopping():
                raise StopRequested


def _arguments(batch: EncodedBatch, delivered: Callable[..., None]) -> Iterator[tuple[Any, ...]]:
    """The positional arguments of ``Producer.produce``, one tuple a record, which is handed over as it is."""
    topics = repeat(batch.topic)
    partitions = _given(batch.partitions, _ANY_PARTITION)
    if all(_is_null(column) for column in (batch.timestamps, batch.headers)):
        return zip(topics, batch.values, batch.keys, partitions, repeat(delivered), strict=False)
    timestamps = _given(batch.timestamps, _NOW)
    no_headers = _is_null(batch.headers)
    headers = repeat(None) if no_headers else (None if item is None else list(item) for item in batch.headers)
    delivery = (repeat(delivered), repeat(None), timestamps, headers)
    return zip(topics, batch.values, batch.keys, partitions, *delivery, strict=False)


def _given(column: Sequence[int | None], otherwise: int) -> Iterable[int]:
    """The column with another value for null; what is the same in all records is looked at once."""
    if isinstance(column, Constant):
        return repeat(otherwise if column.value is None else column.value)
    return (otherwise if item is None else item for item in column)


def _is_null(column: Iterable[Any]) -> bool:
    return isinstance(column, Constant) and column.value is None
