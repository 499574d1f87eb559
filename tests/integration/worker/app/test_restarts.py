"""Connectors of a standalone worker that start by themselves: after failures, and by the clock."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from equipment.brokers.topics import create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

pytestmark = pytest.mark.integration

PLUGINS = Path(__file__).parents[3] / "cluster" / "plugins"
SOON = 6
"""In how many seconds a minute of the time zone begins."""


def ask(worker: StandaloneWorker, method: str, path: str, body: Any = None) -> requests.Response:
    """The answer, which must be good."""
    answer = requests.request(method, f"{worker.url()}connectors/{path}", json=body, timeout=60)
    assert answer.ok, answer.text
    return answer


@pytest.fixture(scope="module")
def zones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where the worker finds its time zones."""
    return tmp_path_factory.mktemp("zones")


@pytest.fixture(scope="module")
def worker(shared_standalone: Callable[..., StandaloneWorker], zones: Path) -> StandaloneWorker:
    """A worker for all tests of this file; each has a connector of its own."""
    return shared_standalone({"PYTHONTZPATH": str(zones)}, plugin_path=str(PLUGINS))


def write_zone(file: Path, turn: int) -> None:
    """Write a time zone in which a minute begins at this time, in seconds since 1970."""
    header = struct.pack(">4s16x6l", b"TZif", 0, 0, 0, 0, 1, 4)
    file.write_bytes(header + struct.pack(">lBB", -turn % 60, 0, 0) + b"LMT\0")


def test_what_fails_is_restarted_until_it_runs_or_the_limit_is_reached(
    worker: StandaloneWorker, topic: str, tmp_path: Path
) -> None:
    trigger = tmp_path / "fails"
    trigger.touch()
    config = {
        "connector.class": "FailsWhile",
        "topic": topic,
        "fails.while": str(trigger),
        "restart.policy": "on-failure",
        "restart.backoff.ms": "20",
        "restart.limit": "3",
    }
    ask(worker, "PUT", "failing/config", config)

    def task() -> dict[str, Any]:
        tasks = worker.status("failing").get("tasks")
        return dict(tasks[0]) if tasks else {}

    wait_until("it is given up", lambda: task().get("state") == "FAILED" and task().get("restarts") == 3)
    assert "made to fail" in task()["trace"]
    trigger.unlink()
    ask(worker, "POST", "failing/tasks/0/restart")
    wait_until("it runs", lambda: task().get("state") == "RUNNING")
    ask(worker, "PUT", "failing/config", config | {"restart.limit": "100"})
    trigger.touch()
    wait_until("it is restarted again and again", lambda: task().get("restarts", 0) > 4)
    trigger.unlink()
    wait_until("and runs in the end", lambda: task().get("state") == "RUNNING")


def test_a_scheduled_connector_rests_tells_its_next_run_and_may_be_run_now(
    worker: StandaloneWorker, topic: str, bootstrap: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    lines = tmp_path / "in.txt"
    lines.write_text("a\n")
    at = datetime.now(UTC) + timedelta(hours=2)
    config = {
        "connector.class": "FileStreamSource",
        "file": str(lines),
        "topic": topic,
        "run.until": "drained",
        "schedule": f"{at.minute} {at.hour} * * *",
    }
    ask(worker, "PUT", "nightly/config", config)
    expected = at.replace(second=0, microsecond=0).isoformat().replace("+00:00", "Z")
    worker.wait_for_states("nightly", "STOPPED")
    assert worker.status("nightly")["next_run"] == expected
    ask(worker, "PUT", "nightly/resume")
    wait_until("it ran", lambda: [message.value() for message in read_topic(bootstrap, topic)] == [b"a"])
    wait_until("it rests until its time comes", lambda: worker.status("nightly").get("next_run") == expected)
    ask(worker, "PUT", "nightly/stop")
    wait_until("a user has taken it off its schedule", lambda: "next_run" not in worker.status("nightly"))


def test_a_schedule_goes_by_the_clock_of_its_time_zone(
    worker: StandaloneWorker, zones: Path, topic: str, bootstrap: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    lines = tmp_path / "in.txt"
    lines.write_text("a\n")
    worker.url()
    turn = int(time.time()) + SOON
    write_zone(zones / "Soon", turn)
    config = {
        "connector.class": "FileStreamSource",
        "file": str(lines),
        "topic": topic,
        "run.until": "drained",
        "schedule": "* * * * *",
        "schedule.timezone": "Soon",
    }
    ask(worker, "PUT", "minutely/config", config)
    worker.wait_for_states("minutely", "STOPPED")
    first = wait_until("it tells its next run", lambda: worker.status("minutely").get("next_run"))
    assert datetime.fromisoformat(first).second == turn % 60
    wait_until("it ran", lambda: [message.value() for message in read_topic(bootstrap, topic)] == [b"a"], 90)
    # If the minute turned before the status was asked, it told the next one.
    wait_until("it rests until the next minute", lambda: worker.status("minutely").get("next_run", "") > first, 120)
    worker.wait_for_states("minutely", "STOPPED")
