"""Bulk sources publish records to Kafka by themselves, from the executors of Spark for example."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from connect.bulk import BulkTaskContext
from connect.chain.tolerance import ErrorPolicy, Failure
from connect.config import LOW, Config, Long, at_least, option
from connect.connector import Task
from connect.data import Offset
from connect.source import OffsetStorageReader

__all__ = ["BulkSourceConfig", "BulkSourceTask", "BulkSourceTaskContext", "KafkaSettings", "ReachedOffsets"]

ReachedOffsets: TypeAlias = Sequence[tuple[Offset, Offset]]
"""Source partitions, each with the offset that reading continues from."""


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


class BulkSourceTaskContext(BulkTaskContext, Protocol):
    """The services of the runtime that a bulk source task can use. It is told to stop when it is to pause, too."""

    @property
    def producer_settings(self) -> KafkaSettings:
        """What the task has to publish with, so that records go where the worker's producer would have sent them."""

    @property
    def error_policy(self) -> ErrorPolicy:
        """What the ``errors.*`` keys say of records that cannot be processed."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        """The source offsets stored for this connector."""

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
        Raises :class:`~connect.errors.RetriableError` if they could not be stored in time.
        """


class BulkSourceTask(Task[C], Generic[C]):
    """Publishes what a source has, by other means than the worker's. A connector has one such task."""

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
