"""Sink connectors write the records of topics to a target system."""

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
        """Give up on one record and send it to the dead letter queue and the log, as configured.

        Offsets move past it only once the report is kept. Raises when ``errors.tolerance`` is ``none``.
        """

    def flush(self) -> None:
        """Wait until all reports are kept; for sinks that keep offsets of their own, before they move these.

        Raises ``RetriableError`` if that takes too long.
        """


@dataclass(frozen=True, slots=True)
class CompactedTable:
    """A table before and after its compaction: how many files it has, and how many bytes these have."""

    table: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


class SinkConnectorContext(ConnectorContext, Protocol):
    """The services of the runtime that a sink connector can use."""


class SinkTaskContext(Protocol):
    """The services of the runtime that a sink task can use."""

    @property
    def assignment(self) -> Collection[TopicPartition]:
        """The topic partitions that are assigned to the task now."""

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """Takes records that cannot be written; ``None`` if no ``errors.*`` key of the connector enables reports."""

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue to consume from these offsets, for targets that keep offsets of their own."""

    def timeout(self, seconds: float) -> None:
        """Call ``put`` again after at most ``seconds``, with or without records; also sets the wait before a retry."""

    def pause(self, *partitions: TopicPartition) -> None:
        """Stop consuming these partitions for now."""

    def resume(self, *partitions: TopicPartition) -> None:
        """Consume paused partitions again."""

    def request_commit(self) -> None:
        """Commit offsets soon, without waiting for ``offset.flush.interval.ms``."""

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Send a record of the task's own to a topic, such as the answer of a server; the topic is made if missing.

        Offsets are committed only when Kafka has it: after a kill it may be there twice, and is never lost.
        """

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds``; answer ``False`` as soon as the task is to stop or pause, else ``True``."""


class SinkTask(Task[C], Generic[C]):
    """Writes a share of the records. Only :meth:`put` is required."""

    def __init__(self, config: C, context: SinkTaskContext) -> None:
        self.config = config
        self.context = context

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Prepare to write partitions that were just assigned; call ``self.context.offset`` to rewind."""

    @abstractmethod
    def put(self, records: SinkBatch) -> None:
        """Write these records, or keep them until :meth:`flush`. The batch is empty when only time has passed.

        After a :class:`~connect.errors.RetriableError` the runtime delivers the same batch again. Any other error
        fails the task.
        """

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Make every record that was put durable. ``offsets``, the next ones to consume, are committed afterwards."""

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets that may be committed: by default ``offsets``, after a :meth:`flush`.

        Override it in a task that tracks by itself what is durable. Partitions left out are not committed this time.
        """
        self.flush(offsets)
        return offsets

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Close what :meth:`open` prepared for partitions that are taken away; their last commit has been made."""


class SinkConnector(Connector[C], Generic[C]):
    """Writes to a target system.

    >>> class LinesConnector(SinkConnector[LinesConfig]):
    ...     task_class = LinesTask
    """

    context: SinkConnectorContext
    task_class: ClassVar[type[Task]]  # type: ignore[type-arg]

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """The connector's own configuration ``max_tasks`` times; Kafka divides the partitions among the tasks."""
        return [self.config.originals] * max_tasks

    @classmethod
    def alter_offsets(cls, config: C, offsets: Mapping[TopicPartition, int | None]) -> bool:  # noqa: ARG003
        """Check offsets that a user wants to set; ``None`` resets one. See ``SourceConnector.alter_offsets``."""
        return False

    @classmethod
    def compact(cls, config: C, tables: Collection[str] | None) -> Iterator[CompactedTable]:  # noqa: ARG003
        """Merge the small files of these tables of the target, or of all, while no task of the connector runs.

        Yields each table when it is done; one with nothing to merge is not told of. For ``sluice compact``.
        """
        raise ConnectError(f"{cls.__name__} does not write tables of files, so that there is nothing to compact.")
