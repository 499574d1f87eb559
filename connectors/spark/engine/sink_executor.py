"""The executor's work for ``engine=spark``: runs a sink task over the records of some ranges.

Failures of the connector are not raised here, because Spark would repeat the work and put the same records again. They
are reported to the driver, which decides. Spark repeats only what was lost with a process.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import Accumulator

from connect.bulk import OffsetRange
from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.bounded_sink import BoundedSink, GoesBackError
from connect.internals.chain.sink import SinkChain
from connect.internals.chain.sink_context import SinkContext
from connect.internals.chain.stack_trace import stack_trace
from connect.internals.chain.steps import Steps
from connect.internals.chain.tolerance import Failure, Tolerance
from connect.internals.consumption.ranges import RangeReader, RangesGoneError, RangesStalledError
from connect.internals.plugins import class_name
from connect.offset_set import OffsetSet
from connect.sink import SinkTask
from connectors.spark.decoding.executor import spare_the_collector
from connectors.spark.decoding.failures import FAILURE_ROWS, failure_row
from connectors.spark.decoding.plugins import executor_connector, executor_plugins
from connectors.spark.decoding.report import RECORDS_OF_MARK, PassReports, Rejection
from connectors.spark.engine.sink_accounts import Account, Accounts, Outcome
from connectors.spark.engine.sink_orders import SinkOrders
from connectors.spark.engine.task_publisher import TaskPublisher
from connectors.spark.errors import TOO_LITTLE_MEMORY

__all__ = ["SinkRun", "run_partition"]

logger = logging.getLogger(__name__)


class _UnreportedError(ConnectError):
    """The task can continue once the driver has saved its reports, or sent what it has published."""


class _Reports:
    """Collects the skipped records; a :class:`~connect.internals.chain.tolerance.Reporter`."""

    def __init__(self, account: Account, given_up: Mapping[TopicPartition, OffsetSet]) -> None:
        self._account = account
        self._given_up = given_up
        self._offsets: dict[TopicPartition, list[int]] = {}
        self._rows: list[dict[str, Any]] = []
        self.is_awaited = False

    def report(self, failure: Failure) -> None:
        """Note a record, unless an earlier attempt at the load has reported it."""
        assert failure.raw is not None
        tp, offset = TopicPartition(failure.raw.topic, failure.raw.partition), failure.raw.offset
        if offset in self._given_up.get(tp, ()):
            return
        if self._account.first is None:
            self._account.first = Rejection(tp.topic, tp.partition, offset, str(failure.error))
        self._offsets.setdefault(tp, []).append(offset)
        self._rows.append(failure_row(failure))

    def flush(self) -> None:
        """Stop here if something was reported that the driver has not handled yet."""
        if self._account.first is not None:
            self.is_awaited = True
            raise _UnreportedError("Records were left out in this load, which must be reported before it continues.")

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Return what was reported since the last call, as rows of :data:`FAILURE_ROWS`."""
        for tp, offsets in self._offsets.items():
            self._account.rejected[tp] = self._account.rejected.get(tp, OffsetSet()) | OffsetSet.of(offsets)
        rows, self._rows, self._offsets = self._rows, [], {}
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=FAILURE_ROWS)


class SinkRun:
    """Runs a sink task over the records of some ranges, and reports on it in an account."""

    def __init__(self, orders: SinkOrders, ranges: Sequence[OffsetRange], account: Account) -> None:
        self._orders = orders
        self._ranges = ranges
        self._account = account
        self._reports = _Reports(account, orders.given_up)
        self._publisher = TaskPublisher(orders.producer, orders.topics)
        self._task: SinkTask[Any] | None = None
        self._sink: BoundedSink | None = None

    def run(self) -> Iterator[pa.RecordBatch]:
        """Put the records; yields :data:`FAILURE_ROWS` for those that cannot be written, and progress marks."""
        try:
            yield from self._moved()
        except Exception as error:
            self._note(error)
        finally:
            self._end()
        yield from self._reports.rows()

    def _moved(self) -> Iterator[pa.RecordBatch]:
        orders, past = self._orders, 0
        with RangeReader(orders.settings, self._ranges, orders.most) as reader:
            for consumed in reader.batches():
                if self._sink is None:
                    self._sink = self._start()
                self._sink.take(consumed)
                yield from self._reports.rows()
                if self._publisher.is_full:
                    self._sink.flush()
                    self._reports.is_awaited = True
                    raise _UnreportedError("The task has published records that must be sent before it continues.")
                marks, past = divmod(past + len(consumed), RECORDS_OF_MARK)
                yield from _marks(marks)
        if self._sink is not None:
            self._sink.finish()

    def _start(self) -> BoundedSink:
        """Start the task; only called once there are records."""
        orders, policy = self._orders, self._orders.policy
        plugins = executor_plugins(orders.chain, with_keys=True, with_headers=True)
        spare_the_collector()
        # The limits of errors.tolerance apply to all executors together, so the driver enforces them.
        limits = replace(policy, tolerance_limit=-1, tolerance_rate=-1)
        tolerance = Tolerance(limits, [self._reports], _sleep)
        steps: Steps[SinkBatch, SinkRecord] = Steps(plugins.steps, tolerance)
        chain = SinkChain(steps, plugins.converters, tolerance)
        connector = executor_connector(orders.chain, orders.connector)
        task_class: Any = connector.task_class
        context = SinkContext(tolerance, class_name(task_class), self._publisher, _sleep, reports=orders.reports)
        context.encode = chain.encode
        ids = {item.topic: item.topic_id for item in self._ranges if item.topic_id is not None}
        context.look_up_ids = lambda topics: {topic: ids[topic] for topic in topics if topic in ids}
        self._task = task_class(task_class.config_class.parse(orders.task), context)
        assert self._task is not None
        self._task.start()
        firsts = {item.topic_partition: item.first for item in self._ranges}
        return BoundedSink(self._task, context, chain.process, firsts, orders.settled)

    def _note(self, error: Exception) -> None:
        """Record why the task ended; if possible, the records it received before are flushed."""
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
        text = TOO_LITTLE_MEMORY if isinstance(error, MemoryError) else str(error)
        account.error, account.trace = text or type(error).__name__, stack_trace(error)
        if account.outcome is Outcome.FAILED and not isinstance(error, RangesGoneError):
            account.error = f"A task of the connector failed in an executor of Spark: {account.error}"
        flushes = account.outcome in (Outcome.REFUSED, Outcome.FAILED) or isinstance(error, RangesStalledError)
        if flushes and self._sink is not None:
            with suppress(Exception):
                self._sink.flush()

    def _end(self) -> None:
        """Stop the task, whatever its state."""
        self._account.published = self._publisher.held
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
    """Run a sink task over its share of the records: the function for ``mapInArrow`` over share numbers."""
    numbers: Iterator[Any] = (number for columns in batches for number in columns.column(0).to_pylist())
    account = Account()
    yield from SinkRun(orders, [item for number in numbers for item in orders.shares[number]], account).run()
    context: Any = TaskContext.get()
    accumulator.add(PassReports({number: Accounts({context.partitionId(): account})}))


def _marks(count: int) -> Iterator[pa.RecordBatch]:
    """Yield this many empty rows."""
    if count:
        nothing = [pa.nulls(count, field.type) for field in FAILURE_ROWS]
        yield pa.RecordBatch.from_arrays(nothing, schema=FAILURE_ROWS)


def _sleep(seconds: float) -> bool:
    """Sleep; Spark ends the process of a task that is to stop."""
    time.sleep(seconds)
    return True
