"""Records as an executor has read them from Kafka: an Arrow batch whose columns are converted on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.data import ArrowColumn, Column, Constant, Schema, TimestampType
from connect.data.arrow import arrow_type
from connect.data.logical import TIMESTAMP_NAME
from connect.internals.chain.frames import framed_column
from connect.internals.chain.raw_records import ConsumedBatch, RawHeaders
from connectors.spark.schema import KafkaColumns

__all__ = ["METADATA", "RawBatch", "read_kafka_columns", "value_columns"]

_TIMESTAMP_TYPES: Final = {
    -1: TimestampType.NO_TIMESTAMP_TYPE,
    0: TimestampType.CREATE_TIME,
    1: TimestampType.LOG_APPEND_TIME,
}


class RawBatch:
    """Consumed records of one topic. Only the columns ``partition``, ``offset`` and ``value`` are required."""

    def __init__(self, topic: str, columns: pa.RecordBatch) -> None:
        self.topic = topic
        self._columns = columns

    def __len__(self) -> int:
        return int(self._columns.num_rows)

    @property
    def value_array(self) -> Any:
        """The values as an Arrow array."""
        return self._columns.column("value")

    @property
    def has_nulls(self) -> bool:
        """Whether a value is null."""
        return bool(self._columns.column("value").null_count)

    def framed_values(self, marks: Mapping[str, bytes]) -> Any:
        """Return the values as an Arrow array, each with what one of these headers says of it before it.

        Where headers were not read, the reader has put it there.
        """
        place = self._columns.schema.get_field_index("headers")
        headers: Any = None if place < 0 else self._columns.column(place)
        if not marks or headers is None or headers.null_count == len(self):
            return self.value_array
        names = headers.flatten().field("key")
        if all(pc.index(names, pa.scalar(name, names.type)).as_py() < 0 for name in marks):
            return self.value_array
        return pa.array(framed_column(marks, self.value_array.to_pylist(), self._headers()), pa.binary())

    @property
    def partition_array(self) -> Any:
        """The partitions as an Arrow array."""
        return self._columns.column("partition")

    @property
    def header_array(self) -> Any:
        """The headers as an Arrow array of lists."""
        return self._columns.column("headers")

    @property
    def timestamp_arrays(self) -> tuple[Any, Any]:
        """The types of the timestamps and the timestamps as Arrow arrays."""
        return self._columns.column("timestampType"), self._columns.column("timestamp")

    def take(self, places: Any) -> RawBatch:
        """Some of the records."""
        return RawBatch(self.topic, self._columns.take(places))

    @property
    def partition(self) -> int:
        """The partition, which is the same for all the records of a Spark partition."""
        return int(self._columns.column("partition")[0].as_py())

    @property
    def offset_array(self) -> Any:
        """The offsets as an Arrow array."""
        return self._columns.column("offset")

    @property
    def timestamp_array(self) -> Any:
        """The timestamps as an Arrow array, ``None`` if they were not read."""
        index = self._columns.schema.get_field_index("timestamp")
        return None if index < 0 else self._columns.column(index)

    def consumed(self, *, keys: bool, headers: bool) -> ConsumedBatch:
        """Return the records for a sink's chain; keys and headers are null unless requested."""
        absent: Constant[None] = Constant(None, len(self))
        return ConsumedBatch(
            topic=self.topic,
            keys=self._column("key", None) if keys else absent,
            values=self.value_array.to_pylist(),
            partitions=Constant(self.partition, len(self)),
            offsets=self.offset_array.to_pylist(),
            timestamps=self._column("timestamp", None),
            timestamp_types=[_TIMESTAMP_TYPES[code] for code in self._column("timestampType", -1)],
            headers=self._headers() if headers else absent,
        )

    def _headers(self) -> Sequence[RawHeaders | None]:
        rows = self._column("headers", None)
        return [row and [(header["key"], header["value"]) for header in row] for row in rows]

    def _column(self, name: str, absent: Any) -> Sequence[Any]:
        index = self._columns.schema.get_field_index(name)
        if index < 0:
            return Constant(absent, len(self))
        values: list[Any] = self._columns.column(index).to_pylist()
        return values


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
