"""A running unit between two processes: what it is told meanwhile, and when it counts as gone."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace

import pytest

from worker.messages.messages import Command, Drain, Fail, Pause, RunTask, SetLogLevel, TakeConfig
from worker.supervisor.lifecycle import Event, Phase, ProcessEvent, ProcessPhase
from worker.supervisor.running_unit import RunningUnit
from worker.unit import Unit

COMMAND = RunTask("c", 0, {"a": "1"}, {}, {}, paused=False)


class Child:
    """A process that is sent commands."""

    def __init__(self) -> None:
        self.sent: list[Command] = []

    def send(self, command: Command) -> None:
        self.sent.append(command)


@pytest.fixture
def unit() -> RunningUnit:
    running = RunningUnit(Unit("c", 0), Child(), COMMAND)
    running.advance(Event.STARTED)
    return running


def test_what_a_unit_is_told_while_it_moves_reaches_its_next_process(unit: RunningUnit) -> None:
    first, second = unit.child, Child()
    unit.take(Drain())
    unit.advance_process(ProcessEvent.MOVE_ASKED)
    unit.take(Fail("a reason"))
    unit.take(TakeConfig({"a": "2"}))
    unit.take(Pause())
    unit.take(SetLogLevel("x", 10))
    unit.advance_process(ProcessEvent.ENDED)
    assert first.sent == [Drain(), Pause(), SetLogLevel("x", 10)]
    unit.advance(Event.MOVED)
    assert unit.continue_in(second) == [Fail("a reason"), Drain()]
    assert unit.command == replace(COMMAND, config={"a": "2"}, paused=True)
    assert (unit.phase, unit.process, unit.is_moving) == (Phase.STARTING, ProcessPhase.SERVING, True)


def test_a_unit_that_fails_while_it_moves_moves_no_more(unit: RunningUnit) -> None:
    unit.advance_process(ProcessEvent.MOVE_ASKED)
    assert unit.is_moving
    unit.advance(Event.FAILED)
    assert not unit.is_moving


def test_a_unit_is_settled_when_its_commits_are_over_and_those_not_begun_are_cancelled(unit: RunningUnit) -> None:
    begun, waiting = Future[Command](), Future[Command]()
    assert begun.set_running_or_notify_cancel()
    done: list[str] = []
    for commit in (begun, waiting):
        unit.begin_commit(commit)
    unit.settle(lambda: done.append("gone"))
    assert waiting.cancelled()
    unit.end_commit(waiting)
    assert done == []
    unit.end_commit(begun)
    assert done == ["gone"]
    unit.settle(lambda: done.append("again"))
    assert done == ["gone", "again"]


def test_only_a_running_unit_whose_process_serves_it_can_rest(unit: RunningUnit) -> None:
    assert unit.can_rest
    unit.advance_process(ProcessEvent.REST_ASKED)
    assert not unit.can_rest
    assert not unit.ends_unasked
    unit.advance_process(ProcessEvent.RESTED)
    assert not unit.has_process
