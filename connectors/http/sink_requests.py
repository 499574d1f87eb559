"""The requests of the sink: which records each contains, and how they are written. Pure: no waiting, no I/O."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from connect.data import SinkRecord, TopicPartition
from connect.errors import DataError
from connect.kits.http.messages import Request
from connect.kits.json_text import json_text
from connectors.http.sink_config import HttpSinkConfig

__all__ = ["Job", "Position", "Refused", "SinkRequests", "position_of"]

Position = tuple[TopicPartition, int]
"""The position of a record in Kafka."""


def position_of(record: SinkRecord) -> Position:
    """Return the position of a record in Kafka."""
    return record.origin, record.original_offset


@dataclass(frozen=True, slots=True)
class Job:
    """A request, its records, and its lane, whose jobs are done one after the other."""

    records: tuple[SinkRecord, ...]
    request: Request
    lane: Hashable

    @property
    def position(self) -> Position:
        """The position of its first record."""
        return position_of(self.records[0])


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that cannot be sent; a ``tolerated`` one is skipped without a report."""

    record: SinkRecord
    error: DataError
    tolerated: bool = False


@dataclass(slots=True)
class _Batch:
    """Records to be sent together."""

    target: tuple[Any, ...]
    records: list[SinkRecord] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    size: int = 0


class SinkRequests:
    """Builds requests from records."""

    def __init__(self, config: HttpSinkConfig) -> None:
        self._config = config
        self._url = config.url_template()
        self._headers = config.header_templates()
        self._body = config.body_template()
        self._batch_key = config.batch_key_template()
        self._method = config.request_method.upper()
        self._as_json = config.request_body_format.lower() == "json"
        self._numeric = config.decimal_format.upper() == "NUMERIC"
        self._type = config.body_type
        self._frame = [part.encode() for part in config.frame]
        self._size = config.batch_size if config.is_batching else 1

    def jobs(self, records: Iterable[SinkRecord]) -> Iterator[Job | Refused]:
        """Yield the requests for records, in order, and the records that cannot be sent."""
        if not self._config.is_batching:
            for record in records:
                yield from self._single(record)
            return
        partitions: dict[TopicPartition, list[SinkRecord]] = {}
        for record in records:
            partitions.setdefault(record.origin, []).append(record)
        for part in partitions.values():
            yield from self._batches(part)

    def _single(self, record: SinkRecord) -> Iterator[Job | Refused]:
        try:
            made = self._made(record)
        except DataError as error:
            yield Refused(record, error)
            return
        if isinstance(made, Refused):
            yield made
        else:
            (method, url, headers, _), body = made
            yield Job((record,), Request(method, url, dict(headers), body), _lane(record))

    def _batches(self, records: Iterable[SinkRecord]) -> Iterator[Job | Refused]:
        """Yield batches of consecutive records with the same target, so that their order is kept."""
        batch: _Batch | None = None
        for record in records:
            try:
                made = self._made(record)
            except DataError as error:
                yield Refused(record, error)
                continue
            if isinstance(made, Refused):
                yield made
                continue
            target, body = made
            content = body or b""
            if batch is not None and not self._fits(batch, target, len(content)):
                yield self._joined(batch)
                batch = None
            batch = batch or _Batch(target)
            batch.records.append(record)
            batch.bodies.append(content)
            batch.size += len(content) + len(self._frame[1])
        if batch is not None:
            yield self._joined(batch)

    def _fits(self, batch: _Batch, target: tuple[Any, ...], size: int) -> bool:
        return (
            batch.target == target
            and target[0] != "DELETE"
            and len(batch.records) < self._size
            and batch.size + size <= self._config.batch_max_bytes
        )

    def _joined(self, batch: _Batch) -> Job:
        method, url, headers, _ = batch.target
        prefix, separator, suffix = self._frame
        body = None if method == "DELETE" else prefix + separator.join(batch.bodies) + suffix
        return Job(tuple(batch.records), Request(method, url, dict(headers), body), batch.records[0].origin)

    def _made(self, record: SinkRecord) -> tuple[tuple[Any, ...], bytes | None] | Refused:
        """Return the target of a record (method, URL, headers, batch key) and its body."""
        names = _names(record)
        method = self._method
        if record.value is None:
            match self._config.on_null:
                case "delete":
                    method = "DELETE"
                case "fail":
                    error = DataError("The record has no value: see behavior.on.null.values.")
                    return Refused(record, error)
                case _:
                    return Refused(record, DataError("The record has no value."), tolerated=True)
        headers = {name: template.render(names) for name, template in self._headers}
        body, kind = (None, None) if method == "DELETE" else self._content(record, names)
        if kind is not None and not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = kind
        key = "" if self._batch_key is None else self._batch_key.render(names)
        return (method, self._url.render(names), tuple(headers.items()), key), body

    def _content(self, record: SinkRecord, names: Mapping[str, Any]) -> tuple[bytes, str | None]:
        """Return the body of a record and its content type."""
        if self._body is not None:
            return self._body.render(names).encode(), self._type
        value = record.value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value), self._type
        if isinstance(value, str) and not self._as_json:
            return value.encode("utf-8", "strict") if value.isascii() else _utf8(value), self._type
        text = json_text(value, numeric_decimals=self._numeric, schema=record.value_schema)
        return _utf8(text), self._type or "application/json"


def _names(record: SinkRecord) -> Mapping[str, Any]:
    """Return the values of placeholders: those of the record first, then the fields of its value."""
    own = {
        "topic": record.topic,
        "partition": record.original_partition,
        "offset": record.original_offset,
        "timestamp": record.timestamp,
        "key": record.key,
        "value": record.value,
        "headers": {header.key: header.value for header in record.headers},
    }
    return ChainMap(own, record.value) if isinstance(record.value, dict) else own


def _lane(record: SinkRecord) -> Hashable:
    """Return the lane of a record: its key, or its partition if it has none."""
    key = record.key
    if key is None:
        return record.origin
    if isinstance(key, (str, bytes, int, float)):
        return record.original_topic, type(key), key
    try:
        return record.original_topic, json_text(key)
    except DataError:
        return record.origin


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise DataError("The value contains a lone surrogate, which UTF-8 cannot encode.") from None
