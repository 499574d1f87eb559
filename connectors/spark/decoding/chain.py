"""Converters and transformations in an executor: from the bytes of a topic to records, by column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from connect.chain import aligned, apply_steps, converter_plugin, transformation_steps
from connect.converter import Converter, HeaderConverter
from connect.data import NO_HEADERS, Column, Constant, Header, Headers, SinkBatch, ValueColumn
from connect.plugins import PluginRegistry
from connectors.spark.decoding.raw import RawBatch, RawHeaders

__all__ = ["Chain", "chain_properties", "has_transformations"]

_PREFIXES = (
    "key.converter",
    "value.converter",
    "header.converter",
    "transforms",
    "predicates",
    "plugin.path",
    "plugin.import.allowlist",
)


def chain_properties(props: Mapping[str, str]) -> dict[str, str]:
    """Of a connector's configuration what a :class:`Chain` is made from; nothing else reaches the executors."""
    return {name: value for name, value in props.items() if name.startswith(_PREFIXES)}


def has_transformations(props: Mapping[str, str]) -> bool:
    """Whether the configuration names transformations."""
    return bool(props.get("transforms", "").strip())


def _listed(props: Mapping[str, str], key: str) -> list[str]:
    return [item.strip() for item in props.get(key, "").split(",") if item.strip()]


class Chain:
    """What the configuration of a connector makes of consumed bytes; one for each Python process of Spark."""

    def __init__(self, props: Mapping[str, str], *, with_keys: bool) -> None:
        registry = PluginRegistry.discover(_listed(props, "plugin.path"), _listed(props, "plugin.import.allowlist"))
        self._steps = transformation_steps(registry, props)
        self._keys: Converter[Any] | None = None
        self._headers: HeaderConverter[Any] | None = None
        self.value_converter: Converter[Any] = converter_plugin(registry, props, "value")
        if with_keys or self._steps:
            self._keys = converter_plugin(registry, props, "key")
        if self._steps:
            self._headers = converter_plugin(registry, props, "header")

    def batches(self, raw: RawBatch) -> list[SinkBatch]:
        """The records as batches; any error says nothing of which record it was: see :meth:`record`."""
        return apply_steps(self._steps, list(self._converted(raw)))

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
        for start, stop, key, value in aligned(keys, values):
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
