"""The producers of source tasks: one that runs transactions, and one that is closed while there is nothing to send.

A Kafka client costs three threads, some ten files and a few wake-ups a second, whether it is used or not. It is closed
only when the outcome of all that it was given is known, so the only crash points are those of any send: what Kafka has
not acknowledged is read again. The next producer sends after everything is acknowledged, so the order of records is
kept. Producers of transactions stay open: they keep former processes fenced.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, Producer, TopicPartition

from connect.errors import ConnectError
from connect.internals.chain.tolerance import StopRequested
from connect.internals.delivery.delivery import PRODUCER_FAILURES, kafka_error
from connect.internals.kafka.auth.rights import PRODUCER, explained, on_transactional_id
from worker.errors import FencedError
from worker.stores.offset.store import NO_OFFSET_KEY

__all__ = ["RestingProducer", "TransactionalProducer"]

logger = logging.getLogger(__name__)
_SLICE: Final = 0.5
_ABORT_TIMEOUT: Final = 10.0
_PAUSE_SECONDS: Final = 0.05
_FENCED: Final = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)
_TIMED_OUT: Final = frozenset({KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT, KafkaError.REQUEST_TIMED_OUT})
_NOT_AUTHORIZED: Final = frozenset(
    {KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
)


class TransactionalProducer:
    """Runs the transactions of a task's producer. Used by the task's thread alone.

    ``timeout`` is the producer's ``transaction.timeout.ms`` in seconds; ``is_stopping`` says whether the task is to
    stop; from then on a commit that is not through within ``patience`` seconds is left to the broker.
    """

    def __init__(
        self,
        producer: Producer,
        task: str,
        *,
        transactional_id: str,
        timeout: float,
        patience: float,
        is_stopping: Callable[[], bool],
    ) -> None:
        self.is_open = False
        self._producer = producer
        self._failed = False
        self._task = task
        self._transactional_id = transactional_id
        self._timeout = timeout
        self.patience = patience
        self._is_stopping = is_stopping
        self._began = 0.0

    def start(self) -> None:
        """Fence the former process of this task, and end the transaction that it has left (invariant I6).

        When this returns, everything that it has committed can be read, and it can commit nothing more. A task that has
        to stop fences nobody: another process may already run it.
        """
        if self._is_stopping():
            raise StopRequested
        self._call(self._producer.init_transactions)

    def begin(self) -> None:
        """Begin a transaction unless one is open."""
        if self.is_open:
            return
        self._call_once(self._producer.begin_transaction)
        self.is_open = True
        self._began = time.monotonic()

    def send_offsets(self, offsets: Sequence[TopicPartition], group: object) -> None:
        """Add offsets of a consumer group to the transaction; ``group`` is the metadata of its consumer."""
        self._call(lambda timeout: self._producer.send_offsets_to_transaction(list(offsets), group, timeout))

    def commit(self) -> None:
        """Commit the transaction. When this returns all its records can be read, and before that none."""
        self._call(self._producer.commit_transaction)
        self.is_open = False

    def abort(self) -> None:
        """Discard the transaction, if one is open; its records can never be read."""
        if not self.is_open:
            return
        self._call(self._producer.abort_transaction)
        self.is_open = False

    def end_lost(self, topic: str, partitions: Iterable[int]) -> None:
        """End transactions of this task that are still open in these partitions, though Kafka considers them ended.

        A broker that is killed may have decided a transaction without writing so to a topic, which then can never be
        read to its end. The next transaction of the same producer ends it: one record, which belongs to no connector.
        """
        if self.is_open:
            return
        self.begin()
        for partition in partitions:
            self._call_once(partial(self._producer.produce, topic, key=NO_OFFSET_KEY, value=None, partition=partition))
        self.commit()

    def give_up(self) -> None:
        """Discard the transaction after a failure; if the producer cannot, the broker will."""
        if not self.is_open or self._failed:
            return
        self.is_open = False
        try:
            self._producer.abort_transaction(_ABORT_TIMEOUT)
        except PRODUCER_FAILURES as error:
            logger.warning(
                "The transaction could not be aborted, so that Kafka will abort it: %s", kafka_error(error).str()
            )

    def failure(self, error: KafkaError) -> ConnectError:
        """Return the error of the task for an ``error`` of the producer."""
        cause = self._cause(error)
        self._failed = self._failed or cause.fatal()
        code, lasted = cause.code(), time.monotonic() - self._began
        if code in _TIMED_OUT or (code in _FENCED and self.is_open and lasted >= self._timeout):
            return ConnectError(
                f"The task {self._task} was unable to finish writing records to Kafka before its producer transaction "
                f"expired ({cause.str()}). Raise producer.override.transaction.timeout.ms, now "
                f"{self._timeout * 1000:.0f}; or let transactions be smaller: lower transaction.boundary.interval.ms, "
                "or set transaction.boundary=poll."
            )
        if code in _FENCED:
            return FencedError(
                f"The producer of task {self._task} was fenced: another process runs this task now, and this one can "
                f"write nothing any more ({cause.str()}). If no other does, restart the task."
            )
        if code in _NOT_AUTHORIZED:
            reason = explained(cause, PRODUCER, on_transactional_id(self._transactional_id, "Write"))
            return ConnectError(
                f"The producer of task {self._task} may not use its transactional id {self._transactional_id}: {reason}"
            )
        return ConnectError(
            f"The transaction of task {self._task} has failed and is aborted: {cause.str()}. Its records are read "
            "again when the task is restarted."
        )

    def _cause(self, error: KafkaError) -> KafkaError:
        """Return the reason of a permanent failure of the producer, which later calls do not repeat."""
        try:
            self._producer.poll(0)
        except PRODUCER_FAILURES as fatal:
            return kafka_error(fatal)
        return error

    def _call(self, call: Callable[[float], Any]) -> None:
        """Repeat a call while it may still succeed."""
        patience: float | None = None
        while True:
            try:
                call(_SLICE)
            except PRODUCER_FAILURES as error:
                cause = kafka_error(error)
                if not cause.retriable():
                    raise self.failure(cause) from error
                now = time.monotonic()
                if self._is_stopping():
                    patience = now + self.patience if patience is None else patience
                    if now >= patience:
                        raise StopRequested from error
                # Only here does the client report that its login was refused.
                self._producer.poll(0 if cause.code() in _TIMED_OUT else _PAUSE_SECONDS)
            else:
                return

    def _call_once(self, call: Callable[[], Any]) -> None:
        try:
            call()
        except PRODUCER_FAILURES as error:
            raise self.failure(kafka_error(error)) from error


class RestingProducer:
    """A producer that can be closed for a rest. Used by the task's thread alone.

    It is made at the start, so that a refused login fails the task before the first record.
    """

    def __init__(self, make: Callable[[], Producer], on_rest: Callable[[], None] = lambda: None) -> None:
        self._make = make
        self._on_rest = on_rest
        self._producer: Producer | None = make()

    @property
    def produce(self) -> Callable[..., Any]:
        """See ``Producer.produce``. Several records in a row may use one reference to it."""
        if self._producer is None:
            self._producer = self._make()
        return self._producer.produce

    def poll(self, seconds: float = 0.0) -> int:
        """See ``Producer.poll``. While it rests this only waits."""
        if self._producer is not None:
            return self._producer.poll(seconds)
        if seconds:
            time.sleep(seconds)
        return 0

    def flush(self, seconds: float = -1.0) -> int:
        """See ``Producer.flush``."""
        return 0 if self._producer is None else self._producer.flush(seconds)

    def list_topics(self, topic: str, /, *, timeout: float) -> Any:
        """See ``Producer.list_topics``. ``None`` while it rests."""
        return None if self._producer is None else self._producer.list_topics(topic, timeout=timeout)

    def rest(self) -> None:
        """Close the client until there is something to send, unless the outcome of some records is unknown."""
        if self._producer is None or len(self._producer):
            return
        self._producer.close()
        self._producer = None
        self._on_rest()
