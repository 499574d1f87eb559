"""``df.write`` and ``df.writeStream``: the rows of a DataFrame through a sink connector.

Each of Spark's tasks has a sink task of its own, for one partition of the rows. A kill, or a task that Spark tries
again, has the rows of that partition written again, with the same partition and offsets as before where Spark computes
the same rows: at least once, and exactly once in targets that know a record by its key or by its place.

==================================  =====================================================================
kill -9 here                        then
==================================  =====================================================================
after a put, before the flush       Spark tries the partition again, or fails the job: what the target has
                                    taken stays in it
after the flush, before Spark's     the same, for all rows of the partition; a stream plans the micro-batch
commit                              again with its number, so that its offsets are the same
after Spark's commit                nothing: the rows are in the target
==================================  =====================================================================
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from connect.data import SinkBatch, SinkRecord, ValueColumn
from connect.errors import ConfigError, ConnectError, RetriableError
from connect.sink import SinkTask
from connectors.spark.datasource.chain import RecordChain, logging_tolerance
from connectors.spark.datasource.contexts import PlainConnectorContext, SinkContext
from connectors.spark.datasource.deployment import Deployment
from connectors.spark.datasource.records import RecordShape
from connectors.spark.datasource.references import secrets_hidden

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["SinkStreamWriter", "SinkWriter", "Written", "write_rows"]

_log = logging.getLogger(__name__)

_PATIENCE: Final = 60.0
"""Seconds for which a sink may ask for the same records again."""

_RETRY: Final = 1.0
_ONLY_APPENDS: Final = (
    "A sink adds to its target: use mode append (outputMode append or update), and empty the target yourself before, "
    "if it is to hold these rows alone."
)
_BATCH_ID: Final = "streaming.sql.batchId"
_ROWS_OF_A_BATCH: Final = 2**32
"""Room for the offsets of one micro-batch, so that those of the next are greater."""


class Written(WriterCommitMessage):
    """What one of Spark's tasks has written."""

    def __init__(self, rows: int) -> None:
        self.rows = rows


@dataclass(frozen=True, slots=True)
class Order:
    """A write as Spark's tasks are told of it: plain data, with references to what is secret."""

    options: Mapping[str, str]
    task_config: Mapping[str, str]
    shape: RecordShape

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> Order:
        """The order for rows of that schema; a :class:`~connect.errors.ConnectError` says what is wrong with it."""
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
                raise ConnectError(f"{deployment.config.connector_class} wants no task: nothing would be written.")
            return cls(dict(options), deployment.storable(configs[0]), shape)


class SinkWriter(DataSourceArrowWriter):
    """Writes a DataFrame."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        self._order = Order.of(options, schema, overwrite=overwrite)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of one partition; in a worker of an executor."""
        context: Any = TaskContext.get()
        return write_rows(self._order, iterator, context.partitionId(), 0)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Tell the log what was written: it is durable already."""
        _log.info("%d rows were written", _count(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Tell the log what stays in the target."""
        _log.warning("The write failed; %s", _left(messages))


class SinkStreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of a stream."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        self._order = Order.of(options, schema, overwrite=overwrite)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of one partition of a micro-batch; in a worker of an executor."""
        context: Any = TaskContext.get()
        number = int(context.getLocalProperty(_BATCH_ID) or 0)
        return write_rows(self._order, iterator, context.partitionId(), number * _ROWS_OF_A_BATCH)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Tell the log what was written."""
        _log.info("%d rows of micro-batch %d were written", _count(messages), batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - as above
        """Tell the log what stays in the target."""
        _log.warning("Micro-batch %d failed and comes again; %s", batchId, _left(messages))


def write_rows(order: Order, rows: Iterator[pa.RecordBatch], partition: int, first: int) -> Written:
    """Write the rows of one partition, numbered from ``first`` on, and return when they are durable."""
    deployment = Deployment.of_sink(order.options)
    with secrets_hidden(deployment.secrets()), ExitStack() as stack:
        task = _Task(deployment, order, partition, stack)
        offset = first
        for batch in rows:
            task.put(order.shape.records(batch, partition, offset))
            offset += batch.num_rows
        task.finish()
        return Written(offset - first)


class _Task:
    """A sink task that has been started, for one partition of the rows."""

    def __init__(self, deployment: Deployment, order: Order, partition: int, stack: ExitStack) -> None:
        policy = deployment.config.policy
        tolerance = logging_tolerance(policy)
        self._origin = order.shape.origin(partition)
        self._chain: RecordChain[SinkBatch, SinkRecord] = RecordChain(deployment.steps(), tolerance)
        stack.callback(self._chain.close)
        self._context = SinkContext(self._origin, tolerance, deployment.task_class, reports=policy.tolerates_errors)
        made: Any = deployment.task(order.task_config, self._context)
        self._task: SinkTask[Any] = made
        stack.callback(self._task.stop)
        self._task.start()
        self._task.open([self._origin])
        self._name = deployment.task_class
        self._end: int | None = None

    def put(self, batch: SinkBatch) -> None:
        """Put a batch, again and again while the task asks for that."""
        for part in self._chain.process(batch):
            self._patiently(partial(self._task.put, part))
            self._end = part.original_offsets[-1] + 1

    def finish(self) -> None:
        """Return when all records that were put are durable, as far as the task tells."""
        if self._end is not None:
            self._commit(self._end)
        self._task.close([self._origin])

    def _commit(self, end: int) -> None:
        wanted = {self._origin: end}
        until = time.monotonic() + _PATIENCE
        while (done := self._patiently(partial(self._task.pre_commit, wanted)).get(self._origin, -1)) < end:
            if time.monotonic() > until:
                raise ConnectError(
                    f"{self._name} says of {end - max(done, 0)} records that they are not durable yet, and has said so "
                    f"for {_PATIENCE:g} seconds: it waits for more records, or its target does not take them. See the "
                    "options that make it write at once (such as flush.size)."
                )
            self._context.wait(min(self._context.retry_after or _RETRY, _RETRY))
            self._patiently(partial(self._task.put, _nothing(self._origin.topic)))

    def _patiently(self, call: Callable[[], Any]) -> Any:
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return call()
            except RetriableError as error:
                if time.monotonic() > until:
                    raise
                _log.warning("The sink asks to be tried again: %s", error)
                self._context.wait(error.retry_after or self._context.retry_after or _RETRY)


def _nothing(topic: str) -> SinkBatch:
    return SinkBatch(topic, ValueColumn([]), ValueColumn([]), [], [], [], [], [], topic, [], [])


def _count(messages: Sequence[WriterCommitMessage | None]) -> int:
    return sum(message.rows for message in messages if isinstance(message, Written))


def _left(messages: Sequence[WriterCommitMessage | None]) -> str:
    finished = sum(isinstance(message, Written) for message in messages)
    return (
        f"{_count(messages)} rows of {finished} finished partitions are in the target, and some others may be: "
        "no sink takes rows back. Written again, rows come twice unless the target knows them by their key."
    )
