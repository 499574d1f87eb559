"""Plugins that exclude each other in one worker: by the versions of their libraries, or by their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from equipment.brokers.topics import read_so_far
from equipment.interpreters import add_package, folder_with_interpreter
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

LISTED = """
[[connector]]
class = "{name}.SaysConnector"
type = "source"

[[transformation]]
class = "{name}.Marks"
"""
MODULE = """
import sys

import clash
from connect.config import HIGH, Config, option
from connect.data import SourceRecord
from connect.source import SourceConnector, SourceTask
from connect.transformation import Transformation


class SaysConfig(Config):
    topic: str = option(importance=HIGH, doc="Where to.")
    says: str = option(default=clash.VERSION, importance=HIGH, doc="What.")


class SaysTask(SourceTask[SaysConfig]):
    def start(self):
        self.said = False

    def poll(self):
        if self.said:
            self.context.wait(60)
            return []
        self.said = True
        said = f"{name} {version} {{self.config.says}} {{sys.prefix}}"
        return [SourceRecord(self.config.topic, said)]

    def stop(self):
        pass


class SaysConnector(SourceConnector[SaysConfig]):
    "Says what it has."

    task_class = SaysTask


class Marks(Transformation[Config]):
    "Marks what passes."

    def apply(self, record):
        return record.replace(value=record.value + " marked by {version}")
"""
CONNECTORS = {
    # The name of each connector, its class, its version, and the library that it has to have.
    "left": ("left.SaysConnector", None, "clash 1"),
    "right": ("right.SaysConnector", None, "clash 2"),
    "old": ("kept.SaysConnector", "(,1.5]", "clash 3"),
    "new": ("kept.SaysConnector", None, "clash 3"),
}


def files(name: str, version: str) -> dict[str, str]:
    return {
        f"{name}/__init__.py": MODULE.format(name=name, version=version),
        f"{name}/plugins.toml": LISTED.format(name=name),
    }


def write(folder: Path, content: dict[str, str]) -> None:
    for path, text in content.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders with interpreters and libraries of their own, and two versions of a package in folders without."""
    path = tmp_path_factory.mktemp("plugins")
    for name, library in (("left", "1"), ("right", "2")):
        site = folder_with_interpreter(path / name)
        add_package(site, "clash", library, {"clash.py": f"VERSION = 'clash {library}'\n"})
        add_package(site, name, "1.0", files(name, "1.0"), name)
    for version in ("1.0", "2.0"):
        folder = path / f"kept-{version}"
        write(folder, {"kept.py": MODULE.format(name="kept", version=version), "clash.py": "VERSION = 'clash 3'\n"})
        write(folder, {"plugins.toml": f'version = "{version}"\n{LISTED.format(name="kept")}'})
    return path


@pytest.fixture(scope="module")
def worker(shared_standalone: Callable[..., StandaloneWorker], plugins: Path) -> StandaloneWorker:
    return shared_standalone(plugin_path=str(plugins))


def put(worker: StandaloneWorker, path: str, config: dict[str, str]) -> dict[str, Any]:
    answer = requests.put(worker.url() + path, json=config, timeout=60)
    found: dict[str, Any] = answer.json()
    return found


def errors(answer: dict[str, Any]) -> dict[str, list[str]]:
    values = [shown["value"] for shown in answer["configs"]]
    return {value["name"]: value["errors"] for value in values if value["errors"]}


def test_each_connector_has_its_own_libraries_and_version(
    worker: StandaloneWorker, plugins: Path, bootstrap: str, topic: str
) -> None:
    """All run at once, in processes that others may share; what is asked of a plugin, its interpreter answers."""
    listed = {
        (shown["class"], shown["version"])
        for shown in worker.get("connector-plugins").json()
        if "Says" in shown["class"]
    }
    assert listed == {
        ("left.SaysConnector", "1.0"),
        ("right.SaysConnector", "1.0"),
        ("kept.SaysConnector", "1.0"),
        ("kept.SaysConnector", "2.0"),
    }
    for name, (connector, version, library) in CONNECTORS.items():
        keys = worker.get(f"connector-plugins/{connector}/config").json()
        assert [key["default_value"] for key in keys if key["name"] == "says"] == [library]
        chain = {"transforms": "m", "transforms.m.type": connector.replace("SaysConnector", "Marks")}
        asked = {} if version is None else {"connector.plugin.version": version}
        isolation = {} if name == "right" else {"task.isolation": "shared"}
        config = {"name": name, "connector.class": connector, "topic": f"{topic}-{name}", **chain, **asked, **isolation}
        assert errors(put(worker, f"connector-plugins/{connector}/config/validate", config)) == {}
        assert put(worker, f"connectors/{name}/config", config)["name"] == name
    own = worker.get("connector-plugins/FileStreamSource/config")
    assert own.status_code == 200
    for name, (connector, _, library) in CONNECTORS.items():
        status = worker.wait_for_states(name, "RUNNING", "RUNNING")
        version = "1.0" if name != "new" else "2.0"
        assert status["connector"]["version"] == status["tasks"][0]["version"] == version
        said = wait_until(f"{name} has said it", lambda name=name: read_so_far(bootstrap, f"{topic}-{name}"))
        words = said[0].decode()
        assert words.startswith(f"{connector.split('.')[0]} {version} {library} ")
        assert words.endswith(f" marked by {version}")
        assert (str(plugins / name / ".venv") in words) == (name in ("left", "right"))


def test_a_plugin_of_another_interpreter_is_refused_with_the_remedy(worker: StandaloneWorker, plugins: Path) -> None:
    """In a connector of the worker's interpreter, and in one of a folder that has another."""
    for connector, transformation, told in (
        ("FileStreamSource", "left.Marks", f"is in {plugins / 'left'}, which has its own interpreter"),
        ("left.SaysConnector", "right.Marks", f"is in {plugins / 'right'}, which has its own interpreter"),
        ("left.SaysConnector", "no.such.Marks", f"run sluice plugins install PACKAGE --into {plugins / 'left'}"),
    ):
        config = {"name": "n", "connector.class": connector, "topic": "t", "file": "/f"}
        config |= {"transforms": "m", "transforms.m.type": transformation}
        found = errors(put(worker, f"connector-plugins/{connector}/config/validate", config))
        assert list(found) == ["transforms.m.type"]
        assert told in found["transforms.m.type"][0]
