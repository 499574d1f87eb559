"""Signals of users to running source connectors, by REST, at a real worker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

import equipment
from equipment.brokers.topics import create_topic, read_so_far
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

pytestmark = pytest.mark.integration

PLUGINS = Path(equipment.__file__).parent / "signalled"


@pytest.fixture(scope="module")
def worker(shared_standalone: Callable[..., StandaloneWorker]) -> StandaloneWorker:
    """A worker that runs connectors of the tests."""
    return shared_standalone(plugin_path=str(PLUGINS))


def put(worker: StandaloneWorker, name: str, kind: str, topic: str) -> None:
    config = {"connector.class": kind, "topic": topic, "tasks.max": "1"}
    config["value.converter"] = "StringConverter"
    answer = requests.put(f"{worker.url()}connectors/{name}/config", json=config, timeout=60)
    assert answer.ok, answer.text
    worker.wait_for_states(name, "RUNNING", "RUNNING")


def send(worker: StandaloneWorker, name: str, body: Any) -> requests.Response:
    return requests.post(f"{worker.url()}connectors/{name}/signals", json=body, timeout=60)


def test_a_signal_reaches_the_task_and_is_answered_then(worker: StandaloneWorker, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    put(worker, topic, "SignalledConnector", topic)
    answer = send(worker, topic, {"id": "s1", "type": "log", "data": {"message": "hi"}})
    assert (answer.status_code, answer.json()) == (202, {"id": "s1", "type": "log", "task": 0})
    assert send(worker, topic, {"type": "other"}).json()["id"]
    wait_until("the signals are published", lambda: len(read_so_far(bootstrap, topic)) == 2)
    first, second = (json.loads(value) for value in read_so_far(bootstrap, topic))
    assert first == {"id": "s1", "type": "log", "data": {"message": "hi"}}
    assert (second["type"], second["data"]) == ("other", {})


def test_a_signal_that_cannot_be_taken_is_refused_with_the_reason(
    worker: StandaloneWorker, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    put(worker, topic, "SignalledConnector", topic)
    deaf = f"{topic}-deaf"
    put(worker, deaf, "DeafConnector", topic)
    refused = [
        (topic, {"type": "refuse"}, 400, "No such table: name one that there is."),
        (topic, {"id": "s"}, 400, "The type of a signal must be text"),
        (topic, {"type": "log", "data": [1]}, 400, "The data of a signal must be an object."),
        (topic, {"type": "log", "kind": "x"}, 400, 'Unrecognized field "kind"'),
        (deaf, {"type": "log"}, 400, "The connector takes no signals"),
        (f"{topic}-no", {"type": "log"}, 404, "not found"),
    ]
    for name, body, status, reason in refused:
        answer = send(worker, name, body)
        assert (answer.status_code, reason in answer.json()["message"]) == (status, True), answer.text
    requests.put(f"{worker.url()}connectors/{topic}/pause", timeout=60)
    answer = send(worker, topic, {"type": "log"})
    assert (answer.status_code, "is paused. Resume it" in answer.text) == (409, True), answer.text
    requests.put(f"{worker.url()}connectors/{topic}/resume", timeout=60)
    worker.wait_for_states(topic, "RUNNING", "RUNNING")
    answer = send(worker, topic, {"type": "crash"})
    assert (answer.status_code, "has not said whether it has the signal" in answer.text) == (409, True), answer.text
    answer = send(worker, topic, {"type": "log"})
    assert (answer.status_code, "has failed. Restart it" in answer.text) == (409, True), answer.text
