"""Sink tasks that do as each test says, on a real broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from equipment.scripts.sink_script import Script, ScriptedConnector, ScriptedTask
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
        label: str = "a", *, worker: Mapping[str, str] | None = None, paused: bool = False, **props: str
    ) -> RunningTask:
        connector = {
            "name": topic,
            "connector.class": class_name(ScriptedConnector),
            "label": label,
            **{key.replace("_", "."): value for key, value in props.items()},
        }
        if "topics.regex" not in connector:
            connector.setdefault("topics", topic)
        running.append(RunningTask(bootstrap, connector, worker=worker, task=len(running), paused=paused))
        return running[-1]

    yield start_task
    for task in running:
        task.close()


@pytest.fixture
def group(topic: str) -> str:
    return f"connect-{topic}"
