"""The executor's work: turns the raw records of a topic into rows of a table.

The worker's sink chain does this, unless a column reader can replace it. The driver decides how to go on with a load
that has bad records, according to ``errors.tolerance``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from connect.data import ArrowColumn, Column, Field, Schema, SinkBatch, SinkRecord, Type, ValueColumn
from connect.data.arrow import arrow_type
from connect.data.logical import LOGICAL_NAMES
from connect.errors import DataError
from connect.internals.chain.sink import SinkChain
from connect.internals.chain.steps import Steps
from connect.internals.chain.tolerance import ErrorPolicy, Stage, Tolerance
from connect.offset_set import OffsetSet
from connectors.spark.decoding.changes import ChangePlan, key_columns
from connectors.spark.decoding.column_reader import Reading, UncertainReadingError
from connectors.spark.decoding.json_text import list_offsets
from connectors.spark.decoding.placement import Placement
from connectors.spark.decoding.plugins import executor_plugins
from connectors.spark.decoding.raw_batch import RawBatch, read_kafka_columns, value_columns
from connectors.spark.decoding.report import TASK, LoadStop, Rejection, Rejections, Report
from connectors.spark.decoding.row_limits import RowLimits
from connectors.spark.decoding.rows import Fitted, Rows
from connectors.spark.schema import Evolution, KafkaColumns, table_schema

__all__ = ["DecodePlan", "Decoder", "Mode", "adjust_column", "adjusted_name", "adjusted_schema"]


class Mode(enum.Enum):
    """The purpose of a pass over the records."""

    SURVEY = "survey"
    """To determine the schemas of the records; nothing is written."""
    WRITE = "write"
    """To write rows, as long as a wider schema would not hold more of them."""
    GUESS = "guess"
    """To write rows after a few of the records were surveyed, as long as no record is bad or needs another schema."""
    FINAL = "final"
    """To write rows after all the records were surveyed: one that does not fit now is a bad record."""


@dataclass(frozen=True)
class DecodePlan:
    """The driver's orders for an executor; plain data, sent to it.

    ``tables`` are the known destinations of the records of ``topic``, and ``table`` is the one to write, with this
    ``schema``. Of several passes over the same records, only the one with ``accounts`` reports the records that cannot
    be decoded.
    """

    topic: str
    mode: Mode
    props: Mapping[str, str]
    null_values: str = "fail"
    kafka_columns: KafkaColumns = field(default_factory=KafkaColumns)
    evolution: Evolution = field(default_factory=Evolution)
    names: str = "none"
    tables: frozenset[str] = frozenset()
    table: str = ""
    schema: Schema | None = None
    accounts: bool = True
    changes: ChangePlan | None = None
    """How to read records as changes of rows, if they are changes."""
    stops: bool = False
    """Whether the first record that blocks the load ends Spark's job: one that needs another schema, or a bad one that
    is not among ``left_out``.
    """
    left_out: Mapping[int, OffsetSet] = field(default_factory=dict)
    """The bad records that have already been given up, by topic partition."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """The tables that there cannot be, with the reasons: their records are bad."""
    by_row: bool = False
    """Whether every record goes through the converters, even if a column reader could replace them."""
    placement: Placement | None = None
    """Adds the folder column to rows, if they are to have one."""
    limits: Mapping[str, RowLimits] = field(default_factory=dict)
    """What rows may not have, by table."""


class Decoder:
    """Decodes the records of one Spark partition and accounts for them in a report."""

    def __init__(self, plan: DecodePlan, report: Report) -> None:
        self._plan = plan
        self._report = report
        with_keys = plan.kafka_columns.keys is not None or plan.changes is not None
        self._plugins = executor_plugins(plan.props, with_keys=with_keys)
        # Every bad record is reported: the driver decides, over all executors, whether any may be left out.
        tolerance = Tolerance(ErrorPolicy(tolerates_errors=True), [Rejections(self._reject)], wait=_never)
        steps: Steps[SinkBatch, SinkRecord] = Steps(self._plugins.steps, tolerance)
        self._chain = SinkChain(steps, self._plugins.converters, tolerance)

    def decode(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode raw rows into the rows to write."""
        for columns in batches:
            if columns.num_rows:
                raw = RawBatch(self._plan.topic, columns)
                yield from self._decode(raw)
                if self._report.grown:
                    if self._plan.stops:
                        raise LoadStop
                    return

    def _decode(self, raw: RawBatch) -> Iterator[pa.RecordBatch]:
        offsets = raw.offset_array
        self._report.take(raw.partition, offsets[0].as_py(), offsets[-1].as_py(), len(raw))
        for rows in self._rows(raw):
            if (reason := self._plan.refused.get(rows.table)) is not None:
                for offset in rows.offsets.to_pylist():
                    self._reject(offset, DataError(reason))
                self._settle()
                continue
            try:
                found = self._placed(self._limited(self._fitted(rows)), raw.partition)
            except DataError as error:
                found = None
                for offset in rows.offsets.to_pylist():
                    self._report.reject(offset, error)
            self._settle()
            if found is not None and found.num_rows:
                self._report.written += found.num_rows
                yield found
        self._settle()

    def _rows(self, raw: RawBatch) -> Iterator[Rows]:
        """Yield the records as rows of tables; records that cannot be decoded are rejected."""
        plugins = self._plugins
        if (readings := self._readings(raw)) is not None:
            yield from self._of_readings(raw, readings)
            return
        for batch in self._chain.process(raw.consumed(keys=plugins.reads_keys, headers=plugins.reads_headers)):
            yield from self._of_batch(raw, batch)

    def _of_readings(self, raw: RawBatch, readings: Sequence[Reading]) -> Iterator[Rows]:
        start = 0
        for reading in readings:
            self._report.untyped |= reading.untyped
            offsets, timestamps, length = raw.offset_array, raw.timestamp_array, len(reading.column)
            if len(readings) > 1:
                offsets = offsets.slice(start, length)
                timestamps = None if timestamps is None else timestamps.slice(start, length)
            yield self._rows_of(raw, raw.topic, reading.column, None, offsets, timestamps)
            start += length

    def _readings(self, raw: RawBatch) -> Sequence[Reading] | None:
        """Return the values as a column reader returns them; ``None`` if the converter has to decide."""
        plugins, plan = self._plugins, self._plan
        if plugins.reader is None or plan.by_row or raw.has_nulls:
            return None
        values = raw.framed_values(plugins.converters.value.reads_frame_from)
        try:
            readings = plugins.reader(raw.topic, values, value_columns(plan.schema, plan.kafka_columns))
            for schema in [reading.column.schema for reading in readings]:
                if schema is None:
                    continue
                if plan.names != "none":
                    _check_names(schema, plan.names)
                if not self._is_free(schema):
                    return None
                if plan.evolution.refuses is not None:
                    plan.evolution.refuses(table_schema(schema))
        except (UncertainReadingError, DataError):
            # Whatever is wrong with the values, the converter can tell which of the records it concerns.
            return None
        return readings

    def _is_free(self, schema: Schema) -> bool:
        """Return whether the names of the fields are unlike each other, and unlike those of Kafka columns."""
        plan = self._plan
        taken = {plan.evolution.key(name) for name in plan.kafka_columns.names if name is not None}
        if schema.type is Type.STRUCT and any(plan.evolution.key(name) in taken for name in schema.field_names):
            return False
        return not plan.evolution.folds or plan.evolution.without_twins(plan.schema or schema, schema) is schema

    def _of_batch(self, raw: RawBatch, batch: SinkBatch) -> Iterator[Rows]:
        if self._plan.changes is not None:
            schema = self._plan.schema if batch.topic == self._plan.table else None
            known = () if schema is None else key_columns(schema)
            changes, ignored = self._plan.changes.rows(batch, self._reject, known)
            self._report.ignored += ignored
            if changes is not None:
                yield from self._named(raw, changes)
            return
        if not batch.value.has_nulls():
            yield from self._named(raw, batch)
            return
        values = batch.value.values()
        if self._plan.null_values == "write":
            present: list[int] = list(range(len(batch)))
        else:
            present = [index for index, value in enumerate(values) if value is not None]
            if self._plan.null_values == "ignore":
                self._report.ignored += len(batch) - len(present)
            else:
                self._reject_nulls(batch, set(present))
        if present:
            yield from self._named(raw, batch if len(present) == len(batch) else batch.take(present))

    def _named(self, raw: RawBatch, batch: SinkBatch) -> Iterator[Rows]:
        """Yield the records with their fields renamed as columns; records whose names clash are rejected."""
        try:
            value = adjust_column(batch.value, self._plan.names)
        except DataError:
            good = [index for index in range(len(batch)) if self._has_names(batch, index)]
            if good:
                yield from self._named(raw, batch.take(good))
            return
        placement = self._plan.placement
        needed = placement is not None and placement.reads_timestamps
        timestamps = pa.array(batch.timestamps, pa.int64()) if needed else None
        offsets = pa.array(batch.original_offsets, pa.int64())
        yield self._rows_of(raw, batch.topic, value, batch.key, offsets, timestamps)

    def _has_names(self, batch: SinkBatch, index: int) -> bool:
        try:
            adjust_column(batch.value.take([index]), self._plan.names)
        except DataError as error:
            self._reject(batch.original_offsets[index], error)
            return False
        return True

    def _rows_of(
        self, raw: RawBatch, table: str, value: Column, key: Column | None, offsets: Any, timestamps: Any
    ) -> Rows:
        kafka_columns = tuple(read_kafka_columns(self._plan.kafka_columns, raw, key, offsets))
        return Rows(table, value, kafka_columns, offsets, timestamps, self._plan.evolution)

    def _reject_nulls(self, batch: SinkBatch, present: set[int]) -> None:
        error = DataError(
            "the record has no value; set behavior.on.null.values to ignore or write if that is to be allowed"
        )
        for index, offset in enumerate(batch.original_offsets):
            if index not in present:
                self._reject(offset, error)

    def _settle(self) -> None:
        """Account for the rejected records, and end Spark's job if they are not allowed."""
        report = self._report
        if self._plan.stops and report.pending:
            given_up = self._plan.left_out.get(report.partition, OffsetSet())
            offset = min((offset for offset in report.pending if offset not in given_up), default=None)
            if offset is not None:
                found = next((item for item in report.rejections if item.offset == offset), None)
                raise LoadStop(found or Rejection(report.topic, report.partition, offset, "it cannot be processed"))
        report.settle()

    def _reject(self, offset: int, error: Exception, stage: Stage = Stage.TASK_PUT, executing: str = TASK) -> None:
        if self._plan.accounts:
            self._report.reject(offset, error, stage, executing)

    def _limited(self, fitted: Fitted | None) -> Fitted | None:
        """Return the rows within the limits of the table; the others are rejected."""
        limits = self._plan.limits.get(self._plan.table)
        mistakes = {} if fitted is None or limits is None else limits.mistakes(fitted.rows)
        if fitted is None or not mistakes:
            return fitted
        for index, error in sorted(mistakes.items()):
            self._report.reject(fitted.offsets[index].as_py(), error)
        return fitted.without(mistakes)

    def _placed(self, fitted: Fitted | None, partition: int) -> pa.RecordBatch | None:
        """Return the rows with the folder column, if they are to have one; rows without a folder are rejected."""
        if fitted is None or self._plan.placement is None:
            return None if fitted is None else fitted.rows
        placed = self._plan.placement.place(fitted.rows, partition, fitted.timestamps)
        for index, error in placed.refused.items():
            self._report.reject(fitted.offsets[index].as_py(), error)
        return placed.rows

    def _fitted(self, rows: Rows) -> Fitted | None:
        """Return the rows in the columns of the table, if it is the one to write and they need no other schema."""
        plan = self._plan
        if plan.mode is Mode.SURVEY:
            rows.survey(self._report)
            self._report.written += len(rows.value)
            return None
        may_grow = plan.mode is not Mode.FINAL
        if may_grow and rows.table not in plan.tables:
            self._report.grown = True
            return None
        if rows.table not in plan.tables:
            raise DataError(
                f"the record now goes to {rows.table}, where no record went when the records were inspected"
            )
        if rows.table != plan.table:
            return None
        assert plan.schema is not None
        fitted = rows.fit(plan.schema, self._report, may_grow=may_grow)
        self._report.grown = fitted is None or (plan.mode is Mode.GUESS and bool(self._report.pending))
        return fitted


def _check_names(schema: Schema, mode: str) -> None:
    """Leave values whose names have to be adjusted to the converter: tables know their fields by other names."""
    try:
        fits = adjusted_schema(schema, mode) is schema
    except DataError as error:
        raise UncertainReadingError from error
    if not fits:
        raise UncertainReadingError


def _never(seconds: float) -> bool:  # noqa: ARG001
    raise AssertionError("an executor tries nothing again: Spark fails the load, and the worker makes it again")


_ODD: Final = re.compile(r"[^A-Za-z0-9_]")


@lru_cache(maxsize=4096)
def adjusted_name(name: str, mode: str) -> str:
    """Return the name in a mode: ``avro`` keeps letters, digits and ``_``; ``hive`` also makes them lower case."""
    if mode == "none":
        return name
    plain = _ODD.sub("_", name)
    if not plain or plain[0].isdigit():
        plain = f"_{plain}"
    return plain.lower() if mode == "hive" else plain


@lru_cache(maxsize=256)
def adjusted_schema(schema: Schema, mode: str) -> Schema:
    """Return the schema with adjusted names; the same object if all names are valid."""
    if schema.name in LOGICAL_NAMES:
        return schema
    if schema.type is Type.STRUCT:
        names = _free([field.name for field in schema.fields], mode)
        fields = [
            Field(name, adjusted_schema(field.schema, mode), field.index)
            for name, field in zip(names, schema.fields, strict=True)
        ]
        return schema.replace(fields=fields)
    if schema.value_schema is not None:
        return schema.replace(value_schema=adjusted_schema(schema.value_schema, mode))
    return schema


def adjust_column(column: Column, mode: str) -> Column:
    """Values with adjusted names; the same column if there is nothing to do."""
    if mode == "none":
        return column
    if column.schema is None:
        return ValueColumn([_value(value, mode) for value in column])
    schema = adjusted_schema(column.schema, mode)
    return column if schema is column.schema else ArrowColumn(_relabelled(column.to_arrow(), schema), schema)


def _free(names: list[str], mode: str) -> list[str]:
    """Return the adjusted names; raises :class:`~connect.errors.DataError` if two fields would get the same one."""
    found: dict[str, str] = {}
    for name in names:
        other = found.setdefault(adjusted_name(name, mode), name)
        if other != name:
            raise DataError(
                f'Fields "{other}" and "{name}" would both become column "{adjusted_name(name, mode)}" '
                f"(field.name.adjustment.mode={mode}): rename one of them (ReplaceField)."
            )
    return list(found)


def _value(value: Any, mode: str) -> Any:
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            return value
        names = _free(list(value), mode)
        return {name: _value(item, mode) for name, item in zip(names, value.values(), strict=True)}
    return [_value(item, mode) for item in value] if isinstance(value, list) else value


def _relabelled(array: Any, schema: Schema) -> Any:
    """Return an array with the field names of a schema of the same shape."""
    data_type: Any = arrow_type(schema)
    if schema.name in LOGICAL_NAMES or array.type.equals(data_type):
        return array
    mask = array.is_null() if array.null_count else None
    if schema.type is Type.STRUCT:
        children = [_relabelled(array.field(field.index), field.schema) for field in schema.fields]
        return pa.StructArray.from_arrays(children, fields=list(data_type), mask=mask)
    assert schema.value_schema is not None
    if schema.key_schema is None:
        items = _relabelled(array.flatten(), schema.value_schema)
        return pa.ListArray.from_arrays(list_offsets(array), items, type=data_type, mask=mask)
    items = _relabelled(array.items, schema.value_schema)
    return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=data_type, mask=mask)
