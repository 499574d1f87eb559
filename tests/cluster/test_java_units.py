"""Java's connectors in a worker of Sluice: records, kills of the JVM and of workers, offsets, states and failures."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.brokers.topics import create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_connect import JavaConnect
from equipment.workers.java_plugins import compiled_plugin, file_plugin, jvm_of, jvms, kill_jvm, listens
from equipment.workers.standalone import StandaloneWorker

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(590)]

PATIENCE = 180.0
PROPS = {"java_plugins_jvm_options": "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"}


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of plugins: Kafka's file connectors."""
    return file_plugin(tmp_path_factory.mktemp("plugins"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of plugins: two whose classes have the same names and say different things."""
    folder = tmp_path_factory.mktemp("compiled")
    for package in ("acme", "other"):
        compiled_plugin(folder, tmp_path_factory.mktemp("work"), tally=f"of-{package}", package=package)
    return folder


def put(worker: StandaloneWorker, name: str, **props: str) -> dict[str, Any]:
    """Create a connector, or configure it anew."""
    config = {key.replace("_", "."): value for key, value in props.items()}
    answer = requests.put(f"{worker.url()}connectors/{name}/config", json=config, timeout=PATIENCE)
    assert answer.ok, answer.text
    created: dict[str, Any] = answer.json()
    return created


def send(worker: StandaloneWorker, method: str, path: str, json: Any = None) -> requests.Response:
    """Send a request, and return the answer whatever it is."""
    return requests.request(method, f"{worker.url()}{path}", json=json, timeout=PATIENCE)


def wait_for_states(worker: StandaloneWorker, name: str, *states: str) -> dict[str, Any]:
    """Wait until the connector and its tasks have these states."""
    seen: list[Any] = []

    def reached() -> dict[str, Any] | None:
        status = worker.status(name)
        seen[:] = [status]
        found = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
        return status if found == list(states) else None

    try:
        return wait_until(f"{name} is {states}", reached, PATIENCE) or {}
    except AssertionError as error:
        raise AssertionError(f"{error}; it is {seen}") from error


def values(bootstrap: str, topic: str) -> list[str]:
    """The committed values of a topic."""
    return [message.value().decode() for message in read_topic(bootstrap, topic)]


def test_java_connectors_move_records_and_go_on_after_a_kill_of_their_jvm(
    bootstrap: str, tmp_path: Path, topic: str, plugins: Path
) -> None:
    create_topic(bootstrap, topic)
    given, out = tmp_path / "in.txt", tmp_path / "out.txt"
    lines: list[str] = []

    def append_and_wait() -> None:
        more = [f"line {number}" for number in range(len(lines), len(lines) + 100)]
        with given.open("a") as stream:
            stream.writelines(f"{line}\n" for line in more)
        lines.extend(more)
        wait_until("all lines are out", lambda: out.exists() and set(out.read_text().splitlines()) >= set(lines), 180)

    worker = DistributedWorker(
        tmp_path / "ours", bootstrap, plugin_path=str(plugins), offset_flush_interval_ms="500", **PROPS
    ).start()
    try:
        source, sink = f"{topic}-source", f"{topic}-sink"
        files = {"connector_class": "FileStreamSource", "engine": "java", "file": str(given), "topic": topic}
        assert put(worker, source, **files)["type"] == "source"
        put(worker, sink, connector_class="FileStreamSink", engine="java", file=str(out), topics=topic)
        append_and_wait()
        assert jvm_of(worker, source) == jvm_of(worker, sink), "Java's units share a JVM"
        killed = kill_jvm(worker, source)
        append_and_wait()
        assert killed not in jvms(worker.pid)
        # What was not committed is repeated, in order, and nothing is lost.
        assert list(dict.fromkeys(out.read_text().splitlines())) == lines
        for name in (source, sink):
            assert wait_for_states(worker, name, "RUNNING", "RUNNING")["connector"]["version"]
        # Java's consumer commits in the group of its name.
        ends = len(read_topic(bootstrap, topic))
        where = {"kafka_topic": topic, "kafka_partition": 0}
        committed = {"offsets": [{"partition": where, "offset": {"kafka_offset": ends}}]}
        wait_until(
            "the sink has committed", lambda: send(worker, "GET", f"connectors/{sink}/offsets").json() == committed, 180
        )
    finally:
        assert worker.terminate() == 0


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ["is there", "can be called"])
def test_a_jvm_that_is_killed_while_it_starts_fails_nothing(
    bootstrap: str, tmp_path: Path, topic: str, compiled: Path, moment: str
) -> None:
    topics = {package: f"{topic}-{package}" for package in ("acme", "other")}
    worker = DistributedWorker(tmp_path / "ours", bootstrap, plugin_path=str(compiled), **PROPS).start()

    def wait_for_all() -> None:
        for package, name in topics.items():
            wait_until("all is counted", lambda name=name: len(values(bootstrap, name)) >= 100, PATIENCE)
            assert list(dict.fromkeys(values(bootstrap, name))) == numbers(package, 100)
            wait_for_states(worker, name, "RUNNING", "RUNNING")

    def reached() -> list[int]:
        return [pid for pid in jvms(worker.pid) if moment == "is there" or listens(pid)]

    try:
        for package, name in topics.items():
            create_topic(bootstrap, name)
            put(worker, name, **counting(name, package))
        wait_for_all()
        worker.kill()
        worker.start()
        (killed,) = wait_until(f"its JVM {moment}", reached, PATIENCE)
        os.kill(killed, signal.SIGKILL)
        wait_until("it is gone", lambda: killed not in jvms(worker.pid))
        wait_for_all()
    finally:
        worker.close()


def numbers(package: str, until: int, since: int = 0) -> list[str]:
    """What the compiled plugin writes, in capitals and between angle brackets."""
    return [f"<OF-{package.upper()}-{number}>" for number in range(since, until)]


def counting(topic: str, package: str = "acme", **props: str) -> dict[str, str]:
    """The configuration of the compiled source, with its transformation and converter."""
    return {
        "connector_class": f"{package}.CountingSource",
        "topic": topic,
        "transforms": "loud",
        "transforms_loud_type": f"{package}.Shout",
        "value_converter": f"{package}.AngleConverter",
        "key_converter": "org.apache.kafka.connect.storage.StringConverter",
        **props,
    }


@pytest.mark.thorough
def test_plugins_of_ones_own_with_clashing_classes_run_side_by_side(
    bootstrap: str, tmp_path: Path, topic: str, compiled: Path
) -> None:
    topics = {package: f"{topic}-{package}" for package in ("acme", "other")}
    for name in topics.values():
        create_topic(bootstrap, name)
    worker = DistributedWorker(
        tmp_path / "ours", bootstrap, plugin_path=str(compiled), offset_flush_interval_ms="200", **PROPS
    ).start()
    try:
        for package, name in topics.items():
            put(worker, name, **counting(name, package))
        for package, name in topics.items():
            wait_until("all is counted", lambda name=name: len(values(bootstrap, name)) >= 100, PATIENCE)
            assert values(bootstrap, name) == numbers(package, 100)
            version = wait_for_states(worker, name, "RUNNING", "RUNNING")["connector"]["version"]
            assert version == f"7.1-of-{package}"
        assert len({jvm_of(worker, name) for name in topics.values()}) == 1
        name = topics["acme"]
        offsets = {"offsets": [{"partition": {"part": "0"}, "offset": {"next": 100}}]}
        wait_until("it has committed", lambda: send(worker, "GET", f"connectors/{name}/offsets").json() == offsets)
        assert send(worker, "GET", f"connectors/{name}/topics").json() == {name: {"topics": [name]}}
        # A plugin that is not there, and one of Python's names, are refused with their keys.
        refused = send(
            worker, "PUT", f"connectors/{name}/config", {**dotted(counting(name)), "transforms.loud.type": "no.X"}
        )
        assert refused.status_code == 400
        assert "transforms.loud.type" in refused.text
        for key, value in {"run.until": "drained", "errors.tolerance.limit": "3"}.items():
            refused = send(worker, "PUT", f"connectors/{name}/config", {**dotted(counting(name)), key: value})
            assert (refused.status_code, "A connector of Java cannot do this" in refused.text) == (400, True)
        refused = send(worker, "POST", f"connectors/{name}/preview")
        assert refused.status_code >= 400
    finally:
        assert worker.terminate() == 0


def dotted(props: dict[str, str]) -> dict[str, str]:
    """The keys with dots."""
    return {key.replace("_", "."): value for key, value in props.items()}


@pytest.mark.thorough
def test_states_offsets_and_failures_of_a_java_source(
    bootstrap: str, tmp_path: Path, topic: str, compiled: Path
) -> None:
    create_topic(bootstrap, topic)
    secret = tmp_path / "secret.properties"
    secret.write_text("word=XxHiddenxX\n")
    worker = DistributedWorker(
        tmp_path / "ours",
        bootstrap,
        plugin_path=str(compiled),
        offset_flush_interval_ms="200",
        config_providers="file",
        config_providers_file_class="org.apache.kafka.common.config.provider.FileConfigProvider",
        **PROPS,
    ).start()
    path = f"connectors/{topic}"
    try:
        props = counting(topic, secret="${file:" + str(secret) + ":word}")
        put(worker, topic, **props)
        wait_until("all is counted", lambda: len(values(bootstrap, topic)) >= 100, PATIENCE)
        # Paused, it does not count on when there is more to count, and goes on when resumed.
        assert send(worker, "PUT", f"{path}/pause").ok
        wait_for_states(worker, topic, "PAUSED", "PAUSED")
        put(worker, topic, **props, count="150")
        wait_for_states(worker, topic, "PAUSED", "PAUSED")
        assert values(bootstrap, topic) == numbers("acme", 100)
        assert send(worker, "PUT", f"{path}/resume").ok
        wait_until("it goes on", lambda: len(values(bootstrap, topic)) >= 150, PATIENCE)
        assert values(bootstrap, topic) == numbers("acme", 150)
        # Stopped, its offsets can be changed if it agrees, and removed.
        assert send(worker, "PUT", f"{path}/stop").ok
        wait_for_states(worker, topic, "STOPPED")
        offset = {"offsets": [{"partition": {"part": "0"}, "offset": {"next": 140}}]}
        done = send(worker, "PATCH", f"{path}/offsets", offset)
        assert done.json() == {"message": "The offsets for this connector have been altered successfully"}, done.text
        assert send(worker, "GET", f"{path}/offsets").json() == offset
        wrong = {"offsets": [{"partition": {"part": "0"}, "offset": {"next": "x"}}]}
        refused = send(worker, "PATCH", f"{path}/offsets", wrong)
        assert (refused.status_code, "next has to be a number" in refused.text) == (500, True), refused.text
        assert send(worker, "GET", f"{path}/offsets").json() == offset
        assert send(worker, "PUT", f"{path}/resume").ok
        again = numbers("acme", 150) + numbers("acme", 150, 140)
        wait_until("it repeats the last", lambda: len(values(bootstrap, topic)) >= len(again), PATIENCE)
        assert values(bootstrap, topic) == again
        assert send(worker, "PUT", f"{path}/stop").ok
        wait_for_states(worker, topic, "STOPPED")
        done = send(worker, "DELETE", f"{path}/offsets")
        assert done.json() == {"message": "The offsets for this connector have been reset successfully"}, done.text
        assert send(worker, "GET", f"{path}/offsets").json() == {"offsets": []}
        # A failure has Java's own trace, and no secret is seen anywhere.
        put(worker, topic, **props, count="150", fail_at="21")
        assert send(worker, "PUT", f"{path}/resume").ok
        failed = wait_for_states(worker, topic, "RUNNING", "FAILED")["tasks"][0]["trace"]
        assert failed.startswith("org.apache.kafka.connect.errors.ConnectException: cannot count 21 with the secret ")
        assert "\tat acme.CountingTask.poll(CountingTask.java:" in failed
        assert "XxHiddenxX" not in failed
        assert "XxHiddenxX" not in worker.log()
        assert f"[{topic}|task-0] of-acme counts from 0 with the secret " in worker.log()
        # It is restarted with a configuration that can be counted, and then deleted.
        put(worker, topic, **props, count="160")
        assert send(worker, "POST", f"{path}/restart?includeTasks=true").ok
        wait_for_states(worker, topic, "RUNNING", "RUNNING")
        assert send(worker, "DELETE", path).status_code == 204
    finally:
        assert worker.terminate() == 0


@pytest.mark.thorough
def test_a_task_that_does_not_stop_costs_its_jvm_and_no_other_unit(
    bootstrap: str, tmp_path: Path, topic: str, compiled: Path
) -> None:
    hangs, counts = f"{topic}-hangs", f"{topic}-counts"
    for name in (hangs, counts):
        create_topic(bootstrap, name)
    worker = DistributedWorker(
        tmp_path / "ours", bootstrap, plugin_path=str(compiled), task_shutdown_graceful_timeout_ms="20000", **PROPS
    ).start()
    try:
        put(worker, hangs, **counting(hangs, count="10", hang_at_stop="true"))
        put(worker, counts, **counting(counts, "other"))
        for name, count in ((hangs, 10), (counts, 100)):
            wait_until("all is counted", lambda name=name, count=count: len(values(bootstrap, name)) >= count, PATIENCE)
        before = jvm_of(worker, hangs)
        assert before == jvm_of(worker, counts)
        assert send(worker, "DELETE", f"connectors/{hangs}").status_code == 204
        wait_until("its JVM is gone", lambda: before not in jvms(worker.pid), PATIENCE)
        wait_for_states(worker, counts, "RUNNING", "RUNNING")
        put(worker, counts, **counting(counts, "other", count="120"))
        wait_until("the other goes on", lambda: numbers("other", 120)[-1] in values(bootstrap, counts), PATIENCE)
        assert list(dict.fromkeys(values(bootstrap, counts))) == numbers("other", 120)
    finally:
        assert worker.terminate() == 0


@pytest.mark.thorough
def test_an_exactly_once_source_of_java_counts_once_through_kills_of_jvms_and_workers(
    bootstrap: str, tmp_path: Path, topic: str, compiled: Path
) -> None:
    create_topic(bootstrap, topic)
    workers = [
        DistributedWorker(
            tmp_path / f"worker-{number}",
            bootstrap,
            group=f"{topic}-group",
            plugin_path=str(compiled),
            exactly_once_source_support="enabled",
            offset_flush_interval_ms="200",
            **PROPS,
        ).start()
        for number in range(2)
    ]
    count = 0

    def owner() -> DistributedWorker:
        return (
            wait_until(
                "a worker runs the task",
                lambda: next((each for each in workers if jvm_of(each, topic)), None),
                PATIENCE,
            )
            or workers[0]
        )

    try:
        for turn in range(6):
            count += 300
            config = counting(topic, count=str(count), exactly_once_support="required")
            put(workers[0], topic, **config)
            if turn % 2 == 0:
                wait_until("it has begun", lambda count=count: len(values(bootstrap, topic)) > count - 300, PATIENCE)
                kill_jvm(owner(), topic)
            else:
                victim = owner()
                victim.kill()
                victim.start()
            wait_until("all is counted", lambda count=count: len(values(bootstrap, topic)) >= count, PATIENCE)
            assert values(bootstrap, topic) == numbers("acme", count)
    finally:
        for worker in workers:
            worker.close()


@pytest.mark.thorough
def test_java_connectors_move_each_record_through_kills_of_the_broker(
    mortal: ProxiedBroker, tmp_path: Path, compiled: Path, plugins: Path
) -> None:
    bootstrap, out = mortal.bootstrap, tmp_path / "out.txt"
    for name in ("once", "often"):
        create_topic(bootstrap, name)
    both = f"{compiled},{plugins}"
    workers = {
        name: DistributedWorker(
            tmp_path / name, bootstrap, plugin_path=both, offset_flush_interval_ms="200", **own, **PROPS
        ).start()
        for name, own in {"once": {"exactly_once_source_support": "enabled"}, "often": dict[str, str]()}.items()
    }
    count = 0

    def lines() -> list[str]:
        return out.read_text().splitlines() if out.exists() else []

    def count_on() -> None:
        """Have both count further, so slowly that they do while the broker is killed and starts again."""
        for name, worker in workers.items():
            put(worker, name, **counting(name, count=str(count), pause_ms="20"))

    def wait_for_all(found: Callable[[], list[str]]) -> None:
        wait_until("the last number is there", lambda: found()[-1:] == numbers("acme", count)[-1:], PATIENCE)

    try:
        put(workers["often"], "sink", connector_class="FileStreamSink", engine="java", file=str(out), topics="once")
        for _ in range(3):
            before, count = count, count + 5000
            count_on()
            for name in workers:
                wait_until(
                    "it counts", lambda name=name, before=before: len(values(bootstrap, name)) > before, PATIENCE
                )
            mortal.kill()
            mortal.start()
            assert len(values(bootstrap, "once")) < count, "it was killed while they counted"
            wait_for_all(lambda: values(bootstrap, "once"))
            assert values(bootstrap, "once") == numbers("acme", count)
            # At least once, and in order; so does the sink have what is on its topic.
            wait_for_all(lambda: values(bootstrap, "often"))
            assert list(dict.fromkeys(values(bootstrap, "often"))) == numbers("acme", count)
            wait_for_all(lines)
            assert list(dict.fromkeys(lines())) == numbers("acme", count)
        for name, worker in workers.items():
            wait_for_states(worker, name, "RUNNING", "RUNNING")
        wait_for_states(workers["often"], "sink", "RUNNING", "RUNNING")
    finally:
        for worker in workers.values():
            worker.close()


@pytest.mark.thorough
def test_units_of_java_with_processes_of_their_own_have_a_jvm_each(
    bootstrap: str, tmp_path: Path, topic: str, compiled: Path
) -> None:
    create_topic(bootstrap, topic)
    worker = DistributedWorker(
        tmp_path / "ours", bootstrap, plugin_path=str(compiled), offset_flush_interval_ms="200", **PROPS
    ).start()
    path = f"connectors/{topic}"
    config = counting(topic, task_isolation="process", tasks_max="2")

    def counted() -> list[list[str]]:
        """What each of the two tasks has counted, what comes twice but once."""
        found: dict[str, dict[str, None]] = {"0": {}, "1": {}}
        for message in read_topic(bootstrap, topic):
            found[message.key().decode()][message.value().decode()] = None
        return [list(each) for each in found.values()]

    def wait_for_all(count: int) -> None:
        wait_until("both tasks have counted", lambda: counted() == [numbers("acme", count)] * 2, PATIENCE)

    try:
        put(worker, topic, **config)
        wait_for_all(100)
        own = {task: jvm_of(worker, topic, task) for task in range(2)}
        assert len({*own.values()}) == 2
        # Killed, its task fails with the reason, since no restart policy asks for more; the other goes on.
        killed = kill_jvm(worker, topic)
        status = wait_for_states(worker, topic, "RUNNING", "FAILED", "RUNNING")
        assert "The JVM of its process was killed by signal 9" in status["tasks"][0]["trace"]
        assert killed not in jvms(worker.pid)
        put(worker, topic, **config, count="150")
        assert send(worker, "POST", f"{path}/restart?includeTasks=true").ok
        wait_for_all(150)
        assert jvm_of(worker, topic, 1) not in (None, killed)
        assert send(worker, "PUT", f"{path}/pause").ok
        wait_for_states(worker, topic, "PAUSED", "PAUSED", "PAUSED")
        assert send(worker, "DELETE", path).status_code == 204
        wait_until("only the JVM of inquiries is left", lambda: len(jvms(worker.pid)) <= 1, PATIENCE)
    finally:
        assert worker.terminate() == 0


@pytest.mark.thorough
def test_a_standalone_worker_runs_java_and_keeps_its_offsets_in_its_file(
    bootstrap: str, tmp_path: Path, topic: str, compiled: Path
) -> None:
    create_topic(bootstrap, topic)
    worker = StandaloneWorker(tmp_path / "ours", bootstrap, plugin_path=str(compiled), **PROPS)
    worker.connector(topic, **counting(topic))
    worker.start()
    wait_until("all is counted", lambda: len(values(bootstrap, topic)) >= 100, PATIENCE)
    assert worker.terminate() == 0
    worker.connector(topic, **counting(topic, count="130"))
    worker.start()
    try:
        wait_until("it goes on", lambda: len(values(bootstrap, topic)) >= 130, PATIENCE)
        assert values(bootstrap, topic) == numbers("acme", 130)
    finally:
        assert worker.terminate() == 0


@pytest.mark.thorough
def test_a_java_connector_is_taken_over_from_a_cluster_of_java_and_given_back(
    java_connect: Callable[..., JavaConnect], bootstrap: str, tmp_path: Path, topic: str, compiled: Path
) -> None:
    create_topic(bootstrap, topic)
    group = f"{topic}-group"
    shared = {
        "group.id": group,
        **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "offset.storage.partitions": "5",
        "status.storage.partitions": "2",
        "offset.flush.interval.ms": "200",
        "plugin.path": str(compiled),
    }
    java = java_connect(shared).start()
    java.create(topic, dotted(counting(topic)))
    wait_until("Java counts", lambda: len(values(bootstrap, topic)) >= 100, PATIENCE)
    java.stop()
    ours = DistributedWorker(
        tmp_path / "ours", bootstrap, group=group, plugin_path=str(compiled), offset_flush_interval_ms="200", **PROPS
    ).start()
    try:
        wait_for_states(ours, topic, "RUNNING", "RUNNING")
        put(ours, topic, **counting(topic, count="170"))
        wait_until("it goes on here", lambda: len(values(bootstrap, topic)) >= 170, PATIENCE)
        offsets = {"offsets": [{"partition": {"part": "0"}, "offset": {"next": 170}}]}
        wait_until("it has committed", lambda: send(ours, "GET", f"connectors/{topic}/offsets").json() == offsets)
    finally:
        assert ours.terminate() == 0
    java.start()
    answer = requests.put(
        f"{java.url}connectors/{topic}/config", json=dotted(counting(topic, count="200")), timeout=PATIENCE
    )
    assert answer.ok, answer.text
    wait_until("it goes on in Java", lambda: len(values(bootstrap, topic)) >= 200, PATIENCE)
    assert values(bootstrap, topic) == numbers("acme", 200)
