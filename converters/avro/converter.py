"""The Avro converter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice, repeat
from operator import indexOf
from typing import Any, Final

from connect.converter import Converter
from connect.data import ArrowColumn, Column, Schema, SchemaAndValue, ValueColumn
from connect.errors import DataError
from connect.kits.avro.encode import Encode
from connect.kits.avro.wire_format import HEADER, read_id
from converters.avro.codecs import AvroConverterConfig, Codecs, Reader
from converters.avro.column import AvroColumn, Use
from converters.registry import RegistryClient

__all__ = ["AvroConverter"]

_TOMBSTONE: Final = SchemaAndValue(None, None)
_SHORT_RUN: Final = 64
"""Runs of fewer messages with the same schema id, on average, are not worth a column each."""
_NOTHING: Final = ("", b"\xff")


class AvroConverter(Converter[AvroConverterConfig]):
    """Writes and reads Avro with schemas in a Confluent-compatible schema registry, with the same bytes as Java.

    A message is a zero byte, the id of the schema in four bytes, and the value. Any other message, even one with a
    single extra byte, raises a :class:`~connect.errors.DataError`; a registry that does not respond raises a
    :class:`~connect.errors.RetriableError`.
    """

    def __init__(self, config: AvroConverterConfig, *, is_key: bool = False) -> None:
        super().__init__(config, is_key=is_key)
        self._registry = RegistryClient(config)
        self._codecs = Codecs(config, self._registry, is_key=is_key)
        self._keep = not self._codecs.may_change
        self._last_read: tuple[tuple[str, bytes], Reader | None] = (_NOTHING, None)
        self._use = Use()
        self._last_written: tuple[str, Schema | None, Encode | None] = ("", None, None)

    def close(self) -> None:
        """Close the connections to the registry."""
        self._registry.close()

    # -- writing -----------------------------------------------------------------------------------------------

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the message of a value; ``None`` for a null.

        Raises a :class:`~connect.errors.DataError` that names the field if the value does not match the schema, and one
        if the registry refuses the schema.
        """
        if value is None:
            _check_nullable(schema)
            return None
        return self._writer(topic, schema)([value])[0]

    def from_connect_column(self, topic: str, column: Column) -> Sequence[bytes | None]:
        """Return the message of every value in a column; errors as in :meth:`from_connect`."""
        values, schema = column.values(), column.schema
        present = [value for value in values if value is not None]
        messages = self._writer(topic, schema)(present) if present else []
        if len(present) == len(values):
            return messages
        _check_nullable(schema)
        written = iter(messages)
        return [None if value is None else next(written) for value in values]

    def _writer(self, topic: str, schema: Schema | None) -> Encode:
        last_topic, last_schema, writer = self._last_written
        if writer is None or last_schema is not schema or last_topic != topic:
            writer = self._codecs.writer(topic, schema)
            if self._keep:
                self._last_written = (topic, schema, writer)
        return writer

    # -- reading -----------------------------------------------------------------------------------------------

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the schema and the value of a message.

        Raises :class:`~connect.errors.DataError` if it is malformed.
        """
        if data is None:
            return _TOMBSTONE
        reader = self._reader(topic, data)
        return SchemaAndValue(reader.schema, reader.decode([data])[0])

    def to_connect_column(self, topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:
        """Return the values of many messages, starting a new column where the schema id changes.

        Errors as in :meth:`to_connect`.
        """
        columns: list[Column] = []
        for absent, run in groupby(data, _is_none) if None in data else [(False, data)]:
            messages: Any = list(run)
            if absent:
                columns.append(ValueColumn(messages))
            else:
                columns += self._runs(topic, messages)
        return columns

    def _runs(self, topic: str, messages: Sequence[bytes]) -> Iterator[Column]:
        start = 0
        while start < len(messages):
            reader = self._reader(topic, messages[start])
            end = _end_of_run(messages, start, messages[start][:HEADER])
            run = messages[start:end] if end - start < len(messages) else messages
            yield self._column(reader, run)
            start = end

    def _column(self, reader: Reader, messages: Sequence[bytes]) -> Column:
        if reader.decoders is None:
            return ValueColumn(reader.decode(messages))
        # What reads the next column probably wants the same of it as of this one.
        arrow, self._use = self._use.is_arrow, Use()
        return AvroColumn.decoded(messages, reader.decoders, self._use, arrow=arrow)

    def to_connect_arrow(self, topic: str, data: Any) -> Sequence[Column]:
        """Return the values of an Arrow array of messages, none of which is null, decoded straight into Arrow.

        A new column starts where the schema id changes. Values without a schema are returned as plain values. Needs
        numpy and pyarrow. Raises :class:`~connect.errors.DataError` if a message is malformed or Arrow cannot hold
        its value.
        """
        from pyarrow import compute  # noqa: PLC0415 - pyarrow is loaded only where columns are read

        runs: Any = compute.call_function("run_end_encode", [compute.binary_slice(data, 0, HEADER)])
        ends, start = runs.run_ends.to_pylist(), 0
        if len(ends) > 1 + len(data) // _SHORT_RUN:
            return self.to_connect_column(topic, data.to_pylist())
        columns: list[Column] = []
        for end, prefix in zip(ends, runs.values.to_pylist(), strict=True):
            reader = self._reader(topic, prefix)
            run = data.slice(start, end - start)
            if reader.decoders is None:
                columns.append(ValueColumn(reader.decode(run.to_pylist())))
            else:
                columns.append(ArrowColumn(reader.decoders.columns().read_array(run), reader.schema))
            start = end
        return columns

    def _reader(self, topic: str, message: bytes) -> Reader:
        key = (topic, message[:HEADER])
        known, reader = self._last_read
        if reader is None or known != key:
            reader = self._codecs.reader(topic, read_id(message))
            if self._keep:
                self._last_read = (key, reader)
        return reader


def _check_nullable(schema: Schema | None) -> None:
    if schema is not None and not schema.optional:
        raise DataError("Found null value for non-optional schema: make the schema optional, or give a value.")


def _end_of_run(messages: Sequence[bytes], start: int, prefix: bytes) -> int:
    """Return the index of the first message, from ``start`` on, that does not begin with ``prefix``."""
    try:
        return start + indexOf(map(bytes.startswith, islice(messages, start, None), repeat(prefix)), False)
    except ValueError:
        return len(messages)


def _is_none(message: bytes | None) -> bool:
    return message is None
