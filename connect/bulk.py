"""Bulk sinks are given offset ranges in place of records, and read the topics themselves, with Spark for example."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connect.chain.tolerance import Failure
from connect.config import LOW, MEDIUM, Config, Long, at_least, between, option, validator
from connect.connector import Task
from connect.data import Schema, TopicPartition
from connect.errors import ConfigError
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
    """Refuse what is no time zone of the IANA database."""
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        reason = "It is no time zone: use a name such as UTC or Europe/Berlin."
        raise ConfigError(key, value, reason) from None


@validator("[-1,...]")
def _at_least_never(key: str, value: int) -> None:
    if value < _NEVER:
        raise ConfigError(key, value, "Value must be at least -1, which is never.")


class BulkSinkConfig(Config):
    """The options that decide when a bulk sink is given the next ranges, and how large they are."""

    flush_size: Long = option(
        default=1_000_000,
        importance=MEDIUM,
        validator=at_least(1),
        group=_LOADS,
        doc="Most records of one topic partition in one load. A load begins as soon as a partition has that many.",
    )
    flush_bytes: Long = option(
        default=1 << 30,
        importance=MEDIUM,
        validator=at_least(1),
        group=_LOADS,
        doc="Most bytes of one topic partition in one load, estimated from the size of some of its records. A load "
        "begins as soon as a partition has that many.",
    )
    load_max_bytes: Long = option(
        default=10 << 30,
        importance=LOW,
        validator=at_least(1),
        group=_LOADS,
        doc="Most bytes of one load, by the same estimate. If more is due, several loads follow each other, in which "
        "the partitions take turns.",
    )
    rotate_interval_ms: Long | None = option(
        default=None,
        importance=MEDIUM,
        validator=_at_least_never,
        group=_LOADS,
        doc="Longest time, by the clock, that records wait for a load while no other limit is reached; -1 is for ever. "
        "60000 if it is not given and no other rotate key is either, else -1.",
    )
    rotate_record_interval_ms: Long = option(
        default=-1,
        importance=LOW,
        validator=at_least(-1),
        group=_LOADS,
        doc="Divides loads by the time of the records: a load ends where the first record of another window of this "
        "length is (counted from 1970 in UTC), and begins as soon as there is one. -1 is never.",
    )
    rotate_schedule_interval_ms: Long = option(
        default=-1,
        importance=MEDIUM,
        validator=between(-1, 86_400_000),
        group=_LOADS,
        doc="Interval at which all that waits is loaded, by the clock, counted from midnight in timezone: at most a "
        "day. -1 is never.",
    )
    rotate_idle_ms: Long = option(
        default=-1,
        importance=MEDIUM,
        validator=at_least(-1),
        group=_LOADS,
        doc="Time after which a topic to which nothing has come is loaded, without the others. -1 is never.",
    )
    timezone: str = option(
        default="UTC",
        importance=LOW,
        validator=_time_zone,
        group=_LOADS,
        doc="Time zone of the midnight that rotate.schedule.interval.ms counts from, such as Europe/Berlin.",
    )
    poll_interval_ms: Long = option(
        default=500,
        importance=LOW,
        validator=at_least(1),
        group=_LOADS,
        doc="Interval at which the end offsets of the topic partitions are read while there is nothing to load.",
    )

    @property
    def longest_wait_ms(self) -> int | None:
        """``rotate.interval.ms`` as it holds; ``None`` is for ever."""
        if self.rotate_interval_ms is not None:
            return None if self.rotate_interval_ms < 0 else self.rotate_interval_ms
        others = (self.rotate_record_interval_ms, self.rotate_schedule_interval_ms, self.rotate_idle_ms)
        return _LONGEST_WAIT_MS if max(others) < 0 else None


C = TypeVar("C", bound=BulkSinkConfig)


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """The records of one topic partition from ``first`` up to, not including, ``end``.

    ``topic_id`` tells the topic from a later one of the same name (KIP-516); it is ``None`` if the brokers report none.
    A task that keeps offsets in its target should keep it with them, and refuse the ranges of another topic.
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
    """How far a load has come. What a task tells last stays as the account of the load."""

    stage: str
    """The work under way, in a few words: ``writing orders``."""
    records: int = 0
    """How many records of the ranges this stage has come past."""
    rows: int = 0
    """How many rows the load has written so far, over all of its stages; so are ``bytes`` and ``files``."""
    bytes: int = 0
    files: int = 0
    ui: str | None = None
    """The URL of the engine's own pages about the load, if it has any."""


@dataclass(frozen=True, slots=True)
class TablePreview:
    """Rows that a load would write into a table.

    ``place`` is where the table is, ``folders`` those below it that the rows would be in, if there are any. ``schema``
    is what the table would have after the load.
    """

    table: str
    place: str
    folders: Sequence[str]
    schema: Schema
    rows: Sequence[Mapping[str, Any]]


class BulkTaskContext(Protocol):
    """The services of the runtime that every bulk task can use."""

    @property
    def connector_name(self) -> str:
        """The name of the connector."""

    @property
    def connector_properties(self) -> Mapping[str, str]:
        """The connector's whole configuration, with the worker's converters filled in where it names none."""

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds``; answer ``False`` as soon as the task is to stop or pause, else ``True``."""

    def stopping(self) -> bool:
        """Whether the task is to stop: a load that can be abandoned without loss may then end early with an error."""

    def progress(self, progress: Progress) -> None:
        """Tell how far the load is, for status, metrics and log: from any thread, and as often as there is news."""


class BulkSinkTaskContext(BulkTaskContext, Protocol):
    """The services of the runtime that a bulk sink task can use."""

    @property
    def consumer_properties(self) -> Mapping[str, str]:
        """Kafka's client properties, by their Java names, for reading the topics as the worker would."""

    @property
    def consumer_settings(self) -> Mapping[str, str | int | bool]:
        """The same by librdkafka's names, for a consumer of ``confluent_kafka``. They may hold secrets."""

    @property
    def producer_settings(self) -> Mapping[str, str | int | bool]:
        """Settings by librdkafka's names for producers of records that tasks send beside their data. They may hold
        secrets.
        """

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Send a record beside the data, as :meth:`connect.sink.SinkTaskContext.publish` does."""

    def flush_published(self) -> None:
        """Wait until Kafka has what was published, before the load is committed (invariant I4).

        Raises :class:`~connect.errors.RetriableError` if that takes long.
        """

    def leave_out(self, bad: Mapping[TopicPartition, OffsetSet], failures: FailuresOf) -> None:
        """Leave records of a load out, before the load is committed (invariant I4).

        What is wrong with them is asked of ``failures``, if anybody is to be told: they go to the log and to the dead
        letter queue, as ``errors.*`` say. Those that an earlier try of the same load has sent there are not sent again.
        When this returns the load may be committed without them. Raises unless ``errors.tolerance`` allows it.
        """


class BulkSinkTask(Task[C], Generic[C]):
    """Loads offset ranges into a target. A connector has one such task."""

    needs_process = True

    def __init__(self, config: C, context: BulkSinkTaskContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def load(self, ranges: Sequence[OffsetRange]) -> None:
        """Load the ranges and return when they are durable; the offsets are committed after that (invariant I2).

        A load that fails or is killed is planned again, starting from :meth:`committed`.
        """

    def preview(self, ranges: Sequence[OffsetRange], rows: int) -> Iterable[TablePreview]:  # noqa: ARG002
        """Show what a load of these ranges would write: of each table up to ``rows`` rows.

        Called in place of :meth:`start`, while another process may load: nothing may be written, committed or taken
        over. A task that cannot tell shows nothing.
        """
        return ()

    def committed(self) -> Mapping[TopicPartition, int]:
        """The next offset to load of each partition, as stored in the target beside the data.

        Called once after :meth:`start`. These offsets override those committed in Kafka; a partition that is not in
        the map continues from the offset committed in Kafka.
        """
        return {}
