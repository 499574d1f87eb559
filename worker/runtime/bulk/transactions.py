"""The transactions of a bulk source (KIP-618): those of its task, and the slots of the processes of its engine.

The task has the transactional id of task 0, and slot ``n`` that of task ``n``. So the leader fences them too, if the
connector ran in a worker's tasks before. A claim records the number of slots: the next process of the task, which may
have fewer, fences all of them.

==========================================  ========================================================================
kill -9 here                                then
==========================================  ========================================================================
before the claim is committed               nothing has changed; the processes of the former task are fenced by the
                                            next one
after it, before all slots are fenced       the same: processes that have begun may still commit, and nobody has read
                                            offsets yet
after the slots are fenced                  the same; there was nothing under way
==========================================  ========================================================================
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, Message

from connect.bulk_source import Claim, TransactionOrders
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.tolerance import StopRequested
from connect.internals.delivery.delivery import PRODUCER_FAILURES, kafka_error
from connect.internals.delivery.stored_offsets import offset_key, offset_value
from connect.internals.kafka.settings.client import ClientProperties
from worker.kafka.clients import roles
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients
from worker.runtime.control import Control
from worker.runtime.offsets.topic import TopicOffsetReader, TopicOffsetWriter
from worker.runtime.source.fencing import confirm_ownership, fence
from worker.runtime.source.producer import TransactionalProducer

__all__ = ["BulkSourceTransactions"]

_NOBODY: Final = ""
"""The name under which claims are written. It is not a connector's, so claims are nobody's offsets."""
_SERVE_SECONDS: Final = 0.1
_SLOTS: Final = "slots"


class BulkSourceTransactions:
    """Runs the transactions of one bulk source task; see :class:`connect.bulk_source.BulkTransactions`.

    When this is made, a former process of the task is fenced. Raises
    :class:`~connect.internals.chain.tolerance.StopRequested` if the task is to stop. Used by the task's thread alone.
    """

    def __init__(self, assembly: Assembly, control: Control, clients: Clients) -> None:
        self._assembly = assembly
        self._control = control
        self._name = assembly.config.name
        self._topic = assembly.transaction_offsets_topic
        self._partition = {"claims": self._name}
        self._producer, self._timeout = clients.transactional_producer()
        self._transactions = TransactionalProducer(
            self._producer,
            f"{self._name}-0",
            transactional_id=clients.transactional_id,
            timeout=self._timeout,
            patience=assembly.worker.offset_flush_timeout_ms / 1000,
            is_stopping=control.is_stopping,
        )
        self._transactions.start()
        confirm_ownership(control)
        self._writer = TopicOffsetWriter(self._topic, self._name, self._producer)
        self._slots: int | None = None
        self._stop_at: float | None = None

    def end_lost(self, partitions: Sequence[int]) -> None:
        """End transactions of the task that are still open in these partitions of the offsets topic."""
        self._transactions.end_lost(self._topic, partitions)

    def claim(self, slots: int) -> Claim:
        """Write a claim, and fence all current and former slots."""
        if self._slots is None:
            self._slots = self._former_slots()
        self._slots = max(self._slots, slots)
        key = offset_key(_NOBODY, self._partition)
        written: list[tuple[KafkaError | None, int | None, int | None]] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            written.append((error, message.partition(), message.offset()))

        def write() -> None:
            value = offset_value({_SLOTS: self._slots})
            self._producer.produce(self._topic, value=value, key=key, on_delivery=delivered)
            while not written:
                self._wait()
            if (error := written[0][0]) is not None:
                raise self._transactions.failure(error)

        self._run(write)
        fence((f"slot {slot} of connector {self._name}", self._properties(slot)) for slot in range(1, self._slots + 1))
        _, partition, offset = written[0]
        return Claim(key, self._topic, partition or 0, (offset or 0) + 1)

    def orders(self, claim: Claim, slot: int) -> TransactionOrders:
        """Return the settings of a slot's producer, and of its consumer, which looks for newer claims."""
        worker, props = self._assembly.worker_props, self._assembly.props
        consumer = roles.source_offsets_consumer_properties(worker, props, slot)
        producer = dict(self._properties(slot).properties)
        return TransactionOrders(self._name, claim, producer, dict(consumer.properties), self._timeout)

    def commit(self, pairs: messages.OffsetPairs) -> None:
        """Commit offsets in a transaction of the task itself."""

        def write() -> None:
            self._writer.begin(pairs)
            while (outcome := self._writer.outcome()) is None:
                self._wait()
            if outcome.error is not None:
                raise ConnectError(f"The source offsets could not be committed: {outcome.error}.")

        self._run(write)

    def _run(self, write: Callable[[], Any]) -> None:
        """Run a transaction."""
        try:
            self._transactions.begin()
            write()
            self._transactions.commit()
        except StopRequested as stop:
            self._transactions.give_up()
            raise RetriableError("The offsets were not committed, because the task stops.") from stop
        except PRODUCER_FAILURES as error:
            raise self._transactions.failure(kafka_error(error)) from error
        except ConnectError:
            self._transactions.give_up()
            raise

    def _wait(self) -> None:
        self._producer.poll(_SERVE_SECONDS)
        if self._control.is_stopping():
            self._stop_at = self._stop_at or time.monotonic() + self._transactions.patience
            if time.monotonic() >= self._stop_at:
                raise StopRequested

    def _properties(self, slot: int) -> ClientProperties:
        worker, props = self._assembly.worker_props, self._assembly.props
        return roles.source_producer_properties(worker, props, slot, exactly_once=True)

    def _former_slots(self) -> int:
        """Return the number of slots of the last claim."""
        worker, props = self._assembly.worker_props, self._assembly.props
        consumer = roles.source_offsets_consumer_properties(worker, props, 0, exactly_once=True)
        producer = roles.source_producer_properties(worker, props, 0)
        reader = TopicOffsetReader(self._topic, _NOBODY, consumer, producer, self.end_lost)
        try:
            found = reader.offset(self._partition)
        finally:
            reader.close()
        return int((found or {}).get(_SLOTS, 0))
