"""Records as Spark has read them from Kafka: one Arrow batch, its columns looked at when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from connect.data import Constant, TimestampType

__all__ = ["RawBatch", "RawHeaders"]

RawHeaders = Sequence[tuple[str, bytes | None]]

_TIMESTAMP_TYPES: Final = {
    -1: TimestampType.NO_TIMESTAMP_TYPE,
    0: TimestampType.CREATE_TIME,
    1: TimestampType.LOG_APPEND_TIME,
}


class RawBatch:
    """Consumed records of one topic. Only ``partition``, ``offset`` and ``value`` must be among the columns."""

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
    def partition(self) -> int:
        """The partition, which is the same for all the records of a Spark partition."""
        return int(self._columns.column("partition")[0].as_py())

    @property
    def offset_array(self) -> Any:
        """The offsets as an Arrow array."""
        return self._columns.column("offset")

    @property
    def offsets(self) -> list[int]:
        """The offsets."""
        offsets: list[int] = self.offset_array.to_pylist()
        return offsets

    @property
    def keys(self) -> Sequence[bytes | None]:
        """The keys; all null if they were not read."""
        return self._column("key", None)

    @property
    def values(self) -> Sequence[bytes | None]:
        """The values."""
        return self._column("value", None)

    @property
    def timestamps(self) -> Sequence[int | None]:
        """The timestamps in milliseconds; all null if they were not read."""
        return self._column("timestamp", None)

    @property
    def timestamp_types(self) -> Sequence[TimestampType]:
        """Who set the timestamps."""
        codes = self._column("timestampType", -1)
        return [_TIMESTAMP_TYPES[code] for code in codes]

    @property
    def headers(self) -> Sequence[RawHeaders | None]:
        """The headers of each record; ``None`` where it has none."""
        rows = self._column("headers", None)
        return [row and [(header["key"], header["value"]) for header in row] for row in rows]

    def slice(self, start: int, length: int) -> RawBatch:
        """The records from ``start`` on, ``length`` of them."""
        return RawBatch(self.topic, self._columns.slice(start, length))

    def _column(self, name: str, absent: Any) -> Sequence[Any]:
        index = self._columns.schema.get_field_index(name)
        if index < 0:
            return Constant(absent, len(self))
        values: list[Any] = self._columns.column(index).to_pylist()
        return values
