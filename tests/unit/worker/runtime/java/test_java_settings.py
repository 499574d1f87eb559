"""What Java's runtime is told of the properties of a worker and of a connector, and what is refused."""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path

import pytest

from connect.errors import ConfigError
from connect.internals.plugins import PluginKind, PluginRegistry
from equipment.class_files import class_file
from worker.messages.messages import LogRecord
from worker.runtime.java.log_lines import parse_line
from worker.runtime.java.settings import java_connector_props, java_worker_props, unsupported
from worker.unit import Unit

WORKER = {"bootstrap.servers": "b:9092", "key.converter": "StringConverter", "value.converter": "StringConverter"}

SINK_CONNECTOR = "org.apache.kafka.connect.sink.SinkConnector"


@pytest.fixture
def registry(tmp_path: Path) -> PluginRegistry:
    """Plugins, with a converter of Java."""
    with zipfile.ZipFile(tmp_path / "acme-1.jar", "w") as archive:
        archive.writestr("META-INF/services/org.apache.kafka.connect.storage.Converter", "com.acme.AngleConverter")
    return PluginRegistry.discover([tmp_path])


def test_java_has_the_workers_properties_but_resolves_no_references(registry: PluginRegistry) -> None:
    given = {
        **WORKER,
        "group.id": "g",
        "config.providers": "file",
        "config.providers.file.class": "FileConfigProvider",
        "listeners": "http://:8083",
        "security.protocol": "SSL",
        "key.converter": "com.acme.AngleConverter",
        "value.converter": "converters.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    assert java_worker_props(given, registry) == {
        "bootstrap.servers": "b:9092",
        "group.id": "g",
        "security.protocol": "SSL",
        "key.converter": "com.acme.AngleConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        "plugin.discovery": "service_load",
        "offset.storage.file.filename": "/dev/null",
    }


def test_java_looks_at_classes_only_if_a_plugin_is_in_no_list(registry: PluginRegistry, tmp_path: Path) -> None:
    assert java_worker_props(WORKER, registry)["plugin.discovery"] == "service_load"
    with zipfile.ZipFile(tmp_path / "old-1.jar", "w") as archive:
        archive.writestr("com/acme/Old.class", class_file("com.acme.Old", SINK_CONNECTOR))
    unlisted = PluginRegistry.discover([tmp_path])
    assert java_worker_props(WORKER, unlisted)["plugin.discovery"] == "hybrid_warn"


def test_a_connector_of_java_has_java_classes_and_no_key_of_sluice(registry: PluginRegistry) -> None:
    given = {
        "name": "n",
        "connector.class": "com.acme.Source",
        "engine": "java",
        "task.isolation": "process",
        "restart.policy": "on-failure",
        "transforms": "a,b",
        "transforms.a.type": "connect.transforms.insert_field.InsertField.Value",
        "transforms.b.type": "com.acme.Other",
        "restart.of.the.plugin": "yes",
    }
    told = java_connector_props(given, registry)
    assert told == {
        "name": "n",
        "connector.class": "com.acme.Source",
        "transforms": "a,b",
        "transforms.a.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.b.type": "com.acme.Other",
        "restart.of.the.plugin": "yes",
    }


def test_a_class_that_stands_for_none_of_java_is_refused(registry: PluginRegistry) -> None:
    kind = PluginKind.TRANSFORMATION
    ours = next(entry.class_name for entry in registry.entries(kind) if not entry.aliases)
    with pytest.raises(ConfigError, match="no Java class is known that it stands for"):
        java_connector_props({"name": "n", "transforms": "a", "transforms.a.type": ours}, registry)


@pytest.mark.parametrize(
    ("props", "is_source", "refused"),
    [
        ({"run.until": "drained"}, True, ["run.until"]),
        ({"run.until": "stopped", "engine": "java", "task.hang.timeout.ms": "0"}, True, []),
        ({"engine": "spark", "errors.tolerance.rate": "5"}, False, ["engine", "errors.tolerance.rate"]),
        ({"errors.deadletterqueue.topic.name": "dlq"}, True, ["errors.deadletterqueue.topic.name"]),
        ({"errors.deadletterqueue.topic.name": "dlq"}, False, []),
        ({"task.hang.timeout.ms": "1000"}, False, []),
    ],
)
def test_what_java_does_not_have_is_refused(props: dict[str, str], is_source: bool, refused: list[str]) -> None:
    assert [error.key for error in unsupported(WORKER, props, is_source=is_source)] == refused


@pytest.mark.parametrize("rule", ["http.allowed.hosts", "http.denied.hosts"])
def test_a_worker_that_limits_hosts_runs_no_java(rule: str) -> None:
    (error,) = unsupported({**WORKER, rule: "*.acme.com"}, {"connector.class": "com.acme.A"}, is_source=True)
    assert (error.key, f"Java plugins do not obey the worker's {rule}" in str(error)) == ("connector.class", True)


@pytest.mark.parametrize(
    ("context", "unit"),
    [
        ("[a|task-3] ", Unit("a", 3)),
        ("[a|b|worker] ", Unit("a|b")),
        ("[a|task-0|offsets] ", Unit("a", 0)),
        ("", None),
    ],
)
def test_a_line_of_the_log_belongs_to_its_unit(context: str, unit: Unit | None) -> None:
    line = f'{{"level":"WARN","logger":"x.Y","context":"{context}","at":1500,"text":"a\\nb"}}'
    assert parse_line(line) == (unit, LogRecord("x.Y", logging.WARNING, 1.5, "a\nb"))


@pytest.mark.parametrize("line", ["plain", "{}", '{"level":1}', "[]", '{"level":"INFO","logger":"a","context":null}'])
def test_what_is_no_line_of_the_log_is_printed_text(line: str) -> None:
    assert parse_line(line) is None
