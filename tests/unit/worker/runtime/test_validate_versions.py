"""What validation says of the versions that a configuration asks for (KIP-891)."""

from __future__ import annotations

from collections.abc import Mapping
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import pytest

from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.inquiries.inquiries import answer
from worker.runtime.link import Line, Link
from worker.security.redaction import Redaction

pytestmark = pytest.mark.usefixtures("import_path")

MODULE = """
from connect.config import Config, HIGH, option
from connect.transformation import Transformation
from connectors.file.source import FileStreamSourceConnector
from converters.string import StringConverter


class LinesConnector(FileStreamSourceConnector):
    pass


class ItsConfig(Config):
    {option}: str = option(default="", importance=HIGH, doc="Its option.")


class Its(Transformation[ItsConfig]):
    pass


class TextConverter(StringConverter):
    pass
"""
LISTED = """
version = "{version}"

[[connector]]
class = "kept.LinesConnector"
type = "source"

[[transformation]]
class = "kept.Its"

[[converter]]
class = "kept.TextConverter"
"""
PLUGINS = ("connector.plugin.version", "value.converter.plugin.version", "transforms.a.plugin.version")


@pytest.fixture
def worker(tmp_path: Path) -> dict[str, str]:
    for version, name in (("1.0", "old"), ("2.0", "new")):
        path = tmp_path / name
        path.mkdir()
        (path / "kept.py").write_text(MODULE.format(option=name))
        (path / "plugins.toml").write_text(LISTED.format(version=version))
    return {
        "bootstrap.servers": "unused:1",
        "key.converter": "StringConverter",
        "value.converter": "JsonConverter",
        "plugin.path": str(tmp_path),
    }


def ask(inquiry: messages.Inquiry) -> messages.Report:
    ours, theirs = Pipe()
    with ours, theirs:
        return answer(inquiry, Link(Line(theirs)), Redaction())


def config(**own: str) -> dict[str, str]:
    given = {"name": "n", "connector.class": "Lines", "file": "/f", "topic": "t", "value.converter": "Text"}
    chain = {"transforms": "a", "transforms.a.type": "Its"}
    return given | chain | {key.replace("__", "."): value for key, value in own.items()}


def validated(worker: Mapping[str, str], **own: str) -> messages.Validated:
    report = ask(messages.ValidateConfig(dict(config(**own)), dict(worker)))
    assert isinstance(report, messages.Validated)
    return report


def by_key(report: messages.Validated) -> dict[str, dict[str, Any]]:
    return {shown["value"]["name"]: shown for shown in report.infos["configs"]}


def test_the_newest_versions_are_the_defaults_and_all_are_offered(worker: dict[str, str]) -> None:
    shown = by_key(validated(worker))
    for key in PLUGINS:
        assert shown[key]["definition"]["default_value"] == shown[key]["value"]["value"] == "2.0"
        assert shown[key]["value"]["recommended_values"] == ["1.0", "2.0"]
    assert "transforms.a.new" in shown
    assert shown["transforms.a.plugin.version"]["definition"]["order_in_group"] == 1
    assert shown["transforms.a.type"]["value"]["recommended_values"].count("kept.Its") == 1


def test_a_connector_brings_its_transformations_and_converters(worker: dict[str, str]) -> None:
    report = validated(worker, connector__plugin__version="[1.0,2.0)")
    shown = by_key(report)
    assert report.infos["error_count"] == 0
    assert shown["connector.plugin.version"]["value"]["value"] == "[1.0,2.0)"
    assert "transforms.a.old" in shown
    assert "transforms.a.new" not in shown


def test_a_version_of_the_connector_that_there_is_not_is_all_that_is_said(worker: dict[str, str]) -> None:
    report = validated(worker, connector__plugin__version="3")
    error = "Plugin kept.LinesConnector not found that matches the version range [3,3], available versions: [1.0, 2.0]"
    assert report.infos["error_count"] == 2
    shown = by_key(report)
    assert {key: item["value"]["errors"] for key, item in shown.items()} == {
        "connector.class": [error],
        "connector.plugin.version": [error],
    }
    assert shown["connector.plugin.version"]["value"]["recommended_values"] == ["1.0", "2.0"]


@pytest.mark.parametrize(
    ("own", "wrong"),
    [
        ({"connector__plugin__version": "[1.0"}, "is not a version range"),
        ({"transforms__a__plugin__version": "[1.0"}, "is not a version range"),
        ({"value__converter__plugin__version": "(1.0)"}, "A single version must be surrounded by"),
        ({"transforms__a__plugin__version": "3"}, "kept.Its not found that matches the version range [3,3]"),
        ({"value__converter__plugin__version": "3"}, "kept.TextConverter not found that matches the version range"),
        ({"key__converter__plugin__version": "3"}, "It is the version of a key.converter that is not given"),
    ],
)
def test_a_mistake_is_said_once_of_its_key(worker: dict[str, str], own: dict[str, str], wrong: str) -> None:
    ((key, written),) = own.items()
    key = key.replace("__", ".")
    found = {name: shown["value"]["errors"] for name, shown in by_key(validated(worker, **own)).items()}
    assert {name for name, errors in found.items() if errors} == {key}
    (error,) = found[key]
    assert error.startswith(f"Invalid value {written} for configuration {key}: ")
    assert wrong in error


def test_two_versions_of_one_module_are_refused(worker: dict[str, str]) -> None:
    shown = by_key(validated(worker, connector__plugin__version="1.0", transforms__a__plugin__version="2.0"))
    (error,) = shown["transforms.a.type"]["value"]["errors"]
    assert "which can load only one module kept. Choose versions from the same folder" in error


def test_the_worker_has_versions_for_its_own_converters(worker: dict[str, str]) -> None:
    of_worker = worker | {"value.converter": "Text", "value.converter.plugin.version": "1.0"}
    given = {key: value for key, value in config().items() if not key.startswith(("value.", "transforms"))}
    report = ask(messages.ValidateConfig(dict(given), of_worker))
    assert isinstance(report, messages.Validated)
    assert by_key(report)["value.converter.plugin.version"]["definition"]["default_value"] == "1.0"


@pytest.mark.parametrize(("version", "option"), [("latest", "new"), ("1.0", "old"), ("[1.0,2.0)", "old")])
def test_the_keys_are_those_of_the_version_that_is_asked_for(worker: dict[str, str], version: str, option: str) -> None:
    report = ask(messages.DescribePlugin("transformation", "kept.Its", version, worker))
    assert isinstance(report, messages.PluginDescribed)
    assert [key["name"] for key in report.keys] == [option]


def test_executors_are_told_the_versions_where_there_are_several(worker: dict[str, str]) -> None:
    props = Assembly.resolve(worker, config(connector__plugin__version="(,1.5]"), Redaction()).effective_props()
    assert [props[key] for key in PLUGINS] == ["[1.0]", "[1.0]", "[1.0]"]
    assert "key.converter.plugin.version" not in props
