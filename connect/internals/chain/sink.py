"""The chain from the bytes on a topic to a sink connector: converters, then transformations."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

from connect.converter import Converter
from connect.data import (
    NO_HEADERS,
    Column,
    Constant,
    Header,
    Headers,
    SchemaAndValue,
    SinkBatch,
    SinkRecord,
    ValueColumn,
)
from connect.errors import DataError
from connect.internals.chain.converters import Converters
from connect.internals.chain.frames import framed, framed_column, unframed, written
from connect.internals.chain.raw_records import ConsumedBatch, RawHeaders, RawRecord
from connect.internals.chain.steps import Steps
from connect.internals.chain.tolerance import Failure, Stage, StageError, Tolerance
from connect.internals.plugins import class_name

__all__ = ["SinkChain", "aligned"]


class SinkChain:
    """Turns bytes into records with converters and transformations."""

    def __init__(self, steps: Steps[SinkBatch, SinkRecord], converters: Converters, tolerance: Tolerance) -> None:
        self._steps = steps
        self._converters = converters
        self._tolerance = tolerance

    def process(self, batch: ConsumedBatch) -> list[SinkBatch]:
        """Return the batches for a sink task, without records that were dropped or given up.

        Raises what :meth:`Tolerance.give_up` raises.
        """
        with suppress(Exception):  # processed by row, the error comes again, for one record
            return self._steps.apply_batches(list(self._decode(batch)))
        return self._by_row(batch)

    def decode(self, batch: ConsumedBatch, index: int) -> SinkRecord:
        """Convert one record of a batch; raise :class:`StageError` if a converter fails."""
        attempt, converters, topic = self._tolerance.attempt, self._converters, batch.topic
        raw = batch.headers[index]
        data = framed(converters.key, batch.keys[index], raw), framed(converters.value, batch.values[index], raw)
        key: SchemaAndValue = attempt(
            Stage.KEY_CONVERTER, class_name(converters.key), lambda: converters.key.to_connect(topic, data[0])
        )
        value: SchemaAndValue = attempt(
            Stage.VALUE_CONVERTER,
            class_name(converters.value),
            lambda: converters.value.to_connect(topic, data[1]),
        )
        headers = NO_HEADERS
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

    def close(self) -> None:
        """Release the resources of the plugins."""
        self._steps.close()
        self._converters.close()

    def encode(self, record: SinkRecord) -> RawRecord:
        """Convert a record back to bytes, for a report when the consumed bytes are gone.

        Raises what the converters raise.
        """
        topic, convert = record.topic, self._converters.header.from_connect_header
        own, of_value = self._converters.key, self._converters.value
        headers: RawHeaders | None = [
            (header.key, convert(topic, header.key, header.schema, header.value)) for header in record.headers
        ]
        key, headers = unframed(own, written(own, topic, headers, record.key_schema, record.key), headers)
        data = written(of_value, topic, headers, record.value_schema, record.value)
        value, headers = unframed(of_value, data, headers)
        return RawRecord(
            record.original_topic,
            record.original_partition,
            record.original_offset,
            record.timestamp,
            record.timestamp_type.value,
            key,
            value,
            headers or (),
        )

    def _decode(self, batch: ConsumedBatch) -> Iterator[SinkBatch]:
        own, of_value = self._converters.key, self._converters.value
        keys = _decode_column(own, batch.topic, framed_column(own.reads_frame_from, batch.keys, batch.headers))
        values = _decode_column(
            of_value, batch.topic, framed_column(of_value.reads_frame_from, batch.values, batch.headers)
        )
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
                new = self._steps.apply(self.decode(batch, index))
                if new is not None:
                    records.append(new)
            except StageError as error:
                self._tolerance.give_up(Failure.of_stage(error, raw=batch.raw(index)))
        return SinkBatch.from_records(records)


def _decode_column(converter: Converter[Any], topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:
    """Convert a column of consumed bytes; a column of nulls, such as absent keys, is converted only once."""
    if isinstance(data, Constant) and len(data) > 1:
        (column,) = converter.to_connect_column(topic, data[:1])
        return [ValueColumn(Constant(column.values()[0], len(data)), column.schema)]
    return converter.to_connect_column(topic, data)


def aligned(keys: Sequence[Column], values: Sequence[Column]) -> Iterator[tuple[int, int, Column, Column]]:
    """Split columns into runs in which both the key schema and the value schema stay the same.

    Raises :class:`~connect.errors.DataError` if a converter did not return one value per record.
    """
    key_ends, value_ends = [list(accumulate(map(len, columns))) for columns in (keys, values)]
    if key_ends[-1] != value_ends[-1]:
        raise DataError(
            "The converters returned columns of different lengths; they must return one value for every record."
        )
    start = 0
    for stop in sorted({*key_ends, *value_ends} - {0}):
        yield start, stop, _part(keys, key_ends, start, stop), _part(values, value_ends, start, stop)
        start = stop


def _part(columns: Sequence[Column], ends: Sequence[int], start: int, stop: int) -> Column:
    index = bisect_left(ends, stop)
    begin = ends[index] - len(columns[index])
    if (start, stop) == (begin, ends[index]):
        return columns[index]
    return columns[index].slice(start - begin, stop - begin)
