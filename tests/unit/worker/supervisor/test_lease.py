"""The lease of a worker's children."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from worker.supervisor.clock import LONG_AGO, Moment
from worker.supervisor.lease import Lease, watch_lease

DEADLINE = 10.0
LOOKS = """
import sys
from worker.supervisor.lease import LeaseView

lease = LeaseView(sys.argv[1])
print("looking", flush=True)
print(sum(lease.is_over() for _ in range(1_000_000)))
"""


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
    lease.renew(Moment.now().after(DEADLINE))
    assert not lease.is_over()


def test_what_has_passed_is_what_the_faster_clock_says() -> None:
    alive = Moment(100.0, 5000.0)
    assert Moment(103.0, 5003.0).since(alive) == Moment(101.0, 5003.0).since(alive) == 3.0
    assert Moment(103.0, 4000.0).since(alive) == 3.0, "a clock that is set back says nothing"
    assert Moment(103.0, 5003.5).told_since(alive) == "for 3.5 s"
    assert Moment(103.0, 5063.0).told_since(alive) == (
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
