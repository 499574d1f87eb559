"""Sink connectors: they are given records consumed from topics and write them somewhere."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from connect.config import Config
from connect.connector import Connector, ConnectorContext, Task
from connect.data import SinkBatch, SinkRecord, TopicPartition

__all__ = ["ErrantRecordReporter", "SinkConnector", "SinkConnectorContext", "SinkTask", "SinkTaskContext"]

C = TypeVar("C", bound=Config)


class ErrantRecordReporter(Protocol):
    """Where a sink sends records it cannot write (KIP-610)."""

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Give up on one record: it goes to the dead letter queue and the log, as configured.

        Offsets move past it only once the report is kept. Raises when ``errors.tolerance`` is ``none``.
        """


class SinkConnectorContext(ConnectorContext, Protocol):
    """What the runtime offers a sink connector."""


class SinkTaskContext(Protocol):
    """What the runtime offers a sink task."""

    @property
    def assignment(self) -> Collection[TopicPartition]:
        """The topic partitions the task has now."""

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """Where records go that cannot be written; ``None`` if the connector's ``errors.*`` keys name no place."""

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue to consume from these offsets, for targets that keep offsets of their own."""

    def timeout(self, seconds: float) -> None:
        """Call ``put`` again after at most so long, even without records; also the wait after a retriable error."""

    def pause(self, *partitions: TopicPartition) -> None:
        """Stop consuming these partitions for now."""

    def resume(self, *partitions: TopicPartition) -> None:
        """Consume paused partitions again."""

    def request_commit(self) -> None:
        """Commit offsets soon, without waiting for ``offset.flush.interval.ms``."""

    def wait(self, seconds: float) -> bool:
        """Wait, unless the task is stopped or paused first; whether it may go on."""


class SinkTask(Task[C], Generic[C]):
    """Writes a share of the records. Only :meth:`put` is required."""

    def __init__(self, config: C, context: SinkTaskContext) -> None:
        self.config = config
        self.context = context

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions were assigned: prepare to write them, and call ``self.context.offset`` to rewind."""

    @abstractmethod
    def put(self, records: SinkBatch) -> None:
        """Write these records, or keep them until :meth:`flush`. The batch is empty when only time has passed.

        A :class:`~connect.errors.RetriableError` has the runtime deliver the same batch again, another error
        fails the task.
        """

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Make durable all that was put; ``offsets`` are the next ones to consume. They are committed after this."""

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The offsets that may be committed: ``offsets`` after :meth:`flush`, or fewer for who keeps his own account.

        Partitions left out are not committed this time.
        """
        self.flush(offsets)
        return offsets

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions are taken away, after their last commit: close what :meth:`open` prepared for them."""


class SinkConnector(Connector[C], Generic[C]):
    """Writes to a target system.

    >>> class LinesConnector(SinkConnector[LinesConfig]):
    ...     task_class = LinesTask
    """

    context: SinkConnectorContext
    task_class: ClassVar[type[Task]]  # type: ignore[type-arg]

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """``max_tasks`` tasks with the connector's own configuration; Kafka divides the partitions among them."""
        return [self.config.originals] * max_tasks

    @classmethod
    def alter_offsets(cls, config: C, offsets: Mapping[TopicPartition, int | None]) -> bool:  # noqa: ARG003
        """Check offsets a user wants to set; ``None`` resets one. See ``SourceConnector.alter_offsets``."""
        return False
