"""The chain from a source connector to the bytes on a topic: transformations, then converters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from connect.converter import Converter
from connect.data import BytesHeaders, Column, Constant, Headers, SourceBatch, SourceRecord, ValueColumn
from connect.internals.chain.converters import Converters
from connect.internals.chain.frames import unframed, unframed_column, written
from connect.internals.chain.raw_records import EncodedBatch, RawHeaders
from connect.internals.chain.steps import Steps
from connect.internals.chain.tolerance import Failure, Stage, StageError, Tolerance
from connect.internals.plugins import class_name

__all__ = ["SourceChain", "by_source_partition"]


class SourceChain:
    """Turns records into bytes with transformations and converters."""

    def __init__(self, steps: Steps[SourceBatch, SourceRecord], converters: Converters, tolerance: Tolerance) -> None:
        self._steps = steps
        self._converters = converters
        self._tolerance = tolerance

    def process(self, batch: SourceBatch) -> list[EncodedBatch]:
        """Return the batches to produce, without records that were dropped or given up.

        Raises what :meth:`Tolerance.give_up` raises.
        """
        try:
            return [self._encode(part) for part in self._steps.apply_batches([batch])]
        except Exception:
            return list(self._by_row(batch))

    def encode(self, record: SourceRecord) -> tuple[bytes | None, bytes | None, RawHeaders | None]:
        """Convert a record to the bytes of its key, value and headers; raise :class:`StageError` if that fails."""
        attempt, converters, topic = self._tolerance.attempt, self._converters, record.topic
        headers: RawHeaders | None = None
        if record.headers:
            name = class_name(converters.header)
            headers = attempt(Stage.HEADER_CONVERTER, name, lambda: self._raw_headers(topic, record.headers))
        key = attempt(
            Stage.KEY_CONVERTER,
            class_name(converters.key),
            lambda: written(converters.key, topic, headers, record.key_schema, record.key),
        )
        value = attempt(
            Stage.VALUE_CONVERTER,
            class_name(converters.value),
            lambda: written(converters.value, topic, headers, record.value_schema, record.value),
        )
        key, headers = unframed(converters.key, key, headers)
        value, headers = unframed(converters.value, value, headers)
        return key, value, headers

    def close(self) -> None:
        """Release the resources of the plugins."""
        self._steps.close()
        self._converters.close()

    def _encode(self, batch: SourceBatch) -> EncodedBatch:
        converters, headers = self._converters, self._encode_headers(batch.topic, batch.headers)
        keys = _encode_column(converters.key, batch.topic, batch.key, headers)
        values = _encode_column(converters.value, batch.topic, batch.value, headers)
        keys, headers = unframed_column(converters.key, keys, headers)
        values, headers = unframed_column(converters.value, values, headers)
        return EncodedBatch(
            batch.topic, keys, values, batch.partitions, batch.timestamps, headers, batch.source_offsets
        )

    def _encode_headers(self, topic: str, headers: Sequence[Headers]) -> Sequence[RawHeaders | None]:
        if isinstance(headers, Constant) and not headers.value:
            return Constant(None, len(headers))
        if isinstance(headers, BytesHeaders) and self._converters.header.passes_bytes:
            return headers.raw
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
                    rows.append((new, *self.encode(new)))
            except StageError as error:
                self._tolerance.give_up(Failure.of_stage(error, record=record))
        for topic, group in groupby(rows, key=lambda row: row[0].topic):
            records, keys, values, headers = zip(*group, strict=True)
            partitions = [record.partition for record in records]
            timestamps = [record.timestamp for record in records]
            source_offsets = [record.source_offset for record in records]
            yield EncodedBatch(topic, keys, values, partitions, timestamps, headers, source_offsets)


def by_source_partition(batch: SourceBatch) -> Iterator[SourceBatch]:
    """Split the batch into runs of one source partition; the offset of its last record stands for the whole run."""
    if isinstance(batch.source_partitions, Constant):
        yield batch
        return
    start = 0
    for _, run in groupby(batch.source_partitions):
        stop = start + sum(1 for _ in run)
        yield batch.slice(start, stop)
        start = stop


def _encode_column(
    converter: Converter[Any], topic: str, column: Column, headers: Sequence[RawHeaders | None]
) -> Sequence[bytes | None]:
    """Convert a column to bytes; if all values are the same, such as absent keys, only one is converted."""
    if converter.reads_headers:
        schema = column.schema
        return [written(converter, topic, row, schema, value) for row, value in zip(headers, column, strict=True)]
    if isinstance(column, ValueColumn) and isinstance(column.values(), Constant) and len(column) > 1:
        return Constant(converter.from_connect_column(topic, column.slice(0, 1))[0], len(column))
    return converter.from_connect_column(topic, column)
