"""A worker of a cluster as a container starts it: its properties are variables, which plugins do not inherit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from connect.config.properties import read_properties
from equipment.workers.commands import start_command
from equipment.workers.distributed import DistributedWorker


class ContainerWorker(DistributedWorker):
    """A worker without a file."""

    def start_from_variables(self) -> ContainerWorker:
        """Start the process with its properties as variables."""
        props = read_properties(self.folder / "worker.properties")
        variables = {f"CONNECT_{key.replace('.', '_').upper()}": value for key, value in props.items()}
        (self.folder / "worker.properties").unlink()
        with self.log_file.open("ab") as log:
            self._process = start_command([self.mode, "--environment"], log, variables)
        return self


@pytest.fixture
def worker(tmp_path: Path, bootstrap: str) -> Iterator[ContainerWorker]:
    providers = {"config_providers": "env", "config_providers_env_class": "EnvVarConfigProvider"}
    worker = ContainerWorker(tmp_path, bootstrap, **providers)
    yield worker.start_from_variables()
    worker.close()


def test_a_worker_has_its_properties_from_variables_and_its_plugins_do_not_see_them(
    worker: ContainerWorker, topic: str
) -> None:
    assert worker.get("health/live").status_code == 200
    (worker.folder / "in.txt").write_text("one\n")
    config = {"connector.class": "FileStreamSource", "file": str(worker.folder / "in.txt"), "topic": topic}
    created = requests.put(f"{worker.url()}connectors/{topic}/config", json=config, timeout=120)
    assert created.status_code == 201, created.text
    worker.wait_for_states(topic, "RUNNING", "RUNNING")
    config["file"] = "${env:CONNECT_GROUP_ID}"
    refused = requests.put(f"{worker.url()}connectors/{topic}-two/config", json=config, timeout=120)
    assert "CONNECT_GROUP_ID" in refused.text
    assert worker.group not in refused.text
