"""Sink connectors write records from topics to a target system."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from connect.config import Config
from connect.connector import Connector, ConnectorContext, Task
from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError

__all__ = [
    "CompactedTable",
    "ErrantRecordReporter",
    "SinkConnector",
    "SinkConnectorContext",
    "SinkTask",
    "SinkTaskContext",
]

C = TypeVar("C", bound=Config)


class ErrantRecordReporter(Protocol):
    """Reports records that a sink cannot write (KIP-610)."""

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Give up on one record: report it to the dead letter queue and the log, as configured.

        Offsets move past the record only when the report is durable. Raises if ``errors.tolerance`` is ``none``.
        """

    def flush(self) -> None:
        """Wait until all reports are durable. Sinks that store offsets themselves call it before advancing them.

        Raises ``RetriableError`` if that takes too long.
        """


@dataclass(frozen=True, slots=True)
class CompactedTable:
    """The number and total size of a table's files before and after compaction."""

    table: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


class SinkConnectorContext(ConnectorContext, Protocol):
    """Services of the runtime that a sink connector can use."""


class SinkTaskContext(Protocol):
    """Services of the runtime that a sink task can use."""

    @property
    def assignment(self) -> Collection[TopicPartition]:
        """The topic partitions currently assigned to the task."""

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """The reporter for records that cannot be written; ``None`` if no ``errors.*`` key enables reports."""

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue consuming from these offsets. For sinks that store offsets in their target."""

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids of topics: the id of a topic that is deleted and created again is another one.

        For sinks that store offsets in their target: call it in ``open``, store the id beside each offset, and do not
        continue from an offset that has another id than its topic has now. A topic whose id is unknown is left out:
        before Kafka 2.8, without the right Describe on it, or where the task runs without a worker.
        """

    def timeout(self, seconds: float) -> None:
        """Call ``put`` again within ``seconds``, with or without records. Also sets the wait before a retry."""

    def pause(self, *partitions: TopicPartition) -> None:
        """Stop consuming these partitions until they are resumed."""

    def resume(self, *partitions: TopicPartition) -> None:
        """Consume paused partitions again."""

    def request_commit(self) -> None:
        """Commit offsets soon instead of waiting for ``offset.flush.interval.ms``."""

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Send a record of the task's own, such as a server's response, to a topic, which is created if missing.

        Offsets are committed only after Kafka has acknowledged the record. After a kill it may be there twice; it is
        never lost.
        """

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds``. Return ``False`` as soon as the task must stop or pause, otherwise ``True``."""


class SinkTask(Task[C], Generic[C]):
    """Writes a share of the records to the target. Only :meth:`put` is required."""

    def __init__(self, config: C, context: SinkTaskContext) -> None:
        self.config = config
        self.context = context

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Prepare to write to newly assigned partitions. To start at other offsets, call ``self.context.offset`` "
        "here."""

    @abstractmethod
    def put(self, records: SinkBatch) -> None:
        """Write these records, or buffer them until :meth:`flush`. The batch is empty if only time has passed.

        After a :class:`~connect.errors.RetriableError` the runtime delivers the same batch again. Any other error fails
        the task.
        """

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Make every record passed to :meth:`put` durable. ``offsets`` (the next to consume) are committed "
        "afterwards. After a ``RetriableError`` the runtime puts everything since the last commit again; any other "
        "error fails the task."""

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets that may be committed. By default this calls :meth:`flush` and returns ``offsets``.

        Override it in a task that tracks durability itself. Partitions missing from the result are not committed this
        time.
        """
        self.flush(offsets)
        return offsets

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Release what :meth:`open` prepared for partitions that are being revoked, after their final commit."""


class SinkConnector(Connector[C], Generic[C]):
    """Writes to a target system.

    >>> class LinesConnector(SinkConnector[LinesConfig]):
    ...     task_class = LinesTask
    """

    context: SinkConnectorContext
    task_class: ClassVar[type[Task]]  # type: ignore[type-arg]

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return the connector's configuration ``max_tasks`` times; Kafka distributes the partitions among the "
        "tasks."""
        return [self.config.originals] * max_tasks

    @classmethod
    def alter_offsets(cls, config: C, offsets: Mapping[TopicPartition, int | None]) -> bool:  # noqa: ARG003
        """Check offsets that a user wants to set; ``None`` resets a partition. See "
        "``SourceConnector.alter_offsets``."""
        return False

    @classmethod
    def compact(cls, config: C, tables: Collection[str] | None) -> Iterator[CompactedTable]:  # noqa: ARG003
        """Merge small files of the target's tables (all, or only ``tables``) while no task of the connector is running.

        Called by ``sluice compact``. Yields each table that it has compacted, and nothing for a table that had nothing
        to merge.
        """
        raise ConnectError(f"{cls.__name__} does not write tables of files: there is nothing to compact.")
