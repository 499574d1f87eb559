"""Delivers dead letters again: into their own topics, or straight through the sink's task.

==========================================  ========================================================================
kill -9 here                                then
==========================================  ========================================================================
before or during the delivery               some of the records may be delivered, and none counts as replayed
after it, before the position is kept       the same: replaying again delivers these a second time
after that                                  they are replayed
==========================================  ========================================================================

So a replay is at least once, like everything else (invariant I3).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from connect.bulk import BulkSinkTask
from connect.data import TimestampType, TopicPartition
from connect.errors import ConnectError
from connect.internals.chain.raw_records import ConsumedBatch, RawRecord
from connect.internals.chain.record_trace import SinkTrace, trace_sink
from connect.internals.chain.sink import SinkChain
from connect.internals.chain.sink_context import SinkContext, durable_offsets
from connect.internals.chain.steps import Steps, transformation_steps
from connect.internals.chain.tolerance import Failure, Stage, StageError, Tolerance
from connect.internals.delivery.delivery import client_timestamp
from connect.internals.plugins import class_name
from connect.sink import SinkTask
from worker.errors import BadRequestError
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients, Publisher
from worker.runtime.connector import ConnectorRuntimeContext
from worker.runtime.control import Control
from worker.runtime.link import Link

__all__ = ["TaskReplay", "Trial", "as_consumed", "produce_again", "replayed"]

logger = logging.getLogger(__name__)
_FLUSH_SECONDS: Final = 30.0

Origin = tuple[str, int, int]


def replayed(to: str, records: Sequence[RawRecord], assembly: Assembly, link: Link) -> list[Failure | None]:
    """Deliver records to ``topic`` or ``task``. Return the error of each; ``None`` where there is none."""
    if not records:
        return []
    if to == "topic":
        return produce_again(Clients(assembly, 0).dlq_producer(), records)
    return TaskReplay(assembly, link).deliver(records)


def produce_again(producer: Producer, records: Sequence[RawRecord]) -> list[Failure | None]:
    """Produce records to their original topics and partitions. Return the error of each, or ``None``."""
    outcomes: dict[int, str | None] = {}

    def on_delivery(index: int, error: KafkaError | None, _message: object) -> None:
        outcomes[index] = None if error is None else error.str()

    for index, record in enumerate(records):
        try:
            _produce(producer, record, partial(on_delivery, index))
        except KafkaException as error:
            outcomes[index] = error.args[0].str()
    producer.flush(_FLUSH_SECONDS)
    unknown = f"it was not acknowledged within {_FLUSH_SECONDS:g} s, and may be there or not"
    return [_not_produced(record, outcomes.get(index, unknown)) for index, record in enumerate(records)]


def _produce(producer: Producer, record: RawRecord, on_delivery: Any) -> None:
    where: dict[str, Any] = {"partition": record.partition} if record.partition >= 0 else {}
    while True:
        try:
            producer.produce(
                record.topic,
                record.value,
                record.key,
                headers=list(record.headers),
                on_delivery=on_delivery,
                timestamp=client_timestamp(record.timestamp),
                **where,
            )
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def _not_produced(record: RawRecord, reason: str | None) -> Failure | None:
    if reason is None:
        return None
    error = ConnectError(f"Kafka did not take the record for topic {record.topic}: {reason}")
    return Failure(Stage.KAFKA_PRODUCE, "worker.runtime.dead_letters.replay", error, raw=record)


class _Failures:
    """Collects the failures of a task by origin; a :class:`~connect.internals.chain.tolerance.Reporter`."""

    def __init__(self) -> None:
        self.by_origin: dict[Origin, Failure] = {}

    def report(self, failure: Failure) -> None:
        """Keep a failure; in a sink each belongs to a consumed record."""
        if failure.raw is not None:
            self.by_origin[_origin(failure.raw)] = failure

    def flush(self) -> None:
        """Do nothing: no failure is buffered."""


class TaskReplay:
    """Runs the task of a sink over records, outside of the connector. ``assembly`` has to tolerate errors.

    All records are put together and made durable at once. If the task fails with them, a new task gets each record by
    itself, so that only bad ones fail; what the first task wrote before it failed is then written twice.
    """

    def __init__(self, assembly: Assembly, link: Link) -> None:
        self._assembly = assembly
        self._link = link

    def check(self) -> None:
        """Raise an error if records cannot be delivered to such a task."""
        self._task_class()

    def deliver(self, records: Sequence[RawRecord]) -> list[Failure | None]:
        """Deliver records. Return the error of each, or ``None``. Raises the error of a task that cannot start."""
        together = self._attempt(records)
        if together is not None:
            return together
        alone = [self._attempt([record]) for record in records]
        return [outcome[0] for outcome in alone if outcome is not None]

    def _attempt(self, records: Sequence[RawRecord]) -> list[Failure | None] | None:
        """Return the outcomes; ``None`` if the task failed with several records, so that the bad one is unknown."""
        failures = _Failures()
        with self._session(failures, records) as (task, context, chain):
            try:
                durable = _put(task, context, chain, records)
            except Exception as error:
                if len(records) > 1:
                    logger.warning("The task failed with %d records; each is tried by itself: %s", len(records), error)
                    return None
                return [failures.by_origin.get(_origin(records[0])) or _task_failure(task, error, records[0])]
        return [
            failures.by_origin.get(_origin(record))
            or (None if durable.get(_partition(record), -1) > record.offset else _not_durable(task, record))
            for record in records
        ]

    @contextmanager
    def _session(
        self, failures: _Failures, records: Sequence[RawRecord]
    ) -> Iterator[tuple[SinkTask[Any], SinkContext, SinkChain]]:
        """A task with the partitions of these records."""
        control = Control(self._link)
        tolerance = Tolerance(self._assembly.config.error_policy, [failures], control.wait_unless_stopped)
        task_class = self._task_class()
        publisher = Publisher(Clients(self._assembly, 0))
        context = SinkContext(tolerance, class_name(task_class), publisher, control.wait, reports=True)
        chain = self._assembly.sink_chain(tolerance)
        context.encode = chain.encode
        task = task_class(self._assembly.task_config(self._task_props(control)), context)
        partitions = sorted({_partition(record) for record in records})
        try:
            task.start()
            context.assignment |= set(partitions)
            task.open(partitions)
            self._check_offsets_are_kafkas(context)
            yield task, context, chain
            _quietly(lambda: task.close(partitions))
        finally:
            _quietly(task.stop)
            chain.close()

    def _task_class(self) -> type[SinkTask[Any]]:
        task_class: type[Any] = self._assembly.connector_class.task_class
        if issubclass(task_class, BulkSinkTask) or not issubclass(task_class, SinkTask):
            raise BadRequestError(
                f"to: {class_name(task_class)} is not given records but ranges of its topics, so they cannot go to the "
                "task. Replay to the topic."
            )
        return task_class

    def _task_props(self, control: Control) -> Mapping[str, str]:
        context = ConnectorRuntimeContext(self._link, control)
        connector = self._assembly.connector_class(self._assembly.connector_config, context)
        connector.start()
        try:
            configs = connector.task_configs(1)
        finally:
            context.close()
            connector.stop()
        if not configs:
            raise ConnectError("The connector has no tasks now, so there is none to replay to.")
        return {key: value for key, value in configs[0].items() if value is not None}

    def _check_offsets_are_kafkas(self, context: SinkContext) -> None:
        if context.rewinds:
            raise BadRequestError(
                "to: the task keeps offsets in its target, and would take these records for old ones or forget where "
                "it stands. Replay to the topic."
            )


def _put(
    task: SinkTask[Any], context: SinkContext, chain: SinkChain, records: Sequence[RawRecord]
) -> Mapping[TopicPartition, int]:
    """Put records and make them durable. Return up to which offset they are, by partition."""
    ends: dict[TopicPartition, int] = {}
    for topic, group in groupby(sorted(records, key=_origin), key=lambda record: record.topic):
        consumed = as_consumed(topic, list(group))
        context.consumed = consumed
        for batch in chain.process(consumed):
            task.put(batch)
    for record in records:
        partition = _partition(record)
        ends[partition] = max(ends.get(partition, 0), record.offset + 1)
    durable = durable_offsets(task, task.pre_commit(ends))
    context.flush_published()
    return durable


def as_consumed(topic: str, records: Sequence[RawRecord]) -> ConsumedBatch:
    """Records of one topic as input of the chain."""
    return ConsumedBatch(
        topic=topic,
        keys=[record.key for record in records],
        values=[record.value for record in records],
        partitions=[record.partition for record in records],
        offsets=[record.offset for record in records],
        timestamps=[record.timestamp for record in records],
        timestamp_types=[TimestampType(record.timestamp_type) for record in records],
        headers=[record.headers for record in records],
    )


def _task_failure(task: SinkTask[Any], error: Exception, record: RawRecord) -> Failure:
    return Failure(Stage.TASK_PUT, class_name(task), error, raw=record)


def _not_durable(task: SinkTask[Any], record: RawRecord) -> Failure:
    error = ConnectError("The task took the record but does not say that it is durable; it may be there or not.")
    return _task_failure(task, error, record)


def _quietly(step: Any) -> None:
    try:
        step()
    except Exception as error:
        logger.warning("The task failed to end: %s", error, exc_info=True)


def _origin(record: RawRecord) -> Origin:
    return record.topic, record.partition, record.offset


def _partition(record: RawRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


class Trial:
    """Takes records through the converters and transformations of a sink, one by one."""

    def __init__(self, assembly: Assembly) -> None:
        self._tolerance = Tolerance(assembly.config.error_policy, (), lambda _: False)
        self._steps = transformation_steps(assembly.registry, assembly.config.transformations())
        self._decoder = SinkChain(Steps((), self._tolerance), assembly.converters(), self._tolerance)

    def traced(self, record: RawRecord) -> SinkTrace:
        """Return the way of a record through the chain."""
        return trace_sink(as_consumed(record.topic, [record]), 0, self._steps, self._decoder, self._tolerance)

    def refusal(self, record: RawRecord) -> str | None:
        """Return why a record would fail again, as a replay says it; ``None`` if it passes the chain."""
        error = self.error_of(self.traced(record))
        return None if error is None else f"{error.stage.value}: {error.cause}"

    @staticmethod
    def error_of(trace: SinkTrace) -> StageError | None:
        """Return the error that stops a record in the chain, if any; being dropped by a transformation is none."""
        return trace.error or next((step.error for step in trace.steps if step.error is not None), None)
