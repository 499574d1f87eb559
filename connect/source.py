"""Source connectors read from a source system and hand records to the runtime, which publishes them."""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from connect.config import Config
from connect.connector import Connector, ConnectorContext, Task
from connect.data import Offset, SourceBatch, SourceRecord
from connect.measurement import Measurement

__all__ = [
    "SHARE_KEYS",
    "SPLIT_OF",
    "ConnectorTransactionBoundaries",
    "Delivered",
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

SHARE_KEYS: Final = "task.share.keys"
"""The key by which task configurations tell which of their keys hold the share of the task; see
:meth:`SourceTask.reconfigure`."""

SPLIT_OF: Final = "split.of"
"""The key by which splits tell that they divide one source partition; see :meth:`SourceConnector.splits`."""


class ExactlyOnceSupport(enum.Enum):
    """Whether a source resumes exactly where its offsets say (KIP-618)."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class ConnectorTransactionBoundaries(enum.Enum):
    """Whether a source can define the boundaries of its transactions itself (KIP-618)."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Delivered:
    """Some records of one source partition that Kafka has acknowledged, in their order, and where they lie now.

    ``offsets`` are those on ``topic``, one for each source offset; ``None`` if it is not known, as of a record that was
    left out. What transformations have dropped is not among them.
    """

    source_partition: Offset
    source_offsets: Sequence[Offset]
    topic: str
    offsets: Sequence[int | None]


class OffsetStorageReader(Protocol):
    """Reads the source offsets that the runtime has stored."""

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        """The offset of each source partition, ``None`` where none is stored."""

    def offset(self, partition: Offset) -> Offset | None:
        """The offset of one source partition, ``None`` if none is stored."""


class TransactionContext(Protocol):
    """Ends the transactions of a source, with ``transaction.boundary=connector``."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """End the transaction after ``record``, or after the batch that is polled next."""

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Discard the transaction after ``record``, or after the batch that is polled next."""


class ErrantSourceRecordReporter(Protocol):
    """Reports data that a source can read but not parse."""

    def report(self, record: SourceRecord, error: Exception) -> None:
        """Give up on one record: ``record.value`` holds the data as text or bytes, and ``error`` says why.

        With ``errors.tolerance=none`` this raises and the task fails; with ``all`` the record is counted, logged as
        configured, and skipped.
        """


class SourceConnectorContext(ConnectorContext, Protocol):
    """The services of the runtime that a source connector can use."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        """The source offsets stored for this connector."""


class SourceTaskContext(Protocol):
    """The services of the runtime that a source task can use."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        """The source offsets stored for this connector."""

    @property
    def errant_record_reporter(self) -> ErrantSourceRecordReporter:
        """Takes data that cannot be parsed."""

    @property
    def transaction_context(self) -> TransactionContext | None:
        """Ends transactions; ``None`` unless ``transaction.boundary=connector``."""

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds``; answer ``False`` as soon as the task is to stop or pause, else ``True``."""

    def poll_when_readable(self, descriptors: Collection[int], seconds: float) -> None:
        """Poll again only when one of these file descriptors can be read, or at the latest after ``seconds``.

        For a poll that has nothing to give, or knows when it will have more: it returns at once, and the runtime waits,
        while it sees to what is under way. So a task that waits costs nothing. It holds for the next poll alone.
        """

    def wake(self) -> None:
        """Poll again now, though :meth:`poll_when_readable` asked for a later time.

        May be called from any thread, such as one that listens to the source; during a poll it holds for the next wait.
        """

    def pass_offset(self, partition: Offset, offset: Offset) -> None:
        """Have this offset of a source partition stored though no record has it: what lies before it was left out.

        To be called in :meth:`SourceTask.poll`. It counts after the records that this poll and those before it give: it
        is stored once all of them of its partition are acknowledged, and, with exactly-once support, in a transaction
        with records or in one of its own after ``offset.flush.interval.ms``. So what was left out is not read again.
        """


class SourceTask(Task[C], Generic[C]):
    """Reads a share of the source. Only :meth:`poll` is required."""

    def __init__(self, config: C, context: SourceTaskContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def poll(self) -> Iterable[SourceRecord] | SourceBatch | None:
        """The next records; nothing, or ``None``, if there are none for now. Called again and again.

        Do not block for long: while there is nothing to do, use ``self.context.wait(seconds)``, which ends early on
        stop or pause. After a :class:`~connect.errors.RetriableError` the runtime polls again; any other error fails
        the task. A :class:`~connect.data.SourceBatch` moves many records at the cost of few.
        """

    def drained(self) -> bool:
        """Whether the last poll reached the end of the input.

        Called after a poll that gave nothing, if the connector is to stop at the end of its input
        (``run.until=drained``). A source without an end keeps the answer ``False``.
        """
        return False

    def remaining(self) -> Mapping[str, int]:
        """The amount that is left to read by unit, such as ``{"bytes": 1200}``; empty if it is not known.

        Called about once a second between two polls, to be shown to people: be quick, an estimate will do.
        """
        return {}

    def measurements(self) -> Iterable[Measurement]:
        """Numbers of the task's own, to be scraped beside those of the runtime; by default none.

        Called about once a second between two polls: be quick. Whatever is not among them any more is shown no longer.
        """
        return ()

    def commit_record(self, record: SourceRecord) -> None:
        """Tell the source that Kafka acknowledged ``record``, or that it was skipped; by default nothing."""

    def delivered(self, delivered: Delivered) -> None:
        """Tell the source where records lie on their topic now that Kafka has acknowledged them; by default nothing.

        Called before their source offsets are committed, with exactly-once support after. It costs a little for each
        record, so only tasks that override it are told.
        """

    def commit(self) -> None:
        """Tell the source that offsets were committed; by default nothing."""

    def reconfigure(self, config: C) -> bool:  # noqa: ARG002
        """Take a configuration with a larger share while the task runs, and answer whether it does; by default not.

        A task is asked if all of its configurations name, under the key :data:`SHARE_KEYS`, the keys of lists that hold
        its share, and nothing has changed but that these have more items. The items of the first of these keys belong
        to one task at a time, such as partitions: a task is asked only if no other one has had them. Called between
        two polls, with ``self.config`` still the former configuration. A task that does not take it is started anew
        with it, as after every other change.
        """
        return False


class SourceConnector(Connector[C], Generic[C]):
    """Reads from a source system.

    >>> class LinesConnector(SourceConnector[LinesConfig]):
    ...     task_class = LinesTask
    """

    context: SourceConnectorContext

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:  # noqa: ARG002
        """The connector's own configuration, for one task."""
        return [self.config.originals]

    def splits(self, max_splits: int) -> Sequence[Mapping[str, str | None]] | None:  # noqa: ARG002
        """The work that there is now as bounded pieces, at most ``max_splits``; ``None`` if it cannot be divided so.

        Each is the configuration of a task like those of :meth:`task_configs`, but of one that comes to an end: it
        reads its piece, and then :meth:`SourceTask.drained` is true, whatever is added to the source meanwhile. An
        engine such as Spark runs the pieces side by side, each perhaps on another machine, and asks for the next ones
        when all are done. Without new input there is nothing to do: leave out what the stored offsets say is read
        (``self.context.offset_storage_reader``), and return an empty list at last.

        A piece is read again from its stored offsets if it was interrupted. Pieces have source partitions of their own.
        Those that divide one source partition among them carry the same text under the key :data:`SPLIT_OF`, in the
        order of their offsets: those of a piece are stored when all before it are read, and reading continues from the
        greater of the stored offset and the beginning of the piece. Called after :meth:`start`, again and again.
        """
        return None

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
        """Check offsets that a user wants to set, keyed by their source partition as JSON; ``None`` resets one.

        Raise a :class:`~connect.errors.ConnectError` to refuse them. Return ``True`` if they will take effect, and
        ``False`` if that is not known, as for a source that keeps offsets of its own outside the runtime.
        """
        return False
