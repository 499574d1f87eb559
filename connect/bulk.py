"""Bulk sinks are given offset ranges in place of records, and read the topics themselves, with Spark for example."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from connect.config import LOW, MEDIUM, Config, Long, at_least, option
from connect.connector import Task
from connect.data import TopicPartition

__all__ = ["BulkSinkConfig", "BulkSinkTask", "BulkSinkTaskContext", "OffsetRange"]


class BulkSinkConfig(Config):
    """The options that decide when a bulk sink is given the next ranges."""

    flush_size: Long = option(
        default=1_000_000,
        importance=MEDIUM,
        validator=at_least(1),
        doc="Most records of one topic partition in one load. A load begins as soon as a partition has that many.",
    )
    rotate_interval_ms: Long = option(
        default=60_000,
        importance=MEDIUM,
        validator=at_least(0),
        doc="Longest time that records wait for a load while flush.size is not reached.",
    )
    poll_interval_ms: Long = option(
        default=500,
        importance=LOW,
        validator=at_least(1),
        doc="Interval at which the end offsets of the topic partitions are read while there is nothing to load.",
    )


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


class BulkSinkTaskContext(Protocol):
    """The services of the runtime that a bulk sink task can use."""

    @property
    def connector_name(self) -> str:
        """The name of the connector."""

    @property
    def consumer_properties(self) -> Mapping[str, str]:
        """Kafka's client properties, by their Java names, for reading the topics as the worker would."""

    @property
    def connector_properties(self) -> Mapping[str, str]:
        """The connector's whole configuration, with the worker's converters filled in where it names none."""

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds``; answer ``False`` as soon as the task is to stop or pause, else ``True``."""

    def stopping(self) -> bool:
        """Whether the task is to stop: a load that can be abandoned without loss may then end early with an error."""


class BulkSinkTask(Task[C], Generic[C]):
    """Loads offset ranges into a target. A connector has one such task."""

    def __init__(self, config: C, context: BulkSinkTaskContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def load(self, ranges: Sequence[OffsetRange]) -> None:
        """Load the ranges and return when they are durable; the offsets are committed after that (invariant I2).

        A load that fails or is killed is planned again, starting from :meth:`committed`.
        """

    def committed(self) -> Mapping[TopicPartition, int]:
        """The next offset to load of each partition, as stored in the target beside the data.

        Called once after :meth:`start`. These offsets override those committed in Kafka; a partition that is not in
        the map continues from the offset committed in Kafka.
        """
        return {}
