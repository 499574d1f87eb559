"""Tasks of a worker that gets many: they begin alone, and those that rest move in with the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.connection import Pipe
from typing import Any

import pytest

from worker.messages import messages
from worker.supervisor.hosts.hosts import Hosts
from worker.supervisor.hosts.placement import FEW
from worker.supervisor.process import Child, Piped
from worker.unit import Unit

TASKS = [Unit("c", number) for number in range(FEW + 2)]
BUSY, NEEDY, SET_APART = TASKS[:3]


class World:
    """A worker that says nothing of ``task.isolation``, and a clock."""

    def __init__(self, pipes: ExitStack) -> None:
        self.now = 0.0
        self.pipes = pipes
        launcher: Any = self
        self.hosts = Hosts(launcher, lambda: self.now)
        self.children: dict[Unit, Child] = {}
        self.totals = dict.fromkeys(TASKS, 0.0)

    def launch(self, *_: object) -> Piped:
        ours, theirs = Pipe()
        self.pipes.enter_context(theirs)
        child = Piped(ours)
        self.pipes.callback(child.pipe.close)
        return child

    def home(self, _: object) -> str:
        return ""

    def start(self, unit: Unit) -> None:
        connector = {"task.isolation": "process"} if unit == SET_APART else {}
        command = messages.RunTask(unit.connector, unit.task or 0, {}, connector, {}, paused=False)
        self.children[unit] = self.hosts.launch(unit, command)
        if self.children[unit].shares:
            self.pipes.callback(self.children[unit].pipe.close)

    def run(self, seconds: int, *units: Unit) -> list[Unit]:
        """Let so many seconds pass in which one of these keeps a core busy; those that are to move then."""
        for unit in units:
            self.totals[unit] += seconds if unit == BUSY else 0.0
        self.now += seconds
        for unit in units:
            self.hosts.spent(unit, self.totals[unit])
        return self.hosts.misplaced()

    def sharing(self) -> list[Unit]:
        return [unit for unit, child in self.children.items() if child.shares]


@pytest.fixture
def world() -> Iterator[World]:
    with ExitStack() as pipes:
        yield World(pipes)


def test_when_there_are_many_those_that_rest_are_to_share(world: World) -> None:
    few, more = TASKS[: FEW + 1], TASKS[FEW + 1]
    for unit in few:
        world.start(unit)
    world.hosts.needs_process(NEEDY)
    assert world.sharing() == [], "one is not counted, which is to have a process of its own"
    for _ in range(10):
        assert world.run(20, *few) == []

    world.start(more)
    assert world.sharing() == [more]
    assert world.hosts.misplaced() == [], "they are asked between two calls of their plugins"
    resting = [unit for unit in few if unit not in (BUSY, NEEDY, SET_APART)]
    assert world.run(20, *few, more) == resting

    moving = resting[0]
    world.hosts.left(moving, unasked=False)
    world.start(moving)
    assert world.sharing() == [moving, more]
    world.hosts.left(more, unasked=False)
    world.hosts.gone(more)
    assert moving not in world.hosts.misplaced(), "nobody goes back because there are few again"
