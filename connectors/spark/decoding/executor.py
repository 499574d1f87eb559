"""Both ends of a pass: the function that Spark runs on each partition, and the report that reaches the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pyarrow as pa
from pyspark import SparkContext, TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from connect.data import Schema
from connect.internals.garbage_collection import collect_seldom
from connect.offset_set import OffsetSet
from connectors.spark.arrow_types import table_type
from connectors.spark.decoding.decoder import DecodePlan, Decoder, Mode
from connectors.spark.decoding.failures import Examiner
from connectors.spark.decoding.kafka_reader import KafkaReader
from connectors.spark.decoding.part_files import PartFiles, PartWriter
from connectors.spark.decoding.report import PassReports, ProgressMarks, Report, Reports

__all__ = ["Pass", "Passes", "ReportsParam", "spare_the_collector", "survey_splits"]


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
    """Numbers the passes of a session over raw records, and collects the reports of those that run."""

    def __init__(self, context: SparkContext) -> None:
        # One accumulator for all passes: pyspark never releases one.
        self._accumulator: Accumulator[PassReports[Reports]] = context.accumulator(
            PassReports(awaited=True), ReportsParam()
        )
        self._number = 0

    def begin(self, plan: DecodePlan, reader: KafkaReader, files: PartFiles | None = None) -> Pass:
        """Begin the next pass, whose input is the numbers of splits.

        It yields the rows of the table, but only marks if the rows are written to ``files`` or nowhere.
        """
        self._number += 1
        self._accumulator.value.begin(self._number, Reports())
        if files is not None:
            run: Callable[..., Iterator[pa.RecordBatch]] = partial(_write_splits, files)
        else:
            run = _survey_splits if plan.mode is Mode.SURVEY else _decode_split
        return Pass(self._number, partial(run, plan, reader, self._number, self._accumulator))

    def end(self, ended: Pass) -> Reports:
        """Return the reports of a pass whose job has ended; later reports are ignored."""
        return self._accumulator.value.end(ended.number)

    def examine(
        self,
        plan: DecodePlan,
        reader: KafkaReader,
        tables: Mapping[str, Schema],
        offsets: Mapping[int, OffsetSet],
        budget: int,
    ) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return a pass for ``mapInArrow`` that describes what is wrong with some records, without counting
        anything.
        """
        return partial(_examine_split, plan, reader, tables, offsets, budget)


def survey_splits(plan: DecodePlan, reader: KafkaReader) -> Reports:
    """Survey the records of all splits in this process."""
    reports = Reports({number: Report(plan.topic) for number in range(len(reader.splits))})
    decoders = [Decoder(plan, report) for report in reports]
    for number, records in reader.read_together():
        for _ in decoders[number].decode(iter([records])):
            raise AssertionError("a survey makes no rows")
    return reports


def _decode_split(
    plan: DecodePlan,
    reader: KafkaReader,
    number: int,
    accumulator: Accumulator[PassReports[Reports]],
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Emit the rows of a split."""
    report = Report(plan.topic)
    decoder = Decoder(plan, report)
    spare_the_collector()
    yield from decoder.decode(reader.read(numbers))
    accumulator.add(PassReports({number: Reports({_context().partitionId(): report})}))


def _survey_splits(
    plan: DecodePlan,
    reader: KafkaReader,
    number: int,
    accumulator: Accumulator[PassReports[Reports]],
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Survey the records of splits, and emit progress marks."""
    reports, marks = Reports(), ProgressMarks()
    spare_the_collector()
    for split, batches in reader.read_splits(numbers):
        before = sum(report.read for report in reports)
        report = reports.by_partition[split] = Report(plan.topic)
        decoder = Decoder(plan, report)
        for records in batches:
            for _ in decoder.decode(iter([records])):
                raise AssertionError("a survey makes no rows")
            yield from marks.up_to(before + report.read)
    accumulator.add(PassReports({number: reports}))


def _write_splits(
    files: PartFiles,
    plan: DecodePlan,
    reader: KafkaReader,
    number: int,
    accumulator: Accumulator[PassReports[Reports]],
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Write the rows of each split to its own files, and emit progress marks."""
    reports, marks = Reports(), ProgressMarks()
    spare_the_collector()
    for split, batches in reader.read_splits(numbers):
        before = sum(report.read for report in reports)
        report = reports.by_partition[split] = Report(plan.topic)
        for _ in _written(files, plan, split, report, batches):
            yield from marks.up_to(before + report.read)
        if report.grown:
            break
    accumulator.add(PassReports({number: reports}))


def _written(
    files: PartFiles, plan: DecodePlan, split: int, report: Report, batches: Iterator[pa.RecordBatch]
) -> Iterator[None]:
    """Write the rows of a split batch by batch, unless some turn out to need another schema."""
    assert plan.schema is not None
    decoder = Decoder(plan, report)
    with PartWriter(files, table_type(plan.schema).columns, split, _context().taskAttemptId()) as writer:
        for records in batches:
            for rows in decoder.decode(iter([records])):
                writer.write(rows)
            if report.grown:
                return
            yield
        writer.finish()
        report.files = writer.names


def _examine_split(
    plan: DecodePlan,
    reader: KafkaReader,
    tables: Mapping[str, Schema],
    offsets: Mapping[int, OffsetSet],
    budget: int,
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    examiner = Examiner(plan, tables, offsets, budget)
    spare_the_collector()
    yield from examiner.examine(reader.read(numbers))


def _context() -> Any:
    return TaskContext.get()


@cache
def spare_the_collector() -> None:
    """Make this Spark process collect garbage rarely, once the plugins are imported."""
    collect_seldom()
