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

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PLUGINS = Path(equipment.__file__).parent / "acting"
PAIRS = 25
LINES = 40
DEADLINE = 240.0
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
            source = {"connector_class": "acting.LinesSourceConnector", "topic": f"{topic}-{number}"}
            worker.connector(f"source-{number}", file=str(file), **source)
            sink = {"connector_class": "acting.LinesSinkConnector", "topics": f"{topic}-{number}"}
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


@pytest.mark.parametrize(
    ("does", "found"),
    [
        ("crashes", "was killed by SIGSEGV, in _on_cue: acting.py"),
        ("exits", "exited with status 3"),
        ("keeps the GIL", "has not returned for"),
        ("leaks", f"more than process.memory.max.bytes={LIMIT}"),
        ("handles signals", None),
        ("changes the locale", None),
        ("goes elsewhere", None),
        ("leaves", "SystemExit: 4"),
    ],
)
def test_fifty_run_and_every_line_arrives_whatever_one_among_them_does(
    standalone: Callable[..., StandaloneWorker],
    bootstrap: str,
    topic: str,
    tmp_path: Path,
    does: str,
    found: str | None,
) -> None:
    cue = tmp_path / "cue"
    worker = standalone(plugin_path=str(PLUGINS), task_isolation="shared", process_memory_max_bytes=str(LIMIT))
    pairs = Pairs(worker, bootstrap, topic, tmp_path)
    worker.start()
    wait_until("all run", pairs.all_run, DEADLINE)
    pairs.write()
    wait_until("the first lines are there", lambda: not pairs.lacking(), DEADLINE)
    before = pairs.pids()
    shared = max(before, key=before.count)
    assert before.count(shared) == ROOM == len(pairs.names)

    def bad() -> tuple[list[str], str]:
        status = worker.status("bad")
        return states(status), status.get("connector", {}).get("trace", "")

    waits = does in ("crashes", "exits", "keeps the GIL", "leaks")
    config = {"connector.class": "acting.ActingSourceConnector", "topic": topic, "does": does}
    config |= {"cue": str(cue)} if waits else {}
    config |= {"task.hang.timeout.ms": "3000"} if does == "keeps the GIL" else {}
    requests.put(f"{worker.url()}connectors/bad/config", json=config, timeout=60).raise_for_status()
    if waits:
        wait_until("the bad one runs", lambda: bad()[0] == ["RUNNING"], DEADLINE)
        assert f"process {shared} runs bad|worker" in worker.log(), "it lives among the good ones"
    pairs.write()
    cue.touch()
    pairs.write()
    if found is not None:
        wait_until("the bad one is found", lambda: bad()[0] == ["FAILED"] and found in bad()[1], DEADLINE)
    else:
        wait_until("it runs", lambda: bad()[0] == ["RUNNING"], DEADLINE)
    pairs.write()
    wait_until("every line is there", lambda: not pairs.lacking(), DEADLINE)
    wait_until("all run again", pairs.all_run, DEADLINE)
    assert pairs.in_order()
    if not waits:
        assert pairs.pids() == before, "nobody has moved"
