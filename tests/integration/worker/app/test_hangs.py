"""Plugins of a real worker that hang, with and without letting other threads run, that crash, and that print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests

import equipment
from equipment.brokers.topics import create_topic, produce, read_topic
from equipment.proofs import thorough
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.processes import runs
from equipment.workers.standalone import StandaloneWorker

PLUGINS = Path(equipment.__file__).parent / "trapped_plugins"
PATIENCE = 120.0
ENOUGH = 20


@pytest.fixture(scope="module")
def worker(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneWorker]:
    """A worker for all tests of this file; each has a connector of its own."""
    worker = StandaloneWorker(
        tmp_path_factory.mktemp("hangs") / "worker",
        bootstrap,
        plugin_path=str(PLUGINS),
        task_hang_warning_ms="1000",
        task_shutdown_graceful_timeout_ms="10000",
    ).start()
    yield worker
    worker.close()


class Trapped:
    """A connector and its trap."""

    def __init__(self, worker: StandaloneWorker, folder: Path, kind: str, call: str, **config: str) -> None:
        self.worker = worker
        self.name = f"trapped-{uuid4().hex[:8]}"
        self.unit = f"{self.name}|worker" if call == "connector" else f"{self.name}|task-0"
        self.trap = folder / "trap"
        self._put(
            {"connector.class": f"Trapped{kind}", "trap": str(self.trap), "trap.in": call, "name": self.name, **config}
        )

    def _put(self, config: dict[str, str]) -> None:
        url = f"{self.worker.url()}connectors/{self.name}/config"
        answer = requests.put(url, json=config, timeout=60)
        assert answer.ok, answer.text

    def state(self) -> dict[str, Any]:
        """The state of the task, or of the connector."""
        status = self.worker.status(self.name)
        if self.unit.endswith("|worker"):
            return dict(status.get("connector", {}))
        return dict(status["tasks"][0]) if status.get("tasks") else {}

    def hanging(self, method: str = "") -> dict[str, str]:
        """What the status says of the call that hangs, if it is this one: a busy machine makes others slow."""
        shown = dict(self.state().get("hanging", {}))
        return shown if method in ("", shown.get("method")) else {}

    def set_trap(self, what: str) -> None:
        """Have the next call do this."""
        new = self.trap.with_name("new-trap")
        new.write_text(what)
        new.rename(self.trap)

    def published(self) -> float:
        """How many numbers this process of the task has published."""
        return float(self.state().get("metrics", {}).get("source-record-write-total", 0))

    def rest(self) -> None:
        """Publish nothing more."""
        requests.put(f"{self.worker.url()}connectors/{self.name}/stop", timeout=60).raise_for_status()
        wait_until("it is stopped", lambda: not self.worker.status(self.name)["tasks"], PATIENCE)

    def lines(self, text: str) -> list[str]:
        """The lines of the log that name this unit and hold a text."""
        return [line for line in self.worker.log().splitlines() if f"[{self.unit}]" in line and text in line]


def numbers(bootstrap: str, topic: str) -> list[int]:
    """The numbers on a topic."""
    return [int(message.value()) for message in read_topic(bootstrap, topic)]


def test_a_put_that_hangs_is_shown_until_it_returns(
    worker: StandaloneWorker, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "out.txt"
    (tmp_path / "trap").write_text("hang")
    create_topic(bootstrap, topic)
    sink = Trapped(worker, tmp_path, "Sink", "put", topics=topic, file=str(file))
    produce(bootstrap, topic, [b"a", b"b"])
    hanging = wait_until("the status shows it", lambda: sink.hanging("put"), PATIENCE)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", hanging["since"])
    # The file of the task's own class, though the line that sleeps is in a method of its configuration.
    assert re.fullmatch(r"trapped\.py:\d+", hanging["line"])
    assert "in put\n    self.config.go" in hanging["trace"]
    assert "time.sleep(" in hanging["trace"]
    assert "worker/runtime" not in hanging["trace"]
    assert sink.state()["state"] == "RUNNING"
    assert sink.lines("put has not returned for 1")
    sink.trap.unlink()
    wait_until("it is shown no more", lambda: not sink.hanging(), PATIENCE)
    assert sink.state()["state"] == "RUNNING"
    wait_until("it goes on", lambda: file.exists() and file.read_text() == "a\nb\n", PATIENCE)
    assert sink.lines("put has returned")


def test_what_keeps_a_task_from_stopping_in_time_is_told_before_it_is_killed(
    worker: StandaloneWorker, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "trap").write_text("hang")
    source = Trapped(worker, tmp_path, "Source", "poll", topic=topic)
    wait_until("it hangs", lambda: source.hanging("poll"), PATIENCE)
    source.rest()
    line, *_ = source.lines("Asked to stop, but poll has not returned")
    assert re.search(r"returned: trapped\.py:\d+ ?", line)
    assert f"{source.unit} did not stop within 10.0 s and is killed" in worker.log()


@pytest.mark.parametrize("what", ["hang once", *thorough("hold")])
def test_a_poll_that_hangs_too_long_fails_and_its_restart_loses_nothing(
    worker: StandaloneWorker, bootstrap: str, topic: str, tmp_path: Path, what: str
) -> None:
    create_topic(bootstrap, topic)
    config = {"task.hang.timeout.ms": "2000", "restart.policy": "on-failure", "restart.backoff.ms": "20"}
    # Where several share a process all would have this limit, and nobody could say whose code lets no Python run.
    config["task.isolation"] = "process"
    source = Trapped(worker, tmp_path, "Source", "poll", topic=topic, **config)
    wait_until("it counts", lambda: source.published() >= ENOUGH, PATIENCE)
    pid = worker.task_pid(source.name)
    source.set_trap(what)
    failed, *_ = wait_until("it fails", lambda: source.lines("failed: poll has not returned for"), PATIENCE)
    assert re.search(r"for \d+(\.\d)? s: trapped\.py:\d+ \(task\.hang\.timeout\.ms\)$", failed)
    wait_until("it runs again", lambda: source.state().get("state") == "RUNNING", PATIENCE)
    assert not runs(pid)
    assert source.state()["restarts"] >= 1
    assert "hanging" not in source.state()
    wait_until("it counts on", lambda: source.published() >= ENOUGH, PATIENCE)
    source.rest()
    published = numbers(bootstrap, topic)
    assert list(dict.fromkeys(published)) == list(range(1, max(published) + 1))


def test_c_code_that_lets_no_python_run_is_shown_until_it_returns(
    worker: StandaloneWorker, topic: str, tmp_path: Path
) -> None:
    source = Trapped(worker, tmp_path, "Source", "poll", topic=topic)
    wait_until("it runs", lambda: source.state().get("state") == "RUNNING", PATIENCE)
    source.set_trap("hold for a while")
    hanging = wait_until("the status shows it", lambda: source.hanging("poll"), PATIENCE)
    assert re.fullmatch(r"trapped\.py:\d+", hanging["line"])
    assert "No Python runs in this process" in hanging["trace"]
    source.trap.unlink()
    wait_until("it is shown no more", lambda: not source.hanging(), PATIENCE)
    assert source.state()["state"] == "RUNNING"


@pytest.mark.parametrize("call", ["connector", *thorough("start"), "commit"])
def test_other_calls_that_hang_are_shown_too(worker: StandaloneWorker, topic: str, tmp_path: Path, call: str) -> None:
    (tmp_path / "trap").write_text("hang")
    source = Trapped(worker, tmp_path, "Source", call, topic=topic)
    method = "start" if call == "connector" else call
    wait_until("the status shows it", lambda: source.hanging(method), PATIENCE)
    source.trap.unlink()
    wait_until("it is shown no more", lambda: not source.hanging(), PATIENCE)
    wait_until("it runs", lambda: source.state().get("state") == "RUNNING", PATIENCE)


def test_a_crash_shows_where_it_was(worker: StandaloneWorker, topic: str, tmp_path: Path) -> None:
    source = Trapped(worker, tmp_path, "Source", "poll", topic=topic)
    wait_until("it runs", lambda: source.state().get("state") == "RUNNING", PATIENCE)
    source.set_trap("crash")
    wait_until("it has failed", lambda: source.state().get("state") == "FAILED", PATIENCE)
    trace = source.state()["trace"]
    first = trace.splitlines()[0]
    assert re.fullmatch(
        rf"The process of {re.escape(source.unit)} was killed by SIGSEGV, in poll: trapped\.py:\d+", first
    )
    assert "Fatal Python error: Segmentation fault" in trace
    assert re.search(r'File ".*trapped\.py", line \d+ in poll', trace)
    assert source.lines(f"failed: {first}")


def test_what_a_plugin_prints_comes_with_the_name_of_its_unit(
    worker: StandaloneWorker, topic: str, tmp_path: Path
) -> None:
    source = Trapped(worker, tmp_path, "Source", "poll", topic=topic, secret="open-sesame")
    wait_until("it runs", lambda: source.state().get("state") == "RUNNING", PATIENCE)
    source.set_trap("print")
    for printed in ("printed by Python: [hidden]", "printed by C", "printed by a program"):
        (line,) = wait_until(printed, lambda text=printed: source.lines(text), PATIENCE)
        assert line.endswith(f"{printed} (output)"), line


def test_a_task_that_is_ended_in_a_transaction_loses_and_doubles_nothing(
    bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    worker = DistributedWorker(
        tmp_path / f"worker-{uuid4().hex[:8]}",
        bootstrap,
        plugin_path=str(PLUGINS),
        exactly_once_source_support="enabled",
        task_hang_timeout_ms="2000",
    ).start()
    try:
        config = {"restart.policy": "on-failure", "restart.backoff.ms": "20", "transaction.boundary": "interval"}
        source = Trapped(worker, tmp_path, "Source", "poll", topic=topic, **config)
        wait_until("it counts", lambda: source.published() >= ENOUGH, PATIENCE)
        source.set_trap("hang once")
        wait_until("it was ended", lambda: source.lines("failed: poll has not returned for"), PATIENCE)
        wait_until("it was restarted", lambda: source.state().get("restarts", 0) >= 1, PATIENCE)
        wait_until("it counts on", lambda: source.published() >= ENOUGH, PATIENCE)
        source.rest()
        published = numbers(bootstrap, topic)
        assert published == list(range(1, len(published) + 1))
    finally:
        worker.close()
