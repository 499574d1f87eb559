"""``df.write`` and ``df.writeStream``: the rows of a DataFrame through a sink connector.

Each Spark task has its own sink task, for one partition of the rows. After a kill, or when Spark retries a task, the
rows of that partition are written again, with the same partition and offsets as before if Spark computes the same rows:
at least once, and exactly once in targets that identify a record by its key or by its partition and offset.

==================================  =====================================================================
kill -9 here                        then
==================================  =====================================================================
after a put, before the flush       Spark retries the partition, or fails the job: what the target has
                                    taken stays in it
after the flush, before Spark's     the same, for all rows of the partition; a stream plans the micro-batch
commit                              again under its number, so that its offsets are the same
after Spark's commit                nothing: the rows are in the target
==================================  =====================================================================
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from connect.data import Constant, SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConfigError, ConnectError
from connect.internals.chain.bounded_sink import BoundedSink
from connect.internals.chain.raw_records import ConsumedBatch
from connect.internals.chain.sink_context import SinkContext
from connectors.spark.datasource.chain import RecordChain, logging_tolerance
from connectors.spark.datasource.contexts import NoTopics, PlacelessContext, PlainConnectorContext, sleep
from connectors.spark.datasource.deployment import Deployment
from connectors.spark.datasource.options import secrets_hidden
from connectors.spark.datasource.records import RecordShape

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["Order", "SinkStreamWriter", "SinkWriter", "Written", "write_rows"]

_log = logging.getLogger(__name__)

_PATIENCE_SECONDS: Final = 60.0
"""How long, in seconds, a sink may hold back its last records."""

_ONLY_APPENDS: Final = (
    "A sink adds to its target: use mode append (outputMode append), and empty the target yourself before, "
    "if it is to hold these rows alone."
)
_BATCH_ID: Final = "streaming.sql.batchId"
_ROWS_OF_A_BATCH: Final = 2**32
"""The range of offsets reserved for one micro-batch, so that those of the next are greater."""


class Written(WriterCommitMessage):
    """The result of one Spark task."""

    def __init__(self, rows: int) -> None:
        self.rows = rows


@dataclass(frozen=True, slots=True)
class Order:
    """A write order for Spark's tasks: plain data, with references in place of secrets."""

    options: Mapping[str, str]
    task_config: Mapping[str, str]
    shape: RecordShape

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> Order:
        """Return the order for rows of this schema; raises a :class:`~connect.errors.ConnectError` that says what is
        wrong with it.
        """
        deployment = Deployment.of_sink(options)
        if overwrite:
            raise ConfigError("mode", "overwrite", _ONLY_APPENDS)
        with secrets_hidden(deployment.secrets()):
            shape = RecordShape.of(schema, deployment.config)
            context = PlainConnectorContext()
            connector = deployment.connector(context)
            try:
                connector.start()
                configs = connector.task_configs(1)
                context.check()
            finally:
                context.end()
                connector.stop()
            if not configs:
                raise ConnectError(f"{deployment.config.connector_class} has no tasks, so nothing would be written.")
            return cls(dict(options), deployment.storable(configs[0]), shape)


class SinkWriter(DataSourceArrowWriter):
    """Writes a DataFrame."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        self._order = Order.of(options, schema, overwrite=overwrite)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of one partition; runs in an executor's Python worker."""
        context: Any = TaskContext.get()
        return write_rows(self._order, iterator, context.partitionId(), 0)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log what was written: it is durable already."""
        _log.info("%d rows were written", _count(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log what stays in the target."""
        _log.warning("The write failed; %s", _left(messages))


class SinkStreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of a stream."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        self._order = Order.of(options, schema, overwrite=overwrite)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of one partition of a micro-batch; runs in an executor's Python worker."""
        context: Any = TaskContext.get()
        number = int(context.getLocalProperty(_BATCH_ID) or 0)
        return write_rows(self._order, iterator, context.partitionId(), number * _ROWS_OF_A_BATCH)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Log what was written."""
        _log.info("%d rows of micro-batch %d were written", _count(messages), batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - as above
        """Log what stays in the target."""
        _log.warning("Micro-batch %d failed and will be repeated; %s", batchId, _left(messages))


def write_rows(order: Order, rows: Iterator[pa.RecordBatch], partition: int, first: int) -> Written:
    """Write the rows of one partition, numbered from ``first`` on, and return when they are durable."""
    deployment = Deployment.of_sink(order.options)
    with secrets_hidden(deployment.secrets()), ExitStack() as stack:
        sink = _Sink(deployment, order, TopicPartition(order.shape.topic, partition), first, stack)
        offset = first
        for batch in filter(len, rows):
            sink.put(order.shape.records(batch, partition, offset))
            offset += batch.num_rows
        sink.finish()
        return Written(offset - first)


class _Sink:
    """A started sink task that processes the records of one partition just as in any other runtime."""

    def __init__(
        self, deployment: Deployment, order: Order, origin: TopicPartition, first: int, stack: ExitStack
    ) -> None:
        policy, name = deployment.config.policy, deployment.task_class
        tolerance = logging_tolerance(policy)
        self._chain: RecordChain[SinkBatch, SinkRecord] = RecordChain(deployment.steps(), tolerance)
        stack.callback(self._chain.close)
        context = SinkContext(tolerance, name, NoTopics(name), sleep, reports=policy.tolerates_errors)
        task: Any = deployment.task(order.task_config, PlacelessContext(context, name))
        stack.callback(task.stop)
        task.start()
        self._records = SinkBatch.empty(order.shape.topic)
        self._sink = BoundedSink(task, context, self._transformed, {origin: first}, patience=_PATIENCE_SECONDS)

    def put(self, records: SinkBatch) -> None:
        """Put records that were never serialized."""
        self._records = records
        absent: Constant[None] = Constant(None, len(records))
        offsets, partitions = records.original_offsets, records.original_partitions
        self._sink.take(
            ConsumedBatch(records.topic, absent, absent, partitions, offsets, absent, records.timestamp_types, absent)
        )

    def finish(self) -> None:
        """Return when all records are durable."""
        self._sink.finish()
        self._sink.close()

    def _transformed(self, _: ConsumedBatch) -> list[SinkBatch]:
        return self._chain.process(self._records)


def _count(messages: Sequence[WriterCommitMessage | None]) -> int:
    return sum(message.rows for message in messages if isinstance(message, Written))


def _left(messages: Sequence[WriterCommitMessage | None]) -> str:
    finished = sum(isinstance(message, Written) for message in messages)
    return (
        f"{_count(messages)} rows of {finished} finished partitions are in the target, and some others may be: "
        "no sink takes rows back. Written again, rows come twice unless the target knows them by their key."
    )
