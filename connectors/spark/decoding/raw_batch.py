"""Records as an executor has read them from Kafka: an Arrow batch whose columns are converted on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from connect.data import Constant, TimestampType
from connect.internals.chain.raw_records import ConsumedBatch, RawHeaders

__all__ = ["RawBatch"]

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
