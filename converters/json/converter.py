"""The JSON converter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from typing import Any, Final

import orjson

from connect.data import ArrowColumn, Column, Schema, SchemaAndValue, StructColumn, ValueColumn
from connect.errors import ConfigError, DataError
from converters.json.codecs import Codecs
from converters.json.config import JsonConverterConfig
from converters.json.envelope import Frame, read_envelope
from converters.json.errors import DoubtError, InexactError
from converters.json.nesting import TOO_DEEP
from converters.json.reader import Reader
from converters.json.text import parse_exactly, parse_first
from converters.json.writer import Writer
from converters.universal import UniversalConverter

__all__ = ["JsonConverter"]

_TOMBSTONE: Final = SchemaAndValue(None, None)
_NO_MESSAGE: Final = b"\xff"
_CHUNK_RECORDS: Final = 512
"""The number of messages read at once, so that their values stay in the processor's cache from step to step."""
_ARROW_CHUNK: Final = 16_384
"""The number of messages read into Arrow at once. One unusual message slows down its whole chunk."""
_FEWEST_TOGETHER: Final = 4
_FEWEST_IN_ARROW: Final = 32
"""The minimum number of messages of one schema for which reading a column, or into Arrow, pays off."""
_ROWS: Final = 8
"""The number of messages read one by one where it does not."""


class JsonConverter(UniversalConverter[JsonConverterConfig]):
    """Writes and reads values as JSON, with the same bytes as Kafka Connect.

    With ``schemas.enable`` each message is an envelope ``{"schema":...,"payload":...}``. Reading is as lenient as in
    Kafka Connect: text where the schema requires a number is 0, and a number where it requires text is null. A number
    too large for its type and a container in place of a scalar are refused. When writing, any value that does not match
    its schema is refused.
    """

    def __init__(self, config: JsonConverterConfig, *, is_key: bool = False) -> None:
        super().__init__(config, is_key=is_key)
        self._codecs = Codecs(config)
        self._reader = self._codecs.reader(self._configured_schema())
        self._enveloped = config.schemas_enable and self._reader.schema is None
        self._frame = Frame(_NO_MESSAGE, _NO_MESSAGE, self._reader)
        self._last_written: Writer = self._codecs.writer(None)

    def _configured_schema(self) -> Schema | None:
        content = self.config.schema_content
        if not content or not self.config.schemas_enable:
            return None
        try:
            return self._codecs.schema(parse_exactly(content.encode()))
        except (DataError, RecursionError) as error:
            raise ConfigError("schema.content", content, f"not a schema: {error}") from error

    # -- writing -----------------------------------------------------------------------------------------------

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:  # noqa: ARG002
        """Return the JSON of a value; ``None`` for a null without a schema.

        Raises a :class:`~connect.errors.DataError` that names the field if the value does not match the schema.
        """
        if value is None and schema is None:
            return None
        try:
            writer = self._last_written
            if writer.schema is not schema:
                writer = self._last_written = self._codecs.writer(schema)
            return writer.write(value)
        except RecursionError as error:
            raise DataError(TOO_DEEP) from error

    def from_connect_column(self, topic: str, column: Column) -> Sequence[bytes | None]:
        """Return the JSON of every value in a column; errors as in :meth:`from_connect`."""
        writer = self._codecs.writer(column.schema)
        whole = column if isinstance(column, StructColumn) else ValueColumn(column.values(), column.schema)
        texts: list[bytes | None] = []
        for start in range(0, len(whole), _CHUNK_RECORDS):
            chunk = whole.slice(start, start + _CHUNK_RECORDS)
            try:
                texts += writer.write_column(chunk)
            except (DoubtError, orjson.JSONEncodeError, RecursionError):
                texts += [self.from_connect(topic, column.schema, value) for value in chunk]
        return texts

    # -- reading -----------------------------------------------------------------------------------------------

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """Return the schema and the value of JSON; raise :class:`~connect.errors.DataError` if it is malformed."""
        if data is None:
            return _TOMBSTONE
        try:
            return self._read_envelope(data) if self._enveloped else _read_payload(self._reader, data)
        except RecursionError as error:
            raise DataError(TOO_DEEP) from error

    def _read_envelope(self, data: bytes) -> SchemaAndValue:
        frame = self._frame
        if data.startswith(frame.opening) and data.endswith(frame.closing):
            payload = data[frame.start : frame.end]
        else:
            found = self._codecs.frame_of(data, frame)
            if found is None:
                return self._read_whole_envelope(data)
            frame, payload = found
            self._frame = frame
        try:
            return SchemaAndValue(frame.reader.schema, frame.reader.read(payload))
        except (orjson.JSONDecodeError, InexactError):
            return self._read_framed_exactly(data, frame, payload)

    def _read_framed_exactly(self, data: bytes, frame: Frame, payload: bytes) -> SchemaAndValue:
        try:
            node, rest = parse_first(payload)
        except DataError:
            return self._read_whole_envelope(data)  # its error is precise
        if rest.strip():
            return self._read_whole_envelope(data)
        return SchemaAndValue(frame.reader.schema, frame.reader.decode(node))

    def _read_whole_envelope(self, data: bytes) -> SchemaAndValue:
        envelope = read_envelope(data)
        reader, frame = self._codecs.learned(envelope)
        self._frame = frame or self._frame
        return SchemaAndValue(reader.schema, reader.decode(envelope.payload))

    def to_connect_column(self, topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:  # noqa: ARG002
        """Return the values of many messages, starting a new column where the schema changes.

        Errors as in :meth:`to_connect`.
        """
        return self._columns(data, self._reader, arrow=False)

    def to_connect_arrow(
        self,
        topic: str,  # noqa: ARG002
        data: Sequence[bytes | None],
        schema: Schema | None = None,
    ) -> Sequence[Column]:
        """Return the values of :meth:`to_connect_column`, read directly into Arrow where nothing is lost or coerced.

        Structs that contain no maps are returned as :class:`~connect.data.ArrowColumn`, up to 16,384 messages each.
        Other values and unusual messages are returned as plain values; every column has ``to_arrow()``. ``schema`` is
        the schema of messages without an envelope (``schemas.enable=false``); it is ignored where they have one. Needs
        pyarrow. Errors as in :meth:`to_connect`.
        """
        reader = self._reader
        if schema is not None and not self.config.schemas_enable:
            reader = self._codecs.reader(schema)
        return self._columns(data, reader, arrow=True)

    def _columns(self, data: Sequence[bytes | None], reader: Reader, *, arrow: bool) -> list[Column]:
        columns: list[Column] = []
        size = _ARROW_CHUNK if arrow else _CHUNK_RECORDS
        try:
            for absent, run in groupby(data, _is_none) if None in data else [(False, data)]:
                messages: Any = list(run)
                if absent:
                    columns.append(ValueColumn(messages))
                elif self._enveloped:
                    columns.extend(self._envelope_columns(messages, size))
                else:
                    for start in range(0, len(messages), size):
                        chunk = messages[start : start + size]
                        columns.extend(_read_chunk(reader, chunk, arrow, partial(_read_payload, reader), chunk))
        except RecursionError as error:
            raise DataError(TOO_DEEP) from error
        return _merged(columns)

    def _envelope_columns(self, messages: Sequence[bytes], size: int) -> Iterator[Column]:
        start = 0
        while start < len(messages):
            payloads = self._payloads(messages, start, min(start + size, len(messages)))
            if len(payloads) < _FEWEST_TOGETHER:
                end = start + _ROWS
                yield from _rows(self._read_envelope, messages[start:end])
            else:
                end = start + len(payloads)
                arrow = size == _ARROW_CHUNK and len(payloads) >= _FEWEST_IN_ARROW
                yield from _read_chunk(self._frame.reader, payloads, arrow, self._read_envelope, messages[start:end])
            start = end

    def _payloads(self, messages: Sequence[bytes], start: int, stop: int) -> list[bytes]:
        """Return the payloads of the run of messages from ``start`` that share a known frame; there may be none."""
        payloads = self._frame.payloads(messages, start, stop)
        if payloads:
            return payloads
        found = self._codecs.frame_of(messages[start], self._frame)
        frame = found[0] if found is not None else self._learned(messages[start])
        if frame is None:
            return []
        self._frame = frame
        return frame.payloads(messages, start, stop)

    def _learned(self, message: bytes) -> Frame | None:
        try:
            return self._codecs.learned(read_envelope(message))[1]
        except DataError:
            return None  # the row method reports the better error


def _read_payload(reader: Reader, data: bytes) -> SchemaAndValue:
    try:
        return SchemaAndValue(reader.schema, reader.read(data))
    except (orjson.JSONDecodeError, InexactError):
        return SchemaAndValue(reader.schema, reader.decode(parse_exactly(data)))


def _read_chunk(
    reader: Reader,
    payloads: Sequence[bytes],
    arrow: bool,
    read: Callable[[bytes], SchemaAndValue],
    messages: Sequence[bytes],
) -> Iterator[Column]:
    """Return the values of messages expected to have the schema of ``reader``; ``read`` handles the exceptions."""
    if arrow:
        try:
            yield ArrowColumn(reader.read_arrow(payloads), reader.schema)
        except DoubtError:
            for start in range(0, len(messages), _CHUNK_RECORDS):
                end = start + _CHUNK_RECORDS
                yield from _read_chunk(reader, payloads[start:end], False, read, messages[start:end])
        return
    try:
        yield ValueColumn(reader.read_column(payloads), reader.schema)
    except DoubtError:
        yield from _rows(read, messages)


def _rows(read: Callable[[bytes], SchemaAndValue], messages: Sequence[bytes]) -> Iterator[Column]:
    for message in messages:
        schema, value = read(message)
        yield ValueColumn([value], schema)


def _merged(columns: Sequence[Column]) -> list[Column]:
    """Merge neighbouring columns of values that have the same schema."""
    merged: list[Column] = []
    for (arrow, schema), run in groupby(columns, lambda column: (isinstance(column, ArrowColumn), column.schema)):
        parts = list(run)
        if arrow or len(parts) == 1:
            merged += parts
        else:
            merged.append(ValueColumn(list(chain.from_iterable(part.values() for part in parts)), schema))
    return merged


def _is_none(message: bytes | None) -> bool:
    return message is None
