"""The lease of a worker's children: they run only as long as the worker is known to be part of its cluster.

A worker that is frozen (SIGSTOP, a paused virtual machine) cannot stop its tasks before its session ends and others
take them over (invariant I6). Its children check for themselves: the worker renews the lease with each heartbeat that
the group has answered, and a child whose lease is over exits at once. Uncommitted work is done again by the worker that
takes over (invariant I3). The lease is over when either of two clocks says so (:mod:`worker.supervisor.clock`), and
at once when the group says that it does not know the worker any more.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from worker.supervisor.clock import FOREVER, Moment
from worker.supervisor.descendants import exit_with_descendants

__all__ = ["Lease", "LeaseView", "watch_lease"]

_FORM: Final = "d"
_SIZE: Final = 16
_LOOK: Final = 0.2


class Lease:
    """The worker's end. The lease does not run out until it has been renewed for the first time."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("sluice-lease")
        os.ftruncate(self._descriptor, _SIZE)
        # Stored as two doubles, each at once: struct.pack_into would write zeros first, which a child may see. Between
        # the two stores one is older, which holds as well.
        self._until = memoryview(mmap.mmap(self._descriptor, _SIZE)).cast(_FORM)
        self.renew(FOREVER)

    @property
    def path(self) -> str:
        """The path at which children of this worker open the lease."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def renew(self, until: Moment) -> None:
        """Extend the lease until this moment; after :data:`~worker.supervisor.clock.LONG_AGO` it is over at once."""
        self._until[0], self._until[1] = until.booted, until.wall

    def is_over(self) -> bool:
        """Whether the lease has run out."""
        return _is_over(self._until)

    def lasts(self, seconds: float) -> bool:
        """Whether the lease lasts this much longer, so that work begun now and ended by then is still this worker's."""
        return time.monotonic() + seconds <= self._until[0]


class LeaseView:
    """The end of a child. Raises ``OSError`` if the worker is gone, and its lease with it."""

    def __init__(self, path: str) -> None:
        with Path(path).open("rb") as file:
            self._until = memoryview(mmap.mmap(file.fileno(), _SIZE, prot=mmap.PROT_READ)).cast(_FORM)

    def is_over(self) -> bool:
        """Whether the lease has run out."""
        return _is_over(self._until)


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
        while not lease.is_over():
            time.sleep(_LOOK)
        on_over()

    threading.Thread(target=watch, name="lease", daemon=True).start()
