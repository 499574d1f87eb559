"""The keys that the framework has for a connector, with what is particular to this worker and configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from connect.chain.specs import PredicateSpec, TransformationSpec, predicate_specs, transformation_specs
from connect.config import HIGH, MEDIUM, Config, ConfigKey, ConfigType, Recommender, Width, embed
from connect.connector import Connector
from connect.errors import ConnectError
from connect.plugins import PluginKind
from connect.source import SourceConnector
from worker.config.connector import ConnectorConfig, SinkConnectorConfig, SourceConnectorConfig
from worker.runtime.assembly import Assembly

__all__ = ["chain_groups", "chain_keys", "connector_keys", "engine_config_of", "framework_of", "known_keys"]

_CONVERTERS: Final = {
    "key.converter": PluginKind.CONVERTER,
    "value.converter": PluginKind.CONVERTER,
    "header.converter": PluginKind.HEADER_CONVERTER,
}


def framework_of(connector: type[Connector[Any]]) -> type[ConnectorConfig]:
    """The framework's configuration class for such a connector."""
    return SourceConnectorConfig if issubclass(connector, SourceConnector) else SinkConnectorConfig


def connector_keys(connector: type[Connector[Any]], assembly: Assembly) -> Iterator[ConfigKey]:
    """The framework's keys; those of converters default to the worker's and recommend the ones there are."""
    for key in framework_of(connector).definitions():
        if kind := _CONVERTERS.get(key.name):
            names = [entry.class_name for entry in assembly.registry.entries(kind)]
            default = getattr(assembly.worker, key.name.replace(".", "_"))
            yield replace(key, default=default, recommender=_offering(names))
        else:
            yield key


def engine_config_of(assembly: Assembly) -> type[Config]:
    """The configuration class of the engine that runs the connector; one without keys if none does."""
    return Config if assembly.engine_class is None else assembly.engine_class.config_class


def chain_groups(assembly: Assembly) -> list[str]:
    """The groups of the transformations and predicates that the configuration lists, in order."""
    return [_group(spec) for spec in _chain(assembly)]


def chain_keys(assembly: Assembly) -> Iterator[ConfigKey]:
    """The keys of the transformations and predicates that the configuration lists, below their prefixes."""
    for spec in _chain(assembly):
        yield from _embedded(assembly, spec)


def known_keys(assembly: Assembly) -> set[str]:
    """The names of all keys that the framework and the plugins of this configuration have."""
    own = assembly.connector_class.config_class.definitions()
    engine = engine_config_of(assembly).definitions()
    keys = (*connector_keys(assembly.connector_class, assembly), *engine, *own, *chain_keys(assembly))
    return {key.name for key in keys} | set(_converter_names(assembly))


def _converter_names(assembly: Assembly) -> Iterator[str]:
    for role, kind in _CONVERTERS.items():
        try:
            plugin = assembly.registry.load(kind, assembly.props.get(role, ""))
        except ConnectError:
            # It names none, or one whose absence is said where it is needed.
            continue
        yield from (f"{role}.{key.name}" for key in plugin.config_class.definitions())


def _offering(names: list[str]) -> Recommender:
    return lambda _: names


def _chain(assembly: Assembly) -> list[TransformationSpec | PredicateSpec]:
    return [*transformation_specs(assembly.props), *predicate_specs(assembly.props)]


def _group(spec: TransformationSpec | PredicateSpec) -> str:
    return f"{'Transforms' if isinstance(spec, TransformationSpec) else 'Predicates'}: {spec.alias}"


def _embedded(assembly: Assembly, spec: TransformationSpec | PredicateSpec) -> Iterator[ConfigKey]:
    kind = PluginKind.TRANSFORMATION if isinstance(spec, TransformationSpec) else PluginKind.PREDICATE
    prefix, group = spec.prefix, _group(spec)
    names = [entry.class_name for entry in assembly.registry.entries(kind)]
    yield ConfigKey(
        name=f"{prefix}type",
        type=ConfigType.CLASS,
        importance=HIGH,
        documentation=f"The {kind.value} to use: a dotted path, a simple name, or the Java class that it stands for.",
        required=True,
        display_name=f"{kind.suffix} type for {spec.alias}",
        group=group,
        order_in_group=0,
        width=Width.LONG,
        recommender=_offering(names),
    )
    try:
        plugin = assembly.registry.load(kind, spec.type)
    except ConnectError:
        # Said of its type already.
        return
    keys: Iterable[ConfigKey] = plugin.config_class.definitions()
    if kind is PluginKind.TRANSFORMATION:
        keys = (*keys, *_CHOICE)
    yield from embed(keys, prefix=prefix, group=group, first_order=1)


_CHOICE: Final = (
    ConfigKey(
        name="predicate",
        type=ConfigType.STRING,
        importance=MEDIUM,
        documentation="Alias of the predicate that chooses the records to transform.",
        required=False,
        nullable=True,
        display_name="predicate",
    ),
    ConfigKey(
        name="negate",
        type=ConfigType.BOOLEAN,
        importance=MEDIUM,
        documentation="Whether to transform the records that the predicate does not choose.",
        required=False,
        default=False,
        display_name="negate",
    ),
)
