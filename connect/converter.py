"""Converters translate between the values of connectors and the bytes on a topic."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from connect.config import Config
from connect.data import Column, Schema, SchemaAndValue, ValueColumn
from connect.plugin import Plugin

__all__ = ["Converter", "HeaderConverter"]

C = TypeVar("C", bound=Config)


class Converter(Plugin[C], Generic[C]):
    """Converts keys or values to bytes and back.

    The row methods are the specification. The column methods do the same for many records at once; override them where
    that is faster, with the same results. A column method may fail as a whole: the runtime then converts the records
    one by one to find the bad ones.

    Raise :class:`~connect.errors.DataError` for data that cannot be converted. A converter is used by one thread only.
    """

    reads_frame_from: Mapping[str, bytes] = MappingProxyType({})
    """The names of headers, each with a mark, which may be empty. If a record has one of them, the runtime puts the
    mark and the header's bytes before the data, which then begins with what describes it, such as the id of a schema.
    If it has several, the first one in this mapping counts.
    """
    writes_frame_to: str | None = None
    """The name of a header. The runtime moves the first bytes of the data there, as many as :meth:`frame_size` says,
    but for the mark that ``reads_frame_from`` has for it.
    """
    reads_headers: bool = False
    """Whether :meth:`from_connect_with_headers` makes use of the headers."""

    def __init__(self, config: C, *, is_key: bool = False) -> None:
        self.config = config
        self.is_key = is_key

    @abstractmethod
    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes of a value; ``None`` makes a tombstone."""

    def from_connect_with_headers(
        self,
        topic: str,
        headers: Sequence[tuple[str, bytes | None]],  # noqa: ARG002
        schema: Schema | None,
        value: Any,
    ) -> bytes | None:
        """Return the bytes of a value, whose record has these headers; only asked with ``reads_headers``."""
        return self.from_connect(topic, schema, value)

    @abstractmethod
    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the schema and the value that ``data`` represents; ``None`` is a tombstone."""

    def from_connect_column(self, topic: str, column: Column) -> Sequence[bytes | None]:
        """Return the bytes of every value in a column."""
        from_connect, schema = self.from_connect, column.schema
        return [from_connect(topic, schema, value) for value in column]

    def to_connect_column(self, topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:
        """Return the values of many records as consecutive columns of one schema each, usually just one column."""
        to_connect = self.to_connect
        pairs = [to_connect(topic, item) for item in data]
        runs = groupby(pairs, key=lambda pair: pair.schema)
        return [ValueColumn([pair.value for pair in run], schema) for schema, run in runs]

    def frame_size(self, data: bytes) -> int:  # noqa: ARG002
        """Return how many bytes at the start of the data describe it; only asked with ``writes_frame_to``."""
        return 0

    def close(self) -> None:
        """Release the resources of the converter."""


class HeaderConverter(Plugin[C], Generic[C]):
    """Converts the values of record headers to bytes and back."""

    passes_bytes: ClassVar[bool] = False
    """Whether bytes stay what they are, so that headers of bytes need not be shown to the converter."""

    def __init__(self, config: C) -> None:
        self.config = config

    @abstractmethod
    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes of a header's value."""

    @abstractmethod
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        """Return the schema and the value that a header's bytes represent."""

    def close(self) -> None:
        """Release the resources of the converter."""
