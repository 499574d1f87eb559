"""The limit of the memory of processes, by the memory that this one has."""

from __future__ import annotations

import os
from pathlib import Path

from worker.supervisor.process import MemoryLimit


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_memory_of_a_jvm_counts_with_that_of_its_process() -> None:
    own = os.getpid()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    clock = Clock()
    limit = MemoryLimit(resident * 3 // 2, clock)
    clock.now = 2.0
    assert list(limit.exceeded([own])) == []
    limit.count(own, own)
    clock.now = 4.0
    ((pid, used),) = limit.exceeded([own])
    assert (pid, used > resident * 3 // 2) == (own, True)
    # The process has ended, and another may have its number.
    clock.now = 6.0
    assert list(limit.exceeded([])) == []
    clock.now = 8.0
    assert list(limit.exceeded([own])) == []
