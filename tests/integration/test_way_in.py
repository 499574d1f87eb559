"""What somebody who reaches the REST API can have a worker do: each was done to a worker once, and is refused now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from equipment.standalone import StandaloneWorker
from equipment.waiting import wait_until

MakeWorker = Callable[..., StandaloneWorker]


def put(worker: StandaloneWorker, path: str, config: dict[str, str]) -> requests.Response:
    return requests.put(worker.url() + path, json=config, timeout=90)


def errors(answer: requests.Response) -> dict[str, list[str]]:
    infos: dict[str, Any] = answer.json()
    values = [shown["value"] for shown in infos["configs"]]
    return {value["name"]: value["errors"] for value in values if value["errors"]}


@pytest.fixture
def importable(tmp_path: Path) -> Path:
    """A folder on the import path of a worker, as site-packages is."""
    folder = tmp_path / "importable"
    folder.mkdir()
    return folder


def write_module(worker: StandaloneWorker, topic: str, folder: Path, line: str) -> Path:
    """Have a file source and a file sink of a worker make a module of one line."""
    text, module = folder.parent / "text", folder / "way_in.py"
    text.write_text(f"{line}\n")
    source = {"connector.class": "FileStreamSource", "file": str(text), "topic": topic}
    sink = {"connector.class": "FileStreamSink", "file": str(module), "topics": topic}
    assert put(worker, "connectors/one/config", source).status_code == 201
    assert put(worker, f"connectors/two-{topic}/config", sink).status_code == 201
    wait_until("the module is written", lambda: module.exists() and module.read_text() == f"{line}\n")
    return module


def test_a_module_that_a_sink_has_written_is_not_imported(
    standalone: MakeWorker, topic: str, tmp_path: Path, importable: Path
) -> None:
    worker = standalone().start({"PYTHONPATH": str(importable)})
    ran = tmp_path / "ran"
    write_module(worker, topic, importable, f"open({str(ran)!r}, 'w')")
    source = {"connector.class": "FileStreamSource", "file": "/f", "topic": topic, "name": "three"}
    answer = put(worker, "connector-plugins/way_in.X/config/validate", source | {"connector.class": "way_in.X"})
    assert answer.status_code == 400
    assert "Class way_in.X is listed by no plugins.toml of this worker" in answer.json()["message"]
    assert "or add it to plugin.import.allowlist in the worker's file" in answer.json()["message"]
    named = {
        "key.converter": "way_in.X",
        "value.converter": "way_in.X",
        "header.converter": "way_in.X",
        "transforms": "t",
        "transforms.t.type": "way_in.X",
        "transforms.t.predicate": "p",
        "predicates": "p",
        "predicates.p.type": "way_in.X",
    }
    found = errors(put(worker, "connector-plugins/FileStreamSource/config/validate", source | named))
    classes = {key for key, value in named.items() if value == "way_in.X"}
    assert classes <= found.keys()
    assert all("plugin.import.allowlist" in found[key][0] for key in classes)
    assert put(worker, "connectors/three/config", source | named).status_code == 400
    assert requests.get(worker.url() + "connector-plugins/way_in.X/config", timeout=90).status_code == 404
    assert not ran.exists()


def test_a_module_that_the_worker_s_file_allows_is_a_plugin_only_if_its_source_says_so(
    standalone: MakeWorker, topic: str, tmp_path: Path, importable: Path
) -> None:
    ran = tmp_path / "ran"
    telling = f"open({str(ran)!r}, 'w').close()\n"
    (importable / "way_in.py").write_text(f"{telling}class X: pass\n")
    (importable / "allowed.py").write_text(
        f"{telling}from connectors.file import FileStreamSourceConnector\nclass X(FileStreamSourceConnector): pass\n"
    )
    worker = standalone(plugin_import_allowlist="way_in.*, allowed.*").start({"PYTHONPATH": str(importable)})
    config = {"file": str(tmp_path / "in"), "topic": topic}
    refused = put(worker, "connectors/refused/config", config | {"connector.class": "way_in.X"})
    assert refused.status_code == 400
    assert "Class way_in.X is not a Connector as far as its source says" in refused.json()["message"]
    assert not ran.exists()
    assert put(worker, "connectors/taken/config", config | {"connector.class": "allowed.X"}).status_code == 201
    worker.wait_for_states("taken", "RUNNING", "RUNNING")
    assert worker.status("taken")["type"] == "source"
