"""Java plugins that do not come back: what is seen of them, and what becomes of them and of their neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from equipment.brokers.topics import create_topic, produce, read_topic
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_plugins import compiled_plugin, file_plugin, jvm_of, jvms, kill_jvm

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(590)]

PATIENCE = 180.0
WARNING_MS = "3000"
COUNTING = {
    "connector.class": "acme.CountingSource",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
}


@pytest.fixture
def worker(bootstrap: str, tmp_path: Path) -> Iterator[DistributedWorker]:
    """A worker with Kafka's file connectors and the compiled plugin, whose calls are to return within three seconds."""
    worker = DistributedWorker(
        tmp_path / "worker",
        bootstrap,
        plugin_path=str(file_plugin(compiled_plugin(tmp_path / "plugins", tmp_path / "work", tally="acme"))),
        offset_flush_interval_ms="200",
        task_hang_warning_ms=WARNING_MS,
        task_shutdown_graceful_timeout_ms="15000",
        java_plugins_jvm_options=f"-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dacme.holds={holds(tmp_path)}",
    ).start()
    yield worker
    worker.close()


def holds(tmp_path: Path) -> Path:
    """The folder in which a file keeps the methods of its name from returning."""
    folder = tmp_path / "holds"
    folder.mkdir(exist_ok=True)
    return folder


def put(worker: DistributedWorker, name: str, **props: str) -> None:
    """Create a connector."""
    config = COUNTING | {key.replace("_", "."): value for key, value in props.items()}
    answer = requests.put(f"{worker.url()}connectors/{name}/config", json=config, timeout=PATIENCE)
    assert answer.ok, answer.text


def wait_for_hang(worker: DistributedWorker, name: str, *, of_connector: bool = False) -> dict[str, Any]:
    """Wait until the task, or the connector itself, is seen to hang, and return how."""

    def hanging() -> dict[str, Any] | None:
        status = worker.status(name)
        parts = [status.get("connector", {})] if of_connector else status.get("tasks", [])
        return next((part["hanging"] for part in parts if part.get("hanging")), None)

    return wait_until(f"{name} is seen to hang", hanging, PATIENCE) or {}


def is_seen(worker: DistributedWorker, name: str, state: str, trace: str = "") -> bool:
    """Whether the task is in this state, for this reason, and does not hang."""
    tasks = worker.status(name).get("tasks", [])
    return (
        [task["state"] for task in tasks] == [state]
        and trace in tasks[0].get("trace", "")
        and not tasks[0].get("hanging")
    )


def values(bootstrap: str, topic: str) -> list[str]:
    """The values of a topic."""
    return [message.value().decode() for message in read_topic(bootstrap, topic)]


def numbers(until: int) -> list[str]:
    """What the source writes."""
    return [f"acme-{number}" for number in range(until)]


def test_a_java_task_whose_poll_does_not_return_is_seen_and_one_that_waits_for_data_is_not(
    worker: DistributedWorker, bootstrap: str, tmp_path: Path, topic: str
) -> None:
    cue, idle = tmp_path / "cue", f"{topic}-idle"
    for name in (topic, idle):
        create_topic(bootstrap, name)
    put(worker, topic, topic=topic, count="10", hang_in="poll", hang_until=str(cue))
    put(worker, idle, topic=idle, count="10")
    hanging = wait_for_hang(worker, topic)
    assert (hanging["method"], hanging["line"].partition(":")[0]) == ("poll", "Cue.java")
    assert "\tat acme.CountingTask.poll(CountingTask.java:" in worker.log()
    cue.touch()
    wait_until("it goes on", lambda: is_seen(worker, topic, "RUNNING"), PATIENCE)
    # All the while the idle one was in its poll, too, and each call of it has returned.
    assert f"{idle}|task-0] poll has not returned" not in worker.log()
    put(worker, idle, topic=idle, count="20")
    wait_until("the idle one counts on", lambda: values(bootstrap, idle) == numbers(20), PATIENCE)
    assert f"{idle}|task-0] poll has not returned" not in worker.log()
    assert worker.terminate() == 0


@pytest.mark.thorough
def test_a_java_sink_whose_put_does_not_return_fails_after_the_timeout_and_its_neighbour_goes_on(
    worker: DistributedWorker, bootstrap: str, tmp_path: Path, topic: str
) -> None:
    cue, counts, out = tmp_path / "cue", f"{topic}-counts", tmp_path / "out"
    for name in (topic, counts):
        create_topic(bootstrap, name)
    produce(bootstrap, topic, [b"first"])
    put(worker, counts, topic=counts, count="10")
    wait_until("it counts", lambda: values(bootstrap, counts) == numbers(10), PATIENCE)
    sink = {"connector_class": "acme.CollectingSink", "topics": topic, "file": str(out), "task_hang_timeout_ms": "6000"}
    put(worker, topic, **sink, hang_in="put", hang_until=str(cue))
    before = wait_until("it runs", lambda: jvm_of(worker, topic), PATIENCE)
    assert jvm_of(worker, counts) == before
    wait_until("it fails", lambda: is_seen(worker, topic, "FAILED", "(task.hang.timeout.ms)"), PATIENCE)
    trace = worker.status(topic)["tasks"][0]["trace"]
    assert trace.startswith("put has not returned for ")
    assert "\tat acme.CollectingSink$CollectingTask.put(CollectingSink.java:" in trace
    wait_until("its JVM is gone", lambda: before not in jvms(worker.pid), PATIENCE)
    put(worker, counts, topic=counts, count="20")
    wait_until("the neighbour goes on", lambda: set(values(bootstrap, counts)) == set(numbers(20)), PATIENCE)
    cue.touch()
    restart = f"{worker.url()}connectors/{topic}/restart?includeTasks=true"
    assert requests.post(restart, timeout=PATIENCE).ok
    wait_until("what was not put is put", lambda: out.exists() and "first" in out.read_text(), PATIENCE)
    assert worker.terminate() == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("where", "method", "of_connector"),
    [("connector start", "start", True), ("taskConfigs", "taskConfigs", True), ("start", "start", False)],
)
def test_other_methods_of_java_that_do_not_return_are_seen(
    worker: DistributedWorker, bootstrap: str, tmp_path: Path, topic: str, where: str, method: str, of_connector: bool
) -> None:
    create_topic(bootstrap, topic)
    cue = tmp_path / "cue"
    put(worker, topic, topic=topic, hang_in=where, hang_until=str(cue))
    assert wait_for_hang(worker, topic, of_connector=of_connector)["method"] == method
    cue.touch()
    wait_until("it counts", lambda: values(bootstrap, topic) == numbers(100), PATIENCE)
    wait_until("it goes on", lambda: is_seen(worker, topic, "RUNNING"), PATIENCE)
    assert worker.terminate() == 0


@pytest.mark.thorough
def test_the_log_says_what_keeps_a_java_task_from_stopping(
    worker: DistributedWorker, bootstrap: str, tmp_path: Path, topic: str
) -> None:
    create_topic(bootstrap, topic)
    put(
        worker,
        topic,
        topic=topic,
        count="10",
        hang_in="poll",
        hang_until=str(tmp_path / "cue"),
        task_hang_warning_ms="0",
    )
    wait_until("it counts", lambda: values(bootstrap, topic) == numbers(10), PATIENCE)
    assert requests.delete(f"{worker.url()}connectors/{topic}", timeout=PATIENCE).status_code == 204
    wait_until("it is killed", lambda: not jvms(worker.pid), PATIENCE)
    assert "Asked to stop, but poll has not returned: Cue.java:" in worker.log()
    assert worker.terminate() == 0


class Neighbour:
    """A connector of another plugin in the same JVM: Kafka's own source of a file."""

    def __init__(self, worker: DistributedWorker, bootstrap: str, tmp_path: Path, topic: str) -> None:
        self.topic = f"{topic}-lines"
        self._bootstrap = bootstrap
        self._file = tmp_path / "lines"
        self._lines: list[str] = []
        create_topic(bootstrap, self.topic)
        self._file.touch()
        put(
            worker,
            self.topic,
            connector_class="FileStreamSource",
            engine="java",
            file=str(self._file),
            topic=self.topic,
        )
        self.goes_on()

    def goes_on(self) -> None:
        """Wait until another line has arrived, after all before it."""
        self._lines.append(f"line {len(self._lines)}")
        with self._file.open("a") as stream:
            stream.write(f"{self._lines[-1]}\n")
        wait_until("the neighbour goes on", self._has_all, PATIENCE)

    def _has_all(self) -> bool:
        return list(dict.fromkeys(values(self._bootstrap, self.topic))) == self._lines


def remove(worker: DistributedWorker, name: str) -> None:
    """Delete a connector, and wait until nothing of it is left."""
    assert requests.delete(f"{worker.url()}connectors/{name}", timeout=PATIENCE).status_code == 204
    wait_until("it is gone", lambda: worker.get(f"connectors/{name}").status_code == 404, PATIENCE)


@pytest.mark.thorough
@pytest.mark.parametrize(("where", "method"), [("connector start", "start"), ("taskConfigs", "taskConfigs")])
def test_a_java_connector_that_hangs_is_configured_anew_and_deleted_beside_one_that_goes_on(
    worker: DistributedWorker, bootstrap: str, tmp_path: Path, topic: str, where: str, method: str
) -> None:
    create_topic(bootstrap, topic)
    neighbour = Neighbour(worker, bootstrap, tmp_path, topic)
    shared = jvm_of(worker, neighbour.topic)
    for _ in range(2):
        put(worker, topic, topic=topic, hang_in=where, hang_until=str(tmp_path / "cue"))
        assert wait_for_hang(worker, topic, of_connector=True)["method"] == method
        neighbour.goes_on()
        put(worker, topic, topic=topic, count="10")
        wait_until("it counts", lambda: values(bootstrap, topic) == numbers(10), PATIENCE)
        wait_until("it runs", lambda: is_seen(worker, topic, "RUNNING"), PATIENCE)
    assert shared not in jvms(worker.pid)
    put(worker, topic, topic=topic, hang_in=where, hang_until=str(tmp_path / "cue"))
    assert wait_for_hang(worker, topic, of_connector=True)["method"] == method
    remove(worker, topic)
    neighbour.goes_on()
    wait_until("one JVM is left", lambda: jvms(worker.pid) == [jvm_of(worker, neighbour.topic)], PATIENCE)
    assert worker.terminate() == 0


@pytest.mark.thorough
def test_a_java_plugin_that_does_not_say_its_keys_is_seen_and_deleted(
    worker: DistributedWorker, bootstrap: str, tmp_path: Path, topic: str
) -> None:
    create_topic(bootstrap, topic)
    neighbour = Neighbour(worker, bootstrap, tmp_path, topic)
    put(worker, topic, topic=topic, count="10")
    wait_until("it counts", lambda: values(bootstrap, topic) == numbers(10), PATIENCE)
    (holds(tmp_path) / "config").touch()
    assert requests.post(f"{worker.url()}connectors/{topic}/restart", timeout=PATIENCE).ok
    assert wait_for_hang(worker, topic, of_connector=True)["method"] == "config"
    neighbour.goes_on()
    remove(worker, topic)
    neighbour.goes_on()
    (holds(tmp_path) / "config").unlink()
    put(worker, topic, topic=topic, count="20")
    wait_until("it counts on", lambda: values(bootstrap, topic) == numbers(20), PATIENCE)
    assert worker.terminate() == 0


@pytest.mark.thorough
def test_a_java_plugin_that_keeps_a_jvm_from_finding_all_is_named_by_whoever_waits_for_it(
    worker: DistributedWorker, bootstrap: str, tmp_path: Path, topic: str
) -> None:
    neighbour = Neighbour(worker, bootstrap, tmp_path, topic)
    (holds(tmp_path) / "version").touch()
    kill_jvm(worker, neighbour.topic)
    hanging = wait_for_hang(worker, neighbour.topic)
    assert (hanging["method"], "\tat acme.CountingSource.version(" in hanging["trace"]) == ("version", True)
    (holds(tmp_path) / "version").unlink()
    neighbour.goes_on()
    wait_until("it runs", lambda: is_seen(worker, neighbour.topic, "RUNNING"), PATIENCE)
    assert worker.terminate() == 0


@pytest.mark.thorough
def test_a_java_connector_whose_validation_hangs_is_refused_and_the_log_says_where(
    worker: DistributedWorker, bootstrap: str, tmp_path: Path, topic: str
) -> None:
    create_topic(bootstrap, topic)
    neighbour = Neighbour(worker, bootstrap, tmp_path, topic)
    config = {"topic": topic, "hang.in": "validate", "hang.until": str(tmp_path / "cue")}
    answer = requests.put(f"{worker.url()}connectors/{topic}/config", json=COUNTING | config, timeout=PATIENCE)
    assert answer.status_code == 500
    said = answer.json()["message"]
    assert "waiting for acme.CountingSource to validate" in said, said
    assert "ValidateConfig: validate has not returned for 60 s: Cue.java:" in worker.log()
    neighbour.goes_on()
    put(worker, topic, topic=topic, count="10")
    wait_until("it counts", lambda: values(bootstrap, topic) == numbers(10), PATIENCE)
    assert worker.terminate() == 0
