"""How many processes with a JVM answer inquiries at once, and when the turn of the others comes."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from worker.messages import messages
from worker.supervisor.inquiries import Inquiries
from worker.supervisor.notices import Answered, Notice
from worker.supervisor.plugin_homes import JAVA
from worker.supervisor.process import Child, Launcher

VALIDATED = messages.Validated({"error_count": 0}, "source")
LATE = messages.Failed("Its turn did not come within 90 s.")


class Process:
    """A child that answers when it is told to."""

    def __init__(self) -> None:
        self.pipe = SimpleNamespace(closed=False)
        self.asked = 0
        self.is_killed = False
        self.reports: list[messages.Report] = []

    def send(self, _inquiry: Any) -> None:
        self.asked += 1

    def receive(self) -> Sequence[messages.Report]:
        reports, self.reports = self.reports, []
        return reports

    def gone(self) -> bool:
        return False

    def kill(self) -> None:
        self.is_killed = True

    def join(self) -> str:
        return "was killed"


class World:
    """Inquiries about plugins of one home, and the processes that are started for them."""

    def __init__(self, home: str = f"{JAVA}@jars") -> None:
        self._home = home
        self.processes: list[Process] = []
        self.answers: list[Notice] = []
        self.inquiries = Inquiries(cast("Launcher", self), self.answers.append, timeout=90.0, grace=1.0)

    def home(self, _inquiry: messages.Command) -> str:
        return self._home

    def launch(self, _label: str, _first: messages.Command) -> Child:
        self.processes.append(Process())
        return cast("Child", self.processes[-1])

    def ask(self, *requests: int) -> None:
        for request in requests:
            self.inquiries.ask(request, messages.ValidateConfig({}, {}))

    def open(self) -> set[int]:
        return set(self.inquiries.children().values())

    def answer(self, request: int) -> None:
        process = next(child for child, number in self.inquiries.children().items() if number == request)
        cast("Process", process).reports.append(VALIDATED)
        self.inquiries.hear(request)

    def asked(self) -> list[int]:
        """How many inquiries each process has been asked."""
        return [process.asked for process in self.processes]


def test_two_processes_with_a_jvm_answer_all_inquiries_in_turn() -> None:
    world = World()
    world.ask(1, 2, 3, 4, 5)
    assert (world.open(), world.asked()) == ({1, 2}, [1, 1])
    world.answer(2)
    assert (world.open(), world.asked()) == ({1, 3}, [1, 2])
    for request in (1, 3, 4, 5):
        world.answer(request)
    assert world.answers == [Answered(request, VALIDATED) for request in (2, 1, 3, 4, 5)]
    assert (sum(world.asked()), len(world.processes)) == (5, 2)


def test_an_inquiry_that_needs_no_jvm_waits_for_none() -> None:
    world = World(home="")
    world.ask(1, 2, 3)
    assert world.open() == {1, 2, 3}


def test_inquiries_that_last_long_keep_no_other_from_its_turn() -> None:
    world = World()
    world.ask(1, 2, 3)
    due = min(world.inquiries.deadlines())
    assert 15 < due - time.monotonic() <= 20
    world.inquiries.kill_overdue(due - 1)
    assert world.open() == {1, 2}
    world.inquiries.kill_overdue(due + 1)
    assert world.open() == {1, 2, 3}


def test_an_inquiry_whose_turn_has_not_come_is_given_up_or_cancelled() -> None:
    world = World()
    world.ask(1, 2, 3, 4, 5)
    world.inquiries.give_up(3)
    assert world.answers == [Answered(3, messages.Failed("It was cancelled."))]
    world.inquiries.end()
    stopping = messages.Failed("The worker is stopping.")
    assert world.answers[1:] == [Answered(request, stopping) for request in (4, 5, 1, 2)]
    assert all(process.is_killed for process in world.processes)


def test_an_inquiry_whose_turn_never_comes_has_an_answer() -> None:
    world = World()
    world.ask(1, 2, 3)
    world.inquiries.kill_overdue(math.inf)
    assert world.answers[0] == Answered(3, LATE)
    assert world.open() == set()
