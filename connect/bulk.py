"""Bulk sinks: they are not fed records but offset ranges, and read the topics themselves (with Spark, say)."""

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
    """When a bulk sink is given the next ranges."""

    flush_size: Long = option(
        default=1_000_000,
        importance=MEDIUM,
        validator=at_least(1),
        doc="Most records of one topic partition in one load. A load begins as soon as a partition has so many.",
    )
    rotate_interval_ms: Long = option(
        default=60_000,
        importance=MEDIUM,
        validator=at_least(0),
        doc="Longest wait, on the wall clock, until records are loaded although flush.size is not reached.",
    )
    poll_interval_ms: Long = option(
        default=500,
        importance=LOW,
        validator=at_least(1),
        doc="How often the ends of the topic partitions are looked up while there is nothing to load.",
    )


C = TypeVar("C", bound=BulkSinkConfig)


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """The records of one topic partition from ``first`` up to, not including, ``end``.

    ``topic_id`` tells the topic from another that later has its name (KIP-516); it is ``None`` if the brokers do not
    tell. A task that keeps offsets in its target should keep it with them, and refuse the ranges of another topic.
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
    """What the runtime offers a bulk sink task."""

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
        """Wait, unless the task is stopped or paused first; whether it may go on."""

    def stopping(self) -> bool:
        """Whether the task is to stop: a load that can be given up without loss may end early with an error."""


class BulkSinkTask(Task[C], Generic[C]):
    """Loads offset ranges into a target. There is one such task a connector."""

    def __init__(self, config: C, context: BulkSinkTaskContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def load(self, ranges: Sequence[OffsetRange]) -> None:
        """Load the ranges; return when they are durable. The offsets are committed after that (invariant I2).

        A load that fails or is killed will be planned again, from what :meth:`committed` says then.
        """

    def committed(self) -> Mapping[TopicPartition, int]:
        """The next offset to load of each partition, as kept in the target beside the data.

        They are asked for once after :meth:`start` and count for more than those committed in Kafka. A partition that
        is not in the map continues from Kafka's committed offset.
        """
        return {}
