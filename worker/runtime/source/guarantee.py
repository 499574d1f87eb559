"""The guarantee of a source task, at least once or exactly once, with its producer, offset reader and commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from connect.internals.delivery.delivery import Delivery
from connect.internals.delivery.submissions import SubmittedRecords
from connect.internals.kafka.clients import librdkafka
from connect.source import TransactionContext
from worker.kafka.clients import roles
from worker.kafka.topics.admin import ensure_compacted
from worker.kafka.topics.creation import NewTopic
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients
from worker.runtime.control import Control
from worker.runtime.metrics import TaskMetrics
from worker.runtime.offsets.offsets import (
    OffsetCommitter,
    OffsetWriter,
    WorkerOffsetCopy,
    WorkerOffsetReader,
    WorkerOffsetWriter,
)
from worker.runtime.offsets.topic import MergedOffsetReader, OffsetReader, TopicOffsetReader, TopicOffsetWriter
from worker.runtime.source.commits import AtLeastOnce, WatchedTask
from worker.runtime.source.exactly_once import ExactlyOnce, TransactionOffsets, TransactionSizes
from worker.runtime.source.fencing import confirm_ownership
from worker.runtime.source.producer import TransactionalProducer
from worker.runtime.source.transactions import (
    Boundary,
    ConnectorBoundary,
    IntervalBoundary,
    PollBoundary,
    TransactionRequests,
)

__all__ = [
    "AtLeastOnceGuarantee",
    "ExactlyOnceGuarantee",
    "Guarantee",
    "create_offsets_topic",
    "guarantee_of",
    "offset_reader",
]


class AtLeastOnceGuarantee:
    """At least once: the worker, or the task in the connector's own topic, stores offsets of acknowledged records."""

    transaction_context: TransactionContext | None = None
    resends = True

    def __init__(self, assembly: Assembly, control: Control, clients: Clients, task: int) -> None:
        self.producer = clients.source_producer()
        self.keeps_order = clients.source_producer_keeps_order
        self.reader = offset_reader(assembly, control, task)
        self._assembly = assembly
        self._control = control

    def commits(
        self, task: WatchedTask, delivery: Delivery, before_commit: Callable[[], None], metrics: TaskMetrics
    ) -> AtLeastOnce:
        """Return the commits, every ``offset.flush.interval.ms`` of the worker."""
        worker, submitted = self._assembly.worker, SubmittedRecords()
        patience = worker.offset_flush_timeout_ms / 1000
        committer = OffsetCommitter(
            self._writer(),
            submitted,
            before_commit,
            task.commit,
            metrics.timings,
            interval=worker.offset_flush_interval_ms / 1000,
            timeout=patience,
        )
        return AtLeastOnce(self._assembly.config.name, task, delivery, submitted, committer, patience=patience)

    def rest(self) -> None:
        """Close the producer until there is something to send."""
        self.producer.rest()

    def _writer(self) -> OffsetWriter:
        topic = self._assembly.dedicated_offsets_topic
        if topic is None:
            return WorkerOffsetWriter(self._control)
        return TopicOffsetWriter(topic, self._assembly.config.name, self.producer, WorkerOffsetCopy(self._control).keep)


class ExactlyOnceGuarantee:
    """Exactly once: the task writes its offsets itself, in the transactions of its records.

    Making this fences a former process of the task, so that everything that it has committed can be read.
    """

    resends = False
    keeps_order = True

    def __init__(self, assembly: Assembly, control: Control, clients: Clients, task: int) -> None:
        name = assembly.config.name
        self.producer, timeout = clients.transactional_producer()
        self._transactions = TransactionalProducer(
            self.producer,
            f"{name}-{task}",
            transactional_id=clients.transactional_id,
            timeout=timeout,
            patience=assembly.worker.offset_flush_timeout_ms / 1000,
            is_stopping=control.is_stopping,
        )
        self._transactions.start()
        confirm_ownership(control)
        offsets_topic = assembly.transaction_offsets_topic
        self.reader = offset_reader(
            assembly, control, task, lambda partitions: self._transactions.end_lost(offsets_topic, partitions)
        )
        requests = TransactionRequests()
        self.transaction_context = requests if assembly.source_config.boundary == "connector" else None
        self._boundary = _boundary(assembly, requests)
        self._assembly = assembly
        self._control = control

    def commits(
        self, task: WatchedTask, delivery: Delivery, before_commit: Callable[[], None], metrics: TaskMetrics
    ) -> ExactlyOnce:
        """Return the commits, where ``transaction.boundary`` decides."""
        name, topic = self._assembly.config.name, self._assembly.transaction_offsets_topic
        offsets = TransactionOffsets(name, topic, TopicOffsetWriter(topic, name, self.producer), self._copy())
        return ExactlyOnce(
            task,
            delivery,
            self._control,
            self._transactions,
            offsets,
            self._boundary,
            before_commit=before_commit,
            sizes=TransactionSizes(metrics),
            timings=metrics.timings,
            passing=self._assembly.worker.offset_flush_interval_ms / 1000,
        )

    def rest(self) -> None:
        """Keep the producer, which keeps former processes of the task fenced."""

    def _copy(self) -> Callable[[messages.OffsetPairs], None]:
        """Return the function that updates the worker's copy after a commit: the copy must not be ahead of the
        topic.
        """
        return WorkerOffsetCopy(self._control).keep if self._assembly.dedicated_offsets_topic else lambda _: None


Guarantee: TypeAlias = AtLeastOnceGuarantee | ExactlyOnceGuarantee
"""The guarantee of a source task. Used by the task's thread alone.

``commits`` returns the commits of what a delivery sends; it makes reports durable before each commit.
"""


def guarantee_of(assembly: Assembly, control: Control, clients: Clients, task: int) -> Guarantee:
    """Return the guarantee by the worker's ``exactly.once.source.support``."""
    kind = ExactlyOnceGuarantee if assembly.supports_exactly_once else AtLeastOnceGuarantee
    return kind(assembly, control, clients, task)


def offset_reader(
    assembly: Assembly, control: Control, task: int | None, end_lost: Callable[[Sequence[int]], None] | None = None
) -> OffsetReader:
    """Return the reader of a connector's offsets, for a task or itself; creates the connector's own topic if
    missing.
    """
    own = assembly.dedicated_offsets_topic
    if own is not None:
        create_offsets_topic(assembly, own, task)
        return MergedOffsetReader(_topic_reader(assembly, own, task, end_lost), WorkerOffsetReader(control))
    if assembly.supports_exactly_once:
        return _topic_reader(assembly, assembly.transaction_offsets_topic, task, end_lost)
    return WorkerOffsetReader(control)


def _topic_reader(
    assembly: Assembly, topic: str, task: int | None, end_lost: Callable[[Sequence[int]], None] | None
) -> TopicOffsetReader:
    worker, props = assembly.worker_props, assembly.props
    consumer = roles.source_offsets_consumer_properties(
        worker, props, task, exactly_once=assembly.supports_exactly_once
    )
    producer = roles.source_producer_properties(worker, props, task or 0)
    return TopicOffsetReader(topic, assembly.config.name, consumer, producer, end_lost)


def create_offsets_topic(assembly: Assembly, topic: str, task: int | None) -> None:
    """Create a connector's dedicated offsets topic if it is missing, and refuse one that is not compacted."""
    distributed = assembly.distributed
    new_topic = NewTopic(topic)
    if distributed is not None:
        new_topic = NewTopic(
            topic, distributed.offset_storage_partitions, distributed.offset_storage_replication_factor
        )
    admin = librdkafka.admin(roles.admin_properties(assembly.worker_props, assembly.props, task))
    ensure_compacted(admin, new_topic, key="offsets.storage.topic", purpose="source connector offsets")


def _boundary(assembly: Assembly, requests: TransactionRequests) -> Boundary:
    config = assembly.source_config
    match config.boundary:
        case "connector":
            return ConnectorBoundary(requests)
        case "interval":
            milliseconds = config.transaction_boundary_interval_ms
            if milliseconds is None:
                milliseconds = assembly.worker.offset_flush_interval_ms
            return IntervalBoundary(milliseconds / 1000, time.monotonic())
        case _:
            return PollBoundary()
