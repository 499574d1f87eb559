"""The connectors of Kafka's own tests in a JVM of ours: what fails in a connector or in Java's runtime is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from equipment.brokers.topics import create_topic
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_plugins import downloaded_plugin

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(590)]

PATIENCE: Final = 200.0


@pytest.fixture
def worker(bootstrap: str, tmp_path: Path) -> Iterator[DistributedWorker]:
    """A worker with the plugin of Kafka's tests."""
    worker = DistributedWorker(
        tmp_path / "ours",
        bootstrap,
        plugin_path=str(downloaded_plugin(tmp_path / "plugins", "kafka_mock")),
        java_plugins_jvm_options="-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        offset_flush_interval_ms="500",
    )
    yield worker.start()
    worker.close()


def wait_for_failure(worker: DistributedWorker, name: str, kind: str) -> dict[str, Any]:
    """Wait until a connector, or its only task, has failed, and return its status."""

    def failed() -> dict[str, Any] | None:
        status = worker.status(name)
        # Just after its creation it has none.
        units = [status.get("connector", {"state": None})] if kind == "connector" else status.get("tasks", [])
        return next((unit for unit in units if unit["state"] == "FAILED"), None)

    return wait_until(f"the {kind} has failed", failed, PATIENCE) or {}


def test_the_mock_connectors_fail_as_they_do_in_java(worker: DistributedWorker, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    for kind, place in {"Source": dict[str, str](), "Sink": {"topics": topic}}.items():
        name = f"{topic}-{kind}"
        config = {"connector.class": f"Mock{kind}", "mock_mode": "connector-failure", "delay_ms": "2000", **place}
        worker.ask("PUT", f"connectors/{name}/config", config)
        # The connector says so from a thread of its own.
        trace = wait_for_failure(worker, name, "connector")["trace"]
        assert trace.startswith("java.lang.RuntimeException\n\tat org.apache.kafka.connect.tools.MockConnector."), trace
        # Kafka Connect's own class loaders take this package from the class path alone.
        trace = wait_for_failure(worker, name, "task")["trace"]
        task = f"org.apache.kafka.connect.tools.Mock{kind}Task"
        assert trace.startswith(f"org.apache.kafka.common.config.ConfigException: Invalid value {task}"), trace
