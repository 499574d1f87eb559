"""Bulk sinks: connectors that receive offset ranges instead of records and read the topics themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connect.config import LOW, MEDIUM, Config, Long, at_least, between, option, validator
from connect.connector import Task
from connect.data import Schema, TopicPartition
from connect.errors import ConfigError
from connect.internals.chain.tolerance import Failure
from connect.offset_set import OffsetSet

__all__ = [
    "BulkSinkConfig",
    "BulkSinkTask",
    "BulkSinkTaskContext",
    "BulkTaskContext",
    "FailuresOf",
    "OffsetRange",
    "Progress",
    "TablePreview",
]

_LOADS: Final = "Loads"
_NEVER: Final = -1
_LONGEST_WAIT_MS: Final = 60_000

FailuresOf: TypeAlias = Callable[[Mapping[TopicPartition, OffsetSet]], Iterable[Failure]]
"""Tells what is wrong with records: a failure for each of these offsets, in order within a partition."""


@validator("name of a time zone")
def _time_zone(key: str, value: str) -> None:
    """Refuse names that are not in the IANA time zone database."""
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        reason = "It is no time zone: use a name such as UTC or Europe/Berlin."
        raise ConfigError(key, value, reason) from None


@validator("[-1,...]")
def _at_least_never(key: str, value: int) -> None:
    if value < _NEVER:
        raise ConfigError(key, value, "Value must be at least -1 (never)")


class BulkSinkConfig(Config):
    """Options that decide when a bulk sink loads and how much it loads at once."""

    flush_size: Long = option(
        default=1_000_000,
        importance=MEDIUM,
        validator=at_least(1),
        group=_LOADS,
        doc="Maximum number of records per topic partition in one load. A load begins as soon as a partition has that "
        "many.",
    )
    flush_bytes: Long = option(
        default=1 << 30,
        importance=MEDIUM,
        validator=at_least(1),
        group=_LOADS,
        doc="Maximum number of bytes per topic partition in one load, estimated from the size of sampled records. A "
        "load begins as soon as a partition has that many.",
    )
    load_max_bytes: Long = option(
        default=10 << 30,
        importance=LOW,
        validator=at_least(1),
        group=_LOADS,
        doc="Maximum number of bytes in one load, estimated likewise. If more is due, it is split into consecutive "
        "loads in which the partitions take turns.",
    )
    rotate_interval_ms: Long | None = option(
        default=None,
        importance=MEDIUM,
        validator=_at_least_never,
        group=_LOADS,
        doc="Longest wall-clock time that records wait for a load if no other limit is reached first; -1 means no "
        "limit. Defaults to 60000 if no other rotate key is set, otherwise to -1.",
    )
    rotate_record_interval_ms: Long = option(
        default=-1,
        importance=LOW,
        validator=at_least(-1),
        group=_LOADS,
        doc="Divides loads by record timestamps, in windows of this length counted from 1970 (UTC): a load ends before "
        "the first record of another window, and begins as soon as there is one. -1 means never.",
    )
    rotate_schedule_interval_ms: Long = option(
        default=-1,
        importance=MEDIUM,
        validator=between(-1, 86_400_000),
        group=_LOADS,
        doc="Wall-clock interval at which all waiting records are loaded, counted from midnight in timezone; at most a "
        "day. -1 means never.",
    )
    rotate_idle_ms: Long = option(
        default=-1,
        importance=MEDIUM,
        validator=at_least(-1),
        group=_LOADS,
        doc="Loads the waiting records of a topic once it has received none for this long. -1 means never.",
    )
    timezone: str = option(
        default="UTC",
        importance=LOW,
        validator=_time_zone,
        group=_LOADS,
        doc="Time zone of the midnight from which rotate.schedule.interval.ms counts, such as Europe/Berlin.",
    )
    poll_interval_ms: Long = option(
        default=500,
        importance=LOW,
        validator=at_least(1),
        group=_LOADS,
        doc="How often to read the end offsets of the topic partitions while there is nothing to load.",
    )

    @property
    def longest_wait_ms(self) -> int | None:
        """The effective value of ``rotate.interval.ms``; ``None`` means no limit."""
        if self.rotate_interval_ms is not None:
            return None if self.rotate_interval_ms < 0 else self.rotate_interval_ms
        others = (self.rotate_record_interval_ms, self.rotate_schedule_interval_ms, self.rotate_idle_ms)
        return _LONGEST_WAIT_MS if max(others) < 0 else None


C = TypeVar("C", bound=BulkSinkConfig)


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """The records of one topic partition from ``first`` (inclusive) to ``end`` (exclusive).

    ``topic_id`` distinguishes the topic from a later one of the same name (KIP-516); it is ``None`` if the brokers do
    not report topic ids. A task that stores offsets in its target should store the id with them, and refuse ranges
    whose id differs.
    """

    topic: str
    partition: int
    first: int
    end: int
    topic_id: str | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """The topic partition."""
        return TopicPartition(self.topic, self.partition)

    def __len__(self) -> int:
        return self.end - self.first


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a load. The last report also serves as the final account of the load."""

    stage: str
    """The current step, in a few words: ``writing orders``."""
    records: int = 0
    """How many records of the ranges this stage has processed."""
    rows: int = 0
    """How many rows the load has written so far, in all stages; ``bytes`` and ``files`` count the same way."""
    bytes: int = 0
    files: int = 0
    ui: str | None = None
    """The URL of the engine's own web page about the load, if it has one."""


@dataclass(frozen=True, slots=True)
class TablePreview:
    """Rows that a load would write to a table.

    ``place`` is the location of the table, ``folders`` are the folders below it that the rows would go to, if there are
    any. ``schema`` is the schema that the table would have after the load.
    """

    table: str
    place: str
    folders: Sequence[str]
    schema: Schema
    rows: Sequence[Mapping[str, Any]]


class BulkTaskContext(Protocol):
    """Services of the runtime that every bulk task can use."""

    @property
    def connector_name(self) -> str:
        """The name of the connector."""

    @property
    def connector_properties(self) -> Mapping[str, str]:
        """The connector's whole configuration, with the worker's converters filled in where it names none."""

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds``. Return ``False`` as soon as the task must stop or pause, otherwise ``True``."""

    def stopping(self) -> bool:
        """Return whether the task must stop.

        A load that can be abandoned without loss may then raise an error to end early.
        """

    def progress(self, progress: Progress) -> None:
        """Report the progress of the load, for the status, metrics and log.

        May be called from any thread, as often as needed.
        """


class BulkSinkTaskContext(BulkTaskContext, Protocol):
    """Services of the runtime that a bulk sink task can use."""

    @property
    def consumer_properties(self) -> Mapping[str, str]:
        """The Java client properties with which the worker itself would read the topics."""

    @property
    def consumer_settings(self) -> Mapping[str, str | int | bool]:
        """The same settings under librdkafka's names, for a ``confluent_kafka`` consumer. They may contain secrets."""

    @property
    def producer_settings(self) -> Mapping[str, str | int | bool]:
        """Settings, under librdkafka's names, for producers of records sent in addition to the data.

        They may contain secrets.
        """

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Send an additional record to a topic; see :meth:`connect.sink.SinkTaskContext.publish`."""

    def flush_published(self) -> None:
        """Wait until Kafka has acknowledged all published records. Call it before committing the load (invariant I4).

        Raises :class:`~connect.errors.RetriableError` if that takes too long.
        """

    def leave_out(self, bad: Mapping[TopicPartition, OffsetSet], failures: FailuresOf) -> None:
        """Skip bad records of a load. Call it before committing the load (invariant I4).

        The records are reported to the log and the dead letter queue as the ``errors.*`` keys say. ``failures`` is
        asked for the details only if they are to be reported; records that an earlier attempt at the same load has
        already sent to the dead letter queue are not sent again. Once this method returns, the load may be committed
        without the bad records. Raises if ``errors.tolerance`` does not allow them to be skipped.
        """


class BulkSinkTask(Task[C], Generic[C]):
    """Loads offset ranges into a target. A connector has exactly one such task."""

    needs_process = True

    def __init__(self, config: C, context: BulkSinkTaskContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def load(self, ranges: Sequence[OffsetRange]) -> None:
        """Load the ranges and return when they are durable. Their offsets are committed afterwards (invariant I2).

        A load that fails or is killed is planned again, starting from :meth:`committed`.
        """

    def preview(self, ranges: Sequence[OffsetRange], rows: int) -> Iterable[TablePreview]:  # noqa: ARG002
        """Return what a load of these ranges would write, with up to ``rows`` rows of each table.

        Called instead of ``start``, possibly while another process is loading: it must not write, commit or take
        over anything. A task without previews returns nothing.
        """
        return ()

    def committed(self) -> Mapping[TopicPartition, int]:
        """Return the next offset to load of each partition, as stored in the target together with the data.

        Called once after ``start``. These offsets override those committed in Kafka; a partition missing from the
        map continues from the offset committed in Kafka.
        """
        return {}

    def begin_anew(self, topic: str) -> bool:  # noqa: ARG002
        """Forget the offsets of a topic, because it was deleted and created again.

        Return whether the task can load the new topic. If not, as by default, the task fails: the target's offsets are
        those of the former topic.
        """
        return False
