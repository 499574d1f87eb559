"""The lease of a worker's children."""

from __future__ import annotations

import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipment.waiting import wait_until
from worker.processes.clock import FOREVER, LONG_AGO, Moment, WallTimer
from worker.processes.lease import Lease, next_look, watch_lease

DEADLINE = 10.0
LOOKS = """
import sys
from worker.processes.lease import LeaseView

lease = LeaseView(sys.argv[1])
print("looking", flush=True)
print(sum(lease.is_over() for _ in range(1_000_000)))
"""

CHILD = """
import sys, time
from worker.processes.lease import watch_lease

watch_lease(sys.argv[1])
print("watching", flush=True)
time.sleep(60)
"""
WORKER = """
import sys
from worker.processes.clock import Moment
from worker.processes.lease import Lease

lease = Lease()
lease.renew(Moment.now().after(60))
print(lease.path, flush=True)
sys.stdin.read()
"""
SESSION = 10.0


@contextmanager
def running(script: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process, with the first line that it says."""
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_a_lease_lasts_until_it_is_renewed_no_more() -> None:
    lease, over = Lease(), threading.Event()
    assert not lease.is_over()
    watch_lease(lease.path, over.set)
    lease.renew(Moment.now().after(DEADLINE))
    assert not lease.is_over()
    assert not over.is_set()
    lease.renew(Moment.now().after(-1))
    assert lease.is_over()
    assert over.wait(DEADLINE)


@pytest.mark.parametrize("jumped", ["booted", "wall"])
def test_a_lease_is_over_when_either_clock_says_so(jumped: str) -> None:
    """A suspended machine is told of by the one, a paused virtual one whose clock is set by the other."""
    lease, over, until = Lease(), threading.Event(), Moment.now().after(DEADLINE)
    lease.renew(replace(until, **{jumped: getattr(until, jumped) - DEADLINE - 1}))
    assert lease.is_over()
    watch_lease(lease.path, over.set)
    assert over.wait(DEADLINE)


def test_a_lease_that_was_ended_may_be_given_anew() -> None:
    lease = Lease()
    lease.renew(LONG_AGO)
    assert lease.is_over()
    assert lease.lapses() == 0, "so far nobody has renewed it"
    lease.renew(Moment.now().after(DEADLINE))
    assert not lease.is_over()
    assert lease.lapses() == 1
    lease.renew(Moment.now().after(DEADLINE))
    assert lease.lapses() == 1


def test_what_has_passed_is_what_the_faster_clock_says() -> None:
    alive = Moment(100.0, 5000.0)
    assert Moment(103.0, 5003.0).since(alive) == Moment(101.0, 5003.0).since(alive) == 3.0
    assert Moment(103.0, 4000.0).since(alive) == 3.0, "a clock that is set back says nothing"
    assert Moment(103.0, 5003.5).known_since(alive) == "for 3.5 s"
    assert Moment(103.0, 5063.0).known_since(alive) == (
        "for 63.0 s (the wall clock went 60.0 s forward: this machine was paused, or its clock was set)"
    )


def test_a_worker_that_is_gone_has_no_lease() -> None:
    over = threading.Event()
    watch_lease("/proc/1/fd/no-such-descriptor", over.set)
    assert over.is_set()


def test_a_renewal_is_seen_at_once_or_not_yet() -> None:
    lease = Lease()
    with subprocess.Popen([sys.executable, "-c", LOOKS, lease.path], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "looking\n"
        while child.poll() is None:
            for _ in range(10_000):
                lease.renew(Moment.now().after(DEADLINE))
        assert child.stdout.read() == "0\n"


def test_a_child_ends_at_once_when_its_lease_is_ended_and_when_its_worker_is_killed() -> None:
    lease, ended, orphaned = Lease(), threading.Event(), threading.Event()
    lease.renew(Moment.now().after(10 * DEADLINE))
    watch_lease(lease.path, ended.set)
    with running(WORKER) as (worker, path):
        watch_lease(path, orphaned.set)
        worker.kill()
        assert orphaned.wait(DEADLINE)
    assert not ended.is_set()
    lease.renew(LONG_AGO)
    assert ended.wait(DEADLINE)


def test_a_frozen_child_ends_when_it_goes_on_unless_its_lease_was_renewed_meanwhile() -> None:
    lease, renewed = Lease(), Lease()
    with running(CHILD, lease.path) as (late, _), running(CHILD, renewed.path) as (child, _):
        end = Moment.now().after(0.5)
        for each in (lease, renewed):
            each.renew(end)
        for process in (late, child):
            process.send_signal(signal.SIGSTOP)
        renewed.renew(Moment.now().after(10 * DEADLINE))
        wait_until("the lease is over", lease.is_over)
        for process in (late, child):
            process.send_signal(signal.SIGCONT)
        late.wait(DEADLINE)
        assert child.poll() is None
        renewed.renew(LONG_AGO)
        child.wait(DEADLINE)


def test_the_timer_rings_at_its_moment_and_at_no_other() -> None:
    timer, kernel = WallTimer(), select.poll()
    kernel.register(timer.descriptor, select.POLLIN)
    timer.set(time.time() + 60)
    assert kernel.poll(0) == []
    timer.set(time.time() + 0.01)
    assert kernel.poll(DEADLINE * 1000) == [(timer.descriptor, select.POLLIN)]
    timer.set(time.time() + 60)
    assert kernel.poll(0) == []
    timer.set(time.time() - 60)
    assert kernel.poll(DEADLINE * 1000) == [(timer.descriptor, select.POLLIN)]


def test_a_lease_without_an_end_is_looked_at_now_and_then() -> None:
    assert next_look(Moment.now(), FOREVER) == 0.2
    assert next_look(Moment(5.0, 5.0), Moment(8.0, 9.0)) == 3.0
    assert next_look(Moment(9.0, 5.0), Moment(8.0, 9.0)) == 0.0


@given(
    st.lists(
        st.one_of(
            st.just(("renewed", 0.0)),
            st.tuples(st.just("runs"), st.floats(0, 2 * SESSION)),
            st.tuples(st.just("suspended"), st.floats(0.001, 2 * SESSION)),
            st.tuples(st.just("clock set"), st.floats(-3 * SESSION, 3 * SESSION).filter(bool)),
        )
    )
)
def test_a_child_looks_when_its_lease_is_over_whatever_clocks_do(events: list[tuple[str, float]]) -> None:
    """It sleeps by a clock that stands still in a suspended machine, and wakes by the wall clock, too."""
    awake, now = 0.0, Moment(0.0, 1000.0)
    until = now.after(SESSION)
    wakes_at, rings_at = awake + next_look(now, until), until.wall
    for event, seconds in events:
        if event == "renewed":
            until = now.after(SESSION)
            continue
        if event == "clock set":
            now = Moment(now.booted, now.wall + seconds)
        else:
            now = now.after(seconds)
            awake += seconds if event == "runs" else 0.0
        is_woken = awake >= wakes_at or now.wall >= rings_at or event != "runs"
        if now.booted > until.booted or now.wall > until.wall:
            assert is_woken
            return
        if is_woken:
            wakes_at, rings_at = awake + next_look(now, until), until.wall
