"""A stopped Java cluster is continued by ours, with the same group and topics, and the other way round.

Connectors, target states and offsets come over: no line is lost, none comes twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from equipment.brokers.topics import create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.cluster import LONG_SESSIONS
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_connect import JavaConnect
from equipment.workers.standalone import PATIENT

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(240)]

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


class Pipeline:
    """Files at both ends of topics, and what the worker at a URL is told of the connectors between them."""

    def __init__(self, folder: Path, bootstrap: str, topic: str) -> None:
        self._folder, self._bootstrap, self._topic = folder, bootstrap, topic
        self._sent: dict[str, int] = {}

    def create(self, worker: JavaConnect) -> None:
        """Three file sources, and a sink behind the first of them."""
        for name in ("running", "paused", "stopped"):
            create_topic(self._bootstrap, self._name(name))
            (self._folder / f"{name}.in").touch()
            file = str(self._folder / f"{name}.in")
            worker.create(name, {"connector.class": SOURCE, "file": file, "topic": self._name(name)})
        sink = {"connector.class": SINK, "file": str(self._folder / "running.out"), "topics": self._name("running")}
        worker.create("sink", {**sink, "tasks.max": "1"})

    def append(self, name: str, count: int = 100) -> None:
        """Add lines to the file of a source."""
        first = self._sent.get(name, 0)
        with (self._folder / f"{name}.in").open("a") as stream:
            stream.writelines(f"{name} {number}\n" for number in range(first, first + count))
        self._sent[name] = first + count

    def all_lines(self, name: str) -> list[str]:
        """Every line that was added so far."""
        return [f"{name} {number}" for number in range(self._sent[name])]

    def topic(self, name: str) -> list[str]:
        """What is on the topic of a source."""
        return [message.value().decode() for message in read_topic(self._bootstrap, self._name(name))]

    def out(self) -> list[str]:
        """What the sink has written."""
        file = self._folder / "running.out"
        return file.read_text().splitlines() if file.exists() else []

    def wait_for_all(self) -> None:
        """Wait until all lines came out at the far end; none twice."""
        wait_until("all lines are in the sink's file", lambda: len(self.out()) >= self._sent["running"], seconds=60)
        assert self.out() == self.all_lines("running")

    def _name(self, source: str) -> str:
        return f"{self._topic}-{source}"


@pytest.fixture
def props(bootstrap: str, topic: str) -> dict[str, str]:
    """The worker properties of both: one group, the same topics."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": topic,
        **{f"{kind}.storage.topic": f"{topic}-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "offset.storage.partitions": "2",
        "status.storage.partitions": "2",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "scheduled.rebalance.max.delay.ms": "0",
    }


@pytest.fixture
def ours(tmp_path: Path, bootstrap: str, props: dict[str, str]) -> Iterator[DistributedWorker]:
    """Our worker, not started."""
    worker = DistributedWorker(tmp_path / "ours", bootstrap, **props, **PATIENT, **LONG_SESSIONS)
    yield worker
    worker.close()


def test_ours_continues_a_stopped_java_cluster_and_java_continues_ours(
    tmp_path: Path,
    bootstrap: str,
    topic: str,
    props: dict[str, str],
    ours: DistributedWorker,
    java_connect: Callable[..., JavaConnect],
) -> None:
    java = java_connect(props).start()
    pipeline = Pipeline(tmp_path, bootstrap, topic)
    pipeline.create(java)
    for name in ("running", "paused", "stopped"):
        pipeline.append(name)
        wait_for_states(java.url, name, "RUNNING", "RUNNING")
        wait_until(f"Java has read {name}", lambda name=name: pipeline.topic(name) == pipeline.all_lines(name))
    ask("PUT", java.url, "connectors/paused/pause")
    ask("PUT", java.url, "connectors/stopped/stop")
    wait_for_states(java.url, "paused", "PAUSED", "PAUSED")
    wait_for_states(java.url, "stopped", "STOPPED")
    pipeline.wait_for_all()
    configs = {name: ask("GET", java.url, f"connectors/{name}") for name in ask("GET", java.url, "connectors")}
    java.stop()

    for name in ("running", "paused", "stopped"):
        pipeline.append(name)
    url = ours.start().url()
    wait_for_states(url, "running", "RUNNING", "RUNNING")
    wait_for_states(url, "sink", "RUNNING", "RUNNING")
    wait_for_states(url, "paused", "PAUSED", "PAUSED")
    wait_for_states(url, "stopped", "STOPPED")
    assert {name: ask("GET", url, f"connectors/{name}") for name in configs} == configs
    pipeline.wait_for_all()
    pipeline.append("running")
    pipeline.wait_for_all()
    assert pipeline.topic("paused") == pipeline.all_lines("paused")[:100]
    assert pipeline.topic("stopped") == pipeline.all_lines("stopped")[:100]
    assert positions(url, "stopped") == [len("\n".join([*pipeline.all_lines("stopped")[:100], ""]))]
    ask("PUT", url, "connectors/paused/resume")
    wait_until("ours has read what was paused", lambda: len(pipeline.topic("paused")) >= 200)
    assert pipeline.topic("paused") == pipeline.all_lines("paused")
    ask("PUT", url, "connectors/running/pause")
    wait_for_states(url, "running", "PAUSED", "PAUSED")
    assert ours.terminate() == 0, ours.log()

    for name in ("running", "paused", "stopped"):
        pipeline.append(name)
    java.start()
    wait_for_states(java.url, "running", "PAUSED", "PAUSED")
    wait_for_states(java.url, "stopped", "STOPPED")
    wait_for_states(java.url, "paused", "RUNNING", "RUNNING")
    ask("PUT", java.url, "connectors/running/resume")
    pipeline.wait_for_all()
    wait_until("Java has read what was paused", lambda: len(pipeline.topic("paused")) >= 300)
    assert pipeline.topic("paused") == pipeline.all_lines("paused")
    ask("PUT", java.url, "connectors/stopped/resume")
    wait_until("Java has read what was stopped", lambda: len(pipeline.topic("stopped")) >= 300)
    assert pipeline.topic("stopped") == pipeline.all_lines("stopped")


def ask(method: str, url: str, path: str) -> Any:
    """The answer of the REST API, asked again while the cluster rebalances."""

    def answered() -> list[requests.Response]:
        response = requests.request(method, url + path, timeout=30)
        if response.status_code in {404, 409, 500}:
            return []
        assert response.ok, response.text
        return [response]

    response = wait_until(f"{method} {path} is answered", answered)[0]
    return response.json() if response.content else None


def positions(url: str, name: str) -> list[int]:
    """The positions in its file that a source connector has committed."""
    return [entry["offset"]["position"] for entry in ask("GET", url, f"connectors/{name}/offsets")["offsets"]]


def wait_for_states(url: str, name: str, *states: str) -> None:
    """Wait until the connector and its tasks have these states."""

    def seen() -> tuple[str, ...]:
        response = requests.get(f"{url}connectors/{name}/status", timeout=30)
        if not response.ok:
            return (str(response.status_code),)
        status = response.json()
        return (status["connector"]["state"], *(task["state"] for task in status["tasks"]))

    try:
        wait_until(f"{name} is {states}", lambda: seen() == states, seconds=60)
    except AssertionError as error:
        raise AssertionError(f"{error}: it is {seen()}") from error
