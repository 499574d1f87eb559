"""Operations that need a connector stopped while the clock, users or faults would start it, and thawed workers."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests
from confluent_kafka import Producer

from equipment.brokers.topics import create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.cluster import LONG_SESSIONS, SHORT_SESSIONS, Cluster, ClusterWorker
from equipment.workers.processes import runs

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(300)]

TAKEN_OVER = 60.0


class Replay:
    """A sink that rests until its time comes, and whose dead letter is being replayed to its task."""

    def __init__(self, cluster: Cluster, bootstrap: str, folder: Path) -> None:
        self.cluster, self.bootstrap = cluster, bootstrap
        self.name = f"r{uuid4().hex[:10]}"
        self.gate, self.out = folder / "gate", folder / "out.txt"
        self._pool = ThreadPoolExecutor(1)
        for topic in (self.name, f"{self.name}-dlq"):
            create_topic(bootstrap, topic)
        self._produce(f"{self.name}-dlq", b"a letter", None, list(self._context().items()))
        self.gate.touch()
        long_ago = datetime.now(UTC) - timedelta(hours=1)
        self.config = cluster.config(
            "Gated",
            1,
            file=str(self.out),
            gate_file=str(self.gate),
            topics=self.name,
            errors_tolerance="all",
            errors_deadletterqueue_topic_name=f"{self.name}-dlq",
            errors_deadletterqueue_topic_replication_factor="1",
            run_until="drained",
            schedule=f"{long_ago.minute} {long_ago.hour} {long_ago.day} {long_ago.month} *",
        )
        cluster.ask("PUT", f"connectors/{self.name}/config", self.config)

    def begin(self, worker: ClusterWorker) -> tuple[Future[requests.Response], int]:
        """Ask for the replay, and wait until the task has the letter; the answer to come, and the task's process."""
        body = {"to": "task", "selection": "all"}
        answer = self._pool.submit(self.cluster.request, "POST", f"connectors/{self.name}/dlq/replay", body, worker)
        unit = f"{self.name}-0"
        holders = wait_until("a task has it", lambda: answer.done() or self.cluster.holders().keys() & {unit})
        assert holders, "it was answered at once"
        assert not answer.done(), answer.result().text
        return answer, self.cluster.holders()[unit]

    def is_due(self) -> None:
        """Have its time come, and wait until every worker knows that it has."""
        drained = time.time_ns() // 1_000_000 - 2 * 86_400_000
        value = {"state": "PAUSED", "state.v2": "STOPPED", "drained": drained}
        self._produce(self._config_topic, json.dumps(value).encode(), f"target-state-{self.name}".encode(), [])
        for worker in self.cluster.live:
            wait_until("its worker knows", lambda worker=worker: self._is_due(worker))

    def targets(self) -> list[str]:
        """The target states of the sink, in the order of the config topic."""
        key = f"target-state-{self.name}".encode()
        records = read_topic(self.bootstrap, self._config_topic)
        return [json.loads(record.value())["state.v2"] for record in records if record.key() == key and record.value()]

    def state(self, worker: ClusterWorker | None = None) -> str | None:
        """The state of its connector, once there is one."""
        answer = self.cluster.request("GET", f"connectors/{self.name}/status", worker=worker)
        return str(answer.json()["connector"]["state"]) if answer.ok else None

    @property
    def _config_topic(self) -> str:
        return f"{self.cluster.folder.name}-config"

    def _context(self) -> dict[str, bytes]:
        """The headers of a dead letter that are looked at."""
        origin = {"topic": self.name, "partition": "0", "offset": "0", "connector.name": self.name}
        return {f"__connect.errors.{key}": value.encode() for key, value in origin.items()}

    def _produce(self, topic: str, value: bytes, key: bytes | None, headers: list[tuple[str, bytes]]) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all"})
        producer.produce(topic, value, key, 0, headers=headers)
        assert producer.flush(30) == 0

    def _is_due(self, worker: ClusterWorker) -> bool:
        told = self.cluster.ask("GET", f"connectors/{self.name}/status", worker=worker).get("next_run")
        return told is not None and datetime.fromisoformat(told) < datetime.now(UTC)

    def close(self) -> None:
        self.gate.unlink(missing_ok=True)
        self._pool.shutdown()


@pytest.fixture(scope="module")
def duo(clusters: Callable[..., Cluster]) -> Cluster:
    """Two workers whose tasks commit all the time."""
    return clusters(2, offset_flush_interval_ms="20", **SHORT_SESSIONS).start()


@pytest.fixture
def replay(duo: Cluster, bootstrap: str, tmp_path: Path) -> Iterator[Replay]:
    duo.start()
    with _replay(duo, bootstrap, tmp_path) as made:
        yield made


@pytest.fixture
def unhurried(cluster: Callable[..., Cluster], bootstrap: str, tmp_path: Path) -> Iterator[Replay]:
    """The same with workers that nobody kills."""
    pair = cluster(2, offset_flush_interval_ms="20", **LONG_SESSIONS).start()
    with _replay(pair, bootstrap, tmp_path) as made:
        yield made


@contextmanager
def _replay(pair: Cluster, bootstrap: str, folder: Path) -> Iterator[Replay]:
    made = Replay(pair, bootstrap, folder)
    wait_until("it rests", lambda: all(made.state(worker) == "STOPPED" for worker in pair.live))
    yield made
    made.close()
    pair.start().ask("DELETE", f"connectors/{made.name}")


def test_the_clock_waits_for_a_replay_whichever_worker_would_run_the_task(unhurried: Replay) -> None:
    cluster = unhurried.cluster
    answer, _ = unhurried.begin(cluster.followers()[0])
    unhurried.is_due()
    resumed = ThreadPoolExecutor(1).submit(
        cluster.ask, "PUT", f"connectors/{unhurried.name}/resume", None, cluster.followers()[0]
    )
    assert unhurried.state() == "STOPPED"
    assert "STARTED" not in unhurried.targets()
    assert not answer.done()
    unhurried.gate.unlink()
    assert answer.result(30).json()["replayed"], answer.result().text
    resumed.result(60)
    wait_until("it ran", lambda: "STARTED" in unhurried.targets())
    cluster.check_overlaps()
    assert unhurried.out.read_text() == "a letter\n"
    wait_until("it rests again", lambda: unhurried.targets()[-1] == "STOPPED", 60)


def leads(worker: ClusterWorker) -> bool:
    """Whether a worker says that it leads, in the last generation that it knows."""
    told = re.findall(r"Generation \d+: (\S+) leads", worker.log())
    return bool(told) and told[-1] == worker.url()


def taken_over(replay: Replay, other: ClusterWorker, task: int) -> None:
    """The other worker leads, and has the sink run; the task of the replay is gone by then."""
    wait_until("another leads", lambda: leads(other), TAKEN_OVER)
    replay.cluster.ask("PUT", f"connectors/{replay.name}/resume", worker=other)
    holder = lambda: replay.cluster.holders().get(f"{replay.name}-0", task)  # noqa: E731
    wait_until("its task runs", lambda: holder() != task, TAKEN_OVER)
    assert not runs(task)
    replay.cluster.check_overlaps()
    assert not replay.out.read_text(), "nothing came of the replay"


@pytest.mark.thorough
def test_a_replay_ends_with_its_leader(replay: Replay) -> None:
    cluster = replay.cluster
    [other] = cluster.followers()
    answer, task = replay.begin(other)
    cluster.leader().kill()
    assert answer.result(TAKEN_OVER).status_code >= 500
    taken_over(replay, other, task)


def test_a_replay_is_broken_off_when_its_leader_is_frozen_and_that_is_told(replay: Replay) -> None:
    cluster, leader = replay.cluster, replay.cluster.leader()
    [other] = cluster.followers()
    answer, task = replay.begin(leader)
    cluster.freeze(leader)
    try:
        taken_over(replay, other, task)
    finally:
        cluster.thaw(leader)
    told = answer.result(TAKEN_OVER)
    assert told.status_code == 500
    assert any(reason in told.text for reason in ("has lost its place", "without an answer", "was cancelled")), (
        told.text
    )
    wait_until("it knows what is", lambda: replay.state(leader) == replay.state(other), TAKEN_OVER)
    cluster.check_overlaps()


class Ticks:
    """A source that commits all the time."""

    def __init__(self, cluster: Cluster, bootstrap: str) -> None:
        self.cluster, self.bootstrap = cluster, bootstrap
        self.name = f"t{uuid4().hex[:10]}"
        create_topic(bootstrap, self.name)
        cluster.create(self.name, "Ticks", 1, topic=self.name, ticks_seconds="0.01")

    def offsets(self, worker: ClusterWorker) -> list[Any]:
        """The offsets of the source, as a worker tells them."""
        return list(self.cluster.ask("GET", f"connectors/{self.name}/offsets", worker=worker)["offsets"])

    def owner(self) -> ClusterWorker | None:
        """The worker that runs its task, once the task has committed something."""
        placed = [worker for worker, units in self.cluster.placed().items() if f"{self.name}-0" in units]
        return placed[0] if placed and self.offsets(placed[0]) else None

    def kept(self) -> list[bytes | None]:
        """The values of the source on the offsets topic, in order."""
        records = read_topic(self.bootstrap, f"{self.cluster.folder.name}-offset")
        return [record.value() for record in records if json.loads(record.key())[0] == self.name]


def test_a_thawed_worker_does_not_undo_a_reset(duo: Cluster, bootstrap: str) -> None:
    duo.start()
    ticks = Ticks(duo, bootstrap)
    owner = wait_until("it commits", ticks.owner, TAKEN_OVER)
    [other] = [worker for worker in duo.live if worker is not owner]
    task = duo.holders()[f"{ticks.name}-0"]
    duo.freeze(owner)
    # What it commits meanwhile waits in the pipe of its worker.
    wait_until("its process has ended with the lease", lambda: not runs(task), TAKEN_OVER)
    wait_until("the other leads", lambda: leads(other), TAKEN_OVER)
    duo.ask("PUT", f"connectors/{ticks.name}/stop", worker=other)
    done = duo.ask("DELETE", f"connectors/{ticks.name}/offsets", worker=other)
    assert "reset successfully" in done["message"]
    before = ticks.kept()
    assert before[-1] is None
    joined = owner.log().count("Generation ")
    duo.thaw(owner)
    wait_until("it is part of its cluster again", lambda: owner.log().count("Generation ") > joined, TAKEN_OVER)
    duo.create("after", "Ticks", 2, topic=ticks.name)
    wait_until("both run something", lambda: all(duo.placed().values()), TAKEN_OVER)
    assert ticks.kept() == before
    assert [ticks.offsets(worker) for worker in (owner, other)] == [[], []]
    duo.check_overlaps()
