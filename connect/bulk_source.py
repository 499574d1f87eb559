"""Bulk sources: connectors that publish records to Kafka themselves, for example from Spark executors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

from connect.bulk import BulkTaskContext
from connect.config import LOW, Config, Long, at_least, option
from connect.connector import Task
from connect.data import Offset
from connect.internals.chain.tolerance import ErrorPolicy, Failure
from connect.source import OffsetStorageReader

__all__ = [
    "BulkSourceConfig",
    "BulkSourceTask",
    "BulkSourceTaskContext",
    "BulkTransactions",
    "Claim",
    "KafkaSettings",
    "ReachedOffsets",
    "TransactionOrders",
]

ReachedOffsets: TypeAlias = Sequence[tuple[Offset, Offset | None]]
"""Source partitions, each with the offset that reading continues from; ``None`` forgets the partition."""


class BulkSourceConfig(Config):
    """Options of every bulk source."""

    poll_interval_ms: Long = option(
        default=1000,
        importance=LOW,
        validator=at_least(1),
        group="Loads",
        doc="How long to wait before looking for new data again when there was none.",
    )


C = TypeVar("C", bound=Config)


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The worker's producer settings, under both the Java and the librdkafka names. They may contain secrets."""

    java: Mapping[str, str]
    """By Kafka's names, for a client that runs on Java."""
    librdkafka: Mapping[str, str | int | bool]
    """By librdkafka's names, for a producer of ``confluent_kafka``."""

    def __repr__(self) -> str:
        return f"KafkaSettings({', '.join(sorted(self.java))})"


@dataclass(frozen=True, slots=True)
class Claim:
    """A connector's newest claim on its offsets topic: the key of the record and the offset after it."""

    key: bytes
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class TransactionOrders:
    """Settings for a process that publishes in one of the connector's transactions. They may contain secrets.

    ``producer`` includes the transactional id. A transaction may last ``timeout`` seconds.
    """

    connector: str
    claim: Claim
    producer: Mapping[str, str | int | bool] = field(repr=False)
    consumer: Mapping[str, str | int | bool] = field(repr=False)
    timeout: float


class BulkTransactions(Protocol):
    """The transactions in which a bulk source publishes exactly once.

    See :mod:`connect.internals.delivery.transaction`.

    Each process of the source's engine writes with a slot of its own, numbered from 1.
    """

    def claim(self, slots: int) -> Claim:
        """Claim the connector with ``slots`` slots and end every transaction that was begun with any of them.

        Afterwards all committed offsets can be read, and no earlier process can commit anything (invariant I6). Raises
        :class:`~connect.errors.RetriableError` if the task must stop meanwhile, and
        :class:`~connect.errors.ConnectError` if another process runs the task.
        """

    def orders(self, claim: Claim, slot: int) -> TransactionOrders:
        """Return the settings with which a process publishes in ``slot``."""


class BulkSourceTaskContext(BulkTaskContext, Protocol):
    """Services of the runtime that a bulk source task can use. A pause is announced to the task as a stop."""

    @property
    def producer_settings(self) -> KafkaSettings:
        """The producer settings to publish with. Records go to the partitions that the worker's producer would "
        "choose."""

    @property
    def error_policy(self) -> ErrorPolicy:
        """The policy that the ``errors.*`` keys define for records that cannot be processed."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        """The source offsets stored for this connector."""

    @property
    def transactions(self) -> BulkTransactions | None:
        """The transactions of the connector; ``None`` if the worker does not support exactly-once sources.

        The first access fences the previous process of the task. From then on :meth:`commit` is transactional too.
        """

    def create_topics(self, topics: Iterable[str]) -> Mapping[str, int | None]:
        """Create those of ``topics`` that are missing, as the ``topic.creation.*`` keys say. Call it before publishing.

        Return the largest batch in bytes that each topic accepts, ``None`` where the producer makes none that large.
        Waits while the brokers cannot be reached; raises :class:`~connect.errors.RetriableError` if the task must stop
        meanwhile.
        """

    def published(self, read: int, written: Mapping[str, int]) -> None:
        """Add to the metrics: the number of records read, and the number of records written to each topic."""

    def give_up(self, failures: Iterable[Failure]) -> None:
        """Report records that are skipped to the log and the dead letter queue, as the ``errors.*`` keys say.

        Call it before committing offsets past these records (invariant I4). Raises if ``errors.tolerance`` does not
        allow them to be skipped.
        """

    def commit(self, offsets: ReachedOffsets) -> None:
        """Store source offsets and return when they are stored.

        Commit only offsets up to which every record was acknowledged by Kafka or passed to :meth:`give_up` (invariant
        I1). Called without offsets, it makes the reports of :meth:`give_up` durable. Raises
        :class:`~connect.errors.RetriableError` if the offsets could not be stored in time.
        """

    def committed(self, offsets: ReachedOffsets) -> None:
        """Record offsets that were already stored in a transaction of one of the slots."""


class BulkSourceTask(Task[C], Generic[C]):
    """Publishes the data of a source without the worker's producer. A connector has exactly one such task."""

    needs_process = True

    def __init__(self, config: C, context: BulkSourceTaskContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def load(self) -> bool:
        """Publish and commit what is available now. Return whether there was anything.

        After ``True`` it is called again at once, after ``False`` when :attr:`poll_seconds` have passed. It is also
        called again after a :class:`~connect.errors.RetriableError`; any other error fails the task. After a failure or
        a kill, continue from the stored offsets.
        """

    def drained(self) -> bool:
        """Return whether a load that found nothing has reached the end of the input, where ``run.until=drained`` "
        "stops."""
        return True

    @property
    def poll_seconds(self) -> float:
        """How long to wait before asking the source again after it had nothing."""
        config: Config = self.config
        return config.poll_interval_ms / 1000 if isinstance(config, BulkSourceConfig) else 1.0
