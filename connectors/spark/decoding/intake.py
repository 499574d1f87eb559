"""The records of a load, read from Kafka by the Python of an executor.

Spark's own source has them go through its Java, as rows and then as Arrow, on their way to the same process: that costs
more than reading and decoding them does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from connect.bulk import OffsetRange
from connect.chain.records import ConsumedBatch
from connect.consumption.ranges import RangeReader
from connect.data import Constant, TimestampType

__all__ = ["Intake"]

_NO_TIMESTAMP: Final = -1
_TYPES: Final[Mapping[TimestampType, int]] = {
    TimestampType.NO_TIMESTAMP_TYPE: -1,
    TimestampType.CREATE_TIME: 0,
    TimestampType.LOG_APPEND_TIME: 1,
}
_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True, slots=True)
class Intake:
    """The splits of a load, by the numbers of the tasks that read them; plain data, for it is sent to the executors.

    ``settings`` are those of a consumer by librdkafka's names. With ``whole`` the records have their keys, timestamps
    and headers too, with ``timed`` their timestamps.
    """

    splits: Sequence[OffsetRange]
    settings: Mapping[str, str | int | bool] = field(repr=False)
    whole: bool = False
    timed: bool = False
    most: int = 10_000
    """How many records are read at a time."""

    def asked(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The records of the splits whose numbers are in the first column: the argument of a function that Spark runs.

        Each batch is of one topic partition, in the order of its offsets.
        """
        for columns in numbers:
            wanted: list[Any] = columns.column(0).to_pylist()
            for number in wanted:
                yield from self.read(self.splits[number])

    def read(self, split: OffsetRange) -> Iterator[pa.RecordBatch]:
        """The records of one split."""
        with RangeReader(self.settings, [split], self.most) as reader:
            for consumed in reader.batches():
                yield pa.RecordBatch.from_pydict(dict(self._columns(split.partition, consumed)))

    def _columns(self, partition: int, consumed: ConsumedBatch) -> Iterator[tuple[str, Any]]:
        yield "partition", pa.repeat(pa.scalar(partition, pa.int32()), len(consumed))
        yield "offset", pa.array(list(consumed.offsets), pa.int64())
        yield "value", pa.array(consumed.values, pa.binary())
        if self.whole or self.timed:
            times = [_NO_TIMESTAMP if time is None else time for time in consumed.timestamps]
            yield "timestamp", pa.array(times, pa.int64())
        if self.whole:
            yield "key", _array(consumed.keys, pa.binary())
            yield "timestampType", pa.array([_TYPES[kind] for kind in consumed.timestamp_types], pa.int32())
            yield "headers", _header_array(consumed)


def _header_array(consumed: ConsumedBatch) -> Any:
    if isinstance(consumed.headers, Constant):
        return pa.nulls(len(consumed), _HEADERS)
    rows = [None if row is None else [{"key": key, "value": value} for key, value in row] for row in consumed.headers]
    return pa.array(rows, _HEADERS)


def _array(values: Sequence[Any], data_type: Any) -> Any:
    if isinstance(values, Constant):
        return pa.nulls(len(values), data_type)
    return pa.array(values, data_type)
