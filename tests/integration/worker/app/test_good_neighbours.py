"""Fifty good connectors of a real worker, and one among them that hurts the process that they share (invariant I7)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

import equipment
from equipment.brokers.topics import create_topic
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker
from worker.supervisor.hosts.placement import ROOM

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

PLUGINS = Path(equipment.__file__).parent / "misbehaving_plugins"
PAIRS = 25
LINES = 40
DEADLINE = 400.0
"""Fifty processes start at once after a crash, on a machine that may be busy with other tests."""
LIMIT = 1_000_000_000
"""Of the memory of a process, in bytes; that of fifty good ones has less."""


class Pairs:
    """Pairs of a source and a sink, each of which copies a file by a topic of its own."""

    def __init__(self, worker: StandaloneWorker, bootstrap: str, topic: str, folder: Path) -> None:
        self.names = [f"{kind}-{number}" for number in range(PAIRS) for kind in ("source", "sink")]
        self._worker = worker
        self._files = [folder / f"{number}.in" for number in range(PAIRS)]
        self._copies = [folder / f"{number}.out" for number in range(PAIRS)]
        self._written: list[str] = []
        for number, (file, copy) in enumerate(zip(self._files, self._copies, strict=True)):
            create_topic(bootstrap, f"{topic}-{number}")
            file.touch()
            source = {"connector_class": "misbehaving.LinesSourceConnector", "topic": f"{topic}-{number}"}
            worker.connector(f"source-{number}", file=str(file), **source)
            sink = {"connector_class": "misbehaving.LinesSinkConnector", "topics": f"{topic}-{number}"}
            worker.connector(f"sink-{number}", file=str(copy), **sink)

    def write(self) -> None:
        """Give each source some lines."""
        lines = [f"line {len(self._written) + number}" for number in range(LINES)]
        self._written += lines
        for file in self._files:
            with file.open("a") as to:
                to.write("".join(f"{line}\n" for line in lines))

    def lacking(self) -> dict[int, int]:
        """How many lines each sink lacks, of those that lack some."""
        there = [set(copy.read_text().splitlines() if copy.exists() else ()) for copy in self._copies]
        lacking = {number: len(set(self._written) - lines) for number, lines in enumerate(there)}
        return {number: lines for number, lines in lacking.items() if lines}

    def in_order(self) -> bool:
        """Whether each copy has the lines in the order in which they were written, whatever came twice."""
        return all(list(dict.fromkeys(copy.read_text().splitlines())) == self._written for copy in self._copies)

    def all_run(self) -> bool:
        """Whether all connectors and tasks run."""
        shown = self._worker.get("connectors?expand=status").json()
        return all(states(shown.get(name, {}).get("status", {})) == ["RUNNING"] * 2 for name in self.names)

    def pids(self) -> list[int]:
        """The process of each task."""
        return [self._worker.task_pid(name) for name in self.names]


def states(status: dict[str, Any]) -> list[str]:
    parts = [status.get("connector", {}), *status.get("tasks", [])]
    return [part.get("state") for part in parts]


class Neighbours:
    """A worker with pairs that share one process, and bad connectors that are put among them."""

    def __init__(self, worker: StandaloneWorker, bootstrap: str, topic: str, folder: Path) -> None:
        self.worker = worker
        self._topic = topic
        self.pairs = Pairs(worker, bootstrap, topic, folder)
        worker.start()
        wait_until("all run", self.pairs.all_run, DEADLINE)
        self.pairs.write()
        wait_until("the first lines are there", lambda: not self.pairs.lacking(), DEADLINE)
        self.pids = self.pairs.pids()
        self.shared = max(self.pids, key=self.pids.count)
        assert self.pids.count(self.shared) == ROOM == len(self.pairs.names)

    def put(self, name: str, **config: str) -> None:
        """Put a connector among the others."""
        props = {"connector.class": "misbehaving.MisbehavingSourceConnector", "topic": self._topic}
        props |= {key.replace("_", "."): value for key, value in config.items()}
        requests.put(f"{self.worker.url()}connectors/{name}/config", json=props, timeout=60).raise_for_status()

    def debug(self, logger: str) -> None:
        """Have the worker log what is of interest to nobody but who debugs it."""
        url = f"{self.worker.url()}admin/loggers/{logger}"
        requests.put(url, json={"level": "DEBUG"}, timeout=60).raise_for_status()

    def is_seen(self, name: str, state: str, trace: str = "") -> bool:
        """Whether a connector without tasks is in this state, for this reason."""
        status = self.worker.status(name)
        return states(status) == [state] and trace in status.get("connector", {}).get("trace", "")

    def wait_until_well(self) -> None:
        """Wait until each line has arrived and all run; no sink has lost one or their order."""
        self.pairs.write()
        wait_until("every line is there", lambda: not self.pairs.lacking(), DEADLINE)
        wait_until("all run again", self.pairs.all_run, DEADLINE)
        assert self.pairs.in_order()


@pytest.fixture
def good(standalone: Callable[..., StandaloneWorker], bootstrap: str, topic: str, tmp_path: Path) -> Neighbours:
    """Fifty good ones."""
    worker = standalone(plugin_path=str(PLUGINS), task_isolation="shared", process_memory_max_bytes=str(LIMIT))
    return Neighbours(worker, bootstrap, topic, tmp_path)


@pytest.mark.parametrize(
    ("does", "found"),
    [
        ("crashes", "was killed by SIGSEGV, in _on_cue: misbehaving.py"),
        pytest.param("exits", "exited with status 3", marks=pytest.mark.thorough),
        pytest.param("keeps the GIL", "has not returned for", marks=pytest.mark.thorough),
        pytest.param("leaks", f"more than process.memory.max.bytes={LIMIT}", marks=pytest.mark.thorough),
    ],
)
def test_fifty_run_and_every_line_arrives_whatever_one_among_them_does_to_the_process(
    good: Neighbours, tmp_path: Path, does: str, found: str
) -> None:
    cue = tmp_path / "cue"
    more = {"task_hang_timeout_ms": "3000"} if does == "keeps the GIL" else {}
    good.debug("worker.supervisor.supervisor")
    good.put("bad", does=does, cue=str(cue), **more)
    wait_until("the bad one runs", lambda: good.is_seen("bad", "RUNNING"), DEADLINE)
    assert f"process {good.shared} runs bad|worker" in good.worker.log(), "it lives among the good ones"
    good.pairs.write()
    cue.touch()
    good.pairs.write()
    wait_until("the bad one is found", lambda: good.is_seen("bad", "FAILED", found), DEADLINE)
    good.wait_until_well()


def test_fifty_stay_where_they_are_whatever_others_among_them_change(good: Neighbours) -> None:
    for name, does, state, trace in (
        ("signals", "handles signals", "RUNNING", ""),
        ("locale", "changes the locale", "RUNNING", ""),
        ("folder", "goes elsewhere", "RUNNING", ""),
        ("end", "leaves", "FAILED", "SystemExit: 4"),
    ):
        good.put(name, does=does)
        good.pairs.write()
        wait_until(f"{name} is seen", lambda: good.is_seen(name, state, trace), DEADLINE)  # noqa: B023
        good.wait_until_well()
        assert good.pairs.pids() == good.pids, f"nobody has moved because of {name}"
