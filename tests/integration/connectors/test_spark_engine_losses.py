"""Sources that Spark runs, with executors, drivers and Java killed: what is lost and what comes twice."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from equipment.brokers.topics import create_topic, read_topic
from equipment.scripts.task_processes import TaskProcess
from equipment.scripts.tasks import RunningTask
from equipment.waiting import wait_until
from equipment.workers.small_spark import SMALL_SPARK, sink_props, spark_java_for
from worker.messages import messages

SparkContext = pytest.importorskip("pyspark").SparkContext

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    # PySpark leaves the socket by which it brings rows to the driver to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SIZES = {"a.txt": 300, "b.txt": 200}
ALL_ONCE = sorted(f"{name} {number}" for name, count in SIZES.items() for number in range(count))

StartProcess = Callable[..., TaskProcess]


@pytest.fixture(scope="module")
def java() -> Iterator[Mapping[str, str]]:
    """The environment of the drivers, which are killed and share a Java process."""
    with spark_java_for(sink_props({"store.url": "/none"})) as environ:
        yield environ


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of files that are no longer written."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name, count in SIZES.items():
        path = folder / name
        path.write_text("".join(f"{name} {number}\n" for number in range(count)))
        os.utime(path, (time.time() - 60, time.time() - 60))
    return folder


def values(bootstrap: str, topic: str) -> list[str]:
    """What a consumer of committed records reads."""
    return sorted(message.value().decode() for message in read_topic(bootstrap, topic))


def source(topic: str, files: Path) -> dict[str, str]:
    """A connector that reads a folder to its end."""
    return {
        "name": topic,
        "connector.class": "DirectorySource",
        "engine": "spark",
        "engine.poll.interval.ms": "50",
        **SMALL_SPARK,
        "tasks.max": "2",
        "path": str(files),
        "topic": topic,
        "settle.ms": "0",
        "scan.interval.ms": "10",
        "run.until": "drained",
    }


def await_end(task: TaskProcess | RunningTask) -> None:
    """Wait until the task has read everything: Spark takes its time to start."""
    wait_until("all is read", lambda: task.seen(messages.Drained) or task.seen(messages.Failed), seconds=180)
    assert task.seen(messages.Failed) == []


def failures(process: TaskProcess) -> float:
    """How many loads have failed."""
    measured = process.seen(messages.Metrics)
    return measured[-1].values.get("load-failure-total", 0.0) if measured else 0.0


@pytest.fixture
def process(bootstrap: str, topic: str, files: Path, java: Mapping[str, str]) -> Iterator[StartProcess]:
    """Starts drivers of a source, which publishes exactly once if it is given a topic for its offsets."""
    create_topic(bootstrap, topic)
    worker = {"bootstrap.servers": bootstrap, "key.converter": "StringConverter", "value.converter": "StringConverter"}
    running: list[TaskProcess] = []

    def start(
        crash_point: str = "", offsets_topic: str = "", offsets: TaskProcess | None = None, **more: str
    ) -> TaskProcess:
        props = source(topic, files) | {key.replace("_", "."): value for key, value in more.items()}
        config = worker
        if offsets_topic:
            props["exactly.once.support"] = "required"
            config = worker | {
                "group.id": f"cluster-{topic}",
                "offset.storage.topic": offsets_topic,
                "offset.storage.replication.factor": "1",
                "config.storage.topic": f"{topic}-configs",
                "status.storage.topic": f"{topic}-status",
                "exactly.once.source.support": "enabled",
            }
        known = offsets.offsets if offsets is not None else None
        running.append(TaskProcess(props, config, crash_point=crash_point, java=java, offsets=known))
        return running[-1]

    yield start
    for one in running:
        one.close()


@pytest.fixture
def offsets_topic(bootstrap: str, topic: str) -> str:
    """The offsets topic of this test alone."""
    create_topic(bootstrap, f"{topic}-offsets", 1, **{"cleanup.policy": "compact"})
    return f"{topic}-offsets"


@pytest.mark.thorough
def test_kills_before_and_after_the_commit_lose_and_double_nothing(
    bootstrap: str, topic: str, offsets_topic: str, process: StartProcess
) -> None:
    failing = process("transaction-before-commit", offsets_topic)
    wait_until("executors were killed", lambda: failures(failing) >= 1 or failing.seen(messages.Failed), seconds=180)
    assert failing.seen(messages.Failed) == []
    failing.kill()
    assert values(bootstrap, topic) == []

    task = process("transaction-committed", offsets_topic)
    await_end(task)
    assert failures(task) >= 1
    assert values(bootstrap, topic) == ALL_ONCE


@pytest.mark.thorough
def test_sparks_own_source_goes_on_after_the_files_whose_transactions_are_committed(
    bootstrap: str, topic: str, offsets_topic: str, files: Path, process: StartProcess
) -> None:
    own = {"connector_class": "SparkFileSource", "store_url": str(files), "format_class": "StringFormat"}
    own |= {"file_age_ms": "0", "poll_interval_ms": "50"}
    assert process("before-offset-commit", offsets_topic, **own).join() == -signal.SIGKILL
    assert values(bootstrap, topic) == ALL_ONCE

    await_end(process("", offsets_topic, **own))
    assert values(bootstrap, topic) == ALL_ONCE
    kept = {message.key(): message.value() for message in read_topic(bootstrap, offsets_topic)}
    marks = {value for key, value in kept.items() if b'"slot"' in key}
    assert marks == {None}


@pytest.mark.thorough
def test_a_kill_before_the_commit_has_the_split_published_again(
    bootstrap: str, topic: str, process: StartProcess
) -> None:
    killed = process("before-offset-commit:2")
    assert killed.join() == -signal.SIGKILL
    (done,) = (name for name in SIZES if any(name in partition for partition in killed.offsets))
    await_end(process(offsets=killed))
    counts = Counter(value.partition(" ")[0] for value in values(bootstrap, topic))
    assert counts == {name: count if name == done else 2 * count for name, count in SIZES.items()}


@pytest.fixture
def start(bootstrap: str) -> Iterator[Callable[..., RunningTask]]:
    """Starts tasks in this process, with a Java process of their own."""
    running: list[RunningTask] = []

    def start_task(props: Mapping[str, str]) -> RunningTask:
        running.append(RunningTask(bootstrap, props))
        return running[-1]

    yield start_task
    for task in running:
        task.close()


@pytest.mark.thorough
def test_a_large_table_is_read_by_ranges_though_java_is_killed(
    bootstrap: str, topic: str, start: Callable[..., RunningTask], tmp_path: Path
) -> None:
    rows = 120_000
    with sqlite3.connect(tmp_path / "rows.db") as connection:
        connection.execute(f'CREATE TABLE "{topic}" (id INTEGER PRIMARY KEY AUTOINCREMENT)')
        connection.executemany(f'INSERT INTO "{topic}" (id) VALUES (?)', [(n,) for n in range(1, rows + 1)])
    props = {
        "name": topic,
        "connector.class": "JdbcSource",
        "connection.url": f"jdbc:sqlite:{tmp_path / 'rows.db'}",
        "mode": "incrementing",
        "batch.max.rows": "5000",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "engine": "spark",
        "engine.poll.interval.ms": "50",
        "spark.master": "local[1]",
        "spark.driver.memory": "512m",
        "tasks.max": "2",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        "run.until": "drained",
    }
    create_topic(bootstrap, topic)
    task = start(props)
    # Whichever range Spark begins with: what is committed then is nothing, or the first of the two.
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": topic})) as consumer:
        wait_until(
            "a range is being read", lambda: consumer.get_watermark_offsets(TopicPartition(topic, 0))[1], seconds=180
        )
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.proc.kill()  # type: ignore[attr-defined]
    await_end(task)
    counts = Counter(json.loads(message.value())["id"] for message in read_topic(bootstrap, topic))
    assert (len(counts), min(counts), max(counts)) == (rows, 1, rows)
    assert max(counts.values()) <= 2
    assert task.metric("load-failure-total") == 1
    assert [offset["incrementing"] for offset in task.offsets.values() if offset] == [rows]
