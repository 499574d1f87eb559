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
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import confluent_kafka
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connect.crash import CRASH_POINT_VARIABLE
from connectors.spark.ledger.manifest import Manifest
from equipment.servers.s3 import running_moto, running_versitygw, versitygw
from equipment.stores.lakes import Lake, hdfs_lake, local_lake, s3_lake
from equipment.waiting import wait_until
from equipment.workers.small_spark import DRIVER, sink_props, spark_java_for
from equipment.workers.standalone import StandaloneWorker

KILLS = int(os.environ.get("SLUICE_LAKE_KILLS", "0"))
"""How many kills there are in each store: at the named points first, the others at random moments."""
pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(900 + 120 * KILLS)]

PARTITIONS = 2
FLUSH = 20
STORES = os.environ.get("SLUICE_LAKE_STORE", "local,s3,hdfs").split(",")
PATIENCE = 300.0
"""Seconds: on a busy machine the first load after a start of Spark takes two minutes."""
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

    def __init__(self, bootstrap: str, topic: str, lake: Lake, records: int) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.lake = lake
        self.records = records
        self.props = sink_props(lake.props)
        self.table = f"topics/{topic}"
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
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
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
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                found: list[int] = self.lake.read(self.table, IDS)["id"].to_pylist()
            except FileNotFoundError:
                # A compaction has replaced a file that was listed: a reader is told so, and reads again.
                assert time.monotonic() < deadline
            else:
                return found

    def head(self) -> tuple[Manifest, bool]:
        """The last manifest, and whether it is marked done or has nothing to do."""
        folder, store = "_sluice/kills/manifests", self.lake.store
        last = max((name for name in store.names(folder) if name.endswith(".json")), default=None)
        if last is None:
            return Manifest(number=0, epoch=0), True
        manifest = Manifest.from_bytes(store.read(f"{folder}/{last}"), last)
        mark = f"{folder}/{last.removesuffix('.json')}.done"
        return manifest, not manifest.moves or store.size(mark) is not None

    def number(self) -> int:
        """The number of the last manifest."""
        return self.head()[0].number

    def phase(self) -> str:
        """In which phase the driver was killed, as the disk and the group's offsets tell."""
        manifest, done = self.head()
        if not done:
            renamed = sum(self.lake.store.size(move.target) is not None for move in manifest.moves)
            return f"renaming, {renamed} of {len(manifest.moves)} done"
        attempts = self.lake.paths(self.lake.store.staging("kills"))
        staged = [path for path in attempts if path.endswith(".parquet")]
        if staged:
            notes = [path for path in attempts if "/committed/" in path]
            running = any("/_temporary/" in path for path in staged) or 0 < len(notes) < len(staged)
            return "staging, files being written" if running else "staged, not committed"
        if attempts:
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
        while not self.over.wait(self.target.lake.pause):
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
        assert process.wait(timeout=PATIENCE) == 0
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


@pytest.fixture(params=STORES)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    """A store of each kind."""
    folder = f"kills-{uuid4().hex[:12]}"
    with ExitStack() as stack:
        match request.param:
            case "s3":
                program = versitygw()
                server = stack.enter_context(running_versitygw(program) if program else running_moto())
                yield stack.enter_context(s3_lake(server, folder))
            case "hdfs":
                yield stack.enter_context(hdfs_lake(request.getfixturevalue("hdfs"), folder))
            case _:
                yield stack.enter_context(local_lake(tmp_path))


def kills_at_random() -> int:
    """How many to make: few by default."""
    return max(0, KILLS - len(POINTS)) if KILLS else 6


def test_kills_at_every_named_point(bootstrap: str, topic: str, lake: Lake) -> None:
    target = Target(bootstrap, topic, lake, 40 * FLUSH)
    phases: dict[str, str] = {}
    # Spark has nothing to do at any of these points: they are the driver's own.
    with watched(target), spark_java_for(target.props) as java:
        for point in POINTS:
            with target.driver(crash=point, java=java) as process:
                assert process.wait(timeout=PATIENCE) == -signal.SIGKILL, point
                phases[point] = target.phase()
                check(target)
        drain(target)
    for point, phase in phases.items():
        print(f"killed at {point:24} -> {phase}")
    assert phases["after-staging-write:2"] == "staged, not committed"
    assert phases["after-manifest:2"].startswith("renaming, 0 of")
    # A store that publishes several files at once may have got further.
    assert phases["mid-rename"] in {"renaming, 1 of 2 done", f"renaming, {min(2, lake.store.concurrency)} of 2 done"}
    assert phases["before-done:2"] == f"renaming, {PARTITIONS} of {PARTITIONS} done"
    assert phases["before-offset-commit:2"] == "before the offset commit"


def test_kills_while_tables_are_compacted(bootstrap: str, topic: str, tmp_path: Path) -> None:
    with local_lake(tmp_path) as lake:
        kill_while_compacting(Target(bootstrap, topic, lake, 20 * FLUSH))


def kill_while_compacting(target: Target) -> None:
    """Kill a driver that compacts after each load, at each point of a compaction."""
    target.props |= {"compact.interval.ms": "1"}
    with watched(target), spark_java_for(target.props) as java:
        for point in ("after-compaction-staging", "after-manifest:3", "mid-removal", "mid-removal:3", "mid-rename:6"):
            with target.driver(crash=point, java=java) as process:
                assert process.wait(timeout=PATIENCE) == -signal.SIGKILL, point
                print(f"killed at {point:26} -> {target.phase()}, {len(target.lake.paths(target.table))} files")
                check(target)
        drain(target)
    assert len(target.lake.paths(target.table)) == PARTITIONS


def test_kills_where_the_rows_are_the_result_of_a_query(bootstrap: str, topic: str, tmp_path: Path) -> None:
    with local_lake(tmp_path) as lake:
        target = Target(bootstrap, topic, lake, 40 * FLUSH)
        # Grouped, the rows come by other Spark partitions than the records.
        target.props |= {"sql": "SELECT id, count(*) AS times FROM records GROUP BY id"}
        with watched(target), spark_java_for(target.props) as java:
            for point in ("after-staging-write:2", "after-manifest:2", "mid-rename", "before-offset-commit:2"):
                with target.driver(crash=point, java=java) as process:
                    assert process.wait(timeout=PATIENCE) == -signal.SIGKILL, point
                    check(target)
            drain(target)


# `make lake-kills` makes them in every store; where files come over a network all of it costs more.
@pytest.mark.parametrize("lake", STORES if KILLS else ["local"], indirect=True)
def test_kills_at_random_moments(bootstrap: str, topic: str, lake: Lake) -> None:
    moments = seeded()
    target = Target(bootstrap, topic, lake, 12_000)
    phases: Counter[str] = Counter()
    with watched(target):
        for number in range(kills_at_random()):
            kind = ("driver", "driver", "jvm", "driver", "python worker")[number % 5]
            with target.driver() as process:
                loads = target.number() + moments.choice((0, 1, 1, 2))
                wait_until("loads are committed", lambda at=loads: target.number() >= at, seconds=PATIENCE)
                time.sleep(moments.uniform(0, 0.9))
                pid = victim(process.pid, kind)
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
                if kind == "jvm" and pid is not None:
                    assert process.wait(timeout=PATIENCE) != 0
            phase = f"{kind if pid is not None else 'driver'}: {target.phase()}"
            print(f"kill {number + 1}, of {phase}", flush=True)
            phases[phase] += 1
            check(target)
        drain(target)
    for phase, count in sorted(phases.items()):
        print(f"{count:3} kills of {phase}")


def test_kills_of_a_real_worker_and_of_its_task(bootstrap: str, topic: str, tmp_path: Path) -> None:
    with local_lake(tmp_path / "store") as lake:
        target = Target(bootstrap, topic, lake, 600)
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
                wait_until("a load is committed", lambda at=2 + 4 * number: target.number() > at, seconds=PATIENCE)
                time.sleep(moments.uniform(0, 0.9))
                if kind == "task":
                    os.kill(worker.task_pid("kills"), signal.SIGKILL)
                worker.kill()
                print(f"killed the {kind} -> {target.phase()}")
                check(target)
            worker.connector("kills", **props | {"flush.size": "1000"})
            assert worker.run(seconds=PATIENCE) == 0, worker.log()
    finally:
        worker.close()
    assert sorted(target.rows()) == list(range(target.records))
    assert target.phase() == "nothing staged"
