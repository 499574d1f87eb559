"""The way of records between a connector and the bytes on a topic: transformations and converters, in order.

Whole batches go through by column. When that fails, for whatever reason, the batch goes through again record by record,
and there, once, tolerance, retries and reports are seen to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Generic, TypeVar

from connect.chain import Step, aligned, apply_steps
from connect.converter import Converter, HeaderConverter
from connect.data import (
    NO_HEADERS,
    Column,
    Constant,
    Header,
    Headers,
    SchemaAndValue,
    SinkBatch,
    SinkRecord,
    SourceBatch,
    SourceRecord,
    ValueColumn,
)
from worker.runtime.records import ConsumedBatch, EncodedBatch, RawHeaders
from worker.runtime.tolerance import Failure, RawRecord, Stage, StageError, Tolerance, class_name

__all__ = ["Converters", "SinkChain", "SourceChain", "Steps"]

R = TypeVar("R", SourceRecord, SinkRecord)
B = TypeVar("B", SourceBatch, SinkBatch)


class Steps(Generic[B, R]):
    """All the transformations of a connector, in order."""

    def __init__(self, steps: Sequence[Step], tolerance: Tolerance) -> None:
        self._steps = tuple(steps)
        self._tolerance = tolerance

    def apply_batches(self, batches: Sequence[B]) -> list[B]:
        """The batches after all steps."""
        return apply_steps(self._steps, batches)

    def apply(self, record: R) -> R | None:
        """One record after all steps; ``None`` if it is dropped, :class:`StageError` if one fails."""
        current: R | None = record
        for step in self._steps:
            if current is None:
                return None
            call: Callable[[], R | None] = partial(step.apply, current)
            current = self._tolerance.attempt(Stage.TRANSFORMATION, class_name(step.transformation), call)
        return current

    def close(self) -> None:
        """Release what the plugins hold."""
        for step in self._steps:
            step.close()


@dataclass(frozen=True, slots=True)
class Converters:
    """The converters of a connector."""

    key: Converter[Any]
    value: Converter[Any]
    header: HeaderConverter[Any]

    def close(self) -> None:
        """Release what they hold."""
        self.key.close()
        self.value.close()
        self.header.close()


class SourceChain:
    """From records to bytes: transformations, then converters."""

    def __init__(self, steps: Steps[SourceBatch, SourceRecord], converters: Converters, tolerance: Tolerance) -> None:
        self._steps = steps
        self._converters = converters
        self._tolerance = tolerance

    def process(self, batch: SourceBatch) -> list[EncodedBatch]:
        """The batch as it is to be produced; records that are dropped or given up are not in it.

        Raises what :meth:`Tolerance.give_up` raises.
        """
        try:
            return [self._encode(part) for part in self._steps.apply_batches([batch])]
        except Exception:
            return list(self._by_row(batch))

    def close(self) -> None:
        """Release what the plugins hold."""
        self._steps.close()
        self._converters.close()

    def _encode(self, batch: SourceBatch) -> EncodedBatch:
        converters = self._converters
        return EncodedBatch(
            batch.topic,
            _encode_column(converters.key, batch.topic, batch.key),
            _encode_column(converters.value, batch.topic, batch.value),
            batch.partitions,
            batch.timestamps,
            self._encode_headers(batch.topic, batch.headers),
        )

    def _encode_headers(self, topic: str, headers: Sequence[Headers]) -> Sequence[RawHeaders | None]:
        if isinstance(headers, Constant) and not headers.value:
            return Constant(None, len(headers))
        return [self._raw_headers(topic, item) if item else None for item in headers]

    def _raw_headers(self, topic: str, headers: Headers) -> RawHeaders:
        convert = self._converters.header.from_connect_header
        return [(header.key, convert(topic, header.key, header.schema, header.value)) for header in headers]

    def _by_row(self, batch: SourceBatch) -> Iterator[EncodedBatch]:
        rows: list[tuple[SourceRecord, bytes | None, bytes | None, RawHeaders | None]] = []
        for record in batch:
            try:
                new = self._steps.apply(record)
                if new is not None:
                    rows.append((new, *self._encode_row(new)))
            except StageError as error:
                self._tolerance.give_up(Failure(error.stage, error.executing, error.cause, record=record))
        for topic, group in groupby(rows, key=lambda row: row[0].topic):
            records, keys, values, headers = zip(*group, strict=True)
            partitions = [record.partition for record in records]
            timestamps = [record.timestamp for record in records]
            yield EncodedBatch(topic, keys, values, partitions, timestamps, headers)

    def _encode_row(self, record: SourceRecord) -> tuple[bytes | None, bytes | None, RawHeaders | None]:
        attempt, converters, topic = self._tolerance.attempt, self._converters, record.topic
        headers: RawHeaders | None = None
        if record.headers:
            name = class_name(converters.header)
            headers = attempt(Stage.HEADER_CONVERTER, name, lambda: self._raw_headers(topic, record.headers))
        key = attempt(
            Stage.KEY_CONVERTER,
            class_name(converters.key),
            lambda: converters.key.from_connect(topic, record.key_schema, record.key),
        )
        value = attempt(
            Stage.VALUE_CONVERTER,
            class_name(converters.value),
            lambda: converters.value.from_connect(topic, record.value_schema, record.value),
        )
        return key, value, headers


def _encode_column(converter: Converter[Any], topic: str, column: Column) -> Sequence[bytes | None]:
    """The column in bytes; what is the same in all records, such as no key, is converted once."""
    if isinstance(column, ValueColumn) and isinstance(column.values(), Constant) and len(column) > 1:
        return Constant(converter.from_connect_column(topic, column.slice(0, 1))[0], len(column))
    return converter.from_connect_column(topic, column)


def _decode_column(converter: Converter[Any], topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:
    """The columns of what was consumed; what is null in all records, such as no key, is converted once."""
    if isinstance(data, Constant) and len(data) > 1:
        (column,) = converter.to_connect_column(topic, data[:1])
        return [ValueColumn(Constant(column.values()[0], len(data)), column.schema)]
    return converter.to_connect_column(topic, data)


class SinkChain:
    """From bytes to records: converters, then transformations."""

    def __init__(self, steps: Steps[SinkBatch, SinkRecord], converters: Converters, tolerance: Tolerance) -> None:
        self._steps = steps
        self._converters = converters
        self._tolerance = tolerance

    def process(self, batch: ConsumedBatch) -> list[SinkBatch]:
        """The batch as a sink task is given it; records that are dropped or given up are not in it.

        Raises what :meth:`Tolerance.give_up` raises.
        """
        try:
            return self._steps.apply_batches(list(self._decode(batch)))
        except Exception:
            return self._by_row(batch)

    def close(self) -> None:
        """Release what the plugins hold."""
        self._steps.close()
        self._converters.close()

    def encode(self, record: SinkRecord) -> RawRecord:
        """A record in bytes, for a report after what was consumed is gone; raises what the converters raise."""
        topic, convert = record.topic, self._converters.header.from_connect_header
        return RawRecord(
            record.original_topic,
            record.original_partition,
            record.original_offset,
            record.timestamp,
            record.timestamp_type.value,
            self._converters.key.from_connect(topic, record.key_schema, record.key),
            self._converters.value.from_connect(topic, record.value_schema, record.value),
            [(header.key, convert(topic, header.key, header.schema, header.value)) for header in record.headers],
        )

    def _decode(self, batch: ConsumedBatch) -> Iterator[SinkBatch]:
        keys = _decode_column(self._converters.key, batch.topic, batch.keys)
        values = _decode_column(self._converters.value, batch.topic, batch.values)
        headers = self._decode_headers(batch.topic, batch.headers)
        for start, stop, key, value in aligned(keys, values):
            yield SinkBatch(
                topic=batch.topic,
                key=key,
                value=value,
                partitions=batch.partitions[start:stop],
                timestamps=batch.timestamps[start:stop],
                headers=headers[start:stop],
                offsets=batch.offsets[start:stop],
                timestamp_types=batch.timestamp_types[start:stop],
                original_topic=batch.topic,
                original_partitions=batch.partitions[start:stop],
                original_offsets=batch.offsets[start:stop],
            )

    def _decode_headers(self, topic: str, headers: Sequence[RawHeaders | None]) -> Sequence[Headers]:
        if isinstance(headers, Constant) and not headers.value:
            return Constant(NO_HEADERS, len(headers))
        return [self._headers(topic, raw) if raw else NO_HEADERS for raw in headers]

    def _headers(self, topic: str, raw: RawHeaders) -> Headers:
        convert = self._converters.header.to_connect_header
        decoded: list[Header] = []
        for key, data in raw:
            schema, value = convert(topic, key, data)
            decoded.append(Header(key, value, schema))
        return Headers(decoded)

    def _by_row(self, batch: ConsumedBatch) -> list[SinkBatch]:
        records: list[SinkRecord] = []
        for index in range(len(batch)):
            try:
                new = self._steps.apply(self._decode_row(batch, index))
                if new is not None:
                    records.append(new)
            except StageError as error:
                raw = batch.raw(index)
                self._tolerance.give_up(Failure(error.stage, error.executing, error.cause, raw=raw))
        return SinkBatch.from_records(records)

    def _decode_row(self, batch: ConsumedBatch, index: int) -> SinkRecord:
        attempt, converters, topic = self._tolerance.attempt, self._converters, batch.topic
        data = batch.keys[index], batch.values[index]
        key: SchemaAndValue = attempt(
            Stage.KEY_CONVERTER, class_name(converters.key), lambda: converters.key.to_connect(topic, data[0])
        )
        value: SchemaAndValue = attempt(
            Stage.VALUE_CONVERTER,
            class_name(converters.value),
            lambda: converters.value.to_connect(topic, data[1]),
        )
        headers, raw = NO_HEADERS, batch.headers[index]
        if raw:
            name = class_name(converters.header)
            headers = attempt(Stage.HEADER_CONVERTER, name, lambda: self._headers(topic, raw))
        partition, offset = batch.partitions[index], batch.offsets[index]
        return SinkRecord(
            topic,
            value.value,
            value.schema,
            key.value,
            key.schema,
            partition,
            batch.timestamps[index],
            headers,
            offset,
            batch.timestamp_types[index],
            topic,
            partition,
            offset,
        )
