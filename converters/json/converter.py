"""The JSON converter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby, islice, repeat
from operator import indexOf, itemgetter
from typing import Any, Final

import orjson

from connect.data import ArrowColumn, Column, Schema, SchemaAndValue, StructColumn, ValueColumn
from connect.errors import ConfigError, DataError
from converters.json.codec import Codecs, Reader, Writer
from converters.json.columns import DoubtError
from converters.json.config import JsonConverterConfig
from converters.json.errors import InexactError
from converters.json.text import parse_exactly
from converters.universal import UniversalConverter

__all__ = ["JsonConverter"]

_TOMBSTONE: Final = SchemaAndValue(None, None)
_BRACE: Final = ord("}")
_NOT_AN_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional '
    "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter "
    "configuration."
)
_TOO_DEEP: Final = "The value is nested too deeply: flatten it, or read it as text with the StringConverter."
_NOT_YET: Final = b"\xff"
_CHUNK: Final = 512
"""How many messages are read at once: so many values stay in the processor's cache between the steps."""
_ARROW_CHUNK: Final = 16_384
"""How many messages are read into Arrow at once; one that is out of the ordinary slows down its chunk."""


class JsonConverter(UniversalConverter[JsonConverterConfig]):
    """Writes and reads values as JSON, byte for byte as Kafka Connect does.

    With ``schemas.enable`` each message is an envelope ``{"schema":...,"payload":...}``. Reading is lenient where
    Kafka Connect is: text where the schema wants a number is 0, a number where it wants text is null, a whole number
    too large for its type keeps the low bits. A container in the place of a scalar is refused, and so is any value to
    be written that is not what its schema says.
    """

    def __init__(self, config: JsonConverterConfig, *, is_key: bool = False) -> None:
        super().__init__(config, is_key=is_key)
        self._codecs = Codecs(config)
        self._reader = self._codecs.reader(self._configured_schema())
        self._enveloped = config.schemas_enable and self._reader.schema is None
        self._last_read: tuple[bytes, Reader] = (_NOT_YET, self._reader)
        self._last_written: Writer = self._codecs.writer(None)

    def _configured_schema(self) -> Schema | None:
        content = self.config.schema_content
        if not content or not self.config.schemas_enable:
            return None
        try:
            return self._codecs.schema(parse_exactly(content.encode()))
        except (DataError, RecursionError) as error:
            raise ConfigError("schema.content", content, f"it is no schema: {error}") from error

    # -- writing -----------------------------------------------------------------------------------------------

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:  # noqa: ARG002
        """The JSON of a value; ``None`` for a null without a schema.

        Raises :class:`~connect.errors.DataError` that names the field when the value is not what the schema says.
        """
        if value is None and schema is None:
            return None
        writer = self._last_written
        if writer.schema is not schema:
            writer = self._last_written = self._codecs.writer(schema)
        try:
            return writer.write(value)
        except RecursionError as error:
            raise DataError(_TOO_DEEP) from error

    def from_connect_column(self, topic: str, column: Column) -> Sequence[bytes | None]:
        """The JSON of every value of a column; errors as in :meth:`from_connect`."""
        writer = self._codecs.writer(column.schema)
        whole = column if isinstance(column, StructColumn) else ValueColumn(column.values(), column.schema)
        texts: list[bytes | None] = []
        for start in range(0, len(whole), _CHUNK):
            chunk = whole.slice(start, start + _CHUNK)
            try:
                texts += writer.write_column(chunk)
            except (DoubtError, orjson.JSONEncodeError, RecursionError):
                texts += [self.from_connect(topic, column.schema, value) for value in chunk]
        return texts

    # -- reading -----------------------------------------------------------------------------------------------

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """The schema and value of JSON; a :class:`~connect.errors.DataError` when it is not as it should be."""
        if data is None:
            return _TOMBSTONE
        try:
            return self._read_envelope(data) if self._enveloped else _read_payload(self._reader, data)
        except RecursionError as error:
            raise DataError(_TOO_DEEP) from error

    def _read_envelope(self, data: bytes) -> SchemaAndValue:
        found = self._reader_of(data)
        if found is not None and data[-1] == _BRACE:
            prefix, reader = found
            try:
                return SchemaAndValue(reader.schema, reader.read(data[len(prefix) : -1]))
            except (orjson.JSONDecodeError, InexactError):
                pass  # the whole message is read instead, exactly
        envelope = parse_exactly(data)
        if not isinstance(envelope, dict) or envelope.keys() != {"schema", "payload"}:
            raise DataError(_NOT_AN_ENVELOPE)
        reader = self._codecs.reader(self._codecs.schema(envelope["schema"]))
        return SchemaAndValue(reader.schema, reader.decode(envelope["payload"]))

    def _reader_of(self, data: bytes) -> tuple[bytes, Reader] | None:
        if data.startswith(self._last_read[0]):
            return self._last_read
        found = self._codecs.reader_of(data)
        if found is not None:
            self._last_read = found
        return found

    def to_connect_column(self, topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:  # noqa: ARG002
        """The values of many messages; a new column begins where the schema changes.

        Errors as in :meth:`to_connect`.
        """
        return self._columns(data, self._reader, arrow=False)

    def to_connect_arrow(
        self,
        topic: str,  # noqa: ARG002
        data: Sequence[bytes | None],
        schema: Schema | None = None,
    ) -> Sequence[Column]:
        """The values of :meth:`to_connect_column`, read straight into Arrow where that loses and coerces nothing.

        Structs of anything but maps come as :class:`~connect.data.ArrowColumn`, up to 16,384 messages each. Other
        values, and messages out of the ordinary, come as values: ask any column ``to_arrow()``. ``schema`` is what
        messages without an envelope are read as (``schemas.enable=false``); where they have one it is not looked at.
        Needs pyarrow. Errors as in :meth:`to_connect`.
        """
        reader = self._reader
        if schema is not None and not self.config.schemas_enable:
            reader = self._codecs.reader(schema)
        return self._columns(data, reader, arrow=True)

    def _columns(self, data: Sequence[bytes | None], reader: Reader, *, arrow: bool) -> list[Column]:
        columns: list[Column] = []
        size = _ARROW_CHUNK if arrow else _CHUNK
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
            raise DataError(_TOO_DEEP) from error
        return _merged(columns)

    def _envelope_columns(self, messages: Sequence[bytes], size: int) -> Iterator[Column]:
        start = 0
        while start < len(messages):
            found = self._reader_of(messages[start])
            if found is None:
                schema, value = self._read_envelope(messages[start])
                yield ValueColumn([value], schema)
                start += 1
                continue
            prefix, reader = found
            end = _end_of_run(messages, start, min(start + size, len(messages)), prefix)
            run = messages[start:end]
            closed = set(map(itemgetter(-1), run)) == {_BRACE}
            payloads = [message[len(prefix) : -1] for message in run] if closed else None
            yield from _read_chunk(reader, payloads, size == _ARROW_CHUNK, self._read_envelope, run)
            start = end


def _read_payload(reader: Reader, data: bytes) -> SchemaAndValue:
    try:
        return SchemaAndValue(reader.schema, reader.read(data))
    except (orjson.JSONDecodeError, InexactError):
        return SchemaAndValue(reader.schema, reader.decode(parse_exactly(data)))


def _read_chunk(
    reader: Reader,
    payloads: Sequence[bytes] | None,
    arrow: bool,
    read: Callable[[bytes], SchemaAndValue],
    messages: Sequence[bytes],
) -> Iterator[Column]:
    """The values of messages that should all have the schema of ``reader``; ``read`` knows if one has not."""
    if arrow and payloads is not None:
        try:
            yield ArrowColumn(reader.read_arrow(payloads), reader.schema)
        except DoubtError:
            for start in range(0, len(messages), _CHUNK):
                end = start + _CHUNK
                yield from _read_chunk(reader, payloads[start:end], False, read, messages[start:end])
        return
    try:
        values = reader.read_column(payloads) if payloads is not None else None
    except DoubtError:
        values = None
    if values is not None:
        yield ValueColumn(values, reader.schema)
    else:
        for message in messages:
            schema, value = read(message)
            yield ValueColumn([value], schema)


def _merged(columns: Sequence[Column]) -> list[Column]:
    """The columns, with neighbours of values that have one schema made one."""
    merged: list[Column] = []
    for (arrow, schema), run in groupby(columns, lambda column: (isinstance(column, ArrowColumn), column.schema)):
        parts = list(run)
        if arrow or len(parts) == 1:
            merged += parts
        else:
            merged.append(ValueColumn(list(chain.from_iterable(part.values() for part in parts)), schema))
    return merged


def _end_of_run(messages: Sequence[bytes], start: int, stop: int, prefix: bytes) -> int:
    """Where, from ``start`` up to ``stop``, the first message is that does not begin with ``prefix``."""
    try:
        return start + indexOf(map(bytes.startswith, islice(messages, start, stop), repeat(prefix)), False)
    except ValueError:
        return stop


def _is_none(message: bytes | None) -> bool:
    return message is None
