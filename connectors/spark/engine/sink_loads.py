"""Attempts at the loads of a sink connector that Spark runs: one Spark job each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Never

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.accumulators import Accumulator
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from connect.bulk import BulkSinkTaskContext, FailuresOf, OffsetRange
from connect.data import TopicPartition
from connect.internals.chain.tolerance import Failure
from connect.offset_set import OffsetSet
from connectors.spark.decoding.executor import ReportsParam
from connectors.spark.decoding.failures import FAILURE_ROWS, described_failures, refuse_record, size_of_row
from connectors.spark.decoding.report import RECORDS_OF_MARK, PassReports, Rejection
from connectors.spark.engine.sink_accounts import Accounts
from connectors.spark.engine.sink_executor import run_partition
from connectors.spark.engine.sink_orders import SinkOrders, shares_of
from connectors.spark.jobs.jobs import Jobs
from connectors.spark.jobs.progress import LoadProgress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Attempt", "SinkLoads"]

_BUDGET: Final = 32 * 1024 * 1024
_NAMED_TOPICS: Final = 3


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a load: the accounts of its tasks, and the failures of the records they rejected."""

    accounts: Accounts
    failures: FailuresOf


class SinkLoads:
    """Performs the loads of one connector in a Spark session. Used only by the task's thread."""

    def __init__(self, spark: SparkSession, context: BulkSinkTaskContext, orders: SinkOrders) -> None:
        self._spark = spark
        self._context = context
        self._orders = orders
        self._width = int(context.connector_properties.get("tasks.max", 1))
        self._progress = LoadProgress(spark, context, marks=RECORDS_OF_MARK)
        self._jobs = Jobs(spark, context, self._progress, 1)
        # One accumulator for all attempts: pyspark never releases one.
        self._accumulator: Accumulator[PassReports[Accounts]] = spark.sparkContext.accumulator(
            PassReports(awaited=True), ReportsParam()
        )
        self._number = 0

    def begin(self) -> None:
        """Start counting for a new load."""
        self._progress.begin()

    def attempt(
        self,
        ranges: Sequence[OffsetRange],
        settled: frozenset[TopicPartition],
        given_up: Mapping[TopicPartition, OffsetSet],
        topics: frozenset[str] = frozenset(),
    ) -> Attempt:
        """Let tasks put and flush the records of ranges, as far as they get."""
        shares = shares_of(ranges, self._width)
        orders = replace(self._orders, shares=shares, settled=settled, given_up=dict(given_up), topics=topics)
        self._progress.stage(f"putting records of {_named({item.topic for item in ranges})}")
        self._number += 1
        self._accumulator.value.begin(self._number, Accounts())
        function = partial(run_partition, orders, self._number, self._accumulator)
        numbers: Any = self._spark.range(0, len(shares), 1, len(shares))
        described = numbers.mapInArrow(function, from_arrow_schema(FAILURE_ROWS)).where(f.col("topic").isNotNull())
        # The executors keep what the tasks report: reading it again must not put the records again.
        job = partial(described.localCheckpoint, eager=True, storageLevel=StorageLevel.DISK_ONLY)
        try:
            kept: DataFrame = self._jobs.run(job)
        finally:
            accounts = self._accumulator.value.end(self._number)
        records, seconds = sum(each.records for each in accounts), sum(each.seconds for each in accounts)
        self._progress.stage(f"{len(accounts.by_partition)} tasks have put records, for {seconds:,.1f} s")
        self._progress.wrote(rows=records)
        return Attempt(accounts, partial(self._failures, kept))

    def refuse(self, first: Rejection, failures: FailuresOf) -> Never:
        """Fail a load because of a bad record."""
        refuse_record(self._context, first, failures)

    def _failures(self, kept: DataFrame, asked: Mapping[TopicPartition, OffsetSet]) -> Iterator[Failure]:
        """Yield the failure of each of these records, as reported by the tasks."""
        topics: dict[str, dict[int, OffsetSet]] = {}
        for tp, offsets in asked.items():
            topics.setdefault(tp.topic, {})[tp.partition] = offsets
        for topic, partitions in topics.items():
            yield from described_failures(topic, partitions, partial(self._described, kept, topic))

    def _described(self, kept: DataFrame, topic: str, asked: Mapping[int, OffsetSet]) -> pa.Table:
        """Return rows that describe these records; the first of each partition if all are too large."""
        tables: list[pa.Table] = []
        for partition, offsets in asked.items():
            spans = list(offsets.spans())
            wanted: Any = kept.where((f.col("topic") == topic) & (f.col("partition") == partition)).where(
                f.col("offset").between(spans[0][0], spans[-1][1] - 1)
            )
            rows = wanted.coalesce(1).sortWithinPartitions("offset")
            some = partial(_some, _BUDGET // len(asked))
            tables.append(self._jobs.run(rows.mapInArrow(some, from_arrow_schema(FAILURE_ROWS)).toArrow))
        return pa.concat_tables(tables)


def _some(budget: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the first rows, up to this many bytes."""
    for columns in batches:
        for place, row in enumerate(columns.to_pylist()):
            budget -= size_of_row(row)
            if budget <= 0:
                yield columns.slice(0, place + 1)
                return
        yield columns


def _named(topics: set[str]) -> str:
    """List some topics in a few words."""
    first = ", ".join(sorted(topics)[:_NAMED_TOPICS])
    return first if len(topics) <= _NAMED_TOPICS else f"{first} and {len(topics) - _NAMED_TOPICS} more"
