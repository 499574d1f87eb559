"""What Java's runtime is told: the worker's properties and a connector's, without what is Sluice's alone.

References to config providers are resolved before, in Python. Converters, transformations and predicates run in Java:
one that is named by the Python path of a plugin that stands for a Java class is named by that class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from connect.errors import ConfigError, PluginError
from connect.hosts import ALLOWED_HOSTS_KEY, DENIED_HOSTS_KEY
from connect.internals.chain.specs import predicate_specs, transformation_specs
from connect.internals.plugins import PluginKind, PluginRegistry
from worker.config.connector import SinkConnectorConfig, SourceConnectorConfig
from worker.config.worker import WorkerConfig

__all__ = ["java_connector_props", "java_worker_props", "refuse_unsupported", "sluice_only_keys", "unsupported"]

_ROLES: Final = (
    ("key.converter", PluginKind.CONVERTER),
    ("value.converter", PluginKind.CONVERTER),
    ("header.converter", PluginKind.HEADER_CONVERTER),
)
_NOT_FOR_JAVA: Final = (
    "config.providers",
    "metric.reporters",
    "rest.extension.classes",
    "listeners",
    "admin.listeners",
)
_WITHOUT_JAVA: Final = "Java cannot run it, and no Java class is known that it stands for. Name a Java class"


def java_worker_props(worker: Mapping[str, str], registry: PluginRegistry) -> dict[str, str]:
    """Return the properties for Java's ``WorkerConfig``, with the classes of the worker's converters."""
    props = {key: value for key, value in worker.items() if not _is_below(key, _NOT_FOR_JAVA)}
    defaults = WorkerConfig.parse({"bootstrap.servers": "", **worker})
    for role, kind in _ROLES:
        name = worker.get(role) or str(getattr(defaults, role.replace(".", "_")))
        props[role] = _java_class(registry, kind, role, name)
    # A JVM takes seconds to look at all classes, and does so only if a plugin is found in no other way.
    discovery = "service_load" if registry.java_is_listed else "hybrid_warn"
    return {**props, "plugin.discovery": discovery, "offset.storage.file.filename": "/dev/null"}


def java_connector_props(props: Mapping[str, str], registry: PluginRegistry) -> dict[str, str]:
    """Return the properties for a connector or task of Java."""
    ours = sluice_only_keys()
    own = {key: value for key, value in props.items() if key not in ours}
    for key, kind in _plugins_of(props):
        own[key] = _java_class(registry, kind, key, props[key])
    return own


def unsupported(worker: Mapping[str, str], props: Mapping[str, str], *, is_source: bool) -> Iterator[ConfigError]:
    """Yield the errors of keys that mean something for connectors of Python, and that Java's runtime does not have.

    So do the worker's rules for hosts: a connector that they do not bind may not run there.
    """
    for rule in (ALLOWED_HOSTS_KEY, DENIED_HOSTS_KEY):
        if worker.get(rule, "").strip():
            yield ConfigError("connector.class", props.get("connector.class"), _UNBOUND.format(rule))
    for key, harmless in _UNSUPPORTED.items():
        if (value := props.get(key)) is not None and value.strip().lower() not in harmless:
            yield ConfigError(key, value, _NOT_IN_JAVA)
    if is_source and (topic := props.get(_DEAD_LETTERS)):
        yield ConfigError(_DEAD_LETTERS, topic, "Only sinks of Java have a dead letter queue. Remove the key")


def refuse_unsupported(worker: Mapping[str, str], props: Mapping[str, str], *, is_source: bool) -> None:
    """Raise the first error of :func:`unsupported`."""
    for error in unsupported(worker, props, is_source=is_source):
        raise error


_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
_UNBOUND: Final = (
    "Java plugins do not obey the worker's {}, so that it runs none of them. Run the connector on workers without this "
    "key, or, if Sluice has a connector of its own for this class, in Python: remove engine"
)
_NOT_IN_JAVA: Final = "A connector of Java cannot do this. Remove the key"
_UNSUPPORTED: Final[Mapping[str, tuple[str, ...]]] = {
    "engine": ("worker", "java"),
    "run.until": ("stopped",),
    "errors.tolerance.limit": ("-1",),
    "errors.tolerance.rate": ("-1",),
}
"""Keys with their values that change nothing."""


def sluice_only_keys() -> frozenset[str]:
    """Return the framework's keys that Kafka Connect does not have."""
    definitions = (*SourceConnectorConfig.definitions(), *SinkConnectorConfig.definitions())
    return frozenset(key.name for key in definitions) - _JAVA_KEYS


_JAVA_KEYS: Final = frozenset(
    {
        "name",
        "connector.class",
        "connector.plugin.version",
        "tasks.max",
        "tasks.max.enforce",
        *(f"{role}{end}" for role, _ in _ROLES for end in ("", ".plugin.version")),
        "transforms",
        "predicates",
        "config.action.reload",
        "errors.retry.timeout",
        "errors.retry.delay.max.ms",
        "errors.tolerance",
        "errors.log.enable",
        "errors.log.include.messages",
        "errors.deadletterqueue.topic.name",
        "errors.deadletterqueue.topic.replication.factor",
        "errors.deadletterqueue.context.headers.enable",
        "topics",
        "topics.regex",
        "topic.creation.groups",
        "exactly.once.support",
        "transaction.boundary",
        "transaction.boundary.interval.ms",
        "offsets.storage.topic",
    }
)


def _plugins_of(props: Mapping[str, str]) -> Iterator[tuple[str, PluginKind]]:
    yield from ((role, kind) for role, kind in _ROLES if props.get(role))
    for spec in transformation_specs(props):
        yield f"{spec.prefix}type", PluginKind.TRANSFORMATION
    for predicate in predicate_specs(props):
        yield f"{predicate.prefix}type", PluginKind.PREDICATE


def _java_class(registry: PluginRegistry, kind: PluginKind, key: str, name: str) -> str:
    """Return the Java class that a key names, itself or by the Python class that stands for it."""
    try:
        entry = registry.find(kind, name)
    except PluginError:
        return name
    if entry.java is not None or name != entry.class_name:
        return name
    if not entry.aliases:
        raise ConfigError(key, name, _WITHOUT_JAVA)
    return entry.aliases[0]


def _is_below(key: str, roots: tuple[str, ...]) -> bool:
    return any(key == root or key.startswith(f"{root}.") for root in roots)
