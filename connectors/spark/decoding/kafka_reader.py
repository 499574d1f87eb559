"""Reads the records of a load from Kafka in an executor's Python process.

Spark's own source passes records through Java, as rows and then as Arrow, on their way to the same process, which costs
more than reading and decoding them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.bulk import OffsetRange
from connect.data import Constant, TimestampType, TopicPartition
from connect.internals.chain.frames import framed_column
from connect.internals.chain.raw_records import ConsumedBatch
from connect.internals.consumption.ranges import RangeReader

__all__ = ["KafkaReader"]

_NO_TIMESTAMP: Final = -1
_TYPES: Final[Mapping[TimestampType, int]] = {
    TimestampType.NO_TIMESTAMP_TYPE: -1,
    TimestampType.CREATE_TIME: 0,
    TimestampType.LOG_APPEND_TIME: 1,
}
_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True, slots=True)
class KafkaReader:
    """Reads the splits of a load, by number; plain data, sent to the executors.

    ``settings`` are a consumer's, by librdkafka's names. With ``whole``, the records also have their keys, timestamps
    and headers; with ``timed``, their timestamps. Without ``whole``, what one of ``frame_headers`` says of a
    value is put before it, as the chain would do.
    """

    splits: Sequence[OffsetRange]
    settings: Mapping[str, str | int | bool] = field(repr=False)
    whole: bool = False
    timed: bool = False
    most: int = 10_000
    """The number of records read at a time."""
    frame_headers: Mapping[str, bytes] = field(default_factory=dict)

    def read(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the records of the splits whose numbers are in the first column of the batches that Spark passes in.

        Each batch is of one topic partition, in the order of its offsets.
        """
        for _, records in self.read_splits(numbers):
            yield from records

    def read_splits(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
        """Yield each split's number and records; read these before requesting the next split."""
        with ExitStack() as open_ones:
            reader: RangeReader | None = None
            read: set[TopicPartition] = set()
            wanted: Iterator[Any] = chain.from_iterable(columns.column(0).to_pylist() for columns in numbers)
            for number in wanted:
                split = self.splits[number]
                # Creating a consumer costs more than reading the few records of a small split.
                if reader is None or split.topic_partition in read:
                    open_ones.close()
                    reader = open_ones.enter_context(RangeReader(self.settings, [split], self.most))
                    read.clear()
                else:
                    reader.go_on([split])
                read.add(split.topic_partition)
                yield number, self._records(split, reader)

    def read_together(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read the splits of all partitions at once: yields a split's number and some of its records, in order.

        Reading a few records from each partition in turn would take as long as waiting for each of them.
        """
        left = dict(enumerate(self.splits))
        while left:
            # A consumer reads one range of a partition at a time.
            numbers = {split.partition: number for number, split in reversed(left.items())}
            with RangeReader(self.settings, [left.pop(number) for number in numbers.values()], self.most) as reader:
                for consumed in reader.batches():
                    records = pa.RecordBatch.from_pydict(dict(self._columns(consumed.partitions, consumed)))
                    for partition in sorted(set(consumed.partitions)):
                        yield numbers[partition], records.filter(pc.equal(records["partition"], pa.scalar(partition)))

    def _records(self, split: OffsetRange, reader: RangeReader) -> Iterator[pa.RecordBatch]:
        for consumed in reader.batches():
            partitions = Constant(split.partition, len(consumed))
            records = pa.RecordBatch.from_pydict(dict(self._columns(partitions, consumed)))
            # They are in memory a second time, as columns.
            del consumed
            yield records

    def _columns(self, partitions: Sequence[int], consumed: ConsumedBatch) -> Iterator[tuple[str, Any]]:
        yield "partition", _partition_array(partitions)
        yield "offset", pa.array(list(consumed.offsets), pa.int64())
        values = consumed.values
        if not self.whole and self.frame_headers:
            values = framed_column(self.frame_headers, values, consumed.headers)
        yield "value", pa.array(values, pa.binary())
        if self.whole or self.timed:
            times = [_NO_TIMESTAMP if time is None else time for time in consumed.timestamps]
            yield "timestamp", pa.array(times, pa.int64())
        if self.whole:
            yield "key", _array(consumed.keys, pa.binary())
            yield "timestampType", pa.array([_TYPES[kind] for kind in consumed.timestamp_types], pa.int32())
            yield "headers", _header_array(consumed)


def _partition_array(partitions: Sequence[int]) -> Any:
    if isinstance(partitions, Constant):
        return pa.repeat(pa.scalar(partitions[0], pa.int32()), len(partitions))
    return pa.array(partitions, pa.int32())


def _header_array(consumed: ConsumedBatch) -> Any:
    if isinstance(consumed.headers, Constant):
        return pa.nulls(len(consumed), _HEADERS)
    rows = [None if row is None else [{"key": key, "value": value} for key, value in row] for row in consumed.headers]
    return pa.array(rows, _HEADERS)


def _array(values: Sequence[Any], data_type: Any) -> Any:
    if isinstance(values, Constant):
        return pa.nulls(len(values), data_type)
    return pa.array(values, data_type)
