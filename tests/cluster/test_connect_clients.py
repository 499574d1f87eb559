"""Clients made for Kafka Connect work against a cluster, whichever worker they ask."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import kafka_connect
import pytest
from kafka_connect_api.kafka_connect_api import Api
from kafka_connect_api.kafka_connect_api import Cluster as WatchedCluster

from equipment.proofs import thorough
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster, ClusterWorker
from equipment.workers.connect_watcher import install_watcher, watching
from worker.embedded.ports import HOST

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def pair(clusters: Callable[..., Cluster]) -> Cluster:
    """A cluster of two workers."""
    return clusters(2).start()


@pytest.fixture(params=["follower", *thorough("leader")])
def worker(request: pytest.FixtureRequest, pair: Cluster) -> Iterator[ClusterWorker]:
    """Each of the two."""
    wait_until("both have joined", lambda: all("leads" in worker.log() for worker in pair.workers))
    yield pair.leader() if request.param == "leader" else pair.followers()[0]
    pair.delete_all()


@pytest.fixture
def name() -> str:
    """A name of its own for each connector: a worker shows the statuses of a deleted one until it has read of that."""
    return f"c{uuid4().hex[:10]}"


def test_kafka_connect_py(worker: ClusterWorker, name: str, topic: str, tmp_path: Path, pair: Cluster) -> None:
    client = kafka_connect.KafkaConnect(url=worker.url().rstrip("/"))
    config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "in.txt"), "topic": topic}
    client.create_connector({"name": name, "config": config})

    # As with Kafka Connect there is no status (404) before the worker that runs it has written one.
    wait_until("it has a status", lambda: pair.request("GET", f"connectors/{name}/status", worker=worker).ok)

    def states() -> list[str]:
        status = client.get_connector_status(name)
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    wait_until("it runs", lambda: states() == ["RUNNING", "RUNNING"])
    client.update_connector(name, config | {"batch.size": "5"})
    # A follower hears of the change by the config topic, a moment after the leader has answered.
    wait_until("the change is known", lambda: client.get_connector_config(name).get("batch.size") == "5")
    client.pause_connector(name)
    wait_until("it is paused", lambda: states() == ["PAUSED", "PAUSED"])
    client.resume_connector(name)
    wait_until("it runs again", lambda: states() == ["RUNNING", "RUNNING"])
    client.restart_connector(name, include_tasks=True)
    wait_until("it runs after a restart", lambda: states() == ["RUNNING", "RUNNING"])
    client.delete_connector(name)
    wait_until("it is gone", lambda: client.list_connectors() == [])


def test_the_client_of_kafka_connect_watcher(worker: ClusterWorker, name: str, topic: str, pair: Cluster) -> None:
    watched = WatchedCluster(Api(HOST, port=int(worker.address.rpartition(":")[2])))
    assert watched.kafka_cluster == pair.ask("GET", "")["kafka_cluster_id"]
    pair.ask("PUT", f"connectors/{name}/config", {"connector.class": "Raises", "topic": topic, "tasks.max": "1"})
    wait_until("it is known to a follower, too", lambda: name in watched.connectors)
    raises = watched.connectors[name]
    wait_until("it has a status", lambda: pair.request("GET", f"connectors/{name}/tasks/0/status", worker=worker).ok)
    wait_until("its task has failed", lambda: [task.state for task in raises.tasks] == ["FAILED"])
    raises.cycle_connector()
    wait_until("it has failed again", lambda: raises.state == "RUNNING" and raises.tasks[0].state == "FAILED")
    raises.pause()
    wait_until("it is paused", lambda: raises.state == "PAUSED")
    raises.resume()
    wait_until("it is resumed", lambda: raises.state == "RUNNING")
    raises.restart()
    assert "root" in watched.loggers
    watched.root_logger = "INFO"
    raises.delete()
    wait_until("it is gone", lambda: watched.connectors == {})


def test_kafka_connect_watcher_puts_a_failed_task_right(
    worker: ClusterWorker, name: str, topic: str, tmp_path: Path, pair: Cluster
) -> None:
    try:
        program = install_watcher()
    except subprocess.CalledProcessError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"kafka-connect-watcher cannot be installed: {error.stderr}")
    target = tmp_path / "missing" / "out.txt"
    config = {"connector.class": "FileStreamSink", "file": str(target), "topics": topic, "tasks.max": "1"}
    pair.ask("PUT", f"connectors/{name}/config", config)
    watched = {
        "hostname": HOST,
        "port": int(worker.address.rpartition(":")[2]),
        "evaluation_rules": [{"auto_correct_actions": [{"action": "cycle"}]}],
    }

    def states() -> list[str]:
        status = pair.request("GET", f"connectors/{name}/status", worker=worker)
        return [task["state"] for task in status.json()["tasks"]] if status.ok else []

    wait_until("its task has failed", lambda: states() == ["FAILED"])
    with watching(program, tmp_path, {"clusters": [watched], "watch_interval": "2s"}) as log:
        target.parent.mkdir()
        wait_until("the watcher made it run", lambda: states() == ["RUNNING"], 60)
        wait_until(
            "it says so", lambda: f"Applied corrective action 'cycle' to connector {name}" in log.read_text(), 60
        )
