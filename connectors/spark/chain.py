"""Converters and transformations in an executor: from the bytes of a topic to records, by column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

from connect.converter import Converter, HeaderConverter
from connect.data import NO_HEADERS, Column, Constant, Header, Headers, SinkBatch, SinkRecord, ValueColumn
from connect.errors import DataError
from connect.plugins import PluginKind, PluginRegistry
from connect.transformation import Predicate, Transformation
from connectors.spark.raw import RawBatch, RawHeaders

__all__ = ["Chain", "chain_properties", "has_transformations"]

_PREFIXES = ("key.converter", "value.converter", "header.converter", "transforms", "predicates", "plugin.path")


def chain_properties(props: Mapping[str, str]) -> dict[str, str]:
    """Of a connector's configuration what a :class:`Chain` is made from; nothing else reaches the executors."""
    return {name: value for name, value in props.items() if name.startswith(_PREFIXES)}


def has_transformations(props: Mapping[str, str]) -> bool:
    """Whether the configuration names transformations."""
    return bool(props.get("transforms", "").strip())


@dataclass(frozen=True, slots=True)
class _Step:
    transformation: Transformation[Any]
    predicate: Predicate[Any] | None
    negate: bool

    def apply(self, record: SinkRecord) -> SinkRecord | None:
        if self.predicate is not None and self.predicate.test(record) is self.negate:
            return record
        return self.transformation.apply(record)

    def apply_batch(self, batch: SinkBatch) -> list[SinkBatch]:
        if self.predicate is None:
            return list(self.transformation.apply_batch(batch))
        chosen = [test is not self.negate for test in self.predicate.test_batch(batch)]
        batches: list[SinkBatch] = []
        start = 0
        for applies, run in groupby(chosen):
            stop = start + sum(1 for _ in run)
            part = batch.slice(start, stop)
            batches += self.transformation.apply_batch(part) if applies else [part]
            start = stop
        return batches


class Chain:
    """What the configuration of a connector makes of consumed bytes; one for each Python process of Spark."""

    def __init__(self, props: Mapping[str, str], *, with_keys: bool) -> None:
        registry = PluginRegistry.discover([path for path in props.get("plugin.path", "").split(",") if path])
        self._steps = [_step(registry, props, name) for name in _names(props.get("transforms", ""))]
        self._keys: Converter[Any] | None = None
        self._headers: HeaderConverter[Any] | None = None
        self.value_converter: Converter[Any] = _converter(registry, props, "value")
        if with_keys or self._steps:
            self._keys = _converter(registry, props, "key")
        if self._steps:
            self._headers = _converter(registry, props, "header")

    def batches(self, raw: RawBatch) -> list[SinkBatch]:
        """The records as batches; any error says nothing of which record it was: see :meth:`record`."""
        batches = list(self._converted(raw))
        for step in self._steps:
            batches = [new for batch in batches for new in step.apply_batch(batch) if len(new)]
        return batches

    def record(self, raw: RawBatch) -> SinkBatch | None:
        """The one record of ``raw`` after all steps; ``None`` if it is dropped."""
        (record,) = (record for batch in self._rows(raw) for record in batch)
        for step in self._steps:
            changed = step.apply(record)
            if changed is None:
                return None
            record = changed
        return SinkBatch.from_records([record])[0]

    def _rows(self, raw: RawBatch) -> Iterator[SinkBatch]:
        key, value, headers = raw.keys[0], raw.values[0], raw.headers[0]
        converted = self.value_converter.to_connect(raw.topic, value)
        keys: Column = ValueColumn([None])
        if self._keys is not None:
            converted_key = self._keys.to_connect(raw.topic, key)
            keys = ValueColumn([converted_key.value], converted_key.schema)
        values = ValueColumn([converted.value], converted.schema)
        yield self._batch(raw, keys, values, [self._header(raw.topic, headers)])

    def _converted(self, raw: RawBatch) -> Iterator[SinkBatch]:
        values = self.value_converter.to_connect_column(raw.topic, raw.values)
        keys: Sequence[Column] = [ValueColumn(Constant(None, len(raw)))]
        if self._keys is not None:
            keys = self._keys.to_connect_column(raw.topic, raw.keys)
        for start, stop, key, value in _aligned(keys, values):
            part = raw.slice(start, stop - start)
            headers: Sequence[Headers] = Constant(NO_HEADERS, stop - start)
            if self._headers is not None:
                headers = [self._header(raw.topic, item) for item in part.headers]
            yield self._batch(part, key, value, headers)

    def _batch(self, raw: RawBatch, key: Column, value: Column, headers: Sequence[Headers]) -> SinkBatch:
        partitions = Constant(raw.partition, len(raw))
        offsets = raw.offsets
        return SinkBatch(
            topic=raw.topic,
            key=key,
            value=value,
            partitions=partitions,
            timestamps=raw.timestamps,
            headers=headers,
            offsets=offsets,
            timestamp_types=raw.timestamp_types,
            original_topic=raw.topic,
            original_partitions=partitions,
            original_offsets=offsets,
        )

    def _header(self, topic: str, raw: RawHeaders | None) -> Headers:
        if not raw or self._headers is None:
            return NO_HEADERS
        decoded: list[Header] = []
        for key, data in raw:
            schema, value = self._headers.to_connect_header(topic, key, data)
            decoded.append(Header(key, value, schema))
        return Headers(decoded)


def _converter(registry: PluginRegistry, props: Mapping[str, str], role: str) -> Any:
    key = f"{role}.converter"
    kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
    own = {name.removeprefix(f"{key}."): value for name, value in props.items() if name.startswith(f"{key}.")}
    given = {} if role == "header" else {"is_key": role == "key"}
    return registry.load(kind, props[key]).configured({**own, "converter.type": role}, **given)


def _step(registry: PluginRegistry, props: Mapping[str, str], name: str) -> _Step:
    own = _below(props, f"transforms.{name}.")
    transformation = registry.load(PluginKind.TRANSFORMATION, own.pop("type"))
    alias, negate = own.pop("predicate", None), own.pop("negate", "false").lower() == "true"
    predicate: Predicate[Any] | None = None
    if alias is not None:
        chosen = _below(props, f"predicates.{alias}.")
        predicate = registry.load(PluginKind.PREDICATE, chosen.pop("type")).configured(chosen)
    return _Step(transformation.configured(own), predicate, negate)


def _below(props: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in props.items() if name.startswith(prefix)}


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _aligned(keys: Sequence[Column], values: Sequence[Column]) -> Iterator[tuple[int, int, Column, Column]]:
    """Runs over which both schemas stay the same, with their parts of the columns."""
    ends = [list(accumulate(map(len, columns))) for columns in (keys, values)]
    if ends[0][-1] != ends[1][-1]:
        raise DataError("The converters gave columns of different lengths; they must give a value a record.")
    start = 0
    for stop in sorted({*ends[0], *ends[1]} - {0}):
        yield start, stop, _part(keys, ends[0], start, stop), _part(values, ends[1], start, stop)
        start = stop


def _part(columns: Sequence[Column], ends: Sequence[int], start: int, stop: int) -> Column:
    index = next(index for index, end in enumerate(ends) if end >= stop)
    begin = ends[index] - len(columns[index])
    if (start, stop) == (begin, ends[index]):
        return columns[index]
    return columns[index].slice(start - begin, stop - begin)
