"""The ends of a pass: the function Spark runs on each partition, and the account of it that reaches the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import pyarrow as pa
from pyspark import SparkContext, TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from connect.data import Schema
from connect.garbage import collect_seldom
from connect.offset_set import OffsetSet
from connectors.spark.decoding.decoder import DecodePlan, Decoder
from connectors.spark.decoding.failures import Examiner
from connectors.spark.decoding.report import Report, Reports

__all__ = ["Passes"]


class _ReportsParam(AccumulatorParam[Reports]):
    """Reports are merged, not added up: a partition that Spark computes twice is counted once."""

    def zero(self, value: Reports) -> Reports:  # noqa: ARG002
        return Reports()

    def addInPlace(self, value1: Reports, value2: Reports) -> Reports:  # noqa: N802
        return value1.merge(value2)


class Passes:
    """Counts the passes of a session over raw records, and collects the reports of the one that runs."""

    def __init__(self, context: SparkContext) -> None:
        # One for all passes: pyspark never lets go of an accumulator.
        self._accumulator: Accumulator[Reports] = context.accumulator(Reports(), _ReportsParam())
        self._number = 0

    def begin(self, plan: DecodePlan) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Begin the next pass: the function for ``mapInArrow``."""
        self._number += 1
        self._accumulator.value = Reports(number=self._number)
        return partial(_decode_partition, plan, self._number, self._accumulator)

    def examine(
        self, plan: DecodePlan, tables: Mapping[str, Schema], offsets: Mapping[int, OffsetSet], budget: int
    ) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """A pass that tells what is wrong with some records, for ``mapInArrow``; nothing of it is counted."""
        return partial(_examine_partition, plan, tables, offsets, budget)

    @property
    def reports(self) -> Reports:
        """The reports of the pass, once its job has ended."""
        return self._accumulator.value


def _decode_partition(
    plan: DecodePlan, number: int, accumulator: Accumulator[Reports], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    report = Report(plan.topic)
    decoder = Decoder(plan, report)
    _spare_the_collector()
    yield from decoder.decode(iter(batches))
    context: Any = TaskContext.get()
    accumulator.add(Reports({context.partitionId(): report}, number))


def _examine_partition(
    plan: DecodePlan,
    tables: Mapping[str, Schema],
    offsets: Mapping[int, OffsetSet],
    budget: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    examiner = Examiner(plan, tables, offsets, budget)
    _spare_the_collector()
    yield from examiner.examine(iter(batches))


@cache
def _spare_the_collector() -> None:
    """Let this process of Spark collect garbage seldom, once the plugins are imported."""
    collect_seldom()
