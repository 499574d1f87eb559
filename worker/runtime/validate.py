"""Checking a connector's configuration, in a process of its own because it runs the plugins' code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connect.config import ConfigKey, ConfigValue, config_info
from connect.errors import ConfigError, ConnectError
from connect.plugins import PluginKind
from worker.connector_config import ConnectorConfig, SinkConnectorConfig, SourceConnectorConfig
from worker.runtime.assembly import Assembly
from worker.runtime.log import Redaction
from worker.supervisor import messages

__all__ = ["validate"]


def validate(command: messages.ValidateConfig, redaction: Redaction) -> messages.Validated:
    """Everything there is to say of every key, in the form of Kafka Connect's ``ConfigInfos``.

    Raises :class:`~connect.errors.PluginError` when ``connector.class`` names no connector.
    """
    assembly = Assembly.resolve(command.worker, command.config, redaction)
    connector_class = assembly.connector_class
    framework = SourceConnectorConfig if assembly.is_source else SinkConnectorConfig
    pairs = {
        **_pairs(framework.definitions(), framework.validate(assembly.props)),
        **_pairs(connector_class.config_class.definitions(), connector_class.config_class.validate(assembly.props)),
    }
    for key, error in _plugin_errors(assembly):
        definition, value = pairs.get(key, (None, ConfigValue(key)))
        pairs[key] = definition, value.with_errors(redaction.hide(error))
    infos = {
        "name": command.config["connector.class"],
        "error_count": sum(len(value.errors) for _, value in pairs.values()),
        "groups": _groups(framework),
        "configs": [config_info(definition, value) for definition, value in pairs.values()],
    }
    return messages.Validated(infos, "source" if assembly.is_source else "sink")


def _pairs(
    definitions: tuple[ConfigKey, ...], values: tuple[ConfigValue, ...]
) -> dict[str, tuple[ConfigKey | None, ConfigValue]]:
    keys = {definition.name: definition for definition in definitions}
    return {value.name: (keys.get(value.name), value) for value in values}


def _groups(framework: type[ConnectorConfig]) -> list[str]:
    groups = (definition.group for definition in framework.definitions())
    return list(dict.fromkeys(group for group in groups if group is not None))


def _plugin_errors(assembly: Assembly) -> Iterator[tuple[str, str]]:
    """What is wrong with the plugins a connector names: with their names, or with their own keys."""
    props = assembly.props
    for role in ("key", "value", "header"):
        kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
        key = f"{role}.converter"
        if props.get(key):
            yield from _errors_of(assembly, kind, key, _below(f"{key}.", props) | {"converter.type": role})
    try:
        specs = assembly.config.transformations()
    except ConnectError:
        # The framework's own keys are wrong, which is said of them already.
        return
    for spec in specs:
        yield from _errors_of(assembly, PluginKind.TRANSFORMATION, f"transforms.{spec.alias}.type", spec.props)
        if (predicate := spec.predicate) is not None:
            key = f"predicates.{predicate.alias}.type"
            yield from _errors_of(assembly, PluginKind.PREDICATE, key, predicate.props)


def _errors_of(assembly: Assembly, kind: PluginKind, key: str, props: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    prefix = key.removesuffix("type") if kind in (PluginKind.TRANSFORMATION, PluginKind.PREDICATE) else f"{key}."
    try:
        plugin = assembly.registry.load(kind, assembly.props[key])
    except ConnectError as error:
        yield key, str(error)
        return
    try:
        plugin.configured(props)
    except ConfigError as error:
        yield f"{prefix}{error.key}", str(error)


def _below(prefix: str, props: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in props.items() if key.startswith(prefix)}
