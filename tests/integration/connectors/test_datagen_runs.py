"""Records that are made up, in a real worker that is killed in between."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from connectors.datagen.quickstarts import QUICKSTARTS
from connectors.datagen.stream import RecordStream, RecordType
from equipment.brokers.topics import read_topic
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

MakeWorker = Callable[..., StandaloneWorker]


def expected(seed: int, task: int, count: int) -> list[dict[str, Any]]:
    """The first records of a task."""
    stream = RecordStream(RecordType(QUICKSTARTS["inventory"].text), seed, task)
    rows: list[dict[str, Any]] = []
    while len(rows) < count:
        columns = stream.columns(len(rows), count - len(rows))
        rows += [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return rows


def sent(bootstrap: str, topic: str) -> dict[int, dict[int, Any]]:
    """The records of each task by their numbers; one that was sent twice is the same."""
    found: dict[int, dict[int, Any]] = {0: {}, 1: {}}
    for message in read_topic(bootstrap, topic):
        headers = dict(message.headers())
        row = json.loads(message.value())
        assert found[int(headers["task.id"])].setdefault(int(headers["current.iteration"]), row) == row
    return found


def states(worker: StandaloneWorker) -> list[str]:
    """The states of the tasks."""
    return [task["state"] for task in worker.status("made")["tasks"]]


@pytest.mark.parametrize("victim", ["worker", "task"])
def test_a_killed_task_makes_the_same_stream_without_a_gap(
    standalone: MakeWorker, topic: str, bootstrap: str, victim: str
) -> None:
    worker = standalone(value_converter="JsonConverter", **{"value.converter.schemas.enable": "false"})
    props = {
        "connector_class": "io.confluent.kafka.connect.datagen.DatagenConnector",
        "kafka_topic": topic,
        "quickstart": "inventory",
        "random_seed": "11",
        "tasks_max": "2",
    }
    worker.connector("made", **props, max_interval="1")
    worker.start()
    offsets = worker.folder / "offsets"
    wait_until("offsets are committed", lambda: offsets.exists() and offsets.stat().st_size > 0, seconds=60)
    if victim == "task":
        os.kill(worker.task_pid("made", 0), signal.SIGKILL)
        wait_until("the task has failed", lambda: states(worker) == ["FAILED", "RUNNING"], seconds=60)
    worker.kill()
    count = max(number for rows in sent(bootstrap, topic).values() for number in rows) + 5_000
    worker.connector("made", **props, max_interval="0", iterations=str(count), run_until="drained")
    assert worker.run(seconds=180) == 0, worker.log()
    for task, rows in sent(bootstrap, topic).items():
        assert [rows.get(number) for number in range(count)] == expected(11, task, count)
