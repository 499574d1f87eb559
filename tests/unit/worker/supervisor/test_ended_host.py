"""The process that units share, as the worker knows it: one pipe for all, and an end that may not be heard yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection, Pipe
from typing import Any

import pytest

from worker.messages import messages
from worker.messages.messages import Addressed
from worker.supervisor.hosts.hosts import Hosts
from worker.supervisor.process import Child, Piped
from worker.unit import Unit

A, B = Unit("a"), Unit("b")


class Process(Piped):
    """A child whose other end the test has. It ends when it is killed, or ``ends`` with its pipe."""

    pid = 1

    def __init__(self, *, ends: bool) -> None:
        ours, self.theirs = Pipe()
        super().__init__(ours)
        self.is_killed = False
        self.was_let_go = False
        self._ends = ends

    def gone(self) -> bool:
        return self.is_killed or (self._ends and super().gone())

    def kill(self) -> None:
        self.is_killed = True

    def join(self) -> str:
        return "was killed by SIGKILL"


class World:
    """Starts processes for the hosts of a worker, all of whose units share."""

    def __init__(self, pipes: ExitStack) -> None:
        self.processes: list[Process] = []
        self.ends = True
        self._pipes = pipes
        launcher: Any = self
        self.hosts = Hosts(launcher)

    def launch(self, *_: object) -> Process:
        process = Process(ends=self.ends)
        self.processes.append(process)
        self._pipes.callback(process.theirs.close)
        self._pipes.callback(process.pipe.close)
        return process

    def home(self, _: object) -> str:
        return ""

    def start(self, unit: Unit) -> Child:
        return self.hosts.launch(unit, messages.RunConnector(unit.connector, {}, {"task.isolation": "shared"}))


@pytest.fixture
def world() -> Iterator[World]:
    with ExitStack() as pipes:
        yield World(pipes)


def heard(pipe: Connection) -> Any:
    return messages.decode(pipe.recv_bytes())


def test_a_unit_that_comes_to_a_host_which_has_ended_lives_in_another(world: World) -> None:
    begin: Callable[..., Process] = world.launch

    def launch_dead(*_: object) -> Process:
        process = begin()
        if len(world.processes) == 1:
            process.theirs.close()
        return process

    world.launch = launch_dead  # type: ignore[method-assign]
    children = [world.start(unit) for unit in (A, B)]
    assert [child.shares and not child.gone() for child in children] == [True, True]
    assert len(world.processes) == 2, "both live in the second"
    assert isinstance(heard(world.processes[1].theirs), messages.RunUnits)


def test_what_is_said_to_and_by_a_unit_has_the_number_of_its_seat_which_is_given_once(world: World) -> None:
    first, second = world.start(A), world.start(B)
    (process,) = world.processes
    second.send(messages.Pause())
    first.send(messages.Stop())
    assert isinstance(heard(process.theirs), messages.RunUnits)
    assert heard(process.theirs) == Addressed(2, messages.Pause())
    assert heard(process.theirs) == Addressed(1, messages.Stop())

    for seat, report in ((2, messages.Paused()), (9, messages.Drained()), (1, messages.Ended())):
        process.theirs.send_bytes(messages.encode(Addressed(seat, report)))
    assert world.hosts.hear(process) == [A, B]
    assert list(second.receive()) == [messages.Paused()]
    assert list(first.receive()) == []
    assert [first.gone(), second.gone()] == [True, False]

    assert not world.hosts.left(A, unasked=False)
    again = world.start(A)
    again.send(messages.Resume())
    assert heard(process.theirs) == Addressed(3, messages.Resume())
    process.theirs.send_bytes(messages.encode(Addressed(1, messages.Paused())))
    assert world.hosts.hear(process) == [], "who had the seat before says nothing more"


def test_a_process_that_has_closed_its_pipe_and_does_not_end_is_killed_and_nobody_blamed(world: World) -> None:
    world.ends = False
    children = [world.start(unit) for unit in (A, B)]
    (process,) = world.processes
    process.theirs.close()
    assert world.hosts.hear(process) == []
    assert process.is_killed
    assert [world.hosts.is_condemned(unit) for unit in (A, B)] == [True, True]
    assert world.hosts.hear(process) == [A, B]
    assert [child.join() for child in children] == ["was killed by SIGKILL"] * 2
    assert [world.hosts.left(unit, unasked=True) for unit in (A, B)] == [True, True], "both are started again"


def test_a_process_that_has_said_why_it_ends_has_ended_for_that_reason(world: World) -> None:
    child = world.start(A)
    (process,) = world.processes
    process.theirs.send_bytes(messages.encode(messages.Failed("The JVM of its process exited with status 3.")))
    process.theirs.close()
    # What it has said and its end may be heard one after the other.
    assert [*world.hosts.hear(process), *world.hosts.hear(process)] == [A]
    assert child.join() == "has ended: The JVM of its process exited with status 3"
    assert not world.hosts.left(A, unasked=True), "it was alone"


def test_nobody_is_blamed_for_a_process_that_ended_because_its_worker_had_lost_the_cluster(world: World) -> None:
    for unit in (A, B):
        world.start(unit)
    (process,) = world.processes
    process.was_let_go = True
    process.theirs.close()
    assert world.hosts.hear(process) == [A, B]
    assert [world.hosts.left(unit, unasked=True) for unit in (A, B)] == [True, True]
    for unit in (A, B):
        world.start(unit)
    assert len(world.processes) == 2, "they live together again"
    assert world.hosts.misplaced() == []


def test_units_of_java_start_again_in_two_processes_and_not_in_one_each(world: World) -> None:
    """A JVM is large: a host of many units that dies must not become as many JVMs."""
    world.home = lambda _: "java@jars"  # type: ignore[method-assign]
    units = [Unit(f"connector-{number:02}") for number in range(20)]

    def start_all() -> None:
        for unit in units:
            command = messages.RunConnector(unit.connector, {}, {"task.isolation": "auto"})
            world.hosts.launch(unit, command)

    start_all()
    (process,) = world.processes
    process.theirs.close()
    process.kill()
    world.hosts.hear(process)
    assert all(world.hosts.left(unit, unasked=True) for unit in units), "all start again"
    start_all()
    assert len(world.processes) == 3
