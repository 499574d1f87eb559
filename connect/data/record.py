"""Records and their headers: events on their way from a source to a topic, or from a topic to a sink."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Final, NamedTuple, Self, TypeAlias, overload

from connect.data.schema import Schema

__all__ = [
    "NO_HEADERS",
    "BytesHeaders",
    "Header",
    "Headers",
    "Offset",
    "Record",
    "SchemaAndValue",
    "SinkRecord",
    "SourceRecord",
    "TimestampType",
    "TopicPartition",
]


@dataclass(frozen=True, slots=True)
class Header:
    """One header: a key, and a value with its schema (``None``: schemaless)."""

    key: str
    value: Any
    schema: Schema | None = None


class Headers(Sequence[Header]):
    """The headers of a record, in order; keys may repeat. Headers are immutable: every change returns new ones."""

    __slots__ = ("_headers",)

    def __init__(self, headers: Iterable[Header] = ()) -> None:
        self._headers = tuple(headers)

    def add(self, key: str, value: object, schema: Schema | None = None) -> Headers:
        """Return these headers with one more at the end."""
        return Headers((*self._headers, Header(key, value, schema)))

    def remove(self, key: str) -> Headers:
        """Return these headers without those with ``key``."""
        return Headers(header for header in self._headers if header.key != key)

    def retain_latest(self, key: str | None = None) -> Headers:
        """Return these headers with only the last one with ``key``, or the last one with each key if none is given."""
        last = {header.key: index for index, header in enumerate(self._headers)}
        kept = (
            header
            for index, header in enumerate(self._headers)
            if last[header.key] == index or (key is not None and header.key != key)
        )
        return Headers(kept)

    def apply(self, change: Callable[[Header], Header | None]) -> Headers:
        """Return these headers, each replaced by the result of ``change``; ``None`` removes it."""
        return Headers(new for header in self._headers if (new := change(header)) is not None)

    def all_with_key(self, key: str) -> tuple[Header, ...]:
        """Return the headers with ``key``, in order."""
        return tuple(header for header in self._headers if header.key == key)

    def last_with_key(self, key: str) -> Header | None:
        """Return the last header with ``key``, or ``None``."""
        return next((header for header in reversed(self._headers) if header.key == key), None)

    @overload
    def __getitem__(self, index: int) -> Header: ...
    @overload
    def __getitem__(self, index: slice) -> Headers: ...
    def __getitem__(self, index: int | slice) -> Header | Headers:
        return Headers(self._headers[index]) if isinstance(index, slice) else self._headers[index]

    def __len__(self) -> int:
        return len(self._headers)

    def __iter__(self) -> Iterator[Header]:
        return iter(self._headers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Headers) and self._headers == other._headers

    def __hash__(self) -> int:
        return hash(tuple(header.key for header in self._headers))

    def __repr__(self) -> str:
        return f"Headers({list(self._headers)!r})"


NO_HEADERS: Final = Headers()

_BYTES_SCHEMA: Final = Schema.bytes()
_RawHeaders: TypeAlias = Sequence[tuple[str, bytes | None]]


class BytesHeaders(Sequence[Headers]):
    """The headers of many records whose values are bytes: ``raw`` has one entry per record, ``None`` for no headers.

    Header objects are created only when they are read, so a converter that passes bytes through handles them at no
    cost.
    """

    __slots__ = ("raw",)

    def __init__(self, raw: Sequence[_RawHeaders | None]) -> None:
        self.raw = raw

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return BytesHeaders(self.raw[index])
        found = self.raw[index]
        return Headers(Header(key, value, _BYTES_SCHEMA) for key, value in found) if found else NO_HEADERS


Offset = Mapping[str, Any]
"""A source partition or a source offset: a flat map of strings to strings, numbers, booleans or nulls."""


class TopicPartition(NamedTuple):
    """One partition of a Kafka topic."""

    topic: str
    partition: int


class SchemaAndValue(NamedTuple):
    """A value and its schema (``None``: schemaless)."""

    schema: Schema | None
    value: Any


class TimestampType(enum.Enum):
    """The origin of a consumed record's timestamp."""

    NO_TIMESTAMP_TYPE = "NoTimestampType"
    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


_Layout = tuple[Callable[[object], tuple[Any, ...]], Mapping[str, int]]
_layouts: dict[type, _Layout] = {}


def _layout(record: Record) -> _Layout:
    """Return a reader for the attributes of this kind of record, and their positions in its constructor."""
    kind = type(record)
    if kind not in _layouts:
        names = [each.name for each in fields(record)]
        _layouts[kind] = (attrgetter(*names), {name: place for place, name in enumerate(names)})
    return _layouts[kind]


@dataclass(slots=True)
class Record:
    """The attributes that source and sink records share.

    Treat a record as immutable: use :meth:`replace` to derive another.

    ``partition`` is ``None`` if the producer should choose it. ``timestamp`` is in milliseconds since the epoch, or
    ``None`` if the producer or the broker should set it.
    """

    topic: str
    value: Any = None
    value_schema: Schema | None = None
    key: Any = None
    key_schema: Schema | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers = NO_HEADERS

    def replace(self, **changes: Any) -> Self:
        """Return this record with some attributes replaced."""
        # Twice as fast as dataclasses.replace, and every transformation does this to every record.
        read, places = _layout(self)
        values = list(read(self))
        for name, value in changes.items():
            if name not in places:
                raise TypeError(f"{self.__class__.__name__} has no attribute {name!r}")
            values[places[name]] = value
        return self.__class__(*values)


@dataclass(slots=True)
class SourceRecord(Record):
    """A record read from a source system, with the position it was read from.

    ``source_partition`` identifies the origin (a file, a table), ``source_offset`` is the position where reading
    continues after this record. The runtime stores both once Kafka has acknowledged the record (invariant I1).
    """

    source_partition: Offset = field(default_factory=dict)
    source_offset: Offset = field(default_factory=dict)


@dataclass(slots=True)
class SinkRecord(Record):
    """A record consumed from a topic.

    ``offset`` is its position in the partition. The ``original_*`` attributes keep their consumed values when
    transformations change the topic or the partition; committed offsets and dead letters refer to them (KIP-793).
    """

    offset: int = -1
    timestamp_type: TimestampType = TimestampType.NO_TIMESTAMP_TYPE
    original_topic: str = ""
    original_partition: int = -1
    original_offset: int = -1

    @property
    def origin(self) -> TopicPartition:
        """The topic partition from which this record was consumed."""
        return TopicPartition(self.original_topic, self.original_partition)
