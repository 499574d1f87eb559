"""The optional columns of a table beside its values: keys, headers, and the origin of records."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.data import ArrowColumn, Column, Schema
from connect.data.arrow import arrow_type
from connect.data.logical import TIMESTAMP_NAME
from connectors.spark.decoding.raw_batch import RawBatch
from connectors.spark.schema import KafkaColumns

__all__ = ["METADATA", "read_kafka_columns", "value_columns"]

_HEADERS: Final = Schema.array(
    Schema.struct({"key": Schema.string(optional=True), "value": Schema.bytes(optional=True)}, optional=True),
    optional=True,
)
_TIMESTAMP: Final = Schema.int64(optional=True, name=TIMESTAMP_NAME, version=1)
METADATA: Final = Schema.struct(
    {
        "topic": Schema.string(optional=True),
        "partition": Schema.int32(optional=True),
        "offset": Schema.int64(optional=True),
        "timestamp": _TIMESTAMP,
    },
    optional=True,
)
"""The origin of a record."""

_NONE: Final = -1


def read_kafka_columns(
    wanted: KafkaColumns, raw: RawBatch, key: Column | None, offsets: Any
) -> Iterator[tuple[str, Column]]:
    """Yield the columns of the records at these offsets, which have these keys after the transformations.

    Headers and origin are those on the topic, regardless of what transformations change.
    """
    if wanted.keys is not None and key is not None:
        yield wanted.keys, key
    if wanted.headers is None and wanted.metadata is None:
        return
    part = raw if offsets is raw.offset_array else raw.take(pc.index_in(offsets, value_set=raw.offset_array))
    if wanted.headers is not None:
        yield wanted.headers, ArrowColumn(part.header_array.cast(arrow_type(_HEADERS)), _HEADERS)
    if wanted.metadata is not None:
        yield wanted.metadata, ArrowColumn(_metadata(part), METADATA)


def _metadata(raw: RawBatch) -> Any:
    kinds, times = raw.timestamp_arrays
    no_timestamp: Any = pa.scalar(_NONE, pa.int32())
    timestamps = pc.if_else(pc.equal(kinds, no_timestamp), pa.scalar(None, pa.int64()), times)
    arrays = [
        pa.repeat(raw.topic, len(raw)),
        raw.partition_array.cast(pa.int32()),
        raw.offset_array,
        timestamps.cast(pa.timestamp("ms", tz="UTC")),
    ]
    data_type: Any = arrow_type(METADATA)
    return pa.StructArray.from_arrays(arrays, fields=list(data_type))


@lru_cache(maxsize=64)
def value_columns(table: Schema | None, kafka_columns: KafkaColumns) -> Schema | None:
    """Return the columns of a table that come from the values."""
    if table is None or not kafka_columns.need_whole_records:
        return table
    return Schema.struct([field for field in table.fields if field.name not in kafka_columns.names])
