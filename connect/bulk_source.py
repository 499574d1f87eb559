"""Bulk sources publish records to Kafka by themselves, from the executors of Spark for example."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

from connect.bulk import BulkTaskContext
from connect.chain.tolerance import ErrorPolicy, Failure
from connect.config import LOW, Config, Long, at_least, option
from connect.connector import Task
from connect.data import Offset
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
    """The options of every bulk source."""

    poll_interval_ms: Long = option(
        default=1000,
        importance=LOW,
        validator=at_least(1),
        group="Loads",
        doc="Interval at which the source is asked for more while it has nothing new.",
    )


C = TypeVar("C", bound=Config)


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The settings of the producer that the worker would publish with, in two languages. They may hold secrets."""

    java: Mapping[str, str]
    """By Kafka's names, for a client that runs on Java."""
    librdkafka: Mapping[str, str | int | bool]
    """By librdkafka's names, for a producer of ``confluent_kafka``."""

    def __repr__(self) -> str:
        return f"KafkaSettings({', '.join(sorted(self.java))})"


@dataclass(frozen=True, slots=True)
class Claim:
    """The newest claim of a connector on its offsets topic: its key, and the place after it."""

    key: bytes
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class TransactionOrders:
    """The settings with which a process publishes in a transaction of a connector. They may hold secrets.

    ``producer`` has the transactional id, and a transaction may last ``timeout`` seconds.
    """

    connector: str
    claim: Claim
    producer: Mapping[str, str | int | bool] = field(repr=False)
    consumer: Mapping[str, str | int | bool] = field(repr=False)
    timeout: float


class BulkTransactions(Protocol):
    """The transactions in which a bulk source publishes exactly once; see :mod:`connect.delivery.transaction`.

    Processes of its engine write with slots of their own, from 1 on.
    """

    def claim(self, slots: int) -> Claim:
        """Claim the connector with so many slots, and end what was begun with any of them before.

        What has been committed can be read from now on, and whoever began before commits nothing any more (invariant
        I6). Raises :class:`~connect.errors.RetriableError` if the task is to stop meanwhile, and
        :class:`~connect.errors.ConnectError` if another process runs the task.
        """

    def orders(self, claim: Claim, slot: int) -> TransactionOrders:
        """The settings with which a process publishes with a slot."""


class BulkSourceTaskContext(BulkTaskContext, Protocol):
    """The services of the runtime that a bulk source task can use. It is told to stop when it is to pause, too."""

    @property
    def producer_settings(self) -> KafkaSettings:
        """The settings to publish with, so that records go where the worker's producer would have sent them."""

    @property
    def error_policy(self) -> ErrorPolicy:
        """The policy of the ``errors.*`` keys for records that cannot be processed."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        """The source offsets stored for this connector."""

    @property
    def transactions(self) -> BulkTransactions | None:
        """The transactions of the connector; ``None`` if the worker does not support exactly-once sources.

        Asked for the first time, it fences the former process of the task. From then on :meth:`commit` is in a
        transaction, too.
        """

    def create_topics(self, topics: Iterable[str]) -> Mapping[str, int | None]:
        """Create those of these topics that are missing, as ``topic.creation.*`` say, before anything is published.

        The answer has the largest batch in bytes that each takes, ``None`` where the producer makes none that large.
        Waits while the brokers cannot be asked; raises :class:`~connect.errors.RetriableError` if the task is to stop
        meanwhile.
        """

    def published(self, read: int, written: Mapping[str, int]) -> None:
        """Account for so many records that were read, and for those written to each topic."""

    def give_up(self, failures: Iterable[Failure]) -> None:
        """Report records that are left out, to the log and to the dead letter queue as ``errors.*`` say.

        Raises unless ``errors.tolerance`` allows it. Call it before the offsets past them are committed (invariant I4).
        """

    def commit(self, offsets: ReachedOffsets) -> None:
        """Store source offsets, and return when they are stored.

        Only those up to which Kafka has acknowledged, or :meth:`give_up` been given, every record (invariant I1).
        Without any, make durable what :meth:`give_up` was given. Raises :class:`~connect.errors.RetriableError` if
        they could not be stored in time.
        """

    def committed(self, offsets: ReachedOffsets) -> None:
        """Take note of offsets that were stored in a transaction of one of the slots."""


class BulkSourceTask(Task[C], Generic[C]):
    """Publishes what a source has, by other means than the worker's. A connector has one such task."""

    needs_process = True

    def __init__(self, config: C, context: BulkSourceTaskContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def load(self) -> bool:
        """Publish what there is now, commit it, and say whether there was anything.

        Called again at once after ``True``, and after :attr:`poll_seconds` if there was nothing. After a
        :class:`~connect.errors.RetriableError` it is called again, any other error fails the task. A load that fails
        or is killed is to continue from the stored offsets.
        """

    def drained(self) -> bool:
        """Whether a load that found nothing found the end of the input, at which ``run.until=drained`` stops."""
        return True

    @property
    def poll_seconds(self) -> float:
        """How long to wait before the source is asked again when it had nothing."""
        config: Config = self.config
        return config.poll_interval_ms / 1000 if isinstance(config, BulkSourceConfig) else 1.0
