"""The framework's config keys of a connector, with the defaults and choices of this worker and configuration.

What Kafka Connect does not refuse about the keys of a configuration is warned of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from connect.config import (
    HIGH,
    MEDIUM,
    Config,
    ConfigKey,
    ConfigType,
    InvalidConfigError,
    Recommender,
    Visibility,
    Width,
    embed,
)
from connect.config.errors import keys_of
from connect.connector import Connector
from connect.errors import ConfigError, ConnectError, PluginError
from connect.internals.chain.converters import converter_props
from connect.internals.chain.specs import (
    VERSION,
    PredicateSpec,
    TransformationSpec,
    predicate_specs,
    transformation_specs,
)
from connect.internals.plugins import PluginEntry, PluginKind
from connect.source import SourceConnector
from worker.config.connector import ConnectorConfig, SinkConnectorConfig, SourceConnectorConfig
from worker.config.unknown_keys import KeyOwner, key_of, suggest_known_keys, tell_of_unowned_keys, tell_of_unused_keys
from worker.config.validators import CONNECTOR_VERSION, version_range
from worker.runtime.assembly import Assembly

__all__ = [
    "ChainPlugin",
    "chain_groups",
    "chain_keys",
    "connector_keys",
    "engine_config_of",
    "framework_of",
    "key_owners",
    "key_warnings",
    "known_keys",
    "plugins_of",
]

_CONVERTERS: Final = {
    "key.converter": PluginKind.CONVERTER,
    "value.converter": PluginKind.CONVERTER,
    "header.converter": PluginKind.HEADER_CONVERTER,
}


def framework_of(connector: type[Connector[Any]]) -> type[ConnectorConfig]:
    """Return the framework's configuration class for a connector class."""
    return SourceConnectorConfig if issubclass(connector, SourceConnector) else SinkConnectorConfig


def connector_keys(connector: type[Connector[Any]], assembly: Assembly) -> Iterator[ConfigKey]:
    """Yield the framework's keys; those of converters and versions have the worker's defaults, and offer all
    plugins.
    """
    for key in framework_of(connector).definitions():
        owner = key.name.removesuffix(f".{VERSION}")
        if kind := _CONVERTERS.get(key.name):
            default = getattr(assembly.worker, key.name.replace(".", "_"))
            yield replace(key, default=default, recommender=_offering(class_names(assembly, kind)))
        elif key.name == CONNECTOR_VERSION:
            yield _versioned(key, assembly, assembly.connector_entry)
        elif owner != key.name and (kind := _CONVERTERS.get(owner)):
            of_worker = getattr(assembly.worker, owner.replace(".", "_")), assembly.worker_props.get(key.name)
            named, version = (assembly.props[owner], None) if assembly.props.get(owner) else of_worker
            entry = _listed(assembly, kind, named, version)
            # As in Java, a converter that is not installed offers no choices.
            yield replace(_versioned(key, assembly, entry), visible=_shown_if(entry is not None))
        else:
            yield key


def class_names(assembly: Assembly, kind: PluginKind) -> list[str]:
    """Return the classes of the plugins of a kind, each once, whatever the number of its versions."""
    return list(dict.fromkeys(entry.class_name for entry in assembly.registry.entries(kind)))


def _listed(assembly: Assembly, kind: PluginKind, name: str, version: str | None = None) -> PluginEntry | None:
    try:
        return assembly.registry.find(kind, name, version)
    except PluginError:
        return None


def _versioned(key: ConfigKey, assembly: Assembly, entry: PluginEntry | None) -> ConfigKey:
    """Return a version key of this plugin, with the version in use as its default and all versions offered."""
    if entry is None:
        return replace(key, recommender=_offering([]))
    return replace(key, default=entry.version, recommender=_offering(assembly.registry.versions(entry)))


def engine_config_of(assembly: Assembly) -> type[Config]:
    """Return the configuration class of the engine that runs the connector; one without keys if there is none."""
    return Config if assembly.engine_class is None else assembly.engine_class.config_class


def chain_groups(assembly: Assembly) -> list[str]:
    """Return the groups of the transformations and predicates that the configuration lists, in order."""
    return [_group(spec) for spec in _chain(assembly)]


def chain_keys(assembly: Assembly) -> Iterator[ConfigKey]:
    """Yield the keys of the transformations and predicates that the configuration lists, below their prefixes."""
    for spec in _chain(assembly):
        yield from _embedded(assembly, spec)


def known_keys(assembly: Assembly) -> set[str]:
    """Return the names of all keys that the framework and the plugins of this configuration have."""
    own = assembly.connector_class.config_class.definitions()
    engine = engine_config_of(assembly).definitions()
    keys = (*connector_keys(assembly.connector_class, assembly), *engine, *own, *chain_keys(assembly))
    of_converters = (owner.known or () for owner in key_owners(assembly))
    return {key.name for key in keys}.union(*of_converters)


def plugins_of(assembly: Assembly) -> Iterator[ChainPlugin]:
    """Yield the transformations, predicates and converters of the configuration, with the keys that it gives them.

    A converter that it does not name is the one of the connector's class or of the worker.
    """
    for spec in _chain(assembly):
        config_class = _config_class(assembly, _kind(spec), spec.type, spec.version)
        yield ChainPlugin(spec.prefix, spec.type, config_class, spec.props)
    for role, kind in _CONVERTERS.items():
        name, version = assembly.props.get(role), assembly.props.get(f"{role}.{VERSION}")
        if not name:
            name = assembly.connector_class.default_converter or getattr(assembly.worker, role.replace(".", "_"))
            version = assembly.worker_props.get(f"{role}.{VERSION}")
        given = converter_props(assembly.props, role.partition(".")[0])
        yield ChainPlugin(f"{role}.", name, _config_class(assembly, kind, name, version), given)


@dataclass(frozen=True, slots=True)
class ChainPlugin:
    """A plugin that the configuration names, its configuration's class if it can be loaded, and its own keys."""

    prefix: str
    name: str
    config_class: type[Config] | None
    props: Mapping[str, str]


def key_owners(assembly: Assembly) -> list[KeyOwner]:
    """Return the plugins of the configuration that own all keys below a prefix."""
    return [_owner(plugin) for plugin in plugins_of(assembly)]


def _owner(plugin: ChainPlugin) -> KeyOwner:
    prefix, config_class = plugin.prefix, plugin.config_class
    if config_class is None:
        return KeyOwner(prefix, plugin.name, None)
    known = [prefix + key.name for key in config_class.definitions()]
    old = {prefix + name: prefix + new for name, new in config_class.old_keys.items()}
    return KeyOwner(prefix, plugin.name, known, old)


def _config_class(assembly: Assembly, kind: PluginKind, name: str, version: str | None) -> type[Config] | None:
    try:
        loaded: type[Config] = assembly.registry.load(kind, name, version).config_class
    except ConnectError:
        # Its absence is reported where the plugin is needed.
        return None
    return loaded


def _kind(spec: TransformationSpec | PredicateSpec) -> PluginKind:
    return PluginKind.TRANSFORMATION if isinstance(spec, TransformationSpec) else PluginKind.PREDICATE


def _shown_if(is_shown: bool) -> Visibility:
    return lambda _: is_shown


def _offering(names: list[str]) -> Recommender:
    return lambda _: names


def _chain(assembly: Assembly) -> list[TransformationSpec | PredicateSpec]:
    return [*transformation_specs(assembly.props), *predicate_specs(assembly.props)]


def _group(spec: TransformationSpec | PredicateSpec) -> str:
    return f"{'Transforms' if isinstance(spec, TransformationSpec) else 'Predicates'}: {spec.alias}"


def _embedded(assembly: Assembly, spec: TransformationSpec | PredicateSpec) -> Iterator[ConfigKey]:
    kind, prefix, group = _kind(spec), spec.prefix, _group(spec)
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
        recommender=_offering(class_names(assembly, kind)),
    )
    version = ConfigKey(
        name=f"{prefix}{VERSION}",
        type=ConfigType.STRING,
        importance=HIGH,
        documentation=f"Version of the {kind.value}, or range of versions such as [1.0,2.0); the newest when absent.",
        required=False,
        nullable=True,
        validator=version_range,
        display_name=f"{kind.suffix} version for {spec.alias}",
        group=group,
        order_in_group=1,
        width=Width.LONG,
    )
    yield _versioned(version, assembly, _listed(assembly, kind, spec.type))
    try:
        plugin = assembly.registry.load(kind, spec.type, spec.version)
    except ConnectError:
        # The key of its type already has this error.
        return
    keys: Iterable[ConfigKey] = plugin.config_class.definitions()
    if kind is PluginKind.TRANSFORMATION:
        keys = (*keys, *_CHOICE)
    yield from embed(keys, prefix=prefix, group=group, first_order=2)


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

_QUEUE: Final = "errors.deadletterqueue.topic.name"
_TOLERANCE: Final = "errors.tolerance"
_NO_TOLERANCE: Final = (
    f"The key {_QUEUE} is set, but {_TOLERANCE} is none, so that the first bad record fails the task. Set "
    f"{_TOLERANCE}=all to have bad records skipped into that topic."
)


def key_warnings(assembly: Assembly) -> Iterator[str]:
    """Yield warnings about unknown keys, and those of the transformations, predicates and converters.

    The log, ``sluice validate`` and whoever else shows the warnings of a validation have them from here.
    """
    known, owners = known_keys(assembly), key_owners(assembly)
    old = {key for owner in owners for key in owner.old}
    yield from suggest_known_keys([key for key in assembly.props if key not in old], known)
    yield from tell_of_unowned_keys(assembly.props, known, owners)
    yield from _about_unused(assembly, known, owners)
    if (assembly.props.get(_QUEUE) or "").strip() and (assembly.props.get(_TOLERANCE) or "none").strip() == "none":
        yield _NO_TOLERANCE
    for owner in owners:
        yield from _about_the_worker(assembly, owner)
    for plugin in plugins_of(assembly):
        yield from (f"{plugin.prefix.removesuffix('.')}: {warning}" for warning in _warnings_of(plugin))


def _about_unused(assembly: Assembly, known: set[str], owners: Collection[KeyOwner]) -> Iterator[str]:
    """Yield warnings about keys that nobody takes, except those of which the connector's configuration itself tells."""
    own = assembly.connector_class.config_class
    if own.passed_keys is None:
        return
    passed = (*own.passed_keys, *own.old_keys)
    if assembly.engine_class is not None:
        passed = (*passed, *(engine_config_of(assembly).passed_keys or ("spark.",)))
    told = _told(assembly)
    given = {key: value for key, value in assembly.props.items() if key not in told}
    yield from tell_of_unused_keys(given, known, owners, passed, assembly.props["connector.class"])


def _told(assembly: Assembly) -> set[str]:
    """Return the keys that the warnings or the errors of the connector's configuration concern."""
    try:
        warnings = list(assembly.connector_config.warnings())
    except ConfigError as error:
        several = error.errors if isinstance(error, InvalidConfigError) else [error]
        return {key for each in several for key in keys_of(each)}
    return {key for warning in warnings if (key := key_of(warning, assembly.props))}


def _about_the_worker(assembly: Assembly, owner: KeyOwner) -> Iterator[str]:
    """Yield warnings about the worker's keys of a converter that the connector has from it.

    The worker itself runs no code of plugins, so that it cannot know them.
    """
    role = owner.prefix.removesuffix(".")
    if owner.known is None or assembly.worker_props.get(role) != owner.name or assembly.props.get(role):
        return
    given = {key: value for key, value in assembly.worker_props.items() if key.startswith(owner.prefix)}
    known = {*owner.known, f"{owner.prefix}{VERSION}"}
    for warning in (*suggest_known_keys(given, known), *tell_of_unowned_keys(given, known, [owner])):
        yield f"In the worker's file: {warning}"


def _warnings_of(plugin: ChainPlugin) -> list[str]:
    """Return the warnings of a plugin's own configuration; none if it is invalid."""
    if plugin.config_class is None:
        return []
    try:
        return list(plugin.config_class.parse(plugin.props).warnings())
    except ConfigError:
        return []
