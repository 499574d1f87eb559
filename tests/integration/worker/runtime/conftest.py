"""Tasks that run as in a worker, on a real broker, and do as each test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from connect.data import SourceRecord
from equipment.scripts.source_script import Script, ScriptedConnector, ScriptedTask
from equipment.scripts.tasks import RunningTask, class_name

Start = Callable[..., RunningTask]


@pytest.fixture
def script() -> Script:
    ScriptedTask.script = Script()
    return ScriptedTask.script


@pytest.fixture
def start(bootstrap: str, topic: str, script: Script) -> Iterator[Start]:
    running: list[RunningTask] = []

    def start_task(
        *, worker: Mapping[str, str] | None = None, commit_error: str | None = None, **props: str
    ) -> RunningTask:
        connector = {
            "name": topic,
            "connector.class": class_name(ScriptedConnector),
            **{key.replace("_", "."): value for key, value in props.items()},
        }
        running.append(RunningTask(bootstrap, connector, worker=worker, commit_error=commit_error))
        return running[-1]

    yield start_task
    for task in running:
        task.close()


@pytest.fixture
def record(topic: str) -> Callable[..., SourceRecord]:
    """Makes records whose offset is their number, plus one."""

    def make(number: int, value: Any = None, partition: str = "p", to: str = topic) -> SourceRecord:
        text = str(number) if value is None else value
        return SourceRecord(to, text, source_partition={"p": partition}, source_offset={"o": number + 1})

    return make
