"""The ends of a pass: the function Spark runs on each partition, and the account of it that reaches the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
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
from connectors.spark.decoding.report import PassReports, Report, Reports

__all__ = ["Pass", "Passes", "ReportsParam", "spare_the_collector"]


class ReportsParam(AccumulatorParam[PassReports[Any]]):
    """Reports are merged, not added up: a partition that Spark computes twice is counted once."""

    def zero(self, value: PassReports[Any]) -> PassReports[Any]:  # noqa: ARG002
        return PassReports()

    def addInPlace(self, value1: PassReports[Any], value2: PassReports[Any]) -> PassReports[Any]:  # noqa: N802
        return value1.merge(value2)


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass over raw records: its number, and its function for ``mapInArrow``."""

    number: int
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Passes:
    """Counts the passes of a session over raw records, and collects the reports of those that run."""

    def __init__(self, context: SparkContext) -> None:
        # One for all passes: pyspark never lets go of an accumulator.
        self._accumulator: Accumulator[PassReports[Reports]] = context.accumulator(
            PassReports(awaited=True), ReportsParam()
        )
        self._number = 0

    def begin(self, plan: DecodePlan) -> Pass:
        """Begin the next pass."""
        self._number += 1
        self._accumulator.value.begin(self._number, Reports())
        return Pass(self._number, partial(_decode_partition, plan, self._number, self._accumulator))

    def end(self, ended: Pass) -> Reports:
        """The reports of a pass whose job has ended; what comes later counts for nothing."""
        return self._accumulator.value.end(ended.number)

    def examine(
        self, plan: DecodePlan, tables: Mapping[str, Schema], offsets: Mapping[int, OffsetSet], budget: int
    ) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """A pass that tells what is wrong with some records, for ``mapInArrow``; nothing of it is counted."""
        return partial(_examine_partition, plan, tables, offsets, budget)


def _decode_partition(
    plan: DecodePlan, number: int, accumulator: Accumulator[PassReports[Reports]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    report = Report(plan.topic)
    decoder = Decoder(plan, report)
    spare_the_collector()
    yield from decoder.decode(iter(batches))
    context: Any = TaskContext.get()
    accumulator.add(PassReports({number: Reports({context.partitionId(): report})}))


def _examine_partition(
    plan: DecodePlan,
    tables: Mapping[str, Schema],
    offsets: Mapping[int, OffsetSet],
    budget: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    examiner = Examiner(plan, tables, offsets, budget)
    spare_the_collector()
    yield from examiner.examine(iter(batches))


@cache
def spare_the_collector() -> None:
    """Let this process of Spark collect garbage seldom, once the plugins are imported."""
    collect_seldom()
