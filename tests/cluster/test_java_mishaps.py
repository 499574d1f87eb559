"""Java plugins that go wrong: they throw, end their JVM, take all memory, do not stop, or log without end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests

from equipment.brokers.topics import create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_plugins import compiled_plugin, jvm_of, jvms

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(590)]

PATIENCE = 180.0
PROPS = {"java_plugins_jvm_options": "-Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
STRING = "org.apache.kafka.connect.storage.StringConverter"
EXITED = "exited with status 7, as acme.Mishap.befall(Mishap.java:30) had asked for"
OWN_PROCESS = {"task_isolation": "process"}


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled plugin in two versions."""
    folder = tmp_path_factory.mktemp("plugins")
    for version in ("7.1", "8.0"):
        compiled_plugin(folder, tmp_path_factory.mktemp("work"), tally=f"of-{version}", version=version)
    return folder


@pytest.fixture(scope="module")
def worker(bootstrap: str, plugins: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DistributedWorker]:
    """A worker with the plugin, on which each test has connectors of its own."""
    worker = DistributedWorker(
        tmp_path_factory.mktemp("worker") / f"mishaps-{uuid4().hex[:8]}",
        bootstrap,
        plugin_path=str(plugins),
        offset_flush_interval_ms="200",
        # Longer than Java waits for a connector that stops, twice over: then the worker would not need to do anything.
        task_shutdown_graceful_timeout_ms="20000",
        **PROPS,
    ).start()
    yield worker
    worker.close()


def put(worker: DistributedWorker, name: str, **props: str) -> requests.Response:
    """Create a connector that counts, or configure it anew, and return the answer."""
    own = {key.replace("_", "."): value for key, value in props.items()}
    config = {"connector.class": "acme.CountingSource", "topic": name, "key.converter": STRING, **own}
    return requests.put(f"{worker.url()}connectors/{name}/config", json=config, timeout=PATIENCE)


def wait_for_states(worker: DistributedWorker, name: str, *states: str) -> dict[str, Any]:
    """Wait until the connector and its tasks have these states, and return the status."""

    def reached() -> dict[str, Any] | None:
        status = worker.status(name)
        parts = [status.get("connector", {}), *status.get("tasks", [])]
        return status if [part.get("state") for part in parts] == list(states) else None

    return wait_until(f"{name} is {states}", reached, PATIENCE) or {}


def restart(worker: DistributedWorker, name: str) -> None:
    """Start again what has failed."""
    path = f"connectors/{name}/restart?includeTasks=true&onlyFailed=true"
    assert requests.post(worker.url() + path, timeout=PATIENCE).ok


def delete(worker: DistributedWorker, *names: str) -> None:
    """Delete connectors."""
    for name in names:
        assert requests.delete(f"{worker.url()}connectors/{name}", timeout=PATIENCE).status_code == 204


def values(bootstrap: str, topic: str) -> list[str]:
    """The values of a topic."""
    return [message.value().decode() for message in read_topic(bootstrap, topic)]


def wait_for_numbers(bootstrap: str, topic: str, until: int, version: str = "8.0") -> None:
    """Wait until all numbers are there; they are in order, and may be repeated."""
    wanted = [f"of-{version}-{number}" for number in range(until)]
    wait_until("all is counted", lambda: list(dict.fromkeys(values(bootstrap, topic))) == wanted, PATIENCE)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("mishap", "reason"),
    [("exits", EXITED), ("takes all memory", "java.lang.OutOfMemoryError: Java heap space")],
)
def test_a_plugin_that_ends_its_jvm_while_it_validates_is_refused_with_the_reason(
    worker: DistributedWorker, bootstrap: str, topic: str, mishap: str, reason: str
) -> None:
    refused = put(worker, topic, mishap=mishap, mishap_in="validate")
    assert (refused.status_code, reason in refused.json()["message"]) == (500, True), refused.text
    create_topic(bootstrap, topic)
    assert put(worker, topic, count="10").ok
    wait_for_numbers(bootstrap, topic, 10)
    delete(worker, topic)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("where", "states"),
    [
        ("connector start", ["FAILED"]),
        ("taskConfigs", ["FAILED"]),
        ("start", ["RUNNING", "FAILED"]),
        ("poll", ["RUNNING", "FAILED"]),
    ],
)
@pytest.mark.parametrize(
    ("mishap", "reason"),
    [("exits", EXITED), ("throws", "ConnectException: no luck in "), ("lacks a class", "acme/Gone")],
)
def test_what_goes_wrong_in_a_method_fails_the_unit_with_the_reason_until_it_is_restarted(
    worker: DistributedWorker,
    bootstrap: str,
    tmp_path: Path,
    topic: str,
    where: str,
    states: list[str],
    mishap: str,
    reason: str,
) -> None:
    create_topic(bootstrap, topic)
    cue = tmp_path / "cue"
    own = OWN_PROCESS if mishap == "exits" else {}
    assert put(worker, topic, count="20", mishap=mishap, mishap_in=where, mishap_until=str(cue), **own).ok
    status = wait_for_states(worker, topic, *states)
    assert reason in [status["connector"], *status["tasks"]][-1]["trace"]
    cue.touch()
    restart(worker, topic)
    wait_for_states(worker, topic, "RUNNING", "RUNNING")
    wait_for_numbers(bootstrap, topic, 20)
    delete(worker, topic)


@pytest.mark.thorough
def test_a_task_without_memory_fails_with_the_reason_and_its_neighbour_counts_on(
    worker: DistributedWorker, bootstrap: str, tmp_path: Path, topic: str
) -> None:
    counts = f"{topic}-counts"
    for name in (topic, counts):
        create_topic(bootstrap, name)
    cue = tmp_path / "cue"
    assert put(worker, counts, count="3000", pause_ms="20").ok
    wait_until("it counts", lambda: values(bootstrap, counts), PATIENCE)
    assert put(worker, topic, count="20", mishap="takes all memory", mishap_in="poll", mishap_until=str(cue)).ok
    trace = wait_for_states(worker, topic, "RUNNING", "FAILED")["tasks"][0]["trace"]
    assert "The JVM of its process exited with status 3" in trace
    assert "java.lang.OutOfMemoryError: Java heap space" in trace
    cue.touch()
    restart(worker, topic)
    wait_for_numbers(bootstrap, topic, 20)
    wait_for_states(worker, topic, "RUNNING", "RUNNING")
    wait_for_numbers(bootstrap, counts, 3000)
    wait_for_states(worker, counts, "RUNNING", "RUNNING")
    delete(worker, topic, counts)


@pytest.mark.thorough
def test_two_versions_of_a_java_plugin_run_side_by_side(worker: DistributedWorker, bootstrap: str, topic: str) -> None:
    asked = {"7.1-of-7.1": "7.1", "[7,8)": "7.1", "[8,9)": "8.0", "latest": "8.0"}
    for number, (version, found) in enumerate(asked.items()):
        name = f"{topic}-{number}"
        create_topic(bootstrap, name)
        answer = put(worker, name, count="10", connector_plugin_version=version)
        assert answer.ok, answer.text
        status = wait_for_states(worker, name, "RUNNING", "RUNNING")
        versions = {part["version"] for part in (status["connector"], *status["tasks"])}
        assert versions == {f"{found}-of-{found}"}, status
        wait_for_numbers(bootstrap, name, 10, found)
    refused = put(worker, topic, connector_plugin_version="[9,)")
    assert refused.status_code == 400
    assert "available versions: [7.1-of-7.1, 8.0-of-8.0]" in refused.json()["message"]
    delete(worker, *(f"{topic}-{number}" for number in range(len(asked))))


@pytest.mark.thorough
def test_a_connector_that_does_not_stop_costs_its_jvm_and_no_other_unit(
    worker: DistributedWorker, bootstrap: str, tmp_path: Path, topic: str
) -> None:
    counts = f"{topic}-counts"
    for name in (topic, counts):
        create_topic(bootstrap, name)
    hangs = {"hang_in": "connector stop", "hang_until": str(tmp_path / "cue")}
    assert put(worker, topic, count="10", **hangs).ok
    assert put(worker, counts, count="10").ok
    for name in (topic, counts):
        wait_for_states(worker, name, "RUNNING", "RUNNING")
        wait_for_numbers(bootstrap, name, 10)
    before = jvm_of(worker, counts)
    assert before == jvm_of(worker, topic)
    delete(worker, topic)
    wait_until("its JVM is gone", lambda: before not in jvms(worker.pid), PATIENCE)
    assert put(worker, counts, count="20").ok
    wait_for_numbers(bootstrap, counts, 20)
    delete(worker, counts)


@pytest.mark.thorough
def test_a_task_that_logs_without_end_keeps_nobody_waiting(
    worker: DistributedWorker, bootstrap: str, topic: str
) -> None:
    counts = f"{topic}-counts"
    for name in (topic, counts):
        create_topic(bootstrap, name)
    assert put(worker, counts, count="10").ok
    assert put(worker, topic, count="10", mishap="logs", mishap_in="poll", lines="100000").ok
    wait_until("it logs", lambda: worker.log().count(f"[{topic}|task-0] line ") > 1000, PATIENCE)
    assert put(worker, counts, count="200").ok
    wait_for_numbers(bootstrap, counts, 200)
    delete(worker, topic)
    wait_until("it has stopped", lambda: f"{topic}|task-0 " not in str(worker.get("connectors?expand=status").json()))
    wait_for_states(worker, counts, "RUNNING", "RUNNING")
    delete(worker, counts)
