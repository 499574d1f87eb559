"""The work of an executor: from the raw rows of a topic to the rows of a table.

The chain of the worker's sinks does the work, unless a reader of columns can stand for it. The driver decides what
becomes of a load with bad records, as ``errors.tolerance`` says.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from connect.chain.sink import SinkChain
from connect.chain.steps import Steps
from connect.chain.tolerance import ErrorPolicy, Tolerance
from connect.data import ArrowColumn, Column, Schema, SinkBatch, SinkRecord
from connect.errors import DataError
from connectors.spark.decoding.plugins import executor_plugins
from connectors.spark.decoding.raw import RawBatch
from connectors.spark.decoding.reading import UncertainReadingError
from connectors.spark.decoding.report import Rejections, Report
from connectors.spark.decoding.rows import Rows

__all__ = ["DecodePlan", "Decoder", "Mode"]


class Mode(enum.Enum):
    """The purpose of a pass over the records."""

    SURVEY = "survey"
    """To see what their schemas are; nothing is written."""
    WRITE = "write"
    """To write rows, as long as they fit the table or leave out records."""
    FINAL = "final"
    """To write rows of records that were surveyed: what does not fit now is a bad record."""


@dataclass(frozen=True)
class DecodePlan:
    """The orders for an executor; plain data, for they are sent there.

    ``tables`` are those that the records of ``topic`` are known to go to, ``table`` the one to write, of
    ``schema``. Of several passes over the same records only the one that ``accounts`` for records tells which
    cannot be decoded.
    """

    topic: str
    mode: Mode
    props: Mapping[str, str]
    null_values: str = "fail"
    with_keys: bool = False
    tables: frozenset[str] = frozenset()
    table: str = ""
    schema: Schema | None = None
    accounts: bool = True


class Decoder:
    """Decodes the records of one Spark partition and takes account of them in a report."""

    def __init__(self, plan: DecodePlan, report: Report) -> None:
        self._plan = plan
        self._report = report
        self._plugins = executor_plugins(plan.props, with_keys=plan.with_keys)
        # Every bad record is told of: the driver decides, over all executors, whether any may be left out.
        tolerance = Tolerance(ErrorPolicy(tolerates_errors=True), [Rejections(self._reject)], wait=_never)
        steps: Steps[SinkBatch, SinkRecord] = Steps(self._plugins.steps, tolerance)
        self._chain = SinkChain(steps, self._plugins.converters, tolerance)

    def decode(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows to write of raw rows."""
        for columns in batches:
            if columns.num_rows:
                raw = RawBatch(self._plan.topic, columns)
                yield from self._decode(raw)
                if self._report.grown:
                    return

    def _decode(self, raw: RawBatch) -> Iterator[pa.RecordBatch]:
        offsets = raw.offset_array
        self._report.take(raw.partition, offsets[0].as_py(), offsets[-1].as_py(), len(raw))
        for rows in self._rows(raw):
            try:
                found = self._fitted(rows)
            except DataError as error:
                for offset in rows.offsets.to_pylist():
                    self._report.reject(offset, error)
                continue
            if found is not None and found.num_rows:
                self._report.written += found.num_rows
                yield found

    def _rows(self, raw: RawBatch) -> Iterator[Rows]:
        """The records as rows of tables; those that cannot be decoded are rejected."""
        plugins = self._plugins
        if plugins.reader is not None and raw.value_array.null_count == 0:
            try:
                reading = plugins.reader(raw.value_array, self._plan.schema)
            except UncertainReadingError:
                pass  # the converter answers
            else:
                self._report.untyped |= reading.untyped
                yield Rows(raw.topic, reading.column, None, raw.offset_array)
                return
        for batch in self._chain.process(raw.consumed(keys=plugins.reads_keys, headers=plugins.reads_headers)):
            yield from self._of_batch(batch)

    def _of_batch(self, batch: SinkBatch) -> Iterator[Rows]:
        values = batch.value.values() if _may_have_nulls(batch.value) else None
        if values is None or None not in values:
            yield self._rows_of(batch)
            return
        if self._plan.null_values == "write":
            present: list[int] = list(range(len(batch)))
        else:
            present = [index for index, value in enumerate(values) if value is not None]
            if self._plan.null_values == "ignore":
                self._report.ignored += len(batch) - len(present)
            else:
                self._reject_nulls(batch, set(present))
        if present:
            yield self._rows_of(batch if len(present) == len(batch) else batch.take(present))

    def _rows_of(self, batch: SinkBatch) -> Rows:
        key = batch.key if self._plan.with_keys else None
        return Rows(batch.topic, batch.value, key, pa.array(batch.original_offsets, pa.int64()))

    def _reject_nulls(self, batch: SinkBatch, present: set[int]) -> None:
        error = DataError(
            "the record has no value; set behavior.on.null.values to ignore or write if that is to be allowed"
        )
        for index, offset in enumerate(batch.original_offsets):
            if index not in present:
                self._reject(offset, error)

    def _reject(self, offset: int, error: Exception) -> None:
        if self._plan.accounts:
            self._report.reject(offset, error)

    def _fitted(self, rows: Rows) -> pa.RecordBatch | None:
        """The rows in the columns of the table, if it is the one to write and they do not need another."""
        plan = self._plan
        if plan.mode is Mode.SURVEY:
            rows.survey(self._report)
            self._report.written += len(rows.value)
            return None
        if plan.mode is Mode.WRITE and rows.table not in plan.tables:
            self._report.grown = True
            return None
        if rows.table != plan.table:
            return None
        assert plan.schema is not None
        fitted = rows.fit(plan.schema, self._report, may_grow=plan.mode is Mode.WRITE)
        self._report.grown = fitted is None
        return fitted


def _may_have_nulls(column: Column) -> bool:
    return not isinstance(column, ArrowColumn) or column.to_arrow().null_count > 0


def _never(seconds: float) -> bool:  # noqa: ARG001
    raise AssertionError("an executor tries nothing again: Spark fails the load, and the worker makes it again")
