"""The proof by kills: whatever is killed, and when, a reader sees no record twice, and in the end each one once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connect.crash import CRASH_POINT_VARIABLE
from connectors.spark.ledger.manifest import Manifest
from equipment.waiting import wait_until
from equipment.workers.small_spark import DRIVER, sink_props, spark_java_for
from equipment.workers.standalone import StandaloneWorker

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(900)]

PARTITIONS = 2
FLUSH = 20
RANDOM_KILLS = 8
POINTS = (
    "before-staging-write:2",
    "after-staging-write:2",
    "after-manifest:2",
    "mid-rename",
    "mid-rename:3",
    "before-done:2",
    "before-offset-commit:2",
)
IDS = pa.schema([("id", pa.int64())])


class Target:
    """A topic, a store, and what a reader sees of it."""

    def __init__(self, bootstrap: str, topic: str, store: Path, records: int) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.store = store
        self.records = records
        self.props = sink_props(store)
        self.table = store / "topics" / topic
        self._fill()

    def _fill(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)])[self.topic].result()
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number in range(self.records):
            record = {"id": number, "origin": ("EWR", "JFK", "LGA")[number % 3]}
            if number > self.records // 2:
                record["gate"] = number
            producer.produce(self.topic, json.dumps(record).encode(), partition=number % PARTITIONS)
            if number % 1000 == 0:
                producer.flush()
        assert producer.flush(30) == 0

    @contextmanager
    def driver(
        self, flush: int = FLUSH, crash: str | None = None, java: Mapping[str, str] | None = None
    ) -> Iterator[subprocess.Popen[str]]:
        """A driver that has its task started, or has died of it; without ``java`` it starts a Java of its own."""
        order = {
            "name": "kills",
            "topic": self.topic,
            "bootstrap": self.bootstrap,
            "flush": flush,
            "props": self.props,
        }
        environ = {**os.environ, **(java or {}), **({CRASH_POINT_VARIABLE: crash} if crash else {})}
        process = subprocess.Popen(
            [sys.executable, str(DRIVER), json.dumps(order)], env=environ, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            # A crash point may be met on the way already, while the load of the driver before is finished.
            assert process.stdout.readline() == "ready\n" or crash
            yield process
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def rows(self) -> list[int]:
        """The ids a reader finds at this moment."""
        if not self.table.exists():
            return []
        found: list[int] = ds.dataset(self.table, schema=IDS).to_table()["id"].to_pylist()
        return found

    def head(self) -> tuple[Manifest, bool]:
        """The last manifest, and whether it is marked done or has nothing to do."""
        folder = self.store / "_sluice/kills/manifests"
        last = max(folder.glob("*.json"), default=None)
        if last is None:
            return Manifest(number=0, epoch=0), True
        manifest = Manifest.from_bytes(last.read_bytes(), str(last))
        return manifest, not manifest.moves or last.with_suffix(".done").exists()

    def number(self) -> int:
        """The number of the last manifest."""
        return self.head()[0].number

    def phase(self) -> str:
        """In which phase the driver was killed, as the disk and the group's offsets tell."""
        manifest, done = self.head()
        if not done:
            renamed = sum((self.store / move.target).exists() for move in manifest.moves)
            return f"renaming, {renamed} of {len(manifest.moves)} done"
        attempts = self.store / "_sluice/kills/staging"
        staged = [path for path in attempts.rglob("*.parquet") if path.is_file()] if attempts.exists() else []
        if staged:
            running = any("_temporary" in path.parts for path in staged)
            return "staging, files being written" if running else "staged, not committed"
        if attempts.exists() and any(attempts.iterdir()):
            return "staging, before the first file"
        if self._group_offset() < sum(manifest.offsets.values()):
            return "before the offset commit"
        return "nothing staged"

    def _group_offset(self) -> int:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "connect-kills"})
        try:
            partitions = [confluent_kafka.TopicPartition(self.topic, number) for number in range(PARTITIONS)]
            return sum(max(0, item.offset) for item in consumer.committed(partitions, timeout=30))
        finally:
            consumer.close()


class Reader(threading.Thread):
    """Reads the table over and over, and keeps what it saw twice."""

    def __init__(self, target: Target) -> None:
        super().__init__(daemon=True)
        self.target = target
        self.looks = 0
        self.doubled: list[int] = []
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.1):
            counts = Counter(self.target.rows())
            self.doubled += [number for number, count in counts.items() if count > 1]
            self.looks += 1


@contextmanager
def watched(target: Target) -> Iterator[Reader]:
    """A reader that looks all the while; it must never have seen a record twice."""
    reader = Reader(target)
    reader.start()
    try:
        yield reader
    finally:
        reader.over.set()
        reader.join()
    assert reader.looks > 10
    assert reader.doubled == []


def check(target: Target) -> None:
    """What a reader sees after a kill: no record twice, and of each partition a beginning without gaps."""
    seen = sorted(target.rows())
    assert len(seen) == len(set(seen))
    manifest, done = target.head()
    if done:
        loaded = {tp.partition: offset for tp, offset in manifest.offsets.items()}
        expected = [n for n in range(target.records) if n // PARTITIONS < loaded.get(n % PARTITIONS, 0)]
        assert seen == expected


def drain(target: Target) -> None:
    """Start once more, load all that is left, and compare with the topic."""
    with target.driver(flush=target.records) as process:
        assert process.wait(timeout=120) == 0
    assert sorted(target.rows()) == list(range(target.records))
    assert target.phase() == "nothing staged"


def descendants(pid: int) -> dict[int, str]:
    """The processes below one, with their command lines."""
    found: dict[int, str] = {}
    children: Mapping[int, list[int]] = _children()
    waiting = list(children.get(pid, []))
    while waiting:
        child = waiting.pop()
        try:
            found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        waiting += children.get(child, [])
    return found


def _children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    return children


def seeded() -> random.Random:
    """Random numbers whose seed is printed, and taken from the environment to have them again."""
    seed = int(os.environ.get("SLUICE_TEST_SEED", random.randrange(2**32)))
    print(f"SLUICE_TEST_SEED={seed}")
    return random.Random(seed)


def victim(driver: int, kind: str) -> int | None:
    """The process to kill: the driver itself, its JVM, or one of Spark's Python workers."""
    if kind == "driver":
        return driver
    mark = "org.apache.spark.deploy.SparkSubmit" if kind == "jvm" else "pyspark.daemon"
    found = sorted(pid for pid, command in descendants(driver).items() if mark in command)
    return found[-1] if found else None


def test_kills_at_every_named_point(bootstrap: str, topic: str, tmp_path: Path) -> None:
    target = Target(bootstrap, topic, tmp_path, 40 * FLUSH)
    phases: dict[str, str] = {}
    # Spark has nothing to do at any of these points: they are the driver's own.
    with watched(target), spark_java_for(target.props) as java:
        for point in POINTS:
            with target.driver(crash=point, java=java) as process:
                assert process.wait(timeout=120) == -signal.SIGKILL, point
                phases[point] = target.phase()
                check(target)
        drain(target)
    for point, phase in phases.items():
        print(f"killed at {point:24} -> {phase}")
    assert phases["after-staging-write:2"] == "staged, not committed"
    assert phases["after-manifest:2"].startswith("renaming, 0 of")
    assert phases["mid-rename"].startswith("renaming, 1 of")
    assert phases["before-done:2"] == f"renaming, {PARTITIONS} of {PARTITIONS} done"
    assert phases["before-offset-commit:2"] == "before the offset commit"


def test_kills_at_random_moments(bootstrap: str, topic: str, tmp_path: Path) -> None:
    moments = seeded()
    target = Target(bootstrap, topic, tmp_path, 12_000)
    phases: Counter[str] = Counter()
    with watched(target):
        for number in range(RANDOM_KILLS):
            kind = ("driver", "driver", "jvm", "driver", "python worker")[number % 5]
            with target.driver() as process:
                loads = target.number() + moments.choice((0, 1, 1, 2))
                wait_until("loads are committed", lambda at=loads: target.number() >= at, seconds=120)
                time.sleep(moments.uniform(0, 0.9))
                pid = victim(process.pid, kind)
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
                if kind == "jvm" and pid is not None:
                    assert process.wait(timeout=60) != 0
            phases[f"{kind if pid is not None else 'driver'}: {target.phase()}"] += 1
            check(target)
        drain(target)
    for phase, count in sorted(phases.items()):
        print(f"{count:3} kills of {phase}")


def test_kills_of_a_real_worker_and_of_its_task(bootstrap: str, topic: str, tmp_path: Path) -> None:
    target = Target(bootstrap, topic, tmp_path / "store", 600)
    moments = seeded()
    # The options of Spark's JVM, which make it small, are the operator's to allow.
    worker = StandaloneWorker(tmp_path / "worker", bootstrap, connector_spark_config_override_policy="All")
    props = {
        "connector.class": "SparkSink",
        "topics": topic,
        "flush.size": str(FLUSH),
        "rotate.interval.ms": "0",
        "run.until": "drained",
        **target.props,
    }
    worker.connector("kills", **props)
    try:
        with watched(target):
            for number, kind in enumerate(("worker", "task", "worker")):
                worker.start()
                wait_until("a load is committed", lambda at=2 + 4 * number: target.number() > at, seconds=120)
                time.sleep(moments.uniform(0, 0.9))
                if kind == "task":
                    os.kill(worker.task_pid("kills"), signal.SIGKILL)
                worker.kill()
                print(f"killed the {kind} -> {target.phase()}")
                check(target)
            worker.connector("kills", **props | {"flush.size": "1000"})
            assert worker.run(seconds=120) == 0, worker.log()
    finally:
        worker.close()
    assert sorted(target.rows()) == list(range(target.records))
    assert target.phase() == "nothing staged"
