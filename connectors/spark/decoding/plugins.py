"""The plugins of a connector in an executor: created once for each Spark Python process, which decodes one task at a
time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from connect.config import Config
from connect.converter import Converter, HeaderConverter
from connect.data import Schema, SchemaAndValue
from connect.internals.chain.converters import Converters, converter_plugin
from connect.internals.chain.specs import transformation_specs
from connect.internals.chain.steps import Step, transformation_steps
from connect.internals.plugins import PluginKind, PluginRegistry
from connectors.spark.cluster.code import plugin_folders, shipped_folders
from connectors.spark.decoding.column_reader import ColumnReader
from connectors.spark.decoding.columns import column_reader

__all__ = [
    "ExecutorPlugins",
    "chain_properties",
    "executor_connector",
    "executor_plugins",
    "executor_registry",
    "frame_headers",
    "has_transformations",
]

_PREFIXES = (
    "connector.plugin.version",
    "key.converter",
    "value.converter",
    "header.converter",
    "transforms",
    "predicates",
    "plugin.path",
    "plugin.import.allowlist",
)


@dataclass(frozen=True, slots=True)
class ExecutorPlugins:
    """The converters and transformations, and the column reader that may replace them all."""

    converters: Converters
    steps: tuple[Step, ...]
    reader: ColumnReader | None
    reads_keys: bool
    reads_headers: bool


def chain_properties(props: Mapping[str, str]) -> dict[str, str]:
    """Return the part of a connector's configuration that its chain is built from; nothing else reaches the
    executors.
    """
    return {name: value for name, value in props.items() if name.startswith(_PREFIXES)}


def has_transformations(props: Mapping[str, str]) -> bool:
    """Return whether the configuration lists transformations."""
    return bool(transformation_specs(props))


def executor_registry(props: Mapping[str, str]) -> PluginRegistry:
    """Return the plugins that this configuration may name."""
    return PluginRegistry.discover(shipped_folders(plugin_folders(props)), _listed(props, "plugin.import.allowlist"))


def executor_connector(props: Mapping[str, str], name: str) -> type[Any]:
    """Return the class of the connector called ``name``, in the version that the configuration asks for."""
    version = props.get("connector.plugin.version")
    return executor_registry(props).load(PluginKind.CONNECTOR, name, version)


def frame_headers(props: Mapping[str, str]) -> Mapping[str, bytes]:
    """Return the headers that may hold what describes a value, such as the id of its schema, with their marks."""
    converter: Converter[Any] = converter_plugin(executor_registry(props), props, "value")
    converter.close()
    return dict(converter.reads_frame_from)


def executor_plugins(props: Mapping[str, str], *, with_keys: bool, with_headers: bool = False) -> ExecutorPlugins:
    """Return the plugins for this configuration, which the process keeps."""
    return _made(tuple(sorted(props.items())), with_keys, with_headers)


@lru_cache(maxsize=4)
def _made(items: tuple[tuple[str, str], ...], with_keys: bool, with_headers: bool) -> ExecutorPlugins:
    props = dict(items)
    registry = executor_registry(props)
    steps = tuple(transformation_steps(registry, transformation_specs(props)))
    reads_keys, reads_headers = with_keys or bool(steps), with_headers or bool(steps)
    value: Converter[Any] = converter_plugin(registry, props, "value")
    reads_headers = reads_headers or bool(value.reads_frame_from)
    converters = Converters(
        converter_plugin(registry, props, "key") if reads_keys else _UnreadKeys(Config(), is_key=True),
        value,
        converter_plugin(registry, props, "header") if with_headers or steps else _UnreadHeaders(Config()),
    )
    reader = None if with_keys or steps else column_reader(value)
    return ExecutorPlugins(converters, steps, reader, reads_keys, reads_headers)


def _listed(props: Mapping[str, str], key: str) -> list[str]:
    return [item.strip() for item in props.get(key, "").split(",") if item.strip()]


class _UnreadKeys(Converter[Config]):
    """Stands in for the key converter where keys are not read: the connector's own need not even be installed."""

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:  # noqa: ARG002
        return None

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        return SchemaAndValue(None, None)


class _UnreadHeaders(HeaderConverter[Config]):
    """Stands in for the header converter where headers are not read."""

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:  # noqa: ARG002
        return None

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        return SchemaAndValue(None, None)
