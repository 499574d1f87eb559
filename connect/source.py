"""Source connectors: they read from somewhere and hand records to the runtime, which publishes them."""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from connect.config import Config
from connect.connector import Connector, ConnectorContext, Task
from connect.data import Offset, SourceBatch, SourceRecord

__all__ = [
    "ConnectorTransactionBoundaries",
    "ErrantSourceRecordReporter",
    "ExactlyOnceSupport",
    "OffsetStorageReader",
    "SourceConnector",
    "SourceConnectorContext",
    "SourceTask",
    "SourceTaskContext",
    "TransactionContext",
]

C = TypeVar("C", bound=Config)


class ExactlyOnceSupport(enum.Enum):
    """Whether a source resumes exactly where its offsets say (KIP-618)."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class ConnectorTransactionBoundaries(enum.Enum):
    """Whether a source can say itself where its transactions end (KIP-618)."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class OffsetStorageReader(Protocol):
    """Reads the source offsets that the runtime kept."""

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        """The offset of each source partition, ``None`` where none is kept."""

    def offset(self, partition: Offset) -> Offset | None:
        """The offset of one source partition."""


class TransactionContext(Protocol):
    """Where a source ends its transactions, with ``transaction.boundary=connector``."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """End the transaction after ``record``, or after the batch that is polled next."""

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Discard the transaction after ``record``, or after the batch that is polled next."""


class ErrantSourceRecordReporter(Protocol):
    """Where a source sends what it can read but not understand."""

    def report(self, record: SourceRecord, error: Exception) -> None:
        """Give up on one record: ``record.value`` holds what was read, as text or bytes, and ``error`` says why.

        ``errors.tolerance`` decides: with ``none`` this raises and the task fails, with ``all`` the record
        is counted, logged as configured, and left out.
        """


class SourceConnectorContext(ConnectorContext, Protocol):
    """What the runtime offers a source connector."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        """The source offsets kept for this connector."""


class SourceTaskContext(Protocol):
    """What the runtime offers a source task."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        """The source offsets kept for this connector."""

    @property
    def errant_record_reporter(self) -> ErrantSourceRecordReporter:
        """Where records go that cannot be understood."""

    @property
    def transaction_context(self) -> TransactionContext | None:
        """The means to end transactions; ``None`` unless ``transaction.boundary=connector``."""

    def wait(self, seconds: float) -> bool:
        """Wait, unless the task is stopped or paused first; whether it may go on."""


class SourceTask(Task[C], Generic[C]):
    """Reads a share of the source. Only :meth:`poll` is required."""

    def __init__(self, config: C, context: SourceTaskContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def poll(self) -> Iterable[SourceRecord] | SourceBatch | None:
        """The next records, or nothing if there are none for now. Called again and again.

        Do not block for long: where there is nothing to do, ``self.context.wait(seconds)`` ends early on stop or
        pause. A :class:`~connect.errors.RetriableError` has the runtime poll again, another error fails the task.
        A :class:`~connect.data.SourceBatch` moves many records at the cost of few.
        """

    def drained(self) -> bool:
        """Whether, at the last poll, everything there was had been read.

        Asked after a poll that gave nothing, when the connector is to stop at the end of its input
        (``run.until=drained``). A source that never ends keeps the answer ``False``.
        """
        return False

    def remaining(self) -> Mapping[str, int]:
        """How much is left to read, by its unit, such as ``{"bytes": 1200}``; nothing where that is not known.

        Asked about once a second between two polls, for people to see: be quick, an estimate will do.
        """
        return {}

    def commit_record(self, record: SourceRecord) -> None:
        """Called once ``record`` is acknowledged by Kafka or left out; override only if the source must be told."""

    def commit(self) -> None:
        """Called after offsets were committed; override only if the source must be told."""


class SourceConnector(Connector[C], Generic[C]):
    """Reads from a source system.

    >>> class LinesConnector(SourceConnector[LinesConfig]):
    ...     task_class = LinesTask
    """

    context: SourceConnectorContext
    task_class: ClassVar[type[SourceTask]]  # type: ignore[type-arg]

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:  # noqa: ARG002
        """One task with the connector's own configuration."""
        return [self.config.originals]

    @classmethod
    def exactly_once_support(cls, config: C) -> ExactlyOnceSupport | None:  # noqa: ARG003
        """Whether the source resumes exactly from its offsets; ``None`` if it does not say."""
        return None

    @classmethod
    def can_define_transaction_boundaries(cls, config: C) -> ConnectorTransactionBoundaries:  # noqa: ARG003
        """Whether the tasks use the transaction context."""
        return ConnectorTransactionBoundaries.UNSUPPORTED

    @classmethod
    def alter_offsets(cls, config: C, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Check offsets a user wants to set, keyed by their source partition as JSON; ``None`` resets one.

        Raise a :class:`~connect.errors.ConnectError` to refuse them. Whether the source has them under control:
        ``False`` if it keeps offsets of its own outside the runtime.
        """
        return False
