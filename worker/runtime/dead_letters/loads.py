"""The dead letters of a bulk sink's loads; if a load is repeated, they are still written only once.

A bulk sink leaves out records while it loads a range, and commits the range in its target only after that. After a kill
between the two, the load is repeated with the same bad records. So they are written in Kafka transactions, which also
move a position for each partition of their topic: up to where the bad records of a load are written.

==========================================  ========================================================================
kill -9 here                                then
==========================================  ========================================================================
while dead letters are sent                 the transaction is aborted, and its records are never read; the load is
                                            repeated and writes them
after a transaction, before the last one    the position tells which are written; the repeated load writes the others
after the last, before the target's commit  the position tells that all are written; the repeated load writes none
after the target's commit                   the position is behind the loaded records, and has no effect
==========================================  ========================================================================

The position also identifies the bad records by a digest of their offsets. If a repeated load finds other bad records,
because the configuration was changed in between, it writes all of them: then a record may be in the queue twice, but is
never missing (invariant I4). A process that is still running after another one took the task over is fenced by the
transactional id.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from connect.data import TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.tolerance import ErrorCounts, Failure, StopRequested
from connect.internals.crash import crash_point
from connect.internals.delivery.delivery import kafka_error
from connect.internals.kafka.auth.rights import PRODUCER, explained, is_denial, on_group, on_topic, on_transactional_id
from connect.offset_set import OffsetSet
from worker.errors import FencedError
from worker.kafka.clients.roles import dlq_group_id
from worker.runtime.clients import Clients
from worker.runtime.dead_letters.queue import DeadLetterQueue, ErrorHeaders
from worker.runtime.source.producer import TransactionalProducer

__all__ = ["LoadDeadLetters", "OffsetDigest", "Position", "not_written"]

logger = logging.getLogger(__name__)
_TIMEOUT_SECONDS: Final = 60.0
_MOST_RECORDS: Final = 5_000
_LONGEST_SECONDS: Final = 10.0


class OffsetDigest:
    """A digest of offsets in order."""

    def __init__(self, offsets: Iterable[int] = ()) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        for offset in offsets:
            self.add(offset)

    def add(self, offset: int) -> None:
        """Add an offset."""
        self._hash.update(offset.to_bytes(8, "big"))

    def __str__(self) -> str:
        return self._hash.hexdigest()


@dataclass(frozen=True, slots=True)
class Position:
    """The bad records of a partition that are written: those from ``first`` on and before ``end``."""

    first: int
    end: int
    digest: str

    @property
    def metadata(self) -> str:
        """Its form as metadata of the committed offset ``end``."""
        return f"{self.first}:{self.digest}"

    @classmethod
    def read(cls, offset: int, metadata: str | None) -> Position | None:
        """Return the inverse; ``None`` if the metadata is not of this form."""
        first, _, digest = (metadata or "").partition(":")
        return cls(int(first), offset, digest) if first.isdecimal() and offset >= 0 else None


def not_written(bad: OffsetSet, position: Position | None) -> OffsetSet:
    """Return the bad records of a load that are not in the queue yet, by the position of their partition."""
    least = next(iter(bad), 0)
    if position is None or not position.first <= least < position.end:
        return bad
    written = bad.between(position.first, position.end)
    return bad.between(position.end, 2**63 - 1) if str(OffsetDigest(written)) == position.digest else bad


class LoadDeadLetters:
    """Writes the dead letters of a bulk sink's loads to ``topic``: a ``connect.internals.chain.tolerance.Reporter``.

    Its producer is made for the first of them. Used by the task's thread alone.
    """

    def __init__(
        self,
        clients: Clients,
        topic: str,
        headers: ErrorHeaders | None,
        connector: str,
        is_stopping: Callable[[], bool],
        counts: ErrorCounts | None = None,
    ) -> None:
        self._clients = clients
        self._counts = counts
        self._topic = topic
        self._headers = headers
        self._connector = connector
        self._is_stopping = is_stopping
        self._writer: _Writer | None = None

    def begin(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Position]:
        """Begin a load. Return the positions of its partitions, where there are any; nobody else can move them now."""
        positions: dict[TopicPartition, Position] = self._try(lambda writer: writer.positions(list(partitions)))
        return positions

    def report(self, failure: Failure) -> None:
        """Send one record, in the transaction that is open or in a new one."""
        self._try(lambda writer: writer.send(failure))

    @property
    def is_open(self) -> bool:
        """Whether there are uncommitted records."""
        return self._writer is not None and self._writer.is_open

    @property
    def is_due(self) -> bool:
        """Whether to commit the transaction now, before it becomes too large or too old."""
        return self._writer is not None and self._writer.is_due

    def commit(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Commit the records, if there are any, together with the positions."""
        if not self.is_open:
            return
        crash_point("before-dead-letters")
        self._try(lambda writer: writer.commit(positions))
        crash_point("after-dead-letters")

    def flush(self) -> None:
        """Drop uncommitted records: their load was given up, and will send them again."""
        if self._writer is not None:
            self._writer.give_up()

    def close(self) -> None:
        """Release the clients."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _try(self, act: Callable[[_Writer], Any]) -> Any:
        """Call the writer. A writer that fails is discarded, so that the repeated load gets a new one."""
        try:
            if self._writer is None:
                self._writer = _Writer(
                    self._clients, self._topic, self._headers, self._connector, self._is_stopping, self._counts
                )
            return act(self._writer)
        except KafkaException as error:
            self._abandon()
            if is_denial(error.args[0].code()):
                raise ConnectError(
                    f"The dead letter queue {self._topic} cannot be used: {self._explained(error.args[0])}"
                ) from error
            raise RetriableError(f"The dead letter queue {self._topic} failed: {error.args[0].str()}") from error
        except StopRequested as error:
            self._abandon()
            raise RetriableError(
                "The load was given up because the task stops; it will be repeated when the task starts."
            ) from error
        except FencedError as error:
            self._abandon()
            raise RetriableError(
                f"Another process writes the dead letters of connector {self._connector} to {self._topic} now; whether "
                "it has taken over, the target will tell."
            ) from error
        except ConnectError as error:
            self._abandon()
            if not isinstance(error.__cause__, KafkaException):
                raise
            raise ConnectError(
                f"The dead letter queue {self._topic} cannot be written: {self._explained(kafka_error(error))}. "
                "Nothing of the load is committed."
            ) from error

    def _explained(self, error: KafkaError) -> str:
        own = dlq_group_id(self._connector)
        rights = (on_topic(self._topic, "Write"), on_transactional_id(own, "Write"), on_group(own, "Read"))
        return explained(error, f"{PRODUCER}, and the consumer's,", *rights)

    def _abandon(self) -> None:
        if self._writer is not None:
            self._writer.give_up()
        self.close()


class _Writer:
    """A transactional producer for the queue, and the group that stores the positions."""

    def __init__(
        self,
        clients: Clients,
        topic: str,
        headers: ErrorHeaders | None,
        connector: str,
        is_stopping: Callable[[], bool],
        counts: ErrorCounts | None,
    ) -> None:
        self._producer, timeout = clients.transactional_dlq_producer()
        self._queue = DeadLetterQueue(self._producer, topic, headers, counts)
        self._transactions = TransactionalProducer(
            self._producer,
            connector,
            transactional_id=dlq_group_id(connector),
            timeout=timeout,
            patience=_TIMEOUT_SECONDS,
            is_stopping=is_stopping,
        )
        self._longest = min(_LONGEST_SECONDS, timeout / 2)
        self._count = 0
        self._began = 0.0
        self._transactions.start()
        self._consumer = clients.dlq_consumer()

    def positions(self, partitions: list[TopicPartition]) -> dict[TopicPartition, Position]:
        self.give_up()  # what an abandoned load has left
        asked = [confluent_kafka.TopicPartition(*tp) for tp in partitions]
        found: dict[TopicPartition, Position] = {}
        for item in self._consumer.committed(asked, timeout=_TIMEOUT_SECONDS):
            if item.error is not None:
                raise KafkaException(item.error)
            position = Position.read(item.offset, item.metadata)
            if position is not None:
                found[TopicPartition(item.topic, item.partition)] = position
        return found

    def send(self, failure: Failure) -> None:
        if not self._transactions.is_open:
            self._transactions.begin()
            self._count, self._began = 0, time.monotonic()
        self._queue.report(failure)
        self._count += 1

    @property
    def is_open(self) -> bool:
        return self._transactions.is_open

    @property
    def is_due(self) -> bool:
        return self.is_open and (self._count >= _MOST_RECORDS or time.monotonic() - self._began >= self._longest)

    def commit(self, positions: Mapping[TopicPartition, Position]) -> None:
        self._queue.flush()
        kept = [
            confluent_kafka.TopicPartition(*tp, position.end, position.metadata) for tp, position in positions.items()
        ]
        self._transactions.send_offsets(kept, self._consumer.consumer_group_metadata())
        self._transactions.commit()

    def give_up(self) -> None:
        self._transactions.give_up()

    def close(self) -> None:
        self._consumer.close()
