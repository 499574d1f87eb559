"""The lease of a worker's children: they run only while the worker is known to be part of its cluster.

A worker that is frozen (SIGSTOP, a paused virtual machine) cannot stop its tasks before its session ends and others
take them over (invariant I6). Its children check for themselves: the worker renews the lease with each heartbeat that
the group has answered, and a child whose lease is over exits at once. Uncommitted work is done again by the worker that
takes over (invariant I3). The lease is over when either of two clocks says so (:mod:`worker.processes.clock`), and
at once when the group says that it does not know the worker any more.

A child sleeps until the end of the lease that it has read, and then reads whether the lease was renewed. What ends the
lease earlier wakes it: a pipe that the worker writes to, the end of the worker, and a change of the wall clock. So a
child checks once per session, and notices the end as soon as one that checks all the time.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from worker.processes.clock import FOREVER, Moment, WallTimer
from worker.processes.descendants import exit_with_descendants

__all__ = ["Lease", "LeaseView", "next_look", "watch_lease"]

_FORM: Final = "d"
_SIZE_BYTES: Final = 24
_BELL: Final = 2
"""The index of the descriptor number with which the worker wakes its children."""
_LOOK_SECONDS: Final = 0.2
"""Seconds between two checks while the lease has no end yet: children are not woken when it gets one."""
_RUNG: Final = b"\0"
_ALL: Final = 64 * 1024


class Lease:
    """The worker's end of the lease, which has no end until it is renewed for the first time."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("sluice-lease")
        os.ftruncate(self._descriptor, _SIZE_BYTES)
        # Stored as two doubles, each at once: struct.pack_into would write zeros first, which a child may see. Between
        # the two stores one is older, which holds as well.
        self._until = memoryview(mmap.mmap(self._descriptor, _SIZE_BYTES)).cast(_FORM)
        self._until[0], self._until[1] = FOREVER.booted, FOREVER.wall
        self._lapses = 0
        self._bell, self._rope = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._until[_BELL] = self._bell

    @property
    def path(self) -> str:
        """The path at which children of this worker open the lease."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def renew(self, until: Moment) -> None:
        """Extend the lease until this moment; if it has passed, the lease is over at once."""
        if self.is_over():
            self._lapses += 1
        self._until[0], self._until[1] = until.booted, until.wall
        with contextlib.suppress(BlockingIOError):
            # The bell was not rung, or the pipe is full of rings.
            if self.is_over():
                os.write(self._rope, _RUNG)
            else:
                os.read(self._bell, _ALL)

    def is_over(self) -> bool:
        """Return whether the lease has run out."""
        return _is_over(self._until)

    def lapses(self) -> int:
        """Return how often the lease was renewed only after it had run out: others may have done this worker's work
        then.
        """
        return self._lapses

    def lasts(self, seconds: float) -> bool:
        """Return whether the lease lasts this many seconds longer, so that work which ends by then is still this
        worker's.
        """
        return time.monotonic() + seconds <= self._until[0]


class LeaseView:
    """A child's end of the lease. Raises ``OSError`` if the worker is gone, and its lease with it."""

    def __init__(self, path: str) -> None:
        with Path(path).open("rb") as file:
            self._until = memoryview(mmap.mmap(file.fileno(), _SIZE_BYTES, prot=mmap.PROT_READ)).cast(_FORM)
        bell = Path(path).with_name(str(int(self._until[_BELL])))
        self._bell = os.open(bell, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._timer = WallTimer()
        self._kernel = select.poll()
        for descriptor in (self._bell, self._timer.descriptor):
            self._kernel.register(descriptor, select.POLLIN)

    def is_over(self) -> bool:
        """Return whether the lease has run out."""
        return _is_over(self._until)

    def await_end(self) -> None:
        """Return when the lease has run out or its worker is gone."""
        while not self.is_over():
            until = Moment(self._until[0], self._until[1])
            if math.isfinite(until.wall):
                self._timer.set(until.wall)
            events = dict(self._kernel.poll(math.ceil(next_look(Moment.now(), until) * 1000)))
            if events.get(self._bell, 0) & select.POLLHUP:
                return


def next_look(now: Moment, until: Moment) -> float:
    """Return how many seconds to sleep, unless woken, before looking again at a lease that lasts until some moment."""
    left = min(until.booted - now.booted, until.wall - now.wall)
    return max(0.0, left) if math.isfinite(left) else _LOOK_SECONDS


def _is_over(until: memoryview[float]) -> bool:
    now = Moment.now()
    return now.booted > until[0] or now.wall > until[1]


def watch_lease(path: str, on_over: Callable[[], None] = exit_with_descendants) -> None:
    """Call ``on_over``, from a thread of its own, once the lease at ``path`` is over or its worker is gone."""
    try:
        lease = LeaseView(path)
    except OSError:
        on_over()
        return

    def watch() -> None:
        lease.await_end()
        on_over()

    threading.Thread(target=watch, name="lease", daemon=True).start()
