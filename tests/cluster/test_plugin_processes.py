"""What a plugin's module does when it is imported, it never does to a worker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster

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
