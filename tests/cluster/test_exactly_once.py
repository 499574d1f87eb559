"""Exactly-once sources in a cluster: workers are killed, frozen and configured anew in the midst of lines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import orjson
import pytest
from confluent_kafka import Consumer, TopicPartition

from equipment.brokers.topics import create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster, ClusterWorker
from equipment.workers.processes import descendants

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(240)]

_PERIOD = 0.05
_AT_ONCE = 5


class Lines:
    """A file to which lines are added all the time, and what has come of it on a topic."""

    def __init__(self, cluster: Cluster, bootstrap: str, folder: Path) -> None:
        self.cluster, self.bootstrap = cluster, bootstrap
        self.name = f"lines{uuid4().hex[:8]}"
        self.file = folder / "in.txt"
        self.file.touch()
        self.written = 0
        self._reader = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": self.name,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        self._read: list[str] = []
        self._end = threading.Event()
        self._writer = threading.Thread(target=self._write)
        create_topic(bootstrap, self.name)
        self._reader.assign([TopicPartition(self.name, 0, 0)])

    def start(self) -> None:
        """Begin to add lines, and to publish them."""
        self._writer.start()
        self.cluster.create(self.name, "Lines", file=str(self.file), topic=self.name)
        self.cluster.wait_until_all_run()
        self.wait_for_more()

    def wait_for_more(self) -> None:
        """Wait until lines that are written from now on are published."""
        wanted = self.written + 1
        wait_until("more is published", lambda: len(self.published()) >= wanted, 60)

    def published(self) -> list[str]:
        """What somebody has read so far who reads what is committed."""
        self._read += [message.value().decode() for message in self._reader.consume(5000, 0.2)]
        return self._read

    def all_published(self) -> list[str]:
        """Everything, once nothing more comes."""
        return [message.value().decode() for message in read_topic(self.bootstrap, self.name)]

    def check(self) -> None:
        """Add no more, and see that each line was published once, in order."""
        self.end()
        wait_until("all is published", lambda: len(self.published()) >= self.written, 60)
        assert self.all_published() == [str(number) for number in range(self.written)]
        self.cluster.check_overlaps()

    def end(self) -> None:
        """Add no more."""
        self._end.set()
        if self._writer.ident is not None:
            self._writer.join()

    def close(self) -> None:
        """Leave nothing open."""
        self.end()
        self._reader.close()

    def owner(self) -> ClusterWorker:
        """The worker that runs the task."""
        return next(worker for worker, units in self.cluster.placed().items() if f"{self.name}-0" in units)

    def _write(self) -> None:
        while not self._end.wait(_PERIOD):
            numbers = range(self.written, self.written + _AT_ONCE)
            with self.file.open("a") as stream:
                stream.writelines(f"{number}\n" for number in numbers)
            self.written = numbers.stop


@pytest.fixture(scope="module")
def trio(clusters: Callable[..., Cluster]) -> Cluster:
    """Three workers with exactly-once support."""
    return clusters(3, exactly_once_source_support="enabled").start()


@pytest.fixture
def lines(trio: Cluster, bootstrap: str, tmp_path: Path) -> Iterator[Lines]:
    """Lines that are being published."""
    trio.start()
    made = Lines(trio, bootstrap, tmp_path)
    made.start()
    yield made
    made.close()
    trio.start().delete(made.name)


def elsewhere(lines: Lines, before: ClusterWorker) -> bool:
    """Whether another worker runs the task than before."""
    return any(f"{lines.name}-0" in units for worker, units in lines.cluster.placed().items() if worker is not before)


@pytest.mark.thorough
def test_the_owner_is_killed(lines: Lines) -> None:
    owner = lines.owner()
    owner.kill()
    wait_until("another runs the task", lambda: elsewhere(lines, owner), 60)
    lines.wait_for_more()
    lines.check()


@pytest.mark.thorough
def test_the_leader_is_killed(lines: Lines) -> None:
    lines.cluster.leader().kill()
    lines.cluster.wait_until_all_run()
    lines.wait_for_more()
    lines.check()


@pytest.mark.thorough
def test_a_frozen_owner_comes_back_and_writes_nothing(lines: Lines) -> None:
    cluster, owner = lines.cluster, lines.owner()
    children = descendants(owner.pid)
    before = owner.log().count("stops all connectors and tasks")
    cluster.freeze(owner)
    wait_until("another runs the task", lambda: elsewhere(lines, owner), 60)
    lines.wait_for_more()
    new = cluster.holders()[f"{lines.name}-0"]
    assert new not in children
    cluster.thaw(owner)
    wait_until("it knows what it missed", lambda: owner.log().count("stops all connectors and tasks") > before)
    cluster.wait_until_all_run()
    lines.wait_for_more()
    lines.check()


def end_of(bootstrap: str, topic: str) -> int:
    """Where the topic ends by now."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"end-{topic}"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1])
    finally:
        consumer.close()


def test_a_changed_number_of_tasks_is_fenced_and_recorded(lines: Lines) -> None:
    cluster, name = lines.cluster, f"{lines.name}-ticks"
    create_topic(lines.bootstrap, name)
    for tasks in (3, 1, 2):
        cluster.create(name, "Ticks", tasks, topic=name, ticks_seconds="0.02")
        cluster.wait_until_all_run()
        there = end_of(lines.bootstrap, name)
        wait_until("they tick", lambda there=there: end_of(lines.bootstrap, name) > there + 20)  # type: ignore[misc]
    cluster.delete(name)
    ticks = [message.value().split() for message in read_topic(lines.bootstrap, name)]
    for task in range(3):
        numbers = [int(number) for of, number in ticks if int(of) == task]
        assert numbers == list(range(1, len(numbers) + 1)), task
    records = read_topic(lines.bootstrap, f"{cluster.folder.name}-config")
    fenced = [orjson.loads(r.value())["task-count"] for r in records if r.key() == f"tasks-fencing-{name}".encode()]
    assert fenced == [3, 1, 2]
    lines.check()


def test_offsets_are_altered_in_a_transaction_and_no_former_task_writes_over_them(lines: Lines) -> None:
    cluster, path = lines.cluster, f"connectors/{lines.name}"
    lines.wait_for_more()
    cluster.ask("PUT", f"{path}/stop")
    item = {"partition": {"filename": str(lines.file)}, "offset": {"position": 0}}
    cluster.ask("PATCH", f"{path}/offsets", {"offsets": [item]}, cluster.followers()[0])
    lines.end()
    for worker in cluster.live:
        assert cluster.ask("GET", f"{path}/offsets", worker=worker) == {"offsets": [item]}
    records = read_topic(lines.bootstrap, f"{cluster.folder.name}-config")
    fenced = [
        orjson.loads(r.value())["task-count"] for r in records if r.key() == f"tasks-fencing-{lines.name}".encode()
    ]
    assert fenced == [1, 0]
    before = lines.all_published()
    cluster.ask("PUT", f"{path}/resume")
    all_lines = [str(number) for number in range(lines.written)]
    wait_until("all lines come anew", lambda: len(lines.published()) >= len(before) + lines.written, 60)
    assert lines.all_published() == before + all_lines
    cluster.ask("PUT", f"{path}/stop")
    cluster.ask("DELETE", f"{path}/offsets", worker=cluster.leader())
    assert cluster.ask("GET", f"{path}/offsets", worker=cluster.followers()[0]) == {"offsets": []}
