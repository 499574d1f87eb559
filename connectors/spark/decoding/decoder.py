"""What runs in the executors: from the raw rows of a topic to the rows of a table.

The worker's own converters and transformations do the work, by column. What cannot be decoded by column goes
through record by record, so that a bad record is known; the driver decides what becomes of a load with bad
records, as ``errors.tolerance`` says.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from connect.data import ArrowColumn, Column, Schema, SinkBatch
from connect.errors import ConnectError, DataError
from connectors.spark.decoding.chain import Chain, has_transformations
from connectors.spark.decoding.columns import column_reader
from connectors.spark.decoding.raw import RawBatch
from connectors.spark.decoding.reading import ColumnReader, DoubtError
from connectors.spark.decoding.report import Report
from connectors.spark.decoding.rows import Rows

__all__ = ["DecodePlan", "Decoder", "Mode"]


class Mode(enum.Enum):
    """What a pass over the records is for."""

    SURVEY = "survey"
    """To see what their schemas are; nothing is written."""
    WRITE = "write"
    """To write rows, as long as they fit the table or leave out records."""
    FINAL = "final"
    """To write rows of records that were surveyed: what does not fit now is a bad record."""


@dataclass(frozen=True)
class DecodePlan:
    """All that an executor has to know; plain data, for it is sent there.

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
        self._chain, self._reader = _plugins(tuple(sorted(plan.props.items())), plan.with_keys)

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
        if self._reader is not None and raw.value_array.null_count == 0:
            try:
                reading = self._reader(raw.value_array, self._plan.schema)
            except DoubtError:
                pass  # the converter answers
            else:
                self._report.untyped |= reading.untyped
                yield Rows(raw.topic, reading.column, None, raw.offset_array)
                return
        try:
            batches = self._chain.batches(raw)
        except Exception:
            batches = list(self._one_by_one(raw))
        for batch in batches:
            yield from self._of_batch(batch)

    def _one_by_one(self, raw: RawBatch) -> Iterator[SinkBatch]:
        for index in range(len(raw)):
            record = raw.slice(index, 1)
            try:
                batch = self._chain.record(record)
            except Exception as error:
                if isinstance(error, ConnectError) and not isinstance(error, DataError):
                    raise  # it is not about the record: the load fails, and is made again
                self._reject(record.offsets[0], error)
            else:
                if batch is not None:
                    yield batch

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


@lru_cache(maxsize=4)
def _plugins(props: tuple[tuple[str, str], ...], with_keys: bool) -> tuple[Chain, ColumnReader | None]:
    """Made once a Python process of Spark, which decodes one partition at a time."""
    known = dict(props)
    chain = Chain(known, with_keys=with_keys)
    return chain, None if with_keys or has_transformations(known) else column_reader(chain.value_converter)
