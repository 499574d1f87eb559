"""Source connectors read from a source system and hand records to the runtime, which publishes them."""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from connect.config import Config
from connect.connector import Connector, ConnectorContext, Task
from connect.data import Offset, SourceBatch, SourceRecord
from connect.errors import ConnectError
from connect.measurement import Measurement

__all__ = [
    "SHARE_KEYS",
    "SPLIT_OF",
    "ConnectorTransactionBoundaries",
    "Delivered",
    "ErrantSourceRecordReporter",
    "ExactlyOnceSupport",
    "OffsetStorageReader",
    "Signal",
    "SourceConnector",
    "SourceConnectorContext",
    "SourceTask",
    "SourceTaskContext",
    "TransactionContext",
]

C = TypeVar("C", bound=Config)

SHARE_KEYS: Final = "task.share.keys"
"""The task config key that names the keys which hold a task's share of the work; see :meth:`SourceTask.reconfigure`."""

SPLIT_OF: Final = "split.of"
"""The key with which splits declare that they divide one source partition; see :meth:`SourceConnector.splits`."""


class ExactlyOnceSupport(enum.Enum):
    """Whether a source resumes exactly at its stored offsets (KIP-618)."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class ConnectorTransactionBoundaries(enum.Enum):
    """Whether a source can define its own transaction boundaries (KIP-618)."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Delivered:
    """Consecutive records of one source partition that Kafka has acknowledged, and their offsets on the topic.

    ``offsets`` has one offset on ``topic`` for each source offset, or ``None`` if it is unknown, as for a skipped
    record. Records that transformations dropped are not included.
    """

    source_partition: Offset
    source_offsets: Sequence[Offset]
    topic: str
    offsets: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class Signal:
    """What a user tells a running task: ``id`` names this signal, ``data`` is what the ``type`` needs."""

    id: str
    type: str
    data: Mapping[str, Any]


class OffsetStorageReader(Protocol):
    """Reads the source offsets stored by the runtime."""

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        """Return the stored offset of each source partition, or ``None`` where none is stored."""

    def offset(self, partition: Offset) -> Offset | None:
        """Return the stored offset of a source partition, or ``None`` if none is stored."""


class TransactionContext(Protocol):
    """Lets a source end its transactions itself when ``transaction.boundary=connector``."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """Commit the transaction after ``record``, or after the batch that the next poll returns."""

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Abort the transaction after ``record``, or after the batch that the next poll returns."""


class ErrantSourceRecordReporter(Protocol):
    """Reports data that a source has read but cannot parse."""

    def report(self, record: SourceRecord, error: Exception) -> None:
        """Give up on one record. ``record.value`` holds the raw data as text or bytes, ``error`` the reason.

        With ``errors.tolerance=none`` this raises and the task fails; with ``all`` the record is counted, logged as
        configured, and skipped.
        """


class SourceConnectorContext(ConnectorContext, Protocol):
    """Services of the runtime that a source connector can use."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        """Reads the source offsets stored for this connector."""


class SourceTaskContext(Protocol):
    """Services of the runtime that a source task can use."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        """Reads the source offsets stored for this connector."""

    @property
    def errant_record_reporter(self) -> ErrantSourceRecordReporter:
        """The reporter for data that cannot be parsed."""

    @property
    def transaction_context(self) -> TransactionContext | None:
        """Ends transactions; ``None`` unless ``transaction.boundary=connector``."""

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds``. Return ``False`` as soon as the task must stop or pause, otherwise ``True``."""

    def poll_when_readable(self, descriptors: Collection[int], seconds: float) -> None:
        """Delay the next poll until one of these file descriptors is readable, or ``seconds`` have passed.

        For a poll that has nothing to return, or knows when there will be more: return at once and let the runtime
        wait, so that it can attend to deliveries and commits meanwhile. A waiting task then uses no CPU. Applies to the
        next poll only.
        """

    def wake(self) -> None:
        """Poll again now, even if :meth:`poll_when_readable` asked for a later time.

        May be called from any thread, such as one that listens to the source. During a poll it applies to the next
        wait.
        """

    def pass_offset(self, partition: Offset, offset: Offset) -> None:
        """Store this offset of a source partition although no record carries it: the data before it was skipped.

        Call it in :meth:`SourceTask.poll`. The offset comes after the records of this and all earlier polls: it is
        stored once all of them that belong to its partition are acknowledged. With exactly-once support it is part of
        the next transaction with records, or of one of its own after ``offset.flush.interval.ms``. Skipped data is then
        not read again.
        """


class SourceTask(Task[C], Generic[C]):
    """Reads a share of the source. Only :meth:`poll` is required."""

    def __init__(self, config: C, context: SourceTaskContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def poll(self) -> Iterable[SourceRecord] | SourceBatch | None:
        """Return the next records; an empty list or ``None`` if there are none yet. Called repeatedly.

        Do not block for long. While there is nothing to do, call ``self.context.wait(seconds)``, which returns early on
        stop or pause. After a :class:`~connect.errors.RetriableError` the runtime polls again; any other error fails
        the task. To move many records cheaply, return a :class:`~connect.data.SourceBatch`.
        """

    def last_poll(self) -> Iterable[SourceRecord] | SourceBatch | None:
        """Return records that would be lost if they were not published now; by default none.

        For sources that others send to, and that cannot be asked again. Called once, after the last :meth:`poll`, when
        the task is told to stop; not after a failure, and not when it is killed. It should take no more than seconds.
        """
        return None

    def drained(self) -> bool:
        """Return whether the last poll reached the end of the input.

        Called after a poll without records if the connector should stop at the end of its input
        (``run.until=drained``). A source without an end keeps the default, ``False``.
        """
        return False

    def remaining(self) -> Mapping[str, int]:
        """Return how much is left to read by unit, such as ``{"bytes": 1200}``; empty if unknown.

        Shown to users; called about once a second between two polls. It should be fast, an estimate is enough.
        """
        return {}

    def total(self) -> Mapping[str, int]:
        """Return how much there is in all, done and left, by those units of :meth:`remaining` of which this is known.

        Users see a progress bar while something is left. A number that is not known yet is left out, never guessed. It
        is called together with :meth:`remaining`.
        """
        return {}

    def measurements(self) -> Iterable[Measurement]:
        """Return measurements of the task's own, exported next to those of the runtime; by default none.

        Called about once a second between two polls, so it should be fast. Measurements missing from the result are no
        longer exported.
        """
        return ()

    def commit_record(self, record: SourceRecord) -> None:
        """React to ``record`` having been acknowledged by Kafka or skipped; does nothing by default."""

    def delivered(self, delivered: Delivered) -> None:
        """React to records having been acknowledged, with their offsets on the topic; does nothing by default.

        Called before the source offsets of the records are committed, or after that with exactly-once support. It costs
        a little per record, so it is called only for tasks that override it.
        """

    def stored(self, offsets: Sequence[tuple[Offset, Offset]]) -> None:
        """React to source offsets having been stored, with their partitions; does nothing by default.

        For a source that may be told how far it is read, such as a log that is kept until then. Each is the newest of
        its partition, and may be one that was passed without a record. Called before :meth:`commit`.
        """

    def commit(self) -> None:
        """React to offsets having been committed; does nothing by default."""

    def take_signal(self, signal: Signal) -> None:
        """Take over a signal that a user has sent with ``POST /connectors/NAME/signals``; by default all are refused.

        Called between two polls of the connector's first task. Return soon, having only noted what is to be done: the
        user is told then that the task has the signal. Raise a :class:`~connect.errors.ConnectError` to refuse it; the
        user is told why, and the task goes on.
        """
        raise ConnectError(f"This connector takes no signals such as {signal.type}.")

    def reconfigure(self, config: C) -> bool:  # noqa: ARG002
        """Take over a config with a larger share while the task runs.

        Return whether the task did; by default ``False``.

        To use this, every task config must name, under the key :data:`SHARE_KEYS`, the keys of the lists that hold the
        task's share. The method is called, between two polls, if the new config differs only in that these lists have
        more items. Items of the first of these keys, such as partitions, belong to one task at a time, so the method is
        not called if another task has held one of the new ones. During the call ``self.config`` is still the old
        config. If the method returns ``False``, the task is restarted with the new config, as after any other change.
        """
        return False


class SourceConnector(Connector[C], Generic[C]):
    """Reads from a source system.

    >>> class LinesConnector(SourceConnector[LinesConfig]):
    ...     task_class = LinesTask
    """

    context: SourceConnectorContext

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:  # noqa: ARG002
        """Return the connector's own configuration, for a single task."""
        return [self.config.originals]

    def splits(self, max_splits: int) -> Sequence[Mapping[str, str | None]] | None:  # noqa: ARG002
        """Divide the work that exists now into at most ``max_splits`` bounded pieces; ``None`` if that is impossible.

        Each split is a task config like those of :meth:`task_configs`, except that its task comes to an end: it reads
        its piece, and then :meth:`SourceTask.drained` returns true, whatever is added to the source meanwhile. An
        engine such as Spark runs the splits in parallel, possibly on different machines, and asks for the next ones
        when all are done. Leave out what has been read according to the stored offsets
        (``self.context.offset_storage_reader``), and return an empty list when there is no new input.

        An interrupted split is read again from its stored offsets, so source partitions must not be shared between
        splits, with one exception. Splits that divide one source partition all carry the same text under the key
        :data:`SPLIT_OF` and are listed in the order of their offsets. Their offsets are stored in that order, and each
        split starts at the greater of the stored offset and its own beginning. Called repeatedly after ``start``.
        """
        return None

    @classmethod
    def exactly_once_support(cls, config: C) -> ExactlyOnceSupport | None:  # noqa: ARG003
        """Return whether the source resumes exactly at its offsets; ``None`` if it does not say."""
        return None

    @classmethod
    def can_define_transaction_boundaries(cls, config: C) -> ConnectorTransactionBoundaries:  # noqa: ARG003
        """Return whether the tasks use the transaction context."""
        return ConnectorTransactionBoundaries.UNSUPPORTED

    @classmethod
    def alter_offsets(cls, config: C, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Check offsets that a user wants to set, keyed by source partition as JSON; ``None`` resets a partition.

        Raise a :class:`~connect.errors.ConnectError` to refuse them. Return ``True`` if they will take effect, and
        ``False`` if that is unknown, for example because the source stores its offsets outside the runtime.
        """
        return False
