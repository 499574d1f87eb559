"""Assembles the plugins of a connector or task from its configuration, with the references to config providers
resolved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar

from connect.config import Config, ConfigType
from connect.connector import Connector, Task
from connect.data import SinkBatch, SinkRecord, SourceBatch, SourceRecord
from connect.errors import ConnectError, PluginError
from connect.hosts import ALLOWED_HOSTS_KEY, DENIED_HOSTS_KEY
from connect.internals.chain.converters import Converters, converter_plugin, converter_props
from connect.internals.chain.sink import SinkChain
from connect.internals.chain.source import SourceChain
from connect.internals.chain.specs import VERSION, PredicateSpec, TransformationSpec
from connect.internals.chain.steps import Step, Steps, transformation_steps
from connect.internals.chain.tolerance import Tolerance
from connect.internals.kafka.auth.jaas import client_secrets
from connect.internals.plugins import PluginEntry, PluginKind, PluginRegistry, class_name, load_class
from connect.providers import ConfigProvider, RefusedReferenceError, has_reference, resolve_references
from connect.sink import SinkTask
from connect.source import SourceConnector, SourceTask
from worker.config.connector import ConnectorConfig, SinkConnectorConfig, SourceConnectorConfig
from worker.config.file_access import refused_schema_file
from worker.config.internal_topics import HANDED_KEY, InternalTopics
from worker.config.spark_policy import refused_spark_keys
from worker.config.validators import CONNECTOR_VERSION
from worker.config.worker import WORKER_ID, DistributedConfig, WorkerConfig
from worker.runtime.providers import OnTtl, providers_of
from worker.runtime.watch import Limits
from worker.security.redaction import Redaction

__all__ = ["Assembly"]

# Where plugins come from: a connector's configuration cannot change this, wherever the connector runs.
_OF_THE_WORKER: Final = ("plugin.path", "plugin.import.allowlist")

_HOST_RULES: Final = (ALLOWED_HOSTS_KEY, DENIED_HOSTS_KEY)
_SPARK: Final = "spark"
_CLASS: Final = "connector.class"

B = TypeVar("B", SourceBatch, SinkBatch)
R = TypeVar("R", SourceRecord, SinkRecord)


@dataclass(frozen=True)
class Assembly:
    """The plugins and configurations of a connector or task.

    ``props`` is the connector's configuration and ``worker_props`` the worker's, both with their references to config
    providers resolved, so that they may hold secrets.
    """

    worker_props: Mapping[str, str]
    props: Mapping[str, str]
    providers: Mapping[str, ConfigProvider]
    redaction: Redaction
    on_ttl: OnTtl

    @classmethod
    def resolve(
        cls,
        worker: Mapping[str, str],
        props: Mapping[str, str],
        redaction: Redaction,
        on_ttl: OnTtl = lambda _: None,
    ) -> Assembly:
        """Resolve references to config providers; ``redaction`` hides the values from now on.

        ``on_ttl`` is called if values in the configuration of the connector or its task expire. In ``connector.class``
        there are no references, as in Java: the roles in ``rest.authorization.file`` are decided by what is written.
        """
        providers = providers_of(worker, redaction)
        try:
            resolved = _resolved(worker, providers)
        except RefusedReferenceError as error:
            raise ConnectError(f"A reference in the worker's own properties cannot be resolved. {error}") from error
        redaction.add([*_passwords(WorkerConfig, resolved), *client_secrets(resolved)])
        connector = _resolved({key: value for key, value in props.items() if key != _CLASS}, providers, on_ttl)
        if _CLASS in props:
            connector[_CLASS] = props[_CLASS]
        redaction.add(client_secrets(connector))
        return cls(resolved, connector, providers, redaction, on_ttl)

    def task_config(self, props: Mapping[str, str]) -> Config:
        """Return the typed configuration of a task, with its references resolved."""
        config_class = self.connector_class.task_class.config_class
        resolved = _resolved(props, self.providers, self.on_ttl)
        self.redaction.add(_passwords(config_class, resolved))
        self.check_spark(resolved)
        for refused in refused_schema_file(self.worker_props, class_name(self.connector_class), resolved):
            raise refused
        return config_class.parse(self.with_worker_keys(config_class, resolved))

    def engine_config(self, props: Mapping[str, str]) -> Config:
        """Return the configuration of the engine's task, which runs tasks of the connector with ``props``.

        Its originals are those properties as a task of the connector reads them, references resolved. Mistakes in them
        are raised here, before anything runs.
        """
        assert self.engine_class is not None
        config_class = self.engine_class.config_class
        own = {key: value for key, value in self.task_config(props).originals.items() if value is not None}
        return config_class.parse(self.with_worker_keys(config_class, own))

    def with_worker_keys(self, config_class: type[Config], props: Mapping[str, str]) -> Mapping[str, str]:
        """Return the properties of a plugin, with the worker's values of its internal keys that are also keys of the
        worker.

        Such keys limit what connectors may do, such as ``jdbc.allowed.drivers``; one has the worker's internal topics.
        Values of them in a connector's configuration are ignored.
        """
        internal = {key.name for key in config_class.definitions() if key.internal}
        ruled = internal & {HANDED_KEY, *(key.name for key in WorkerConfig.definitions())}
        if not ruled:
            return props
        handed = {**self.worker_props, HANDED_KEY: ",".join(self.internal_topics.named)}
        own = {key: value for key, value in props.items() if key not in ruled}
        return own | {key: handed[key] for key in ruled if key in handed}

    def check_spark(self, task_props: Mapping[str, str] | None = None) -> None:
        """Refuse Spark keys that the worker's file does not allow in a connector or its task.

        Validation alone does not suffice: a configuration may have been stored before the policy was tightened.
        """
        for refused in refused_spark_keys(self.worker_props, {**self.props, **(task_props or {})}):
            raise refused

    @cached_property
    def worker(self) -> WorkerConfig:
        """The worker's configuration."""
        return WorkerConfig.parse(self.worker_props)

    @cached_property
    def internal_topics(self) -> InternalTopics:
        """The topics that the connector may not use."""
        return InternalTopics(self.worker_props)

    @cached_property
    def distributed(self) -> DistributedConfig | None:
        """The configuration of a distributed worker; ``None`` if this is a standalone one."""
        if not (self.worker_props.get("group.id") and self.worker_props.get("offset.storage.topic")):
            return None
        return DistributedConfig.parse(self.worker_props)

    @property
    def supports_exactly_once(self) -> bool:
        """Whether sources are exactly once here (KIP-618); ``preparing`` changes only how the leader writes."""
        return self.distributed is not None and self.distributed.exactly_once_source_support.lower() == "enabled"

    @cached_property
    def plugins(self) -> PluginRegistry:
        """All plugins of the worker."""
        config, worker = self.worker, self.worker_props.get(WORKER_ID)
        return PluginRegistry.discover(config.plugin_path or (), config.plugin_import_allowlist, worker)

    @cached_property
    def connector_entry(self) -> PluginEntry:
        """The plugin that ``connector.class`` names, in the requested version.

        With ``engine=spark`` it is the one that does the same by Spark's own means, if there is one.
        """
        name, version = self.props[_CLASS], self.props.get(CONNECTOR_VERSION)
        if has_reference(name):
            raise PluginError(
                f"connector.class is {name}, and may not refer to a config provider: write the class itself."
            )
        entry = self.plugins.find_connector(name, version, self.props.get("engine"))
        if entry.spark_class is None or self.props.get("engine", "").strip() != _SPARK:
            return entry
        return self.plugins.find(PluginKind.CONNECTOR, entry.spark_class)

    @cached_property
    def registry(self) -> PluginRegistry:
        """All plugins, with those that come with the connector first."""
        return self.plugins.beside(self.connector_entry)

    @cached_property
    def connector_class(self) -> type[Connector[Any]]:
        """The class that ``connector.class`` names."""
        loaded: type[Connector[Any]] = load_class(self.connector_entry)
        self.redaction.add(_passwords(loaded.config_class, self.props))
        return loaded

    @property
    def version(self) -> str:
        """The version of the connector."""
        return self.connector_entry.version or self.connector_class.version

    @cached_property
    def engine_class(self) -> type[Task[Any]] | None:
        """The class of the task that runs the connector's tasks in an engine (``engine``); ``None`` if they run here.

        A connector whose own task is neither a source's nor a sink's is its own engine.
        """
        engine = self.props.get("engine", "").strip()
        own = getattr(self.connector_class, "task_class", Task)
        if engine != _SPARK or not issubclass(own, SinkTask | SourceTask):
            return None
        role = "Source" if self.is_source else "Sink"
        loaded: type[Task[Any]] = self.registry.load(PluginKind.ENGINE, f"{engine.capitalize()}{role}")
        return loaded

    def hide_secrets(self) -> None:
        """Hide all secrets in the connector's configuration, whichever plugin they belong to.

        Each plugin sees the keys of the others and may log them. A plugin that cannot be found has no secrets.
        """
        if (task_class := getattr(self.connector_class, "task_class", None)) is not None:
            self.redaction.add(_passwords(task_class.config_class, self.props))
        for role in ("key", "value", "header"):
            if name := self.props.get(f"{role}.converter"):
                kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
                with suppress(ConnectError):
                    version = self.props.get(f"{role}.converter.{VERSION}")
                    self._hide(kind, name, version, converter_props(self.props, role))
        with suppress(ConnectError):
            for kind, spec in self._chain():
                with suppress(ConnectError):
                    self._hide(kind, spec.type, spec.version, spec.props)

    @property
    def is_java(self) -> bool:
        """Whether the connector is a Java plugin."""
        return self.connector_entry.java is not None

    @property
    def is_source(self) -> bool:
        """Whether the connector is a source."""
        if self.is_java:
            return self.connector_entry.type == "source"
        return issubclass(self.connector_class, SourceConnector)

    @cached_property
    def config(self) -> ConnectorConfig:
        """The framework's own part of the connector's configuration."""
        kind = SourceConnectorConfig if self.is_source else SinkConnectorConfig
        return kind.parse(self.props)

    @property
    def hang_limits(self) -> Limits:
        """When a call of the plugin counts as hanging, by the connector's configuration or else the worker's."""
        own, ours = self.config, self.worker
        warning, timeout = own.task_hang_warning_ms, own.task_hang_timeout_ms
        return Limits(
            (ours.task_hang_warning_ms if warning is None else warning) / 1000,
            (ours.task_hang_timeout_ms if timeout is None else timeout) / 1000,
            ours.task_shutdown_graceful_timeout_ms / 1000,
        )

    @cached_property
    def source_config(self) -> SourceConnectorConfig:
        """The framework's own part of a source connector's configuration."""
        return SourceConnectorConfig.parse(self.props)

    @property
    def dedicated_offsets_topic(self) -> str | None:
        """The connector's own offsets topic; ``None`` if its offsets are in the worker's.

        Offsets in a transaction are on the cluster of the records, where the worker's topic name is another topic.
        """
        topic = self.source_config.offsets_storage_topic
        for refused in self.internal_topics.refused_offsets("offsets.storage.topic", topic):
            raise refused
        if self.distributed is None or topic not in (None, self.distributed.offset_storage_topic):
            return topic
        written_to = self.props.get("producer.override.bootstrap.servers", self.worker_props["bootstrap.servers"])
        elsewhere = written_to != self.worker_props["bootstrap.servers"]
        named = topic or (self.distributed.offset_storage_topic if self.supports_exactly_once else None)
        return named if elsewhere else None

    @property
    def transaction_offsets_topic(self) -> str:
        """The topic that holds the offsets of an exactly-once connector."""
        assert self.distributed is not None
        return self.dedicated_offsets_topic or self.distributed.offset_storage_topic

    @cached_property
    def connector_config(self) -> Config:
        """The connector's part of its configuration."""
        config_class = self.connector_class.config_class
        return config_class.parse(self.with_worker_keys(config_class, self.props))

    def effective_props(self) -> dict[str, str]:
        """Return the connector's configuration, with the converters of its class or of the worker where it names none.

        It names the version of each plugin that has several, for readers that do not know the connector.
        """
        inherited = {name: value for name, value in self.worker_props.items() if name in _OF_THE_WORKER}
        for role in ("key", "value", "header"):
            key = f"{role}.converter"
            if self.props.get(key):
                continue
            if (converter := self.connector_class.default_converter) is not None:
                inherited[key] = converter
            else:
                inherited |= {name: value for name, value in self.worker_props.items() if _belongs(name, key)}
                inherited.setdefault(key, getattr(self.worker, f"{role}_converter"))
        ruled = {*_OF_THE_WORKER, *(f"{key}.{VERSION}" for key in inherited)}
        own = {name: value for name, value in self.props.items() if name not in ruled}
        props = self._with_host_rules({**own, **inherited})
        return {**props, **self._chosen_versions(props)}

    def _with_host_rules(self, props: Mapping[str, str]) -> dict[str, str]:
        """Return the configuration with the worker's rules for hosts in each converter that it names or adds keys to.

        The converters of the worker's file go where that file says.
        """
        ruled = {f"{role}.converter.{rule}": rule for role in ("key", "value", "header") for rule in _HOST_RULES}
        kept = {name: value for name, value in props.items() if name not in ruled}
        for name, rule in ruled.items():
            converter = name.removesuffix(f".{rule}")
            if rule in self.worker_props and any(_belongs(own, converter) for own in self.props):
                kept[name] = self.worker_props[rule]
        return kept

    def _chosen_versions(self, props: Mapping[str, str]) -> dict[str, str]:
        named = [(PluginKind.CONNECTOR, props["connector.class"], CONNECTOR_VERSION)]
        for role in ("key", "value", "header"):
            kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
            named.append((kind, props[f"{role}.converter"], f"{role}.converter.{VERSION}"))
        named += [(kind, spec.type, f"{spec.prefix}{VERSION}") for kind, spec in self._chain()]
        chosen: dict[str, str] = {}
        for kind, name, key in named:
            # A plugin that cannot be found is reported where it is instantiated.
            with suppress(PluginError):
                entry = self.registry.find(kind, name, props.get(key))
                if entry.version is not None and len(self.registry.versions(entry)) > 1:
                    chosen[key] = f"[{entry.version}]"
        return chosen

    def source_chain(self, tolerance: Tolerance) -> SourceChain:
        """Return the transformations and converters of a source."""
        steps: Steps[SourceBatch, SourceRecord] = Steps(self._steps(), tolerance)
        return SourceChain(steps, self.converters(), tolerance)

    def sink_chain(self, tolerance: Tolerance) -> SinkChain:
        """Return the converters and transformations of a sink."""
        steps: Steps[SinkBatch, SinkRecord] = Steps(self._steps(), tolerance)
        return SinkChain(steps, self.converters(), tolerance)

    def converters(self) -> Converters:
        """Return the converters: the connector's where it names them, else the worker's."""
        return Converters(self._converter("key"), self._converter("value"), self._converter("header"))

    def _converter(self, role: str) -> Any:
        props = self.effective_props()
        plugin = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
        version = props.get(f"{role}.converter.{VERSION}")
        self._hide(plugin, props[f"{role}.converter"], version, converter_props(props, role))
        return converter_plugin(self.registry, props, role)

    def _steps(self) -> list[Step]:
        for kind, spec in self._chain():
            self._hide(kind, spec.type, spec.version, spec.props)
        return transformation_steps(self.registry, self.config.transformations())

    def _chain(self) -> Iterator[tuple[PluginKind, TransformationSpec | PredicateSpec]]:
        """Yield the transformations and predicates."""
        for spec in self.config.transformations():
            yield PluginKind.TRANSFORMATION, spec
            if spec.predicate is not None:
                yield PluginKind.PREDICATE, spec.predicate

    def _hide(self, kind: PluginKind, name: str, version: str | None, props: Mapping[str, str]) -> None:
        """Hide the secrets of a plugin before it is configured with them (invariant I8)."""
        self.redaction.add(_passwords(self.registry.load(kind, name, version).config_class, props))


def _resolved(
    props: Mapping[str, str], providers: Mapping[str, ConfigProvider], on_ttl: OnTtl = lambda _: None
) -> dict[str, str]:
    resolved = resolve_references(props, providers)
    if resolved.ttl_ms is not None:
        on_ttl(resolved.ttl_ms)
    return {key: value for key, value in resolved.values.items() if value is not None}


def _passwords(config_class: type[Config], props: Mapping[str, str]) -> list[str]:
    keys = (key.name for key in config_class.definitions() if key.type is ConfigType.PASSWORD)
    return [props[key] for key in keys if props.get(key)]


def _belongs(name: str, key: str) -> bool:
    return name == key or name.startswith(f"{key}.")
