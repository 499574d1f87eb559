"""Validates a connector's configuration, in a child process because it runs code of plugins.

A source connector is also asked whether it supports exactly-once with it (KIP-618).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from connect.config import ConfigKey, ConfigType, ConfigValue, config_info, validate_keys
from connect.config.errors import keys_of
from connect.errors import ConfigError, ConnectError
from connect.internals.chain.converters import converter_props
from connect.internals.chain.specs import VERSION, predicate_specs, transformation_specs
from connect.internals.kafka.settings.overrides import refused_overrides
from connect.internals.plugins import (
    PluginEntry,
    PluginKind,
    PluginVersionError,
    UnlistedPluginError,
    class_name,
    load_class,
)
from connect.internals.plugins.versions import VersionSpecError
from worker.config.connector import COMMON, SinkConnectorConfig, SourceConnectorConfig
from worker.config.file_access import refused_schema_file
from worker.config.restarts import RestartConfig
from worker.config.spark_policy import refused_spark_keys
from worker.config.validators import CONNECTOR_VERSION
from worker.kafka.clients import roles
from worker.kafka.topics.creation import refused_topic_creation
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.inquiries.choices import choices_in
from worker.runtime.inquiries.connector_keys import (
    chain_groups,
    chain_keys,
    connector_keys,
    engine_config_of,
    framework_of,
    key_warnings,
)
from worker.runtime.inquiries.exactly_once import exactly_once_faults
from worker.runtime.inquiries.system_check import check_system
from worker.runtime.java.inquiries import validate_java
from worker.security.redaction import Redaction

__all__ = ["exactly_once_errors", "validate"]

_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
_MISTAKEN: Final = "The configuration has mistakes. Its system is asked once they are corrected."
_OFFSETS_TOPIC: Final = "offsets.storage.topic"

Pairs: TypeAlias = dict[str, tuple[ConfigKey | None, ConfigValue]]
"""Each key's definition, if it has one, and its value with the errors."""


def validate(command: messages.ValidateConfig, redaction: Redaction) -> messages.Validated:
    """Return the definition, value and errors of every key, in the form of Kafka Connect's ``ConfigInfos``.

    Raises :class:`~connect.errors.PluginError` if ``connector.class`` names no connector.
    """
    given = {key: value for key, value in command.config.items() if value is not None}
    assembly = Assembly.resolve(command.worker, given, redaction)
    try:
        # A connector whose requested version does not exist cannot be validated.
        assembly.connector_entry  # noqa: B018 - it is looked up once
    except PluginVersionError as error:
        return _refused_version(
            command, assembly, ("connector.class", CONNECTOR_VERSION), redaction.redacted(str(error))
        )
    except VersionSpecError as error:
        refused = ConfigError(CONNECTOR_VERSION, given[CONNECTOR_VERSION], str(error))
        return _refused_version(command, assembly, (CONNECTOR_VERSION,), redaction.redacted(str(refused)))
    if assembly.is_java:
        errors = [
            *unsupported_here(assembly),
            *_internal_topic_errors(assembly),
            *_reference_errors(assembly, given),
        ]
        return replace(validate_java(command, assembly, errors), choices=choices_in(assembly))
    return _validate(command, assembly, given, redaction)


def _refused_version(
    command: messages.ValidateConfig, assembly: Assembly, keys: Sequence[str], error: str
) -> messages.Validated:
    """Return the answer for an invalid version of the connector: errors of these ``keys`` alone."""
    name = str(command.config["connector.class"])
    newest = assembly.plugins.find_connector(name, engine=assembly.props.get("engine"))
    framework = SourceConnectorConfig if newest.type == "source" else SinkConnectorConfig
    defaults, offered = {CONNECTOR_VERSION: newest.version}, {CONNECTOR_VERSION: assembly.plugins.versions(newest)}
    configs = [
        config_info(
            replace(definition, default=defaults.get(definition.name)),
            ConfigValue(
                definition.name, command.config[definition.name], tuple(offered.get(definition.name, ())), (error,)
            ),
        )
        for definition in framework.definitions()
        if definition.name in keys
    ]
    infos = {"name": name, "error_count": len(configs), "groups": [COMMON], "configs": configs}
    return messages.Validated(infos, newest.type or "source", [])


def _validate(
    command: messages.ValidateConfig, assembly: Assembly, given: Mapping[str, str], redaction: Redaction
) -> messages.Validated:
    connector_class = assembly.connector_class
    assembly.hide_secrets()
    framework, own = framework_of(connector_class), connector_class.config_class
    keys, engine = list(connector_keys(connector_class, assembly)), engine_config_of(assembly)
    embedded = list(chain_keys(assembly))
    pairs = _merged(
        _pairs(keys, _with_worker_converters(framework.validate(assembly.props), keys)),
        _pairs(embedded, validate_keys(embedded, assembly.props)),
        _pairs(engine.definitions(), engine.validate(assembly.with_worker_keys(engine, assembly.props))),
        _pairs(own.definitions(), own.validate(assembly.with_worker_keys(own, assembly.props))),
        _converter_pairs(assembly),
    )
    _add_errors(pairs, _plugin_errors(assembly, pairs), redaction)
    _add_errors(pairs, _override_errors(assembly), redaction)
    _add_errors(pairs, _spark_errors(assembly), redaction)
    _add_errors(pairs, _schema_file_errors(assembly), redaction)
    _add_errors(pairs, _internal_topic_errors(assembly), redaction)
    _add_errors(pairs, _client_errors(assembly), redaction)
    _add_errors(pairs, _topic_creation_errors(assembly), redaction)
    _add_errors(pairs, exactly_once_errors(assembly), redaction)
    _add_errors(pairs, _reference_errors(assembly, given), redaction)
    _add_nulls(pairs, [key for key, value in command.config.items() if value is None])
    connection = _checked_system(assembly, pairs, redaction) if command.connect else None
    shown = [(definition, value) for definition, value in pairs.values() if definition is not None or value.errors]
    infos = {
        "name": command.config["connector.class"],
        "error_count": sum(len(value.errors) for _, value in shown),
        "groups": [*_groups([*keys, *engine.definitions()]), *chain_groups(assembly)],
        "configs": [
            config_info(definition, _as_written(value, given, assembly, redaction)) for definition, value in shown
        ],
    }
    warnings = [redaction.redacted(warning) for warning in (*key_warnings(assembly), *_warnings(assembly))]
    kind = "source" if assembly.is_source else "sink"
    return messages.Validated(infos, kind, warnings, connection, choices_in(assembly))


def _checked_system(assembly: Assembly, pairs: Pairs, redaction: Redaction) -> dict[str, Any]:
    """Have the connector check its system, add the errors, and tell whether the system was asked."""
    try:
        config = assembly.connector_config
    except ConfigError:
        return {"checked": False, "reason": _MISTAKEN}
    if config.always_checks_system:
        # It was asked when the connector's own keys were validated.
        return {"checked": True}
    if any(value.errors for _, value in pairs.values()):
        return {"checked": False, "reason": _MISTAKEN}
    check = check_system(config)
    _add_errors(pairs, ((key, str(error)) for error in check.errors for key in keys_of(error)), redaction)
    return check.document


def _warnings(assembly: Assembly) -> Iterable[str]:
    """Return the warnings of the connector's own configuration; none if it is invalid."""
    try:
        return assembly.connector_config.warnings()
    except ConfigError:
        return ()


def _pairs(definitions: Iterable[ConfigKey], values: Iterable[ConfigValue]) -> Pairs:
    keys = {definition.name: definition for definition in definitions}
    return {value.name: (keys.get(value.name), value) for value in values}


def _merged(*several: Pairs) -> Pairs:
    """Return all infos merged. Of a key in several of them, the last definition is kept, with all errors."""
    merged: Pairs = {}
    for pairs in several:
        for key, (definition, value) in pairs.items():
            _, before = merged.get(key, (None, value))
            errors = tuple(dict.fromkeys((*before.errors, *value.errors)))
            merged[key] = definition, replace(value, errors=errors)
    return merged


def _with_worker_converters(values: Iterable[ConfigValue], keys: Iterable[ConfigKey]) -> Iterator[ConfigValue]:
    """Yield the framework's values, with the worker's converters and the newest versions where the connector
    sets none.
    """
    converters = {key.name: key for key in keys if key.name.endswith((".converter", f".{VERSION}"))}
    for value in values:
        if (key := converters.get(value.name)) is not None:
            recommended = tuple(key.recommender({})) if key.recommender else ()
            chosen = key.default if value.value is None and not value.errors else value.value
            visible = key.visible({}) if key.visible else value.visible
            yield replace(value, value=chosen, recommended_values=recommended, visible=visible)
        else:
            yield value


def _as_written(value: ConfigValue, given: Mapping[str, str], assembly: Assembly, redaction: Redaction) -> ConfigValue:
    """Return a value as shown: one of a config provider as its reference (invariant I8)."""
    errors = tuple(redaction.redacted(error) for error in value.errors)
    recommended = tuple(redaction.hide(item) if isinstance(item, str) else item for item in value.recommended_values)
    value = replace(value, errors=errors, recommended_values=recommended)
    written = given.get(value.name)
    if written is not None and written != assembly.props.get(value.name):
        return replace(value, value=written)
    return value


def _groups(keys: Iterable[ConfigKey]) -> list[str]:
    """Return the groups of these keys in order, with the group of all connectors first, as in Kafka Connect."""
    found = dict.fromkeys(key.group for key in keys if key.group is not None)
    return sorted(found, key=lambda group: group != COMMON)


def _add_errors(pairs: Pairs, errors: Iterable[tuple[str, str]], redaction: Redaction) -> None:
    for key, error in errors:
        definition, value = pairs.get(key, (None, ConfigValue(key)))
        text = redaction.redacted(error)
        if definition is not None and definition.type is ConfigType.CLASS:
            # A class that cannot be loaded is shown as null.
            value = replace(value, value=None)
        if text not in value.errors:
            pairs[key] = definition, value.with_errors(text)


def _add_nulls(pairs: Pairs, keys: Iterable[str]) -> None:
    for key in keys:
        definition, value = pairs.get(key, (None, ConfigValue(key)))
        error = "Null value can not be supplied as the configuration value."
        pairs[key] = definition, replace(value, value=None, errors=(error,))


def _override_errors(assembly: Assembly) -> Iterator[tuple[str, str]]:
    for error in refused_overrides(assembly.worker_props, assembly.props):
        yield from ((key, str(error)) for key in keys_of(error))


def _spark_errors(assembly: Assembly) -> Iterator[tuple[str, str]]:
    for error in refused_spark_keys(assembly.worker_props, assembly.props):
        yield from ((key, str(error)) for key in keys_of(error))


def _schema_file_errors(assembly: Assembly) -> Iterator[tuple[str, str]]:
    connector_class = class_name(assembly.connector_class)
    for error in refused_schema_file(assembly.worker_props, connector_class, assembly.props):
        yield from ((key, str(error)) for key in keys_of(error))


def _internal_topic_errors(assembly: Assembly) -> Iterator[tuple[str, str]]:
    """Yield errors of keys that name internal topics, which would only fail the tasks otherwise."""
    internal, props = assembly.internal_topics, assembly.props
    named = {_DEAD_LETTERS: props.get(_DEAD_LETTERS, "")}
    if not assembly.is_source:
        named["topics"] = props.get("topics", "")
    elif not props.get("transforms"):
        # Transformations may send the records elsewhere.
        named |= {key: value for key, value in props.items() if key.rpartition(".")[2] == "topic"}
    own_offsets = named.pop(_OFFSETS_TOPIC, "")
    refused = [*internal.refused_offsets(_OFFSETS_TOPIC, own_offsets)] if assembly.is_source else []
    for key, value in named.items():
        refused += internal.refused(key, (topic.strip() for topic in value.split(",")))
    for error in refused:
        yield from ((key, str(error)) for key in keys_of(error))


def _client_errors(assembly: Assembly) -> Iterator[tuple[str, str]]:
    """Yield errors of client overrides with which no client can be made, which would only fail the tasks otherwise."""
    worker, props = assembly.worker_props, {"name": "", **assembly.props}
    own = roles.source_producer_properties if assembly.is_source else roles.sink_consumer_properties
    for settle in (own, roles.admin_properties):
        try:
            settle(worker, props, 0)
        except ConfigError as error:
            yield from ((key, str(error)) for key in keys_of(error) if key in props)


def _topic_creation_errors(assembly: Assembly) -> Iterator[tuple[str, str]]:
    """Yield errors of topic creation groups, which would only fail the task that creates the first topic otherwise."""
    if assembly.is_source and assembly.worker.topic_creation_enable:
        for error in refused_topic_creation(assembly.props):
            yield from ((key, str(error)) for key in keys_of(error))


def _reference_errors(assembly: Assembly, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield errors of keys with references that the worker itself reads: only child processes use config providers."""
    for key in (*(definition.name for definition in RestartConfig.definitions()), "run.until"):
        if key in given and given[key] != assembly.props.get(key):
            yield key, str(ConfigError(key, given[key], "This key may not refer to a config provider; write its value"))


def _converter_pairs(assembly: Assembly) -> Pairs:
    """Return the keys of the converters that the connector names, below their prefixes."""
    pairs: Pairs = {}
    for role, kind in _converters(assembly):
        prefix = f"{role}."
        try:
            plugin = assembly.registry.load(kind, assembly.props[role], assembly.props.get(f"{prefix}{VERSION}"))
        except ConnectError:
            # The key of its name already has this error.
            continue
        own = converter_props(assembly.props, role.partition(".")[0])
        for key in plugin.config_class.definitions():
            value = next(item for item in plugin.config_class.validate(own) if item.name == key.name)
            below = replace(key, name=prefix + key.name)
            pairs[below.name] = below, replace(value, name=below.name, errors=_named_whole(key, below, value, own))
    return pairs


def _named_whole(key: ConfigKey, below: ConfigKey, value: ConfigValue, own: Mapping[str, str]) -> tuple[str, ...]:
    """Return the errors of a converter's key, with the name that the key has in the connector's configuration:
    ``below``.
    """
    given = {below.name: own[key.name]} if key.name in own else {}
    (short,), (whole,) = validate_keys([key], own), validate_keys([below], given)
    return (*whole.errors, *(error for error in value.errors if error not in short.errors))


def _plugin_errors(assembly: Assembly, said: Pairs) -> Iterator[tuple[str, str]]:
    """Yield errors of the plugins that a connector names: of their names, versions or own keys."""
    for role in ("key.converter", "value.converter", "header.converter"):
        key = f"{role}.{VERSION}"
        if (version := assembly.props.get(key)) and not assembly.props.get(role):
            reason = f"It is the version of a {role} that is not given; give both, or neither for the worker's own"
            yield key, str(ConfigError(key, version, reason))
    for role, kind in _converters(assembly):
        own = converter_props(assembly.props, role.partition(".")[0])
        yield from _errors_of(assembly, kind, role, own, said)
    for transformation in transformation_specs(assembly.props):
        key = f"{transformation.prefix}type"
        yield from _errors_of(assembly, PluginKind.TRANSFORMATION, key, transformation.props, said)
    for predicate in predicate_specs(assembly.props):
        yield from _errors_of(assembly, PluginKind.PREDICATE, f"{predicate.prefix}type", predicate.props, said)


def _errors_of(
    assembly: Assembly, kind: PluginKind, key: str, props: Mapping[str, str], said: Pairs
) -> Iterator[tuple[str, str]]:
    prefix = key.removesuffix("type") if kind in (PluginKind.TRANSFORMATION, PluginKind.PREDICATE) else f"{key}."
    if not assembly.props.get(key):
        # The missing value is already reported.
        return
    entry = _entry_or_errors(assembly, kind, key, f"{prefix}{VERSION}")
    if not isinstance(entry, PluginEntry):
        yield from entry
        return
    try:
        plugin = load_class(entry)
    except ConnectError as error:
        yield key, str(error)
        return
    refused = {other for other, (_, value) in said.items() if other.startswith(prefix) and value.errors}
    for value in plugin.config_class.validate(props):
        # Errors in the values of single keys are already reported; violated rules about several keys are not.
        below = prefix + value.name
        if value.errors and below not in refused:
            refused.add(below)
            yield from ((below, error) for error in value.errors)
    if refused:
        return
    try:
        plugin.configured(props)
    except ConfigError as error:
        yield from ((f"{prefix}{own}", str(error)) for own in keys_of(error))


def _entry_or_errors(
    assembly: Assembly, kind: PluginKind, key: str, version_key: str
) -> PluginEntry | list[tuple[str, str]]:
    """Return the plugin that a key names, or the errors why there is none."""
    name, version = assembly.props[key], assembly.props.get(version_key)
    try:
        return assembly.registry.find(kind, name, version)
    except VersionSpecError:
        # The validator of its key reports this.
        return []
    except PluginVersionError as error:
        return [(version_key, str(ConfigError(version_key, version, str(error))))]
    except UnlistedPluginError as error:
        return [(key, str(ConfigError(key, name, str(error))))]
    except ConnectError:
        registry = assembly.registry
        reason = f"Class {name} could not be found.{registry.suggestion(kind, name)}{registry.interpreter_hint}"
        return [(key, str(ConfigError(key, name, reason)))]


def _converters(assembly: Assembly) -> Iterator[tuple[str, PluginKind]]:
    for role in ("key", "value", "header"):
        if assembly.props.get(f"{role}.converter"):
            kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
            yield f"{role}.converter", kind


_SUPPORT: Final = "exactly.once.support"


def exactly_once_errors(assembly: Assembly) -> Iterator[tuple[str, str]]:
    """Yield keys with their errors, in Kafka Connect's words."""
    if not assembly.is_source:
        return
    yield from unsupported_here(assembly)
    connector: Any = assembly.connector_class
    try:
        own = assembly.connector_config
    except ConfigError:
        # The errors of its keys are already reported, and without valid keys it cannot answer.
        return
    yield from exactly_once_faults(
        assembly.props,
        lambda: connector.exactly_once_support(own),
        lambda: connector.can_define_transaction_boundaries(own),
    )


def unsupported_here(assembly: Assembly) -> Iterator[tuple[str, str]]:
    """Yield the error of a source that has to be exactly-once on a worker that is not."""
    requires = assembly.props.get(_SUPPORT, "").strip().lower() == "required"
    if requires and not assembly.supports_exactly_once:
        yield _SUPPORT, "This worker does not have exactly-once source support enabled."
