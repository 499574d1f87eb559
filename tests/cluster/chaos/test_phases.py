"""What a kill hit is told from stacks, and the kills follow from their seed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections import Counter
from functools import reduce
from pathlib import Path

import pytest

from cluster.chaos.phases import PLACES, Phase, freeze, phase_of, stacks
from cluster.chaos.plan import Kind, Victim, draw
from cluster.chaos.report import Hit, missed, report

VICTIMS = (Victim(Kind.BROKER), Victim(Kind.UNIT, "a", "b|task"), Victim(Kind.WORKER, "a", "leader"))


@pytest.mark.parametrize("place", PLACES)
def test_the_places_are_there(place: str) -> None:
    module, _, name = place.partition(":")
    assert callable(reduce(getattr, name.split("."), importlib.import_module(module)))


def test_a_process_can_be_looked_at() -> None:
    code = "import time; print(flush=True); time.sleep(60)"
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).with_name("looking"))}
    with subprocess.Popen([sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            freeze([process.pid])
            assert stacks(process.pid) == [["<string>:<module>"]], "py-spy must be there, and may look"
        finally:
            process.kill()


def test_the_innermost_place_tells() -> None:
    stack = [
        "select:poll",
        "worker.runtime.source.exactly_once:ExactlyOnce._write_offsets",
        "worker.runtime.source.exactly_once:ExactlyOnce._commit",
    ]
    assert phase_of([["threading:wait"], stack]) is Phase.FLUSH
    assert phase_of([["threading:wait"]]) is None


def test_the_same_seed_gives_the_same_kills() -> None:
    assert draw(7, 20, VICTIMS) == draw(7, 20, VICTIMS)
    assert draw(7, 20, VICTIMS) != draw(8, 20, VICTIMS)


def test_every_victim_comes_up() -> None:
    counts = Counter(step.victim for step in draw(1, 10, VICTIMS))
    assert sorted(counts.values()) == [3, 3, 4]


def test_the_report_counts_every_kill() -> None:
    hits = [
        Hit(1.0, "broker", {"a|task-0": Phase.FLUSH, "b|task-0": Phase.COMMIT, "b|task-1": Phase.COMMIT}),
        Hit(2.0, "process a|task-0", {"a|task-0": Phase.CONVERT}, aimed=True),
        Hit(3.0, "process a|task-0", {}),
    ]
    assert missed(hits) == [Phase.PRODUCE, Phase.FENCE]
    rows = {line[:14].strip(): line[14:].split() for line in report(5, hits).splitlines()[1:]}
    assert rows["kills that hit"] == ["broker", "process", "sum"]
    assert rows["commit"] == ["1", "0", "1"]
    assert rows["none of these"] == ["0", "1", "1"]
    assert rows["all"] == ["1", "2", "3"]
