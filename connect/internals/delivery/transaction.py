"""Transactions of processes outside the worker: records and source offsets that are committed together or not at all.

Several processes write for one connector, each with a transactional id of its own, a *slot*. The driver, which divides
the work among them, first *claims* the connector by writing a record to the offsets topic. It then takes over every
slot for a moment, which fences the previous owners, and only then reads offsets. A process does the reverse: it takes
over its slot, and then checks whether there is a claim newer than that of its own driver.

==========================================  ========================================================================
a process that was forgotten somewhere      then
==========================================  ========================================================================
has taken over its slot before the driver   it is fenced: what it has committed the driver finds, and nothing follows
did
takes over its slot after the driver did    it sees the newer claim, and sends nothing. A process of the newer driver
                                            that had the slot is fenced, and its work is done again
==========================================  ========================================================================

So nothing is committed without the knowledge of a driver that has read offsets (invariant I6), however long a process
was frozen or cut off. If a process is killed before its commit, nothing of its transaction can be read; if after, all
of it can, including the offsets.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from connect.bulk_source import ReachedOffsets, TransactionOrders
from connect.errors import ConnectError
from connect.internals.crash import crash_point
from connect.internals.delivery.stored_offsets import offset_key, offset_value

__all__ = ["SupersededError", "Transaction"]

_SLICE: Final = 0.5
_FENCED: Final = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
_TIMED_OUT: Final = frozenset({KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT, KafkaError.REQUEST_TIMED_OUT})
_PASSING: Final = frozenset(
    (KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE, KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
)
_PAUSE_SECONDS: Final = 0.05
_FAILURES: Final = (KafkaException, SystemError)
"""What calls of a producer raise: a ``SystemError`` if a callback runs while it tells of a fatal error."""


class SupersededError(Exception):
    """Another process has taken over, or this one began too late: it sends nothing, and its work is planned again."""


class Transaction:
    """A single transaction of a producer made with the settings of ``orders``. Used by one thread."""

    def __init__(self, orders: TransactionOrders, producer: Producer) -> None:
        self._orders = orders
        self._producer = producer
        self._began = 0.0
        self.checked = orders.claim.offset
        """Up to where the offsets topic has no newer claim."""
        self.is_open = False

    def begin(self, *, checks_only: bool = False) -> None:
        """Take over the slot and begin, or raise :class:`SupersededError` if there is a newer claim.

        ``checks_only`` ends what another process began with the slot, and raises that error in any case.
        """
        self._call(self._producer.init_transactions)
        if checks_only or self._is_superseded():
            raise SupersededError
        self._call(lambda _: self._producer.begin_transaction())
        self._began = time.monotonic()
        self.is_open = True

    def commit(self, offsets: ReachedOffsets) -> None:
        """Commit what was sent together with these offsets. When this returns, all of it can be read."""
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Any) -> None:
            if error is not None:
                errors.append(error)

        try:
            for partition, offset in offsets:
                self._produce(offset_key(self._orders.connector, partition), offset_value(offset), delivered)
            while self._producer.flush(_SLICE):
                pass
        except _FAILURES as error:
            raise self.failed(error) from error
        if errors:
            raise self.failure(errors[0])
        crash_point("transaction-before-commit")
        self._call(self._producer.commit_transaction)
        self.is_open = False
        crash_point("transaction-committed")

    def abort(self) -> None:
        """Abort the transaction, if the producer still can; otherwise the next owner of the slot does."""
        if self.is_open:
            self.is_open = False
            try:
                self._producer.abort_transaction(_SLICE)
            except _FAILURES:
                return

    def failure(self, error: KafkaError) -> Exception:
        """Return the error to raise for a producer's ``error``."""
        timeout, code = self._orders.timeout, error.code()
        if (self.is_open and time.monotonic() - self._began >= timeout) or code in _TIMED_OUT:
            return ConnectError(
                f"A transaction of connector {self._orders.connector} was not ended before it expired ({error.str()}): "
                f"raise producer.override.transaction.timeout.ms, now {timeout * 1000:.0f}, or have less in one."
            )
        if code in _FENCED:
            return SupersededError()
        return ConnectError(f"A transaction of connector {self._orders.connector} has failed: {error.str()}")

    def failed(self, error: Exception) -> Exception:
        """Return the error that one which a call of the producer raised stands for."""
        cause = _cause(error)
        return ConnectError(f"The producer has failed: {error}") if cause is None else self.failure(cause)

    def _produce(self, key: bytes, value: bytes | None, delivered: Callable[[KafkaError | None, Any], None]) -> None:
        while True:
            try:
                self._producer.produce(self._orders.claim.topic, value=value, key=key, on_delivery=delivered)
            except BufferError:
                self._producer.poll(_SLICE)
            else:
                return

    def _is_superseded(self) -> bool:
        """Return whether there is a newer claim, committed or not: its writer is to have what was committed
        before it.
        """
        claim = self._orders.claim
        consumer = Consumer(
            {
                **self._orders.consumer,
                "isolation.level": "read_uncommitted",
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 10,
            }
        )
        try:
            consumer.assign([TopicPartition(claim.topic, claim.partition, claim.offset)])
            while True:
                message = consumer.poll(_SLICE)
                if message is None:
                    continue
                error = message.error()
                if error is None and message.key() == claim.key:
                    return True
                if error is None:
                    self.checked = (message.offset() or 0) + 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    return False
                elif not error.retriable() and error.code() not in _PASSING:
                    raise ConnectError(f"Topic {claim.topic} cannot be read by a Spark process: {error.str()}")
        finally:
            consumer.close()

    def _call(self, call: Callable[[float], Any]) -> None:
        """Repeat a call while it may still succeed."""
        while True:
            try:
                call(_SLICE)
            except _FAILURES as error:
                cause = _cause(error)
                if cause is None or not cause.retriable():
                    raise self.failed(error) from error
                self._producer.poll(_PAUSE_SECONDS)
            else:
                return


def _cause(error: BaseException) -> KafkaError | None:
    """Return the client's error within this one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KafkaException):
        cause = cause.__cause__ or cause.__context__
    return None if cause is None else cause.args[0]
