"""Source connectors that are run by Spark: from their splits, by way of executors, to topics on the broker."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from equipment.brokers.topics import create_topic, read_topic
from equipment.fakes.http_api import paged, serving_api
from equipment.scripts.tasks import RunningTask
from equipment.waiting import wait_until
from worker.messages import messages

pytest.importorskip("pyspark")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    # PySpark leaves the socket by which it brings rows to the driver to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

DYING = '''
"""A directory source whose task is killed once, when it has read a batch."""

import os
import signal
from pathlib import Path

from connectors.directory import DirectorySourceConnector, DirectorySourceTask


class DyingTask(DirectorySourceTask):
    def poll(self):
        batch = super().poll()
        mark = Path(self.config.path).parent / "killed"
        if batch is not None and self.remaining()["bytes"] == 0 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return batch


class DyingSource(DirectorySourceConnector):
    """Reads a folder, and is killed once."""

    task_class = DyingTask
'''


class Folder:
    """A folder of files, and the topic that a source run by Spark publishes their lines to."""

    def __init__(self, bootstrap: str, topic: str, path: Path) -> None:
        self.bootstrap, self.topic, self.path = bootstrap, topic, path / "in"
        self.path.mkdir()

    def write(self, name: str, lines: list[str], *, settled: bool = True) -> None:
        data = "".join(f"{line}\n" for line in lines).encode()
        file = self.path / name
        file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        if settled:
            os.utime(file, (time.time() - 60, time.time() - 60))

    def props(self, **more: str) -> dict[str, str]:
        return {
            "name": self.topic,
            "connector.class": "DirectorySource",
            "engine": "spark",
            "engine.poll.interval.ms": "50",
            "spark.master": "local[2]",
            "spark.driver.memory": "512m",
            "tasks.max": "2",
            "path": str(self.path),
            "topic": self.topic,
            "settle.ms": "0",
            "scan.interval.ms": "10",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": "2",
            "run.until": "drained",
            **{key.replace("_", "."): value for key, value in more.items()},
        }

    @property
    def worker(self) -> Mapping[str, str]:
        return {
            "bootstrap.servers": self.bootstrap,
            "key.converter": "StringConverter",
            "value.converter": "StringConverter",
        }

    def values(self) -> list[str]:
        return sorted(message.value().decode() for message in read_topic(self.bootstrap, self.topic))


Start = Callable[..., RunningTask]


@pytest.fixture
def folder(bootstrap: str, topic: str, tmp_path: Path) -> Folder:
    return Folder(bootstrap, topic, tmp_path)


@pytest.fixture
def start(bootstrap: str, shared_java: None) -> Iterator[Start]:
    running: list[RunningTask] = []

    def start_task(props: Mapping[str, str], **given: Any) -> RunningTask:
        running.append(RunningTask(bootstrap, props, **given))
        return running[-1]

    yield start_task
    for task in running:
        task.close()


def positions(offsets: Mapping[str, Any]) -> dict[str, int]:
    """How far each file is read, by its name."""
    found = {}
    for partition, offset in offsets.items():
        found[Path(json.loads(partition.replace("'", '"'))["filename"]).name] = offset["row"]
    return found


def await_end(task: RunningTask) -> None:
    """Wait until the task has read everything: Spark takes its time to start."""
    wait_until("all is read", lambda: task.seen(messages.Drained) or task.seen(messages.Failed), seconds=180)
    assert task.seen(messages.Failed) == []


def failure(task: RunningTask) -> str:
    """Wait until the task fails; why it did."""
    wait_until("the task fails", lambda: task.seen(messages.Failed), seconds=180)
    return task.trace()


def lines(prefix: str, count: int) -> list[str]:
    return [f"{prefix} {number}" for number in range(count)]


def test_files_are_read_by_executors_and_new_ones_are_found(folder: Folder, start: Start) -> None:
    folder.write("a.txt", lines("a", 500))
    folder.write("b.txt.gz", lines("b", 300))
    folder.write("c.txt", [])
    task = start(folder.props(run_until="stopped", tasks_max="3"))
    wait_until("both are read", lambda: positions(task.offsets) == {"a.txt": 500, "b.txt.gz": 300}, seconds=120)
    folder.write("d.txt", lines("d", 7))
    with (folder.path / "a.txt").open("a") as file:
        file.write("a 500\n")
    wait_until(
        "the rest is read", lambda: positions(task.offsets) == {"a.txt": 501, "b.txt.gz": 300, "d.txt": 7}, seconds=120
    )
    task.send(messages.Pause())
    task.wait_for(messages.Paused)
    task.send(messages.Resume())
    task.wait_for(messages.Resumed)
    task.stop()
    assert folder.values() == sorted([*lines("a", 501), *lines("b", 300), *lines("d", 7)])
    assert task.metric("source-record-write-total") == 808
    loads = task.seen(messages.Loads)[-1].last
    assert sum(load["records"] for load in loads) == 808
    assert loads[-1]["progress"]["stage"] == "reading splits (2 of 2 done)"
    assert {message.partition() for message in read_topic(folder.bootstrap, folder.topic)} == {0, 1}


def test_what_cannot_be_read_is_told_of_once_and_finished_files_are_moved(folder: Folder, start: Start) -> None:
    folder.write("a.jsonl", ['{"a": 1}', "no json", '{"a": 2}', "nor this"])
    (folder.path / "b.jsonl.gz").write_bytes(b"not compressed at all")
    os.utime(folder.path / "b.jsonl.gz", (time.time() - 60, time.time() - 60))
    queue = f"{folder.topic}-dlq"
    task = start(
        folder.props(
            value_converter="JsonConverter",
            value_converter_schemas_enable="false",
            errors_tolerance="all",
            errors_deadletterqueue_topic_name=queue,
            errors_deadletterqueue_topic_replication_factor="1",
            finished_action="move",
            finished_folder=str(folder.path.parent / "done"),
        )
    )
    await_end(task)
    assert (folder.path.parent / "done" / "a.jsonl").exists()
    assert folder.values() == ['{"a":1}', '{"a":2}']
    told = Counter(message.value() for message in read_topic(folder.bootstrap, queue))
    assert set(told) == {b"no json", b"nor this", str(folder.path / "b.jsonl.gz").encode()}
    assert told[str(folder.path / "b.jsonl.gz").encode()] == 1
    assert told[b"no json"] == 1


def test_a_record_that_may_not_be_left_out_fails_the_task(folder: Folder, start: Start) -> None:
    folder.write("a.jsonl", ['{"a": 1}', "no json", '{"a": 2}'])
    props = folder.props(value_converter="JsonConverter", value_converter_schemas_enable="false")
    trace = failure(start(props))
    assert "Tolerance exceeded in error handler" in trace
    assert folder.values() == ['{"a":1}']


def test_a_killed_python_worker_costs_nothing_but_records_that_come_twice(
    folder: Folder, start: Start, tmp_path: Path
) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "dying_source.py").write_text(DYING)
    (plugins / "plugins.toml").write_text('[[connector]]\nclass = "dying_source.DyingSource"\ntype = "source"\n')
    for name in "abc":
        folder.write(f"{name}.txt", lines(name, 100))
    props = folder.props(connector_class="dying_source.DyingSource", batch_size="10")
    task = start(props, worker={"plugin.path": str(plugins)})
    await_end(task)
    assert (tmp_path / "killed").exists()
    assert sorted(set(folder.values())) == sorted([*lines("a", 100), *lines("b", 100), *lines("c", 100)])
    assert positions(task.offsets) == {"a.txt": 100, "b.txt": 100, "c.txt": 100}
    assert task.metric("load-failure-total") == 1


def test_pages_of_an_api_are_read_side_by_side(bootstrap: str, folder: Folder, start: Start) -> None:
    create_topic(bootstrap, folder.topic)
    items = [{"id": number} for number in range(40)]
    with serving_api() as api:
        api.route("/items", paged(items, 2))
        props = folder.props(connector_class="HttpSource", kafka_topic=folder.topic, value_converter="JsonConverter")
        props |= {
            "http.request.url": f"{api.url}/items",
            "http.request.params": "offset=${page.offset}",
            "http.response.list.pointer": "/items",
            "http.paging": "offset",
            "http.paging.size": "2",
            "http.paging.end": "continue",
            "http.paging.total.pointer": "/total",
            "value.converter.schemas.enable": "false",
        }
        task = start(props)
        await_end(task)
    assert sorted(json.loads(value)["id"] for value in folder.values()) == list(range(40))
    (load,) = task.seen(messages.Loads)[-1].last
    assert load["progress"]["stage"] == "reading splits (2 of 2 done)"
    assert [offset["page.place"] for offset in task.offsets.values() if offset] == [40]


def test_a_source_without_splits_is_refused(folder: Folder, start: Start) -> None:
    props = folder.props(connector_class="Datagen", kafka_topic=folder.topic, quickstart="orders")
    assert "does not divide its work into splits" in failure(start(props))
