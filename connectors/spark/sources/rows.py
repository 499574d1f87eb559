"""The executor's work: from the rows of a frame to batches of records.

Nothing is changed silently (invariant I5): if the rows of a batch cannot be cast together, those that cannot be cast on
their own are bad rows, and the others go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from connect.data import ArrowColumn, Column, Constant, Schema, SourceBatch, Type, ValueColumn
from connect.data.arrow import arrow_type, check_ranges, conform
from connect.errors import DataError
from connect.internals.chain.stack_trace import error_text

__all__ = ["KEY", "TIMESTAMP", "VALUE", "BadRow", "RowPlan", "Rows", "rows_of"]

KEY: Final = "key"
VALUE: Final = "value"
TIMESTAMP: Final = "timestamp"


@dataclass(frozen=True, slots=True)
class RowPlan:
    """What to do with rows that have the columns ``key``, ``value`` and ``timestamp``; plain data, sent to
    executors.
    """

    topic: str
    value: Schema
    key: Schema | None = None
    truncates: bool = False
    """Whether to truncate times that are finer than a millisecond."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that no record can hold: the row as text, and the reason."""

    row: str
    reason: str


@dataclass(slots=True)
class Rows:
    """The records of a batch of rows, in order, without those that have no value; and the bad rows."""

    batches: list[SourceBatch] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)


def rows_of(batch: pa.RecordBatch, plan: RowPlan) -> Rows:
    """Convert a batch of rows into records.

    A row whose value is null becomes a record without a value or value schema: a tombstone, which deletes its key.
    """
    rows = Rows()
    for part, key, value in _parts(batch, plan, rows.bad):
        times: Any = part.column(TIMESTAMP)
        rows.batches += _batches(plan, key, value, times)
    return rows


def _parts(batch: Any, plan: RowPlan, bad: list[BadRow]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the rows that can be cast, found by halving the batch around those that cannot."""
    if not len(batch):
        return
    try:
        value = _cast(batch.column(VALUE), plan.value, plan)
        key = None if plan.key is None else _cast(batch.column(KEY), plan.key, plan)
    except (pa.ArrowException, DataError, UnicodeDecodeError) as error:
        if len(batch) == 1:
            bad.append(BadRow(batch.column(VALUE).to_string(), _reason(error)))
            return
        middle = len(batch) // 2
        yield from _parts(batch.slice(0, middle), plan, bad)
        yield from _parts(batch.slice(middle), plan, bad)
        return
    yield batch, key, value


def _batches(plan: RowPlan, key: Any, value: Any, times: Any) -> Iterator[SourceBatch]:
    if not value.null_count or plan.value.type is not Type.STRUCT:
        yield _batch(plan, key, ArrowColumn(value, plan.value), times)
        return
    there = value.is_valid()
    chosen = _batch(plan, _filtered(key, there), ArrowColumn(value.filter(there), plan.value), times.filter(there))
    if len(chosen):
        yield chosen
    missing = pc.invert(there)
    keys = _filtered(key, missing)
    yield _batch(plan, keys, ValueColumn(Constant(None, value.null_count)), times.filter(missing))


def _filtered(array: Any, mask: Any) -> Any:
    return None if array is None else array.filter(mask)


def _batch(plan: RowPlan, key: Any, value: Column, times: Any) -> SourceBatch:
    length = len(value)
    return SourceBatch.of(
        plan.topic,
        value,
        source_partition={},
        source_offsets=Constant({}, length),
        key=None if key is None else ArrowColumn(key, plan.key),
        timestamps=None if times.null_count == length else times.to_pylist(),
    )


def _cast(array: Any, schema: Schema, plan: RowPlan) -> Any:
    """Cast safely: a value that would change is an error, except for sub-millisecond digits that are to be
    truncated.
    """
    target: Any = arrow_type(schema)
    if plan.truncates:
        array = array.cast(_in_milliseconds(array.type), safe=False)
    cast = array if array.type.equals(target) else array.cast(target)
    check_ranges(cast, schema)
    return conform(cast, schema)


def _in_milliseconds(data_type: Any) -> Any:
    """Return the same type with times in milliseconds."""
    if kinds.is_timestamp(data_type):
        return pa.timestamp("ms", data_type.tz)
    if kinds.is_struct(data_type):
        return pa.struct([each.with_type(_in_milliseconds(each.type)) for each in data_type])
    if kinds.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(_in_milliseconds(data_type.value_type)))
    if kinds.is_map(data_type):
        item = data_type.item_field.with_type(_in_milliseconds(data_type.item_type))
        return pa.map_(data_type.key_field, item)
    return data_type


def _reason(error: Exception) -> str:
    text = error_text(error).rstrip(".")
    if "would lose data" not in text:
        return text
    return f"a time is finer than a millisecond ({text}); see fine.times"
