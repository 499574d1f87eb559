"""Connector files in JSON, given to a ``sluice standalone`` process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from equipment.brokers.topics import read_topic
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

pytestmark = pytest.mark.integration

MakeWorker = Callable[..., StandaloneWorker]


@pytest.fixture
def source(topic: str, tmp_path: Path) -> dict[str, Any]:
    """The configuration of a connector that reads one line."""
    file = tmp_path / "in.txt"
    file.write_text("a line\n")
    return {"connector.class": "FileStreamSource", "file": str(file), "topic": topic, "tasks.max": 1}


@pytest.mark.parametrize(
    ("initial_state", "states"),
    [
        ("RUNNING", ("RUNNING", "RUNNING")),
        (None, ("RUNNING", "RUNNING")),
        ("paused", ("PAUSED",)),
        ("STOPPED", ("STOPPED",)),
    ],
)
def test_a_connector_begins_in_its_initial_state(
    standalone: MakeWorker,
    source: dict[str, Any],
    topic: str,
    bootstrap: str,
    initial_state: str | None,
    states: tuple[str, ...],
) -> None:
    worker = standalone()
    worker.connector_file("lines.json", json.dumps({"name": "a", "config": source, "initial_state": initial_state}))
    worker.connector_file("flat.json", json.dumps({"name": "flat", **source, "topic": f"{topic}-flat"}))
    worker.start()
    worker.wait_for_states("flat", "RUNNING", "RUNNING")
    worker.wait_for_states("a", *states)
    assert worker.get("connectors/a/config").json() == {"name": "a", **source, "tasks.max": "1"}
    if states == ("RUNNING", "RUNNING"):
        return
    assert worker.get("connectors/a/tasks").json() == []
    requests.put(f"{worker.url()}connectors/a/resume", timeout=30).raise_for_status()
    worker.wait_for_states("a", "RUNNING", "RUNNING")
    wait_until("the line is there", lambda: len(read_topic(bootstrap, topic)) == 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "a", "config": {}, "initial_state": "FLYING"}', "must be one of RUNNING, PAUSED, STOPPED"),
        ('{"name": "a", "config": {"name": "b"}}', "differs from the name next to it"),
        ('{"connector.class": "FileStreamSource"}', "has no name"),
    ],
)
def test_a_wrong_file_stops_the_worker(standalone: MakeWorker, text: str, reason: str) -> None:
    worker = standalone()
    worker.connector_file("wrong.json", text)
    assert worker.run() == 3
    assert "Failed to create connector for" in worker.log()
    assert "wrong.json" in worker.log()
    assert reason in worker.log()
    assert "Stopping after connector error" in worker.log()
