"""Units that share processes: one that hurts its process is found, and the others run on (invariant I7)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue

import pytest

from equipment.proofs import thorough_rows
from worker.messages import messages
from worker.runtime.entry import main
from worker.supervisor.hosts.placement import FEW
from worker.supervisor.lifecycle import Phase
from worker.supervisor.notices import Changed, Launched, Notice
from worker.supervisor.process import ForkServerLauncher
from worker.supervisor.supervisor import Supervisor
from worker.unit import Unit

pytestmark = pytest.mark.slow

PLUGINS = Path(__file__).parents[3] / "equipment" / "misbehaving_plugins"
DEADLINE = 120.0
GOOD = [Unit(f"good-{number}") for number in range(6)]
MANY = [Unit(f"good-{number}") for number in range(FEW + 1)]
BAD = Unit("bad")
WORKER = {
    "bootstrap.servers": "localhost:1",
    "plugin.path": str(PLUGINS),
    "offset.storage.file.filename": "offsets",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "task.shutdown.graceful.timeout.ms": "2000",
}


class World:
    """A supervisor, and what became of its units."""

    def __init__(self, folder: Path) -> None:
        self.cue = folder / "cue"
        self.notices: SimpleQueue[Notice] = SimpleQueue()
        self.last: dict[Unit, Changed] = {}
        self.pids: dict[Unit, int] = {}
        self.launches: dict[Unit, int] = {}
        self.supervisor = Supervisor(
            ForkServerLauncher(main), self.notices.put, _no_offsets, 2.0, memory_limit=200_000_000
        )
        self.supervisor.start_thread()

    def start(self, unit: Unit, does: str, isolation: str = "shared", **config: str) -> None:
        named = {"name": unit.connector, "connector.class": "misbehaving.MisbehavingSourceConnector", "topic": "t"}
        config = {**named, "does": does, **config}
        worker = {**WORKER, "task.isolation": isolation}
        self.supervisor.start(unit, messages.RunConnector(unit.connector, config, worker))

    def start_good(self, units: list[Unit] = GOOD) -> None:
        for unit in units:
            self.start(unit, "rests", secret="hunter2-of-another")
        self.until(lambda: self.together(units))

    def until(self, holds: Callable[[], bool]) -> None:
        """Take in what happens until this holds."""
        while not holds():
            try:
                notice = self.notices.get(timeout=DEADLINE)
            except Empty:
                pytest.fail(f"it never came to that: {self.last}, {self.pids}")
            if isinstance(notice, Changed):
                self.last[notice.unit] = notice
            elif isinstance(notice, Launched):
                self.pids[notice.unit] = notice.pid
                self.launches[notice.unit] = self.launches.get(notice.unit, 0) + 1

    def is_in(self, phase: Phase, *units: Unit) -> bool:
        return all(unit in self.last and self.last[unit].phase is phase for unit in units)

    def together(self, units: list[Unit]) -> bool:
        """Whether all of these run, in one process."""
        return self.is_in(Phase.RUNNING, *units) and len({self.pids[unit] for unit in units}) == 1


def _no_offsets(*_: object) -> None:  # type: ignore[misc]
    raise AssertionError("a connector that rests asks for no offsets")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.supervisor.close()


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("crashes", "was killed by SIGSEGV, in _on_cue: misbehaving.py"),
        *thorough_rows(("exits", "exited with status 3")),
        ("keeps the GIL", "has not returned for 1.5 s"),
        ("leaks", "bytes of memory, more than process.memory.max.bytes=200000000"),
    ],
)
def test_one_that_ends_its_process_is_found_and_the_others_run_on_together(
    world: World, does: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    limits = {"task.hang.timeout.ms": "1500"} if does == "keeps the GIL" else {}
    world.start_good()
    world.start(BAD, does, cue=str(world.cue), **limits)
    world.until(lambda: world.together([*GOOD, BAD]))
    world.cue.touch()
    world.until(lambda: world.is_in(Phase.FAILED, BAD) and world.together(GOOD))
    assert reason in (world.last[BAD].trace or "")
    assert {world.launches[unit] for unit in GOOD} == {3}, "together, apart, and together again"
    assert caplog.text.count("Fatal Python error") == (does == "crashes"), "the stacks are shown once, not by each unit"

    # It is known now: it lives alone, and hurts nobody.
    world.cue.unlink()
    world.supervisor.stop(BAD)
    world.until(lambda: world.is_in(Phase.GONE, BAD))
    world.start(BAD, does, cue=str(world.cue), **limits)
    world.until(lambda: world.is_in(Phase.RUNNING, BAD))
    assert world.pids[BAD] != world.pids[GOOD[0]]


def test_one_that_fails_by_itself_moves_nobody(world: World) -> None:
    world.start_good()
    world.start(BAD, "leaves")
    world.until(lambda: world.is_in(Phase.FAILED, BAD))
    world.supervisor.stop(BAD)
    world.until(lambda: world.is_in(Phase.GONE, BAD))
    assert {world.launches[unit] for unit in GOOD} == {1}


def test_one_that_handles_signals_has_a_process_of_its_own(world: World) -> None:
    world.start_good()
    world.start(BAD, "handles signals")
    world.until(lambda: world.is_in(Phase.RUNNING, BAD))
    assert world.launches[BAD] == 2
    assert world.pids[BAD] != world.pids[GOOD[0]]
    assert {world.launches[unit] for unit in GOOD} == {1}


@pytest.mark.parametrize("does", ["does not stop", "leaves a thread"])
def test_one_that_does_not_stop_is_killed_after_the_others_have_moved_out(world: World, does: str) -> None:
    world.start_good()
    before = world.pids[GOOD[0]]
    world.start(BAD, does)
    world.until(lambda: world.is_in(Phase.RUNNING, BAD))
    world.supervisor.stop(BAD)
    world.until(lambda: world.is_in(Phase.GONE, BAD) and world.together(GOOD))
    assert world.pids[GOOD[0]] != before
    assert {world.launches[unit] for unit in GOOD} == {2}, "they have moved once, and stay together"
    assert not Path(f"/proc/{before}").exists()


def test_a_call_that_hangs_fails_its_unit_and_the_others_move_out(world: World) -> None:
    world.start_good()
    before = world.pids[GOOD[0]]
    world.start(BAD, "hangs", **{"task.hang.timeout.ms": "1500"})
    world.until(lambda: world.is_in(Phase.FAILED, BAD) and world.together(GOOD) and world.pids[GOOD[0]] != before)
    assert "start has not returned for" in (world.last[BAD].trace or "")
    assert {world.launches[unit] for unit in GOOD} == {2}


def test_each_has_its_own_folder_and_its_own_lines_of_the_log_without_anybodys_secrets(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    two = GOOD[:2]
    world.start_good(two[:1])
    world.start(BAD, "goes elsewhere")
    world.until(lambda: world.together([*two[:1], BAD]))
    other = Unit("other")
    world.start(other, "speaks of others")
    world.start_good(two)
    world.until(lambda: world.together([*two, BAD, other]))
    world.supervisor.close()
    lines = [(record.context, record.getMessage()) for record in caplog.records if record.name == "misbehaving"]  # type: ignore[attr-defined]
    here = Path.cwd()
    assert sorted(lines) == sorted(
        [
            ("good-0|worker", f"starts in {here} with [hidden]"),
            ("good-1|worker", f"starts in {here} with [hidden]"),
            ("bad|worker", f"starts in {here} with None"),
            ("other|worker", f"starts in {here} with None"),
            ("other|worker", "I have heard of [hidden]"),
        ]
    )


def test_few_have_a_process_each_and_many_share(world: World) -> None:
    *few, last = MANY
    for unit in few:
        world.start(unit, "rests", "auto")
    world.until(lambda: world.is_in(Phase.RUNNING, *few))
    assert len({world.pids[unit] for unit in few}) == FEW
    world.start(last, "rests", "auto")
    world.until(lambda: world.together([*few, last]))
    assert {world.launches[unit] for unit in few} == {2}
    world.supervisor.stop(last)
    world.until(lambda: world.is_in(Phase.GONE, last))
    world.start(last, "rests", "auto")
    world.until(lambda: world.is_in(Phase.RUNNING, *few, last))
    assert {world.launches[unit] for unit in few} == {2}, "nobody moves because another comes and goes"


def test_isolation_says_who_lives_together(world: World) -> None:
    alone, also_alone = Unit("a"), Unit("b")
    world.start(alone, "rests", "process")
    world.start(also_alone, "rests", "connector")
    world.start(GOOD[0], "rests", "process", **{"task.isolation": "shared"})
    world.start(GOOD[1], "rests", "shared")
    world.until(lambda: world.is_in(Phase.RUNNING, alone, also_alone, *GOOD[:2]))
    assert world.pids[GOOD[0]] == world.pids[GOOD[1]]
    assert len(set(world.pids.values())) == 3
