"""Connectors that start by themselves, in a cluster whose workers are killed: by the clock, and after failures."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from equipment.brokers.topics import create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster, ClusterWorker

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(300)]

_LONG_RUN: Final = 10_000
"""So many lines take ten seconds, of a converter that takes a millisecond for each."""


class Files:
    """A cluster, and a name, a topic and a file for the source of one test."""

    def __init__(self, cluster: Cluster, bootstrap: str, folder: Path) -> None:
        self.cluster, self.bootstrap = cluster, bootstrap
        self.name = f"f{uuid4().hex[:10]}"
        self.file = folder / "in.txt"
        create_topic(bootstrap, self.name)

    def configure(self, **config: str) -> None:
        """Create the source of this test."""
        given = {"file": str(self.file), "topic": self.name, **config}
        self.cluster.ask("PUT", f"connectors/{self.name}/config", self.cluster.config("FileStreamSource", 1, **given))

    def status(self, worker: ClusterWorker | None = None) -> dict[str, Any]:
        """The status, once there is one."""
        answer = self.cluster.request("GET", f"connectors/{self.name}/status", worker=worker)
        return dict(answer.json()) if answer.ok else {"connector": {"state": None}, "tasks": []}

    def rests(self) -> bool:
        """Whether it is to be stopped, and every worker knows that it is and when it runs again.

        What a worker says may be from before the last run, but not what the config topic has.
        """
        if self.target_states()[-1:] != ["STOPPED"]:
            return False
        told = [self.status(worker) for worker in self.cluster.live]
        return all(status["connector"]["state"] == "STOPPED" and "next_run" in status for status in told)

    def is_next_year(self, worker: ClusterWorker) -> bool:
        """Whether a worker says that it runs again in a year."""
        told = self.status(worker).get("next_run")
        return told is not None and datetime.fromisoformat(told) - datetime.now(UTC) > timedelta(days=360)

    def is_committed(self) -> bool:
        """Whether the offset after the last line is kept, so that nothing is published again after a kill."""
        found = self.cluster.ask("GET", f"connectors/{self.name}/offsets")["offsets"]
        return [item["offset"] for item in found] == [{"position": self.file.stat().st_size}]

    def values(self) -> list[str]:
        """What is on the topic."""
        return [message.value().decode() for message in read_topic(self.bootstrap, self.name)]

    def came_to_rest(self, days_ago: int) -> None:
        """Have the config topic say that the source came to rest so many days ago."""
        drained = time.time_ns() // 1_000_000 - days_ago * 86_400_000
        value = {"state": "PAUSED", "state.v2": "STOPPED", "drained": drained}
        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all"})
        topic = f"{self.cluster.folder.name}-config"
        producer.produce(topic, json.dumps(value).encode(), f"target-state-{self.name}".encode(), 0)
        assert producer.flush(30) == 0

    def target_states(self) -> list[str]:
        """What was wanted of the source, as the config topic has it."""
        key = f"target-state-{self.name}".encode()
        records = read_topic(self.bootstrap, f"{self.cluster.folder.name}-config")
        return [json.loads(record.value())["state.v2"] for record in records if record.key() == key]


@pytest.fixture(scope="module")
def trio(clusters: Callable[..., Cluster]) -> Cluster:
    """Three workers."""
    return clusters(3).start()


@pytest.fixture
def files(trio: Cluster, bootstrap: str, tmp_path: Path) -> Iterator[Files]:
    trio.start()
    made = Files(trio, bootstrap, tmp_path)
    yield made
    trio.start()
    trio.ask("DELETE", f"connectors/{made.name}")


def yearly(hours_ago: int) -> str:
    """A schedule whose last time was so many hours ago, and whose next is in a year."""
    at = datetime.now(UTC) - timedelta(hours=hours_ago)
    return f"{at.minute} {at.hour} {at.day} {at.month} *"


def rested(files: Files, **config: str) -> None:
    """A source that has its first line published, and rests until its time comes."""
    files.file.write_text("first\n")
    files.configure(**config, schedule=yearly(hours_ago=1), **{"run.until": "drained"})
    wait_until("it rests", files.rests)
    assert files.values() == [], "it runs when its time has come, and not because it was made"
    files.cluster.ask("PUT", f"connectors/{files.name}/resume")
    wait_until("it ran", lambda: files.values() == ["first"])
    wait_until("it rests again", files.rests)


def test_a_run_that_was_missed_is_made_up_for_once_whoever_leads(files: Files) -> None:
    rested(files)
    with files.file.open("a") as stream:
        stream.write("second\n")
    before = files.target_states()
    files.came_to_rest(days_ago=2)
    wait_until("it runs", lambda: files.values() == ["first", "second"])
    wait_until("it has done its work", files.is_committed)
    files.cluster.leader().kill()
    assert files.cluster.leader(), "another leads"
    wait_until("it rests", files.rests, 60)
    assert files.values() == ["first", "second"]
    assert files.target_states()[len(before) :] == ["STOPPED", "STARTED", "STOPPED"]
    # A worker that has yet to read of the last run tells the time of that one.
    wait_until("every worker knows the next one", lambda: all(map(files.is_next_year, files.cluster.live)))


@pytest.mark.thorough
def test_a_run_is_not_forgotten_when_the_leader_is_killed_before_it(files: Files) -> None:
    rested(files)
    with files.file.open("a") as stream:
        stream.write("second\n")
    leader = files.cluster.leader()
    files.cluster.freeze(leader)
    files.came_to_rest(days_ago=2)
    wait_until("another leads and has run it", lambda: files.values() == ["first", "second"], 60)
    files.cluster.thaw(leader)
    leader.kill()
    wait_until("it rests", files.rests, 60)
    assert files.target_states()[-3:] == ["STOPPED", "STARTED", "STOPPED"]


@pytest.mark.thorough
def test_a_run_whose_owner_is_killed_goes_on_elsewhere(files: Files) -> None:
    rested(files, **{"value.converter": "TardyConverter"})
    with files.file.open("a") as stream:
        stream.writelines(f"{number}\n" for number in range(_LONG_RUN))
    files.came_to_rest(days_ago=2)

    def owner() -> ClusterWorker | None:
        tasks = files.status()["tasks"]
        address = tasks[0]["worker_id"] if tasks and tasks[0]["state"] == "RUNNING" else None
        return next((worker for worker in files.cluster.live if worker.address == address), None)

    killed = wait_until("it runs", owner)
    killed.kill()
    wait_until("it rests", files.rests, 120)
    # At least once: some lines may be there twice, none is missing.
    assert set(files.values()) == {"first", *(str(number) for number in range(_LONG_RUN))}


def test_restarts_are_counted_on_when_the_worker_is_killed(files: Files) -> None:
    policy = {
        "restart.policy": "on-failure",
        "restart.backoff.ms": "50",
        "restart.backoff.max.ms": "100",
        "restart.limit": "4",
    }
    trigger = files.file.with_name("fails")
    config = {"topic": files.name, "fails.while": str(trigger), **policy}
    trigger.touch()
    files.cluster.ask("PUT", f"connectors/{files.name}/config", files.cluster.config("FailsWhile", 1, **config))

    def task(worker: ClusterWorker | None = None) -> dict[str, Any]:
        tasks = files.status(worker)["tasks"]
        return dict(tasks[0]) if tasks else {}

    def given_up(worker: ClusterWorker) -> bool:
        return task(worker).get("state") == "FAILED" and task(worker).get("restarts") == 4

    wait_until("every worker says that it is given up", lambda: all(map(given_up, files.cluster.live)))
    assert "made to fail" in task()["trace"]
    owner = next(worker for worker in files.cluster.live if worker.address == task()["worker_id"])
    owner.kill()

    def reached(state: str) -> dict[str, Any] | None:
        found = task()
        return found if found.get("state") == state and found["worker_id"] != owner.address else None

    # Each worker reads of it at its own time: the one that says so is taken at its word.
    again = wait_until("another worker has tried it once", lambda: reached("FAILED"), 60)
    assert again["restarts"] == 4, "and no more, for the count is the same"
    trigger.unlink()
    files.cluster.ask("POST", f"connectors/{files.name}/tasks/0/restart")
    assert wait_until("it runs", lambda: reached("RUNNING"))["restarts"] == 4
