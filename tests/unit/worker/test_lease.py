"""The lease of a worker's children."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

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
    lease.renew(time.monotonic() + DEADLINE)
    assert not lease.is_over()
    assert not over.is_set()
    lease.renew(time.monotonic() - 1)
    assert lease.is_over()
    assert over.wait(DEADLINE)


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
                lease.renew(time.monotonic() + DEADLINE)
        assert child.stdout.read() == "0\n"
