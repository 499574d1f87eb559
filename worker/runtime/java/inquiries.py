"""Answers inquiries about Java plugins, by Kafka Connect's own runtime: validation, config keys, altered offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from connect.config import config_info, key_info
from connect.errors import ConnectError
from connect.internals.plugins import PluginEntry, PluginKind
from connect.source import ConnectorTransactionBoundaries, ExactlyOnceSupport
from worker.config.connector import ConnectorConfig, SinkConnectorConfig, SourceConnectorConfig
from worker.config.validators import CONNECTOR_VERSION
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.inquiries.exactly_once import exactly_once_faults
from worker.runtime.java.callbacks import ForgetfulStore
from worker.runtime.java.connect_runtime import JavaWorker, failures, runtime_of_process
from worker.runtime.java.passwords import password_values
from worker.runtime.java.settings import java_connector_props, sluice_only_keys, unsupported

__all__ = ["accepts_source_offsets", "alter_sink_offsets", "describe_java", "validate_java"]

_UNIT: Final = "inquiry"
_SHORT_LIFE: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of a JVM that ends with its answer: no compiler that would still work when that is given."""
_MANAGED: Final = "The offsets"
"""How the runtime's answer begins if the connector keeps no offsets elsewhere."""
_OFFSETS_TOPIC: Final = "offsets.storage.topic"
_EXACTLY_ONCE: Final = "exactly.once.source.support"


def validate_java(
    command: messages.ValidateConfig, assembly: Assembly, errors: Iterable[tuple[str, str]]
) -> messages.Validated:
    """Validate a connector's configuration as Kafka Connect does, and add the ``errors`` and keys of Sluice.

    Of the plugin's own system nothing is asked but what its own validation asks.
    """
    props = java_connector_props(assembly.props, assembly.plugins)
    nulls = [key for key, value in command.config.items() if value is None]
    with _java(assembly) as java:
        assembly.redaction.add(password_values(java, assembly))
        done = java.jvm.java.org.apache.kafka.connect.util.FutureCallback()
        given = java.jvm.to_java({**props, **dict.fromkeys(nulls)})
        java.herder.validateConnectorConfig(given, done, False)
        infos = java.jvm.to_python(done.get())
        faults = [*errors, *_faults(java, assembly, props)]
    _add_own(infos, _framework(assembly), assembly.props)
    for key, error in faults:
        _add_error(infos, key, error)
    _hide(infos, command.config, assembly)
    infos["name"] = command.config["connector.class"]
    infos["error_count"] = sum(len(each["value"]["errors"]) for each in infos["configs"])
    connection = {"checked": False, "reason": _ASKS_ITSELF} if command.connect else None
    return messages.Validated(infos, assembly.connector_entry.type or "source", [], connection)


_ASKS_ITSELF: Final = "A connector of Java asks its system whenever it is validated, or not at all."


def describe_java(assembly: Assembly, entry: PluginEntry, version: str | None) -> list[dict[str, Any]]:
    """Return the config keys of a Java plugin in a range of versions; of connectors, those of Sluice's runtime too."""
    with _java(assembly) as java:
        found = java.herder.connectorPluginConfig(entry.class_name, _range(java, version))
        keys: list[dict[str, Any]] = java.jvm.to_python(found)
    if entry.kind is PluginKind.CONNECTOR:
        framework = SourceConnectorConfig if entry.type == "source" else SinkConnectorConfig
        keys += [dict(key_info(key)) for key in framework.definitions() if key.name in sluice_only_keys()]
    return keys


def _range(java: JavaWorker, version: str | None) -> Any:
    """Return a range of versions as Java has it; any version is ``None`` there, too."""
    return java.runtime.isolation.PluginUtils.connectorVersionRequirement(version)


def accepts_source_offsets(assembly: Assembly, offsets: messages.OffsetPairs) -> bool:
    """Ask a source whether these offsets may be set. Return whether it keeps no others elsewhere.

    Raises what it throws if it refuses. Nothing is written: the worker does that.
    """
    props = java_connector_props(assembly.props, assembly.plugins)
    own = {key: value for key, value in props.items() if key != _OFFSETS_TOPIC}
    # In transactions the runtime would write them itself, past the store that it is given.
    worker = {key: value for key, value in assembly.worker_props.items() if key != _EXACTLY_ONCE}
    with _java(assembly, worker) as java:
        return _altered(java, assembly, own, [(dict(partition), offset) for partition, offset in offsets])


def alter_sink_offsets(assembly: Assembly, offsets: list[tuple[str, int, int | None]] | None) -> bool:
    """Set or, without ``offsets``, remove the offsets of a sink's group if the connector accepts that.

    Return whether it keeps no others elsewhere.
    """
    props = java_connector_props(assembly.props, assembly.plugins)
    pairs = None
    if offsets is not None:
        pairs = [
            (
                {"kafka_topic": topic, "kafka_partition": partition},
                None if offset is None else {"kafka_offset": offset},
            )
            for topic, partition, offset in offsets
        ]
    with _java(assembly) as java:
        return _altered(java, assembly, props, pairs)


def _altered(
    java: JavaWorker,
    assembly: Assembly,
    props: Mapping[str, str],
    pairs: list[tuple[dict[str, Any], dict[str, Any] | None]] | None,
) -> bool:
    jvm = java.jvm
    changes = None
    if pairs is not None:
        changes = jvm.java.java.util.HashMap()
        for partition, offset in pairs:
            changes.put(jvm.to_java(partition), None if offset is None else jvm.to_java(offset))
    done = jvm.java.org.apache.kafka.connect.util.FutureCallback()
    java.worker.modifyConnectorOffsets(assembly.config.name, jvm.to_java(dict(props)), changes, done)
    return str(done.get().message()).startswith(_MANAGED)


@contextmanager
def _java(assembly: Assembly, worker_props: Mapping[str, str] | None = None) -> Iterator[JavaWorker]:
    """Yield a ``Worker`` in which nothing runs; what Java throws is raised."""
    runtime = runtime_of_process(worker_props or assembly.worker_props, assembly.plugins, _SHORT_LIFE)
    java = runtime.worker(_UNIT, ForgetfulStore(runtime.jvm))
    try:
        with failures(runtime.jvm):
            yield java
    finally:
        java.close()


def _framework(assembly: Assembly) -> type[ConnectorConfig]:
    return SourceConnectorConfig if assembly.is_source else SinkConnectorConfig


def _faults(java: JavaWorker, assembly: Assembly, props: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for error in unsupported(assembly.worker_props, assembly.props, is_source=assembly.is_source):
        yield error.key, str(error)
    if not assembly.is_source:
        return

    def ask(method: str) -> Any:
        versions = _range(java, props.get(CONNECTOR_VERSION))
        connector = java.worker.getPlugins().newConnector(props["connector.class"], versions)
        try:
            with failures(java.jvm):
                answer = getattr(connector, method)(java.jvm.to_java(dict(props)))
        except ConnectError as error:
            raise ConnectError(str(error)) from error
        return None if answer is None else str(answer.name())

    def support() -> ExactlyOnceSupport | None:
        answer = ask("exactlyOnceSupport")
        return None if answer is None else ExactlyOnceSupport[answer]

    yield from exactly_once_faults(
        assembly.props,
        support,
        lambda: ConnectorTransactionBoundaries[str(ask("canDefineTransactionBoundaries"))],
    )


def _add_own(infos: dict[str, Any], framework: type[ConnectorConfig], props: Mapping[str, str]) -> None:
    """Add the keys that Kafka Connect does not have."""
    ours = sluice_only_keys()
    definitions = {key.name: key for key in framework.definitions() if key.name in ours}
    for value in framework.validate(props):
        if value.name in definitions:
            infos["configs"].append(dict(config_info(definitions[value.name], value)))


def _add_error(infos: dict[str, Any], key: str, error: str) -> None:
    for each in infos["configs"]:
        if each["value"]["name"] == key:
            if error not in each["value"]["errors"]:
                each["value"]["errors"].append(error)
            return
    value = {"name": key, "value": None, "recommended_values": [], "errors": [error], "visible": True}
    infos["configs"].append({"definition": None, "value": value})


def _hide(infos: dict[str, Any], written: Mapping[str, str | None], assembly: Assembly) -> None:
    """Show a value of a config provider as its reference, and hide secrets in errors (invariant I8)."""
    hide = assembly.redaction
    for each in infos["configs"]:
        value = each["value"]
        value["errors"] = [hide.redacted(error) for error in value["errors"]]
        value["recommended_values"] = [hide.hide(one) if one else one for one in value["recommended_values"]]
        name = value["name"]
        if (own := written.get(name)) is not None and own != assembly.props.get(name):
            value["value"] = own
