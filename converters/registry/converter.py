"""The converter that every format with schemas in a registry is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice, pairwise, repeat
from operator import indexOf
from typing import Any, Final, Generic, Protocol, TypeVar

from connect.config import Config
from connect.converter import Converter
from connect.data import ArrowColumn, Column, Schema, SchemaAndValue, ValueColumn
from connect.errors import DataError
from converters.registry.client import RegistryClient
from converters.registry.codecs import Codecs, Encode, Reader, SchemaFormat
from converters.registry.column import MessageColumn, Use
from converters.registry.config import RegistryConfig

__all__ = ["MessageCodecs", "MessageConverter", "RegistryConverter"]

_TOMBSTONE: Final = SchemaAndValue(None, None)
_KEY_HEADER: Final = "__key_schema_id"
_VALUE_HEADER: Final = "__value_schema_id"
_SHORT_RUN: Final = 64
"""Runs of fewer messages with the same header, on average, are not worth a column each."""

C = TypeVar("C", bound=Config)
R = TypeVar("R", bound=RegistryConfig)


class MessageCodecs(Protocol):
    """Finds what writes and reads messages, by topic and schema."""

    @property
    def may_change(self) -> bool:
        """Whether readers and writers must be fetched for each call."""

    def header(self, message: bytes) -> bytes:
        """Return the start of a message by which its reader is chosen."""

    def writer(self, topic: str, schema: Schema | None) -> Encode:
        """Return the encoder of values with that schema for a topic."""

    def reader(self, topic: str, header: bytes) -> Reader:
        """Return the reader for messages on that topic with that header."""


class MessageConverter(Converter[C], Generic[C]):
    """Writes and reads messages that begin with what names their schema, in a registry of any kind."""

    def __init__(self, config: C, codecs: MessageCodecs, *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        self._codecs = codecs
        self._keep = not codecs.may_change
        self._last_read: tuple[str, bytes, Reader] | None = None
        self._last_written: tuple[str, Schema | None, Encode] | None = None
        self._use = Use()

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
        last = self._last_written
        if last is not None and last[1] is schema and last[0] == topic:
            return last[2]
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
        reader = self.reader(topic, self._codecs.header(data))
        return SchemaAndValue(reader.schema, reader.decode([data])[0])

    def to_connect_column(self, topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:
        """Return the values of many messages, starting a new column where the schema changes.

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

    def to_connect_arrow(self, topic: str, data: Any) -> Sequence[Column]:
        """Return the values of an Arrow array of messages, none of which is null, decoded straight into Arrow.

        A new column starts where the schema changes. Values without a schema are returned as plain values. Needs numpy
        and pyarrow. Raises :class:`~connect.errors.DataError` if a message is malformed or Arrow cannot hold its value.
        """
        from pyarrow import compute  # noqa: PLC0415 - pyarrow is loaded only where columns are read

        if not len(data):
            return []
        width = len(self._codecs.header(data[0].as_py()))
        runs: Any = compute.call_function("run_end_encode", [compute.binary_slice(data, 0, width)])
        ends = runs.run_ends.to_pylist()
        if len(ends) > 1 + len(data) // _SHORT_RUN:
            return self.to_connect_column(topic, data.to_pylist())
        columns: list[Column] = []
        for start, end in pairwise([0, *ends]):
            run = data.slice(start, end - start)
            header = self._codecs.header(run[0].as_py())
            if len(header) > width:
                # What follows in the run may be of other types.
                columns += self.to_connect_column(topic, run.to_pylist())
            else:
                columns.append(self._arrow_column(self.reader(topic, header), run))
        return columns

    @staticmethod
    def _arrow_column(reader: Reader, messages: Any) -> Column:
        if reader.columns is None:
            return ValueColumn(reader.decode(messages.to_pylist()), reader.schema)
        return ArrowColumn(reader.columns().read_array(messages), reader.schema)

    def _runs(self, topic: str, messages: Sequence[bytes]) -> Iterator[Column]:
        start = 0
        while start < len(messages):
            header = self._codecs.header(messages[start])
            reader = self.reader(topic, header)
            end = _end_of_run(messages, start, header)
            run = messages[start:end] if end - start < len(messages) else messages
            yield self._column(reader, run)
            start = end

    def _column(self, reader: Reader, messages: Sequence[bytes]) -> Column:
        if reader.columns is None:
            return ValueColumn(reader.decode(messages), reader.schema)
        # What reads the next column probably wants the same of it as of this one.
        arrow, self._use = self._use.is_arrow, Use()
        return MessageColumn.decoded(messages, reader, self._use, arrow=arrow)

    def reader(self, topic: str, header: bytes) -> Reader:
        """Return the reader of messages that begin with this header."""
        last = self._last_read
        if last is not None and last[1] == header and last[0] == topic:
            return last[2]
        reader = self._codecs.reader(topic, header)
        if self._keep:
            self._last_read = (topic, header, reader)
        return reader


class RegistryConverter(MessageConverter[R], Generic[R]):
    """Writes and reads messages that begin with the id of their schema in a Confluent-compatible schema registry.

    Instead of the id they may begin with a GUID, which then is in a header of their record.

    A message that is damaged raises a :class:`~connect.errors.DataError`; a registry that does not respond raises a
    :class:`~connect.errors.RetriableError`.
    """

    def __init__(self, config: R, form: SchemaFormat[Any], cached: int, *, is_key: bool) -> None:
        self._registry = RegistryClient(config)
        codecs: Codecs[Any] = Codecs(form, config, self._registry, cached, is_key=is_key)
        super().__init__(config, codecs, is_key=is_key)
        name = _KEY_HEADER if is_key else _VALUE_HEADER
        self.reads_frame_from = {name: b""} if config.reads_id_in_header(is_key=is_key) else {}
        self.writes_frame_to = name if config.writes_id_in_header(is_key=is_key) else None

        given = config.configured_frame(is_key=is_key)
        self._given = given + form.first_type if given else b""

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the schema and the value of a message; errors as of all converters with schemas elsewhere."""
        return super().to_connect(topic, None if data is None else self._given + data)

    def to_connect_column(self, topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:
        """Return the values of many messages, starting a new column where the schema changes."""
        given = self._given
        return super().to_connect_column(
            topic, [None if item is None else given + item for item in data] if given else data
        )

    def to_connect_arrow(self, topic: str, data: Any) -> Sequence[Column]:
        """Return the values of an Arrow array of messages, decoded straight into Arrow."""
        if self._given:
            from pyarrow import compute  # noqa: PLC0415 - pyarrow is loaded only where columns are read

            data = compute.binary_join_element_wise(self._given, data, b"")
        return super().to_connect_arrow(topic, data)

    def frame_size(self, data: bytes) -> int:
        """Return the size of what names the schema of a message."""
        return len(self._codecs.header(data))

    def close(self) -> None:
        """Close the connections to the registry."""
        self._registry.close()


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
