"""The proof by kills for table formats: a reader sees no record twice, and just those that the offsets cover."""

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
from typing import Protocol

import confluent_kafka
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyiceberg.table import StaticTable

from connect.crash import CRASH_POINT_VARIABLE
from equipment.waiting import wait_until
from equipment.workers.small_spark import DRIVER, sink_props, spark_java_for

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(3600)]

PARTITIONS = 2
FLUSH = 20
KILLS = int(os.environ.get("SLUICE_LAKE_KILLS", "2"))
PATIENCE = 300.0
"""Seconds: on a busy machine the first load after a start of Spark takes two minutes."""
CONNECTOR = "kills"


class Format(Protocol):
    """A table format, as readers that are not Spark's see a table of it."""

    props: Mapping[str, str]
    points: tuple[str, ...]
    """The crash points that a driver comes by."""
    expected: Mapping[str, str]
    """The phases that some of them show."""

    def look(self, table: Path) -> tuple[list[int], dict[int, int]]:
        """The ids in one version of a table, and the offset of each partition that the same version has."""

    def files(self, table: Path) -> tuple[set[str], set[str]]:
        """The names of the data files on the disk, and of those that the table has."""


class Iceberg:
    """Iceberg in a Hadoop catalog, read by pyiceberg."""

    props: Mapping[str, str] = {"table.format": "iceberg"}
    points = (
        "before-staging-write:2",
        "after-staging-write:2",
        "before-commit:2",
        "after-version:2",
        "after-commit:2",
        "after-claim",
        "before-offset-commit:2",
    )
    expected: Mapping[str, str] = {
        "after-staging-write:2": "files written, not committed",
        "before-offset-commit:2": "before the offset commit",
    }

    def look(self, table: Path) -> tuple[list[int], dict[int, int]]:
        """By the version that the hint names."""
        if not (table / "metadata" / "version-hint.text").exists():
            return [], {}
        found = StaticTable.from_metadata(table.as_uri())
        snapshot = found.current_snapshot()
        if snapshot is None:
            return [], {}
        assert snapshot.summary is not None
        text = snapshot.summary.additional_properties[f"sluice.offsets.{CONNECTOR}"]
        assert found.properties[f"sluice.offsets.{CONNECTOR}"] == text
        (topic,) = json.loads(text).values()
        offsets = {number: offset for number, offset in enumerate(topic["next"]) if offset is not None}
        return found.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist(), offsets

    def files(self, table: Path) -> tuple[set[str], set[str]]:
        """Parquet files."""
        there = {path.name for path in table.rglob("*.parquet")}
        if not (table / "metadata" / "version-hint.text").exists():
            return there, set()
        tasks = StaticTable.from_metadata(table.as_uri()).scan().plan_files()
        return there, {Path(task.file.file_path).name for task in tasks}


class Delta:
    """Delta, read by the deltalake package."""

    props: Mapping[str, str] = {"table.format": "delta", "spark.databricks.delta.snapshotPartitions": "1"}
    points: tuple[str, ...] = (
        "after-create",
        "before-plan:2",
        "after-plan:2",
        "after-take-over",
        "after-table-commit:2",
        "before-offset-commit:2",
    )
    expected: Mapping[str, str] = {
        "after-create": "no file written",
        "after-table-commit:2": "before the offset commit",
        "after-plan:2": "no file written",
        "before-offset-commit:2": "before the offset commit",
    }

    def look(self, table: Path) -> tuple[list[int], dict[int, int]]:
        """By the transaction identifiers of the newest version."""
        try:
            found = DeltaTable(table)
        except TableNotFoundError:
            return [], {}
        name = f"sluice/{CONNECTOR}"
        number = found.transaction_version(name)
        kind = "to" if number is not None and number % 2 else "from"
        read = (found.transaction_version(f"{name}/{table.name}/{each}/{kind}") for each in range(PARTITIONS))
        offsets = {each: offset for each, offset in enumerate(read) if offset is not None}
        return found.to_pyarrow_table(columns=["id"])["id"].to_pylist(), offsets

    def files(self, table: Path) -> tuple[set[str], set[str]]:
        """Parquet files, but for the checkpoints of the log."""
        there = {path.name for path in table.rglob("*.parquet") if path.parent.name != "_delta_log"}
        try:
            return there, {Path(uri).name for uri in DeltaTable(table).file_uris()}
        except TableNotFoundError:
            return there, set()


class DeltaUpserts(Delta):
    """Delta, each load one MERGE."""

    props: Mapping[str, str] = {**Delta.props, "write.mode": "upsert", "upsert.keys": "id"}


class Lake:
    """A topic, a store, and what readers see of its table."""

    def __init__(self, table_format: Format, bootstrap: str, topic: str, store: Path, records: int) -> None:
        self.format = table_format
        self.bootstrap = bootstrap
        self.topic = topic
        self.records = records
        self.props = {**sink_props({"store.url": str(store)}), **table_format.props, "topics": topic}
        self.table = store / "topics" / topic
        self.left: set[str] = set()
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
            "name": CONNECTOR,
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
            assert process.stdout.readline() == "ready\n" or crash
            yield process
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def rows(self) -> list[int]:
        """What a reader sees: exactly the records that the offsets beside them say, whatever has happened."""
        ids, offsets = self.format.look(self.table)
        expected = [n for n in range(self.records) if n // PARTITIONS < offsets.get(n % PARTITIONS, 0)]
        assert sorted(ids) == expected
        return ids

    def phase(self) -> str:
        """In which phase the driver was killed, as the disk and the group's offsets tell."""
        there, named = self.format.files(self.table)
        staged = there - named - self.left
        self.left |= staged
        loaded = sum(self.format.look(self.table)[1].values())
        if self._group_offset() < loaded:
            return "before the offset commit" + (", files staged" if staged else "")
        return "files written, not committed" if staged else "no file written"

    def _group_offset(self) -> int:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": f"connect-{CONNECTOR}"})
        try:
            partitions = [confluent_kafka.TopicPartition(self.topic, number) for number in range(PARTITIONS)]
            return sum(max(0, item.offset) for item in consumer.committed(partitions, timeout=30))
        finally:
            consumer.close()

    def drain(self) -> None:
        """Start once more, load all that is left, and compare with the topic."""
        with self.driver(flush=self.records) as process:
            assert process.wait(timeout=PATIENCE) == 0
        assert sorted(self.rows()) == list(range(self.records))


class Reader(threading.Thread):
    """Reads the table over and over, and keeps what it saw amiss."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(daemon=True)
        self.lake = lake
        self.looks = 0
        self.amiss: list[str] = []
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.1):
            try:
                self.lake.rows()
            except AssertionError as error:
                self.amiss.append(str(error))
            self.looks += 1


@contextmanager
def watched(lake: Lake) -> Iterator[Reader]:
    """A reader that looks all the while."""
    reader = Reader(lake)
    reader.start()
    try:
        yield reader
    finally:
        reader.over.set()
        reader.join()
    assert reader.looks > 10
    assert reader.amiss == []


def victim(driver: int, kind: str) -> int | None:
    """The process to kill: the driver itself, its JVM, or one of Spark's Python workers."""
    if kind == "driver":
        return driver
    mark = "org.apache.spark.deploy.SparkSubmit" if kind == "jvm" else "pyspark.daemon"
    below, found = [driver], []
    while below:
        command = ["ps", "-o", "pid=,args=", "--ppid", str(below.pop())]
        listed = subprocess.run(command, capture_output=True, text=True, check=False)
        for line in listed.stdout.splitlines():
            pid, _, arguments = line.strip().partition(" ")
            below.append(int(pid))
            found += [int(pid)] if mark in arguments else []
    return max(found, default=None)


FORMATS: Mapping[str, type[Format]] = {"iceberg": Iceberg, "delta": Delta, "delta-upserts": DeltaUpserts}


CHOSEN = os.environ.get("SLUICE_LAKE_STORE")
# Upserts differ from Delta's appends at the named points alone.
APPENDING = CHOSEN.split(",") if CHOSEN else ["iceberg", "delta"]


@pytest.fixture(params=CHOSEN.split(",") if CHOSEN else list(FORMATS))
def table_format(request: pytest.FixtureRequest) -> Format:
    """Each format, or those that ``SLUICE_LAKE_STORE`` names."""
    return FORMATS[request.param]()


def test_kills_at_every_named_point(table_format: Format, bootstrap: str, topic: str, tmp_path: Path) -> None:
    lake = Lake(table_format, bootstrap, topic, tmp_path, 40 * FLUSH)
    phases: dict[str, str] = {}
    # Spark has nothing to do at any of these points: they are the driver's own.
    with watched(lake), spark_java_for(lake.props) as java:
        for point in table_format.points:
            with lake.driver(crash=point, java=java) as process:
                assert process.wait(timeout=PATIENCE) == -signal.SIGKILL, point
            phases[point] = lake.phase()
            lake.rows()
        with lake.driver(flush=lake.records, java=java) as process:
            assert process.wait(timeout=PATIENCE) == 0
        assert sorted(lake.rows()) == list(range(lake.records))
    for point, phase in phases.items():
        print(f"killed at {point:24} -> {phase}")
    assert {point: phases[point] for point in table_format.expected} == table_format.expected


@pytest.mark.parametrize("table_format", APPENDING, indirect=True)
def test_kills_at_random_moments(table_format: Format, bootstrap: str, topic: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("SLUICE_TEST_SEED", random.randrange(2**32)))
    print(f"SLUICE_TEST_SEED={seed}")
    moments = random.Random(seed)
    lake = Lake(table_format, bootstrap, topic, tmp_path, 40_000)
    phases: Counter[str] = Counter()
    with watched(lake) as reader:
        for number in range(KILLS):
            kind = ("driver", "driver", "jvm", "driver", "python worker")[number % 5]
            with lake.driver() as process:
                before = len(lake.rows())
                loads = before + PARTITIONS * FLUSH * moments.choice((0, 1, 1, 2))
                wait_until("loads are committed", lambda at=loads: len(lake.rows()) >= at, seconds=PATIENCE)
                time.sleep(moments.uniform(0, 2.5))
                pid = victim(process.pid, kind)
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
                if kind == "jvm" and pid is not None:
                    assert process.wait(timeout=PATIENCE) != 0
            phases[f"{kind if pid is not None else 'driver'}: {lake.phase()}"] += 1
            lake.rows()
        lake.drain()
    for phase, count in sorted(phases.items()):
        print(f"{count:3} kills of {phase}")
    print(f"{reader.looks} looks")


@pytest.mark.parametrize("table_format", APPENDING, indirect=True)
def test_a_driver_that_was_frozen_commits_nothing(
    table_format: Format, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    lake = Lake(table_format, bootstrap, topic, tmp_path, 600)
    with watched(lake), lake.driver() as frozen:
        wait_until("a load is committed", lambda: len(lake.rows()) > 0, seconds=PATIENCE)
        # Its Java goes on with what it was told, as that of a driver does whose machine has too little memory.
        os.kill(frozen.pid, signal.SIGSTOP)
        lake.drain()
        os.kill(frozen.pid, signal.SIGCONT)
        assert frozen.wait(timeout=PATIENCE) != 0
    assert sorted(lake.rows()) == list(range(lake.records))
