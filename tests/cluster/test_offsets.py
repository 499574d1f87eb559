"""Offsets in the user's hands, in a cluster: whichever worker is asked, for sources and sinks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer

from equipment.brokers.topics import committed, create_topic, produce, read_topic
from equipment.waiting import wait_until
from equipment.workers.cluster import LONG_SESSIONS, Cluster, ClusterWorker
from worker.cli.main import main

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(240)]

LINES = [f"line {number}" for number in range(10)]
LENGTH = len("line 0\n")


class Pair:
    """Two workers, asked in turn, and a name that no other test uses."""

    def __init__(self, cluster: Cluster, bootstrap: str, folder: Path) -> None:
        self.cluster, self.bootstrap, self.folder = cluster, bootstrap, folder
        self.name = f"c{uuid4().hex[:10]}"
        create_topic(bootstrap, self.name, partitions=2)

    @property
    def path(self) -> str:
        """Where the connector of this test is."""
        return f"connectors/{self.name}"

    @property
    def leader(self) -> ClusterWorker:
        return self.cluster.leader()

    @property
    def follower(self) -> ClusterWorker:
        return self.cluster.followers()[0]

    def both(self) -> tuple[ClusterWorker, ClusterWorker]:
        """Who leads, and who does not."""
        return self.leader, self.follower

    def ask(self, method: str, path: str = "", body: Any = None, worker: ClusterWorker | None = None) -> Any:
        """What is answered of this test's connector."""
        return self.cluster.ask(method, self.path + path, body, worker)

    def refused(self, worker: ClusterWorker, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """The status and the reason."""
        answer = self.cluster.request(method, self.path + path, body, worker)
        return answer.status_code, answer.json()["message"]

    def configure(self, plugin: str, **config: str) -> None:
        """Create this test's connector, or change it."""
        self.ask("PUT", "/config", self.cluster.config(plugin, 2, **config))

    def configured(self, key: str) -> list[str | None]:
        """What each worker knows of its configuration."""
        return [self.ask("GET", "/config", worker=worker).get(key) for worker in self.both()]

    def stop(self) -> None:
        """Stop it."""
        self.ask("PUT", "/stop")

    def offsets(self, worker: ClusterWorker | None = None) -> Any:
        """The offsets, without the partitions they are of."""
        return [item["offset"] for item in self.ask("GET", "/offsets", worker=worker)["offsets"]]

    def has_ended(self) -> bool:
        """Whether no process runs a task of this test's connector, which must be a watched one."""
        return not any(unit.startswith(f"{self.name}-") for unit in self.cluster.holders())

    def sluice(self, worker: ClusterWorker, *arguments: str) -> Result:
        """A command, asked of a worker."""
        return CliRunner().invoke(main, [*arguments, "--url", worker.url()])

    def values(self) -> list[str]:
        """What is on the topic of this test, sorted: it has two partitions."""
        return sorted(message.value().decode() for message in read_topic(self.bootstrap, self.name))


@pytest.fixture(scope="module")
def workers(clusters: Callable[..., Cluster]) -> Cluster:
    """The two workers that all tests of this file share."""
    return clusters(2, consumer_session_timeout_ms="15000", **LONG_SESSIONS).start()


@pytest.fixture
def pair(workers: Cluster, bootstrap: str, tmp_path: Path) -> Iterator[Pair]:
    made = Pair(workers, bootstrap, tmp_path)
    yield made
    workers.delete_all()


def source_of(pair: Pair, **config: str) -> Path:
    """A source of ten lines that are all published, and its file."""
    file = pair.folder / "in.txt"
    file.write_text("".join(f"{line}\n" for line in LINES))
    pair.configure("FileStreamSource", file=str(file), topic=pair.name, **config)
    wait_until("all is committed", lambda: pair.offsets() == [{"position": len(LINES) * LENGTH}])
    return file


def newest(pair: Pair, topic: str) -> dict[str, int | None]:
    """The positions of this test's connector on an offsets topic, by file."""
    found: dict[str, int | None] = {}
    for message in read_topic(pair.bootstrap, topic):
        connector, partition = json.loads(message.key())
        if connector == pair.name:
            value = message.value()
            found[partition["filename"]] = None if value is None else json.loads(value)["position"]
    return found


def test_a_source_with_a_topic_of_its_own(pair: Pair) -> None:
    own, general = f"{pair.name}-own", f"{pair.cluster.folder.name}-offset"
    file = str(source_of(pair, offsets_storage_topic=own))
    item = {"partition": {"filename": file}, "offset": {"position": 7 * LENGTH}}
    for worker in pair.both():
        status, reason = pair.refused(worker, "PATCH", "/offsets", {"offsets": [item]})
        assert (status, "must be in the STOPPED state" in reason) == (400, True)
    pair.stop()
    for worker in pair.both():
        there = {"offsets": [item | {"offset": {"position": len(LINES) * LENGTH}}]}
        assert pair.ask("GET", "/offsets", worker=worker) == there
    done = pair.ask("PATCH", "/offsets", {"offsets": [item]}, pair.follower)
    assert done == {"message": "The offsets for this connector have been altered successfully"}
    assert newest(pair, own) == {file: 7 * LENGTH}
    wait_until("the worker's copy follows", lambda: newest(pair, general) == {file: 7 * LENGTH})
    assert [pair.offsets(worker) for worker in pair.both()] == [[{"position": 7 * LENGTH}]] * 2
    pair.ask("PUT", "/resume")
    wait_until("it goes on from there", lambda: len(pair.values()) >= 13)
    assert pair.values() == sorted(LINES + LINES[7:])
    pair.stop()
    assert "reset successfully" in pair.ask("DELETE", "/offsets", worker=pair.follower)["message"]
    assert newest(pair, own) == newest(pair, general) == {file: None}
    assert [pair.offsets(worker) for worker in pair.both()] == [[], []]
    pair.ask("PUT", "/resume")
    wait_until("it begins anew", lambda: len(pair.values()) >= 23)
    assert pair.values() == sorted(LINES + LINES[7:] + LINES)


def test_what_only_the_workers_topic_has_is_read_and_forgotten_too(pair: Pair) -> None:
    file = str(source_of(pair))
    pair.stop()
    own = f"{pair.name}-own"
    pair.configure("FileStreamSource", file=file, topic=pair.name, offsets_storage_topic=own)
    wait_until("both workers know where they are now", lambda: pair.configured("offsets.storage.topic") == [own] * 2)
    before = {"partition": {"filename": file}, "offset": {"position": len(LINES) * LENGTH}}
    other = {"partition": {"filename": "/elsewhere"}, "offset": {"position": 3}}
    assert pair.ask("GET", "/offsets") == {"offsets": [before]}
    pair.ask("PATCH", "/offsets", {"offsets": [other]}, pair.leader)
    assert pair.ask("GET", "/offsets", worker=pair.follower) == {"offsets": [other, before]}
    pair.ask("DELETE", "/offsets", worker=pair.leader)
    assert pair.offsets(pair.follower) == []
    assert pair.refused(pair.follower, "PATCH", "/offsets", {"offsets": [before | {"offset": {"position": -1}}]}) == (
        400,
        "The value for the 'position' key in the offset should be a non-negative value",
    )


@contextmanager
def member_of(bootstrap: str, group: str, topic: str) -> Iterator[None]:
    """Somebody who consumes with a group."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.subscribe([topic])
    try:
        wait_until("it is a member", lambda: consumer.poll(0.1) is None and consumer.assignment())
        yield
    finally:
        consumer.close()


@pytest.mark.thorough
def test_the_seven_resets_of_a_sink(pair: Pair) -> None:
    produce(pair.bootstrap, pair.name, [str(number).encode() for number in range(10)], partition=0)
    produce(pair.bootstrap, pair.name, [str(number).encode() for number in range(4)], partition=1)
    out = pair.folder / "out.txt"
    pair.configure("Writer", file=str(out), topics=pair.name)
    group = f"connect-{pair.name}"
    wait_until("all is committed", lambda: committed(pair.bootstrap, group, pair.name, 2) == [10, 4])
    for worker in pair.both():
        status, reason = pair.refused(worker, "POST", "/offsets/reset", {"to": "earliest"})
        assert (status, "must be in the STOPPED state" in reason) == (400, True)
        dry = pair.ask("POST", "/offsets/reset?dry_run=true", {"to": "earliest"}, worker)
        assert [(item["before"], item["after"]) for item in dry] == [(10, 0), (4, 0)]
    pair.stop()
    for turn, (body, after) in enumerate(
        (
            ({"to": "earliest"}, [0, 0]),
            ({"to": "latest"}, [10, 4]),
            ({"to_offset": 6}, [6, 4]),
            ({"to": "current"}, [6, 4]),
            ({"shift_by": -5}, [1, 0]),
            ({"to_datetime": "2020-09-13T12:26:45Z"}, [0, 0]),
            ({"by_duration": "PT0.000S"}, [10, 4]),
        )
    ):
        worker = pair.both()[turn % 2]
        dry = pair.ask("POST", "/offsets/reset?dry_run=true", body, pair.both()[1 - turn % 2])
        assert [item["after"] for item in dry] == after, body
        assert pair.ask("POST", "/offsets/reset", body, worker) == dry
        assert committed(pair.bootstrap, group, pair.name, 2) == after
    with member_of(pair.bootstrap, group, pair.name):
        for worker in pair.both():
            for method, path, body in (
                ("POST", "/offsets/reset", {"to": "earliest"}),
                ("PATCH", "/offsets", {"offsets": [place(pair.name, 0, 1)]}),
                ("DELETE", "/offsets", None),
            ):
                status, reason = pair.refused(worker, method, path, body)
                assert (status, "others consume with this group" in reason) == (500, True), reason
    assert committed(pair.bootstrap, group, pair.name, 2) == [10, 4]
    pair.ask("PATCH", "/offsets", {"offsets": [place(pair.name, 0, 8), place(pair.name, 1, None)]}, pair.follower)
    assert pair.ask("GET", "/offsets", worker=pair.follower) == {"offsets": [place(pair.name, 0, 8)]}
    pair.ask("DELETE", "/offsets", worker=pair.follower)
    assert pair.ask("GET", "/offsets", worker=pair.leader) == {"offsets": []}
    pair.ask("PUT", "/resume")
    wait_until("all is written again", lambda: len(out.read_text().splitlines()) == 28)


def place(topic: str, partition: int, offset: int | None) -> dict[str, Any]:
    """One item of the offsets of a sink."""
    kept = None if offset is None else {"kafka_offset": offset}
    return {"partition": {"kafka_topic": topic, "kafka_partition": partition}, "offset": kept}


def test_the_commands_may_ask_any_worker(pair: Pair) -> None:
    file = source_of(pair, offsets_storage_topic=f"{pair.name}-own")
    saved = pair.folder / "offsets.json"
    for worker in pair.both():
        shown = pair.sluice(worker, "offsets", "show", pair.name)
        assert str(file) in shown.output
        assert f'{{"position": {len(LINES) * LENGTH}}}' in shown.output
        assert pair.sluice(worker, "offsets", "export", pair.name, "--file", str(saved)).exit_code == 0
    document = json.loads(saved.read_text())
    document["offsets"][0]["offset"]["position"] = LENGTH
    saved.write_text(json.dumps(document))
    refused = pair.sluice(pair.follower, "offsets", "import", pair.name, str(saved), "--yes")
    assert (refused.exit_code, "/stop" in refused.output) == (1, True)
    pair.stop()
    done = pair.sluice(pair.follower, "offsets", "import", pair.name, str(saved), "--yes")
    assert (done.exit_code, "altered successfully" in done.output) == (0, True)
    assert pair.offsets(pair.leader) == [{"position": LENGTH}]
    reset = pair.sluice(pair.follower, "offsets", "reset", pair.name, "--to", "earliest", "--yes")
    assert (reset.exit_code, "is a source" in reset.output) == (1, True)


def test_dead_letters_are_listed_and_replayed_by_any_worker(pair: Pair) -> None:
    create_topic(pair.bootstrap, f"{pair.name}-dlq")
    out = pair.folder / "out.txt"
    json_sink = {
        "file": str(out),
        "topics": pair.name,
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{pair.name}-dlq",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    produce(pair.bootstrap, pair.name, [b"1", b"bad 1", b"bad 2"])
    pair.configure("Writer", **json_sink)
    wait_until("both are in the queue", lambda: len(pair.ask("GET", "/dlq")["records"]) == 2)
    for worker in pair.both():
        assert pair.sluice(worker, "dlq", "list", pair.name).output.count(f"{pair.name}:0:") == 2
        assert "bad 2" in pair.sluice(worker, "dlq", "show", pair.name, "0:1").output
        running = pair.sluice(worker, "dlq", "replay", pair.name, "--to", "task", "--all", "--yes")
        assert (running.exit_code, "stop" in running.output) == (1, True)
    # What is not committed is delivered again, and would be written by then.
    wait_until("they are done with", lambda: pair.offsets() == [{"kafka_offset": 3}])
    # Until a worker has read of the change, it runs tasks that would refuse the record once more.
    pair.stop()
    wait_until("its tasks have ended", pair.has_ended)
    pair.configure("Writer", **json_sink | {"value.converter": "StringConverter"})
    pair.ask("PUT", "/resume")
    topic = pair.sluice(pair.follower, "dlq", "replay", pair.name, "--to", "topic", "--record", "0:0", "--yes")
    assert "1 replayed, 0 failed." in topic.output
    wait_until("it went through the topic", lambda: out.read_text().splitlines() == ["1", "bad 1"])
    pair.stop()
    for worker, said in zip(pair.both(), ("2 replayed, 0 failed.", "0 replayed, 0 failed."), strict=True):
        dry = pair.sluice(worker, "dlq", "replay", pair.name, "--to", "task", "--all", "--dry-run")
        assert ("would be replayed" in dry.output, dry.exit_code) == (True, 0)
        assert said in pair.sluice(worker, "dlq", "replay", pair.name, "--to", "task", "--all", "--yes").output
    assert out.read_text().splitlines() == ["1", "bad 1", "bad 1", "bad 2"]


def test_lag_and_throughput_are_those_of_all_tasks_whoever_is_asked(pair: Pair) -> None:
    ticks = f"{pair.name}-ticks"
    pair.cluster.ask(
        "PUT", f"connectors/{ticks}/config", pair.cluster.config("Ticks", 2, topic=pair.name, ticks_seconds="0.05")
    )
    pair.configure("Writer", file=str(pair.folder / "out.txt"), topics=pair.name)
    wait_until("each worker has some of the tasks", lambda: spread(pair, pair.name) and spread(pair, ticks))
    for worker in pair.both():

        def sink(worker: ClusterWorker = worker) -> Any:
            lag = pair.ask("GET", "/lag", worker=worker)
            return lag if [task["lag"] is not None for task in lag["tasks"]] == [True, True] else None

        lag = wait_until("both tasks of the sink tell", sink)
        assert lag["lag"] == sum(partition["lag"] for partition in lag["partitions"])
        assert [partition["partition"] for partition in lag["partitions"]] == [0, 1]

        def source(worker: ClusterWorker = worker) -> bool:
            tasks = pair.cluster.ask("GET", f"connectors/{ticks}/lag", worker=worker)["tasks"]
            return [bool(task["records_per_second"]) for task in tasks] == [True, True]

        wait_until("both tasks of the source tell", source)

        def status(worker: ClusterWorker = worker) -> bool:
            tasks = pair.cluster.ask("GET", f"connectors/{ticks}/status", worker=worker)["tasks"]
            return all(task.get("metrics", {}).get("source-record-write-rate") for task in tasks)

        wait_until("the status shows both", status)
    shown = pair.sluice(pair.follower, "offsets", "show", pair.name).output.splitlines()
    assert [line.split()[0] for line in shown[-2:]] == ["0", "1"]


def spread(pair: Pair, name: str) -> bool:
    """Whether the two tasks of a connector run on two workers."""
    answer = pair.cluster.request("GET", f"connectors/{name}/status")
    tasks = answer.json()["tasks"] if answer.ok else []
    return len({task["worker_id"] for task in tasks if task["state"] == "RUNNING"}) == 2
