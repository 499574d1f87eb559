"""What a plugin's module does when it is imported, it never does to a worker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster, ClusterWorker

pytestmark = [pytest.mark.cluster, pytest.mark.integration]

_PLUGINS = """
[[connector]]
class = "telling.TellingConnector"
type = "source"
"""

_MODULE = """
import os
import pathlib

from connectors.file.source import FileStreamSourceConnector

with pathlib.Path(__file__).with_name("imports").open("a") as file:
    file.write(f"{os.getpid()}\\n")


class TellingConnector(FileStreamSourceConnector):
    pass
"""


_TWO = """
from connectors.file.source import FileStreamSourceConnector


class TwiceConnector(FileStreamSourceConnector):
    def task_configs(self, max_tasks):
        return [config for config in super().task_configs(1) for _ in range(2)]
"""


def install(folder: Path) -> None:
    """Put a connector with two tasks into a folder of plugins."""
    (folder / "plugins.toml").write_text(_PLUGINS.replace("telling.Telling", "twice.Twice"))
    (folder / "twice.py").write_text(_TWO)


def test_a_worker_imports_no_plugin(cluster: Callable[..., Cluster], tmp_path: Path, topic: str) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "plugins.toml").write_text(_PLUGINS)
    (folder / "telling.py").write_text(_MODULE)
    pair = cluster(2, plugin_path=str(folder)).start()
    config = {"connector.class": "Telling", "file": str(tmp_path / "in.txt"), "topic": topic}
    assert pair.ask("GET", "connector-plugins/Telling/config")
    assert pair.ask("PUT", "connector-plugins/Telling/config/validate", config | {"name": "lines"})["error_count"] == 0
    pair.ask("PUT", "connectors/lines/config", config)

    def runs() -> bool:
        status = pair.request("GET", "connectors/lines/status")
        return status.ok and [task["state"] for task in status.json()["tasks"]] == ["RUNNING"]

    wait_until("it runs", runs)
    imported = {int(pid) for pid in (folder / "imports").read_text().split()}
    assert imported
    assert imported.isdisjoint(worker.pid for worker in pair.workers)


def test_what_only_one_worker_has_fails_at_the_other_and_says_where(
    cluster: Callable[..., Cluster], tmp_path: Path, topic: str
) -> None:
    folders = [tmp_path / "has", tmp_path / "has-not"]
    for folder in folders:
        folder.mkdir()
    install(folders[0])
    pair = cluster(2, plugin_path=lambda number: str(folders[number]))
    has, has_not = pair.workers
    has.start()
    wait_until("the worker with the plugin leads", lambda: pair.leader() is has, 90)
    pair.start()
    config = {"connector.class": "Twice", "file": str(tmp_path / "in.txt"), "topic": topic, "tasks.max": "2"}
    assert [entry for entry in pair.ask("GET", "connector-plugins", worker=has) if "Twice" in entry["class"]]

    refused = pair.request("PUT", "connector-plugins/Twice/config/validate", config | {"name": "l"}, has_not)
    missing = (
        f"Worker {has_not.address} has no such plugin: if others of its cluster have it, install it there too, since "
        "every worker may have to run every connector"
    )
    assert refused.status_code == 400
    assert missing in refused.json()["message"]
    # The leader checks it, whichever worker is asked.
    assert pair.ask("PUT", "connectors/lines/config", config, worker=has_not)["name"] == "lines"

    def units() -> list[dict[str, str]]:
        answer = pair.request("GET", "connectors/lines/status")
        return [answer.json()["connector"], *answer.json()["tasks"]] if answer.ok else []

    def states(worker: ClusterWorker) -> set[str]:
        return {unit["state"] for unit in units() if unit["worker_id"] == worker.address}

    def fails_there() -> bool:
        return states(has_not) == {"FAILED"} and states(has) <= {"RUNNING"}

    wait_until("it fails where it is not", fails_there, 90)
    (trace,) = {unit["trace"].splitlines()[0] for unit in units() if unit["state"] == "FAILED"}
    assert missing in trace
    install(folders[1])
    assert has_not.terminate() == 0
    pair.start()
    wait_until("it runs on both", lambda: (states(has), states(has_not)) == ({"RUNNING"}, {"RUNNING"}), 90)
