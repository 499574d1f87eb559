"""Conversion of batches to Arrow tables, and of tables to the values of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

from connect.data.arrow.arrays import to_array
from connect.data.arrow.types import arrow_field
from connect.data.batch import Batch, SinkBatch, SourceBatch
from connect.data.column import Column, Constant
from connect.data.record import Headers
from connect.data.schema import Schema
from connect.errors import DataError

__all__ = ["batch_to_table", "struct_array"]


def struct_array(data: pa.Table | pa.RecordBatch) -> pa.StructArray:
    """Return the rows of a table as one array of structs."""
    if isinstance(data, pa.RecordBatch):
        return data.to_struct_array()
    column: Any = data.to_struct_array().combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks > 1:
            raise DataError("One column of the table is larger than 2 GiB: slice the table into several batches.")
        column = column.chunk(0)
    array: pa.StructArray = column
    return array


def batch_to_table(batch: Batch[Any]) -> pa.Table:
    """Return the batch as a table of ``key``, ``value``, ``topic``, ``partition``, ``timestamp`` and ``headers``.

    A sink batch adds ``offset``, ``timestamp_type`` and the ``original_*`` columns, a source batch ``source_partition``
    and ``source_offset``. Headers become a list of ``{key, value}``, for which all header values must have the same
    schema; otherwise the :class:`~connect.errors.DataError` says what to do.
    """
    columns: dict[str, Any] = {
        "topic": pa.repeat(batch.topic, len(batch)),
        "partition": _sequence(batch.partitions, pa.int32()),
        "timestamp": _sequence(batch.timestamps, pa.timestamp("ms", tz="UTC")),
        "headers": _headers(batch.headers),
    }
    if isinstance(batch, SinkBatch):
        columns |= {
            "offset": _sequence(batch.offsets, pa.int64()),
            "timestamp_type": pa.array([kind.value for kind in batch.timestamp_types], pa.string()),
            "original_topic": pa.repeat(batch.original_topic, len(batch)),
            "original_partition": _sequence(batch.original_partitions, pa.int32()),
            "original_offset": _sequence(batch.original_offsets, pa.int64()),
        }
    elif isinstance(batch, SourceBatch):
        columns |= {
            "source_partition": to_array(batch.source_partitions, None),
            "source_offset": to_array(batch.source_offsets, None),
        }
    fields = [_field("key", batch.key), _field("value", batch.value)]
    fields += [pa.field(name, column.type) for name, column in columns.items()]
    arrays = [batch.key.to_arrow(), batch.value.to_arrow(), *columns.values()]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _field(name: str, column: Column) -> pa.Field[Any]:
    if column.schema is not None:
        return arrow_field(name, column.schema)
    return pa.field(name, column.to_arrow().type)


def _sequence(values: Sequence[int | None], data_type: Any) -> Any:
    if isinstance(values, Constant):
        return pa.repeat(pa.scalar(values.value, data_type), len(values))
    return pa.array(values, data_type)


def _headers(headers: Sequence[Headers]) -> Any:
    """Return lists of structs of a key and a value; the values are null bytes if there are no header values."""
    present = [header for each in headers for header in each]
    schemas = {header.schema for header in present if header.value is not None}
    schema = schemas.pop() if schemas else Schema.bytes()
    if schemas:
        raise _mixed("have different schemas")
    schema = schema and schema.as_optional()
    try:
        values = to_array([header.value for header in present], schema)
    except DataError as error:
        raise _mixed(f"do not fit one Arrow column ({error})") from error
    keys = pa.array([header.key for header in present], pa.string())
    value_field = pa.field("value", values.type) if schema is None else arrow_field("value", schema)
    items = pa.StructArray.from_arrays(
        [keys, values], fields=[pa.field("key", pa.string(), nullable=False), value_field]
    )
    offsets = pa.array(accumulate(map(len, headers), initial=0), pa.int32())
    return pa.ListArray.from_arrays(offsets, items)


def _mixed(what: str) -> DataError:
    return DataError(
        f"The values of the headers {what}: read them all as strings or bytes"
        " (header.converter=converters.string.StringConverter), or drop them first (DropHeaders)."
    )
