"""The lives of units, and what processes use."""

from __future__ import annotations

import os

import pytest

from worker.metrics.lifetimes import Lifetimes, Shares, Starts
from worker.metrics.processes import use_of
from worker.supervisor.lifecycle import Phase
from worker.unit import Unit

CONNECTOR, TASK = Unit("c"), Unit("c", 0)


def test_a_start_succeeds_once_it_runs_and_fails_if_it_fails_before() -> None:
    lives = Lifetimes()
    lives.launched(CONNECTOR, 10, 0.0)
    lives.changed(CONNECTOR, Phase.RUNNING, 1.0)
    lives.changed(CONNECTOR, Phase.FAILED, 2.0)
    for _ in range(2):
        lives.launched(TASK, 11, 3.0)
        lives.changed(TASK, Phase.FAILED, 4.0)
        lives.changed(TASK, Phase.GONE, 5.0)
    lives.launched(TASK, 12, 6.0)
    lives.changed(TASK, Phase.PAUSED, 7.0)
    seen = lives.seen(8.0)
    assert (seen.connectors, seen.tasks) == (Starts(1, 0), Starts(1, 2))
    assert seen.failures == {CONNECTOR: 1, TASK: 2}
    lives.forget("c")
    assert lives.seen(8.0).failures == {}


def test_the_shares_are_of_the_whole_life() -> None:
    lives = Lifetimes()
    lives.launched(TASK, 11, 0.0)
    lives.changed(TASK, Phase.RUNNING, 1.0)
    lives.changed(TASK, Phase.PAUSED, 3.0)
    lives.changed(TASK, Phase.RUNNING, 4.0)
    assert lives.seen(10.0).shares(TASK) == Shares(pytest.approx(0.8), pytest.approx(0.1))
    lives.changed(TASK, Phase.FAILED, 10.0)
    assert lives.seen(20.0).shares(TASK) == Shares(pytest.approx(0.4), pytest.approx(0.05))


def test_a_process_is_known_while_it_runs() -> None:
    lives = Lifetimes()
    lives.launched(TASK, 11, 0.0)
    lives.launched(CONNECTOR, 10, 0.0)
    assert lives.seen(1.0).processes() == {TASK: 11, CONNECTOR: 10}
    lives.changed(TASK, Phase.STOPPING, 1.0)
    assert lives.seen(1.0).processes() == {TASK: 11, CONNECTOR: 10}
    lives.changed(TASK, Phase.GONE, 1.0)
    lives.changed(CONNECTOR, Phase.FAILED, 1.0)
    assert lives.seen(1.0).processes() == {}


def test_the_jvm_of_a_process_is_known_while_a_unit_runs_there() -> None:
    lives = Lifetimes()
    lives.launched(TASK, 11, 0.0)
    lives.jvm_launched(11, 12)
    assert lives.seen(1.0).jvms == {11: 12}
    lives.changed(TASK, Phase.GONE, 1.0)
    assert lives.seen(1.0).jvms == {}


def test_a_unit_without_a_process_of_its_own_lives_too() -> None:
    lives = Lifetimes()
    lives.changed(TASK, Phase.RUNNING, 1.0)
    assert (lives.seen(2.0).tasks, lives.seen(2.0).processes()) == (Starts(1, 0), {})


def test_the_system_tells_what_a_process_uses() -> None:
    found = use_of(os.getpid())
    assert found is not None
    assert found.cpu_seconds > 0
    assert found.resident_bytes > 1_000_000
    assert found.open_files >= 3
    assert use_of(2**22 + 1) is None
