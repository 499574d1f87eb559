"""A connector as described by its options: class, configuration and transformations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connect.bulk import BulkSinkTask
from connect.bulk_source import BulkSourceTask
from connect.config import Config, ConfigRuleError, ConfigType
from connect.config.errors import InvalidConfigError, keys_of, missing_value
from connect.connector import Connector, Task
from connect.errors import ConfigError, ConnectError
from connect.internals.chain.specs import VERSION, PredicateSpec, TransformationSpec, transformation_specs
from connect.internals.chain.steps import Step, transformation_steps
from connect.internals.plugins import PluginKind, PluginRegistry, PluginVersionError, class_name, load_class
from connect.internals.plugins.versions import VersionSpecError
from connect.providers import restore_references
from connect.sink import SinkConnector
from connect.source import SourceConnector
from connectors.spark.datasource.config import DataSourceConfig
from connectors.spark.datasource.options import alias_names, resolved_options, written_names

__all__ = ["Deployment"]

_NAME = "sluice"


@dataclass(frozen=True, slots=True)
class Deployment:
    """A validated configuration, in the process that uses it. ``props`` may contain secrets."""

    config: DataSourceConfig
    registry: PluginRegistry
    connector_class: type[Connector[Any]]
    written: Mapping[str, str]
    """The options under Connect's names, with references to config providers unresolved."""
    props: Mapping[str, str] = field(repr=False)
    secret_keys: frozenset[str]

    @classmethod
    def of_source(cls, options: Mapping[str, str]) -> Deployment:
        """Return the source that ``options`` describe; raises a :class:`~connect.errors.ConfigError` that lists what
        is wrong.
        """
        made = cls._of(options)
        if not issubclass(made.connector_class, SourceConnector):
            reason = "It is a sink, which nothing can be read from: use df.write or df.writeStream, or name a source."
            raise ConfigError("connector.class", made.config.connector_class, reason)
        if issubclass(made.connector_class.task_class, BulkSourceTask):
            reason = "It publishes to topics by itself, by Spark: read what it reads with Spark's own formats."
            raise ConfigError("connector.class", made.config.connector_class, reason)
        return made

    @classmethod
    def of_sink(cls, options: Mapping[str, str]) -> Deployment:
        """Return the sink that ``options`` describe; raises a :class:`~connect.errors.ConfigError` that lists what
        is wrong.
        """
        made = cls._of(options)
        if not issubclass(made.connector_class, SinkConnector):
            reason = "It is a source, which nothing can be written to: use spark.read, or name a sink."
            raise ConfigError("connector.class", made.config.connector_class, reason)
        if issubclass(made.connector_class.task_class, BulkSinkTask):
            reason = "It loads topics by itself, and DataFrames are no topics: write them with Spark's own formats."
            raise ConfigError("connector.class", made.config.connector_class, reason)
        if len(made.config.topics) != 1:
            reason = "Name one topic: the sink takes the rows for records of it."
            raise ConfigError("topics", ",".join(made.config.topics) or None, reason)
        return made

    @classmethod
    def _of(cls, options: Mapping[str, str]) -> Deployment:
        given = {"name": _NAME, **alias_names(options)}
        registry = PluginRegistry.discover(_listed(given, "plugin.path"), _listed(given, "plugin.import.allowlist"))
        resolved = resolved_options(given, registry)
        config = DataSourceConfig.parse(resolved.values, secret_keys=resolved.secret_keys)
        entry = registry.find(PluginKind.CONNECTOR, config.connector_class, given.get("connector.plugin.version"))
        registry, connector_class = registry.beside(entry), load_class(entry)
        known = written_names({name: name for name in given}, _known_keys(registry, connector_class, given))
        names = {name: key for key, name in known.items()}
        written = {names[name]: value for name, value in given.items()}
        props = {names[name]: value for name, value in resolved.values.items() if value is not None}
        secret_keys = frozenset(names[name] for name in resolved.secret_keys)
        made = cls(config, registry, connector_class, written, props, secret_keys)
        made._check()
        return made

    def connector(self, context: Any) -> Connector[Any]:
        """Create the connector without starting it."""
        return self.connector_class(self._parsed(self.connector_class.config_class, self.props), context)

    def storable(self, task_config: Mapping[str, str | None]) -> dict[str, str]:
        """Return a task config that may leave the process, with references in place of resolved values."""
        stored = restore_references(task_config, self.written)
        return {key: value for key, value in stored.items() if value is not None}

    def task(self, task_config: Mapping[str, str], context: Any) -> Task[Any]:
        """Create a task with such a config, without starting it; its references are resolved here."""
        resolved = resolved_options(task_config, self.registry)
        task_class: Any = self.connector_class.task_class
        parsed = task_class.config_class.parse(resolved.values, secret_keys=resolved.secret_keys | self.secret_keys)
        made: Task[Any] = task_class(parsed, context)
        return made

    def steps(self) -> list[Step]:
        """Create the transformations, in order."""
        return transformation_steps(self.registry, transformation_specs(self.props))

    @property
    def task_class(self) -> str:
        """The dotted path of the task class."""
        return class_name(self.connector_class.task_class)

    def secrets(self) -> frozenset[str]:
        """Return the secrets that no text may reveal: passwords, and values from config providers."""
        keys = self.connector_class.config_class.definitions()
        passwords = {key.name for key in keys if key.type is ConfigType.PASSWORD}
        return frozenset(text for key in passwords | self.secret_keys if (text := (self.props.get(key) or "").strip()))

    def _parsed(self, config_class: type[Config], props: Mapping[str, str]) -> Config:
        return config_class.parse(props, secret_keys=self.secret_keys)

    def _check(self) -> None:
        """Raise a single error for all invalid keys of the connector and the transformations."""
        errors = [*_mistakes(lambda: self._parsed(self.connector_class.config_class, self.props))]
        for spec in transformation_specs(self.props):
            errors += _plugin_mistakes(self.registry, PluginKind.TRANSFORMATION, spec)
            if (chosen := spec.predicate) is not None:
                errors += _plugin_mistakes(self.registry, PluginKind.PREDICATE, chosen)
        if len(errors) > 1:
            raise InvalidConfigError(errors)
        if errors:
            raise errors[0]


def _mistakes(parse: Callable[[], object]) -> Sequence[ConfigError]:
    try:
        parse()
    except InvalidConfigError as several:
        return several.errors
    except ConfigError as error:
        return [error]
    return []


def _plugin_mistakes(
    registry: PluginRegistry, kind: PluginKind, spec: TransformationSpec | PredicateSpec
) -> Iterator[ConfigError]:
    """Yield the errors of a transformation or a predicate, under the keys as the user wrote them."""
    prefix, name, props = spec.prefix, spec.type, spec.props
    if not name:
        yield missing_value(f"{prefix}type")
        return
    try:
        plugin = registry.load(kind, name, spec.version)
    except (PluginVersionError, VersionSpecError) as error:
        yield ConfigError(f"{prefix}{VERSION}", spec.version, str(error))
        return
    except ConnectError as error:
        yield ConfigError(f"{prefix}type", name, str(error))
        return
    for mistake in _mistakes(lambda: plugin.configured(props)):
        if isinstance(mistake, ConfigRuleError):
            yield ConfigRuleError(f"{prefix}*: {mistake}", *(prefix + key for key in keys_of(mistake)))
        else:
            yield ConfigError(prefix + mistake.key, mistake.value, mistake.reason)


def _known_keys(
    registry: PluginRegistry, connector_class: type[Connector[Any]], options: Mapping[str, str]
) -> Iterator[str]:
    """Yield the keys of the connector and its plugins, as their authors spell them."""
    yield from (key.name for key in connector_class.config_class.definitions())
    for spec in transformation_specs(options):
        yield f"{spec.prefix}{VERSION}"
        plugins = [(PluginKind.TRANSFORMATION, spec.prefix, spec.type, spec.version)]
        if spec.predicate is not None:
            chosen = spec.predicate
            yield f"{chosen.prefix}{VERSION}"
            plugins.append((PluginKind.PREDICATE, chosen.prefix, chosen.type, chosen.version))
        for kind, prefix, name, version in plugins:
            try:
                plugin = registry.load(kind, name, version)
            except ConnectError:
                continue  # reported when everything is validated
            yield from (prefix + key.name for key in plugin.config_class.definitions())


def _listed(options: Mapping[str, str], key: str) -> list[str]:
    return [item.strip() for item in options.get(key, "").split(",") if item.strip()]
