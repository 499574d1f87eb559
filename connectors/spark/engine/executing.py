"""The work of an executor for ``engine=spark``: a sink task of the connector, run over the records of some ranges.

Nothing that goes wrong in the connector is raised here, for Spark would do the work again, and whatever was put would
be put again: it is told to the driver, which decides. What Spark does again is what was lost with a process.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.accumulators import Accumulator

from connect.chain.bounded_sink import BoundedSink, GoesBackError
from connect.chain.sink import SinkChain
from connect.chain.sink_context import SinkContext
from connect.chain.steps import Steps
from connect.chain.tolerance import Failure, Tolerance
from connect.chain.traces import stack_trace
from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.offset_set import OffsetSet
from connect.plugins import PluginKind, class_name
from connect.sink import SinkTask
from connectors.spark.decoding.executor import spare_the_collector
from connectors.spark.decoding.failures import FAILURE_ROWS, failure_row
from connectors.spark.decoding.plugins import executor_plugins, executor_registry
from connectors.spark.decoding.raw import RawBatch
from connectors.spark.decoding.report import PassReports, Rejection
from connectors.spark.engine.accounts import Account, Accounts, Outcome
from connectors.spark.engine.orders import SinkOrders

__all__ = ["SinkRun", "run_partition"]

logger = logging.getLogger(__name__)
_PLACE: Final = ("topic", "partition")


class _UntoldError(ConnectError):
    """The task wants to be sure that its reports are kept, which only the driver can have done."""


class _Reports:
    """Takes the records that are given up; a :class:`~connect.chain.tolerance.Reporter`."""

    def __init__(self, account: Account, given_up: Mapping[TopicPartition, OffsetSet]) -> None:
        self._account = account
        self._given_up = given_up
        self._offsets: dict[TopicPartition, list[int]] = {}
        self._rows: list[dict[str, Any]] = []
        self.is_awaited = False

    def report(self, failure: Failure) -> None:
        """Note a record, unless that was told in an earlier attempt at the load."""
        assert failure.raw is not None
        tp, offset = TopicPartition(failure.raw.topic, failure.raw.partition), failure.raw.offset
        if offset in self._given_up.get(tp, ()):
            return
        if self._account.first is None:
            self._account.first = Rejection(tp.topic, tp.partition, offset, str(failure.error))
        self._offsets.setdefault(tp, []).append(offset)
        self._rows.append(failure_row(failure))

    def flush(self) -> None:
        """Go no further than this if something is reported that the driver does not know yet."""
        if self._account.first is not None:
            self.is_awaited = True
            raise _UntoldError("Records were given up in this load that have to be told of before it goes on.")

    def rows(self) -> Iterator[pa.RecordBatch]:
        """What was reported since the last time, as rows of :data:`FAILURE_ROWS`."""
        for tp, offsets in self._offsets.items():
            self._account.rejected[tp] = self._account.rejected.get(tp, OffsetSet()) | OffsetSet.of(offsets)
        rows, self._rows, self._offsets = self._rows, [], {}
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=FAILURE_ROWS)


class _NoTopics:
    """Publishes nothing: an executor has no producer."""

    def publish(self, topic: str, key: bytes | None, value: bytes | None) -> None:  # noqa: ARG002
        """Refuse to."""
        raise ConnectError(
            f"The task publishes records of its own to {topic}, which it cannot do in an executor of Spark: set "
            "engine=worker, or configure the connector so that it publishes nothing."
        )

    def flush(self) -> None:
        """Do nothing, for there is nothing."""


class SinkRun:
    """Runs a sink task over the records of one Spark partition, and tells of it in an account."""

    def __init__(self, orders: SinkOrders, account: Account) -> None:
        self._orders = orders
        self._account = account
        self._reports = _Reports(account, orders.given_up)
        self._task: SinkTask[Any] | None = None
        self._sink: BoundedSink | None = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Put the records; gives the rows of :data:`FAILURE_ROWS` of those that cannot be written."""
        try:
            yield from self._moved(batches)
        except Exception as error:
            self._note(error)
        finally:
            self._end()
        yield from self._reports.rows()

    def _moved(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for columns in batches:
            for raw in _runs(columns):
                if self._sink is None:
                    self._sink = self._start()
                self._sink.take(raw.consumed(keys=True, headers=True))
            yield from self._reports.rows()
        if self._sink is not None:
            self._sink.finish()

    def _start(self) -> BoundedSink:
        """Start the task; an executor without records has none."""
        orders, policy = self._orders, self._orders.policy
        plugins = executor_plugins(orders.chain, with_keys=True, with_headers=True)
        spare_the_collector()
        # The limits of errors.tolerance hold for all executors: the driver sees to them.
        limits = replace(policy, tolerance_limit=-1, tolerance_rate=-1)
        tolerance = Tolerance(limits, [self._reports], _sleep)
        steps: Steps[SinkBatch, SinkRecord] = Steps(plugins.steps, tolerance)
        chain = SinkChain(steps, plugins.converters, tolerance)
        connector = executor_registry(orders.chain).load(PluginKind.CONNECTOR, orders.connector)
        task_class: Any = connector.task_class
        context = SinkContext(tolerance, class_name(task_class), _NoTopics(), _sleep, reports=orders.reports)
        context.encode = chain.encode
        self._task = task_class(task_class.config_class.parse(orders.task), context)
        assert self._task is not None
        self._task.start()
        return BoundedSink(self._task, context, chain.process, orders.firsts, orders.settled)

    def _note(self, error: Exception) -> None:
        """Tell what has ended the task, whose records that it was given before are made durable if they can be."""
        account, refused = self._account, self._account.first is not None and not self._orders.policy.tolerates_errors
        match error:
            case _ if self._reports.is_awaited and not refused:
                account.outcome = Outcome.UNTOLD
                return
            case GoesBackError():
                account.outcome, account.back = Outcome.BACK, error.offsets
            case _ if refused:
                account.outcome = Outcome.REFUSED
            case RetriableError():
                account.outcome, account.retry_after = Outcome.AGAIN, error.retry_after
            case _:
                account.outcome = Outcome.FAILED
        account.error, account.trace = str(error) or type(error).__name__, stack_trace(error)
        if account.outcome in (Outcome.REFUSED, Outcome.FAILED) and self._sink is not None:
            with suppress(Exception):
                self._sink.flush()

    def _end(self) -> None:
        """Stop the task, whatever has become of it."""
        if self._sink is not None:
            account = self._account
            account.flushed, account.records, account.seconds = (
                self._sink.flushed,
                self._sink.records,
                self._sink.seconds,
            )
            _quietly("close", self._sink.close)
        if self._task is not None:
            _quietly("stop", self._task.stop)


def _quietly(name: str, call: Callable[[], None]) -> None:
    try:
        call()
    except Exception as error:
        logger.warning("The task failed to %s: %s", name, error, exc_info=True)


def run_partition(
    orders: SinkOrders, number: int, accumulator: Accumulator[PassReports[Accounts]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run a sink task over the records of a Spark partition: the function for ``mapInArrow``."""
    account = Account()
    yield from SinkRun(orders, account).run(batches)
    context: Any = TaskContext.get()
    accumulator.add(PassReports({number: Accounts({context.partitionId(): account})}))


def _runs(columns: pa.RecordBatch) -> Iterator[RawBatch]:
    """The records in runs of one topic partition: Spark puts several of these into one partition of its own."""
    size = columns.num_rows
    if not size:
        return
    places: list[Any] = [columns.column(name) for name in _PLACE]
    topics, partitions = (pc.not_equal(each.slice(1), each.slice(0, size - 1)) for each in places)
    ends = [place + 1 for place in pc.indices_nonzero(pc.or_(topics, partitions)).to_pylist()]
    for start, stop in zip([0, *ends], [*ends, size], strict=True):
        part = columns.slice(start, stop - start)
        yield RawBatch(part.column("topic")[0].as_py(), part)


def _sleep(seconds: float) -> bool:
    """Wait: a task that is to stop has its process ended by Spark."""
    time.sleep(seconds)
    return True
