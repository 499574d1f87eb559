"""Batches: ordered records of one topic with one key schema and one value schema, stored as columns.

The batch is the unit of the data plane. Rows are created only when it is iterated, Arrow data only by
:meth:`Batch.to_arrow`; both are views of the same columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from connect.data.column import ArrowColumn, Column, Constant, ValueColumn, taken
from connect.data.record import (
    NO_HEADERS,
    Headers,
    Offset,
    Record,
    SinkRecord,
    SourceRecord,
    TimestampType,
    TopicPartition,
)
from connect.data.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Batch", "SinkBatch", "SourceBatch"]

R = TypeVar("R", bound=Record)


@dataclass(slots=True)
class Batch(Generic[R]):
    """Records of one topic, in order. Treat a batch as immutable: use :meth:`replace` to derive another one."""

    topic: str
    key: Column
    value: Column
    partitions: Sequence[int | None]
    timestamps: Sequence[int | None]
    headers: Sequence[Headers]

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[R]:
        """Iterate over the records, which are created one at a time."""
        raise NotImplementedError

    @property
    def key_schema(self) -> Schema | None:
        """The schema of all keys."""
        return self.key.schema

    @property
    def value_schema(self) -> Schema | None:
        """The schema of all values."""
        return self.value.schema

    def replace(self, **changes: Any) -> Self:
        """Return this batch with some columns replaced; the new columns must have the same length."""
        return replace(self, **changes)

    def slice(self, start: int, stop: int) -> Self:
        """Return the records from ``start`` (inclusive) to ``stop`` (exclusive)."""
        if start == 0 and stop >= len(self):
            return self
        changes: dict[str, Any] = {name: getattr(self, name)[start:stop] for name in self._sequences()}
        return replace(self, key=self.key.slice(start, stop), value=self.value.slice(start, stop), **changes)

    def take(self, indices: Sequence[int]) -> Self:
        """Return the records at these indices, in this order."""
        changes: dict[str, Any] = {name: taken(getattr(self, name), indices) for name in self._sequences()}
        return replace(self, key=self.key.take(indices), value=self.value.take(indices), **changes)

    def to_arrow(self) -> pa.Table:
        """Return the batch as an Arrow table: ``key``, ``value`` and the other columns. Needs pyarrow."""
        from connect.data.arrow_tables import batch_to_table  # noqa: PLC0415 - pyarrow is loaded only where columns are read

        return batch_to_table(self)

    @classmethod
    def from_records(cls, records: Iterable[R]) -> list[Self]:
        """Group records into batches, in order; a new batch begins where the topic or a schema changes."""
        return [cls._from_run(list(run)) for _, run in groupby(records, key=_run_key)]

    @classmethod
    def _from_run(cls, run: list[R]) -> Self:
        raise NotImplementedError

    @classmethod
    def _sequences(cls) -> tuple[str, ...]:
        return ("partitions", "timestamps", "headers")


@dataclass(slots=True)
class SourceBatch(Batch[SourceRecord]):
    """Records read from a source system. A source task may return one from ``poll`` instead of single records."""

    source_partitions: Sequence[Offset]
    source_offsets: Sequence[Offset]

    @classmethod
    def of(
        cls,
        topic: str,
        value: Column,
        *,
        source_partition: Offset,
        source_offsets: Sequence[Offset],
        key: Column | None = None,
        timestamps: Sequence[int | None] | None = None,
        partitions: Sequence[int | None] | None = None,
        headers: Sequence[Headers] | None = None,
    ) -> SourceBatch:
        """Make a batch of records from one source partition; omitted columns are null in every record."""
        length = len(value)
        given = (("source_offsets", source_offsets), ("key", key), ("timestamps", timestamps))
        for name, column in (*given, ("partitions", partitions), ("headers", headers)):
            if column is not None and len(column) != length:
                raise ValueError(f"{name} has {len(column)} elements for {length} records: give one for each record.")
        return cls(
            topic,
            key if key is not None else ValueColumn(Constant(None, length)),
            value,
            partitions if partitions is not None else Constant(None, length),
            timestamps if timestamps is not None else Constant(None, length),
            headers if headers is not None else Constant(NO_HEADERS, length),
            Constant(source_partition, length),
            source_offsets,
        )

    @classmethod
    def from_arrow(
        cls,
        topic: str,
        data: pa.Table | pa.RecordBatch,
        *,
        source_partition: Offset,
        source_offsets: Sequence[Offset],
        schema: Schema | None = None,
    ) -> SourceBatch:
        """Make a batch from the rows of an Arrow table, as structs of ``schema``, by default the table's own schema.

        Raises a :class:`~connect.errors.DataError` that says what to cast if a column does not fit the schema.
        """
        from connect.data.arrow import conform, schema_from_arrow  # noqa: PLC0415 - as above
        from connect.data.arrow_tables import struct_array  # noqa: PLC0415 - as above

        schema = schema or schema_from_arrow(data.schema)
        value = ArrowColumn(conform(struct_array(data), schema), schema)
        return cls.of(topic, value, source_partition=source_partition, source_offsets=source_offsets)

    def __iter__(self) -> Iterator[SourceRecord]:
        topic, key_schema, value_schema = self.topic, self.key.schema, self.value.schema
        rows = zip(
            self.value,
            self.key,
            self.partitions,
            self.timestamps,
            self.headers,
            self.source_partitions,
            self.source_offsets,
            strict=True,
        )
        for value, key, partition, timestamp, headers, source_partition, source_offset in rows:
            yield SourceRecord(
                topic,
                value,
                value_schema,
                key,
                key_schema,
                partition,
                timestamp,
                headers,
                source_partition,
                source_offset,
            )

    @classmethod
    def _from_run(cls, run: list[SourceRecord]) -> SourceBatch:
        return cls(
            **_shared(run),
            source_partitions=[record.source_partition for record in run],
            source_offsets=[record.source_offset for record in run],
        )

    @classmethod
    def _sequences(cls) -> tuple[str, ...]:
        return ("partitions", "timestamps", "headers", "source_partitions", "source_offsets")


@dataclass(slots=True)
class SinkBatch(Batch[SinkRecord]):
    """Records consumed from one topic, as passed to the ``put`` method of a sink task."""

    offsets: Sequence[int]
    timestamp_types: Sequence[TimestampType]
    original_topic: str
    original_partitions: Sequence[int]
    original_offsets: Sequence[int]

    def __iter__(self) -> Iterator[SinkRecord]:
        topic, key_schema, value_schema = self.topic, self.key.schema, self.value.schema
        original_topic = self.original_topic
        rows = zip(
            self.value,
            self.key,
            self.partitions,
            self.timestamps,
            self.headers,
            self.offsets,
            self.timestamp_types,
            self.original_partitions,
            self.original_offsets,
            strict=True,
        )
        for (
            value,
            key,
            partition,
            timestamp,
            headers,
            offset,
            kind,
            original_partition,
            original_offset,
        ) in rows:
            yield SinkRecord(
                topic,
                value,
                value_schema,
                key,
                key_schema,
                partition,
                timestamp,
                headers,
                offset,
                kind,
                original_topic,
                original_partition,
                original_offset,
            )

    @classmethod
    def empty(cls, topic: str) -> SinkBatch:
        """Return an empty batch of a topic, which a task receives when only time has passed."""
        return cls(topic, ValueColumn(()), ValueColumn(()), (), (), (), (), (), topic, (), ())

    @property
    def origins(self) -> Sequence[TopicPartition]:
        """The topic partition from which each record was consumed."""
        made = {
            partition: TopicPartition(self.original_topic, partition) for partition in set(self.original_partitions)
        }
        return list(map(made.__getitem__, self.original_partitions))

    @classmethod
    def _from_run(cls, run: list[SinkRecord]) -> SinkBatch:
        return cls(
            **_shared(run),
            offsets=[record.offset for record in run],
            timestamp_types=[record.timestamp_type for record in run],
            original_topic=run[0].original_topic,
            original_partitions=[record.original_partition for record in run],
            original_offsets=[record.original_offset for record in run],
        )

    @classmethod
    def _sequences(cls) -> tuple[str, ...]:
        beside = ("offsets", "timestamp_types", "original_partitions", "original_offsets")
        return ("partitions", "timestamps", "headers", *beside)


def _run_key(record: Record) -> tuple[object, ...]:
    original = record.original_topic if isinstance(record, SinkRecord) else None
    return (record.topic, record.key_schema, record.value_schema, original)


def _shared(run: Sequence[Record]) -> dict[str, Any]:
    first = run[0]
    return {
        "topic": first.topic,
        "key": ValueColumn([record.key for record in run], first.key_schema),
        "value": ValueColumn([record.value for record in run], first.value_schema),
        "partitions": [record.partition for record in run],
        "timestamps": [record.timestamp for record in run],
        "headers": [record.headers for record in run],
    }
