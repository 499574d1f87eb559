"""The herder's inbox: what is to be done, one after the other, and what is to be done later."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TypeAlias

__all__ = ["Action", "Inbox", "Later", "Once"]

Action: TypeAlias = Callable[[], None]


@dataclass(slots=True)
class Later:
    """Something that is to be done at a time, unless it is cancelled before."""

    action: Action
    cancelled: bool = field(default=False)

    def cancel(self) -> None:
        """Do not do it. In the herder's thread, like all that is done."""
        self.cancelled = True


class Inbox:
    """Actions for one thread, which takes them with :meth:`take`. ``post`` may be called from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._actions: SimpleQueue[Action | None] = SimpleQueue()
        self._later: list[tuple[float, int, Later]] = []
        self._numbers = itertools.count()

    def post(self, action: Action) -> None:
        """Have this done after everything that was posted before."""
        self._actions.put(action)

    def after(self, seconds: float, action: Action) -> Later:
        """Have this done in so many seconds. In the thread that takes, alone."""
        later = Later(action)
        heapq.heappush(self._later, (self._clock() + seconds, next(self._numbers), later))
        return later

    def close(self) -> None:
        """Let :meth:`take` return ``None`` after everything that was posted before."""
        self._actions.put(None)

    def take(self) -> Action | None:
        """Wait for the next action; ``None`` when the inbox is closed. What is due goes before what waits."""
        while True:
            if (due := self._due()) is not None:
                return due
            try:
                return self._actions.get(timeout=self._patience())
            except Empty:
                continue

    def _due(self) -> Action | None:
        while self._later and (self._later[0][2].cancelled or self._later[0][0] <= self._clock()):
            later = heapq.heappop(self._later)[2]
            if not later.cancelled:
                return later.action
        return None

    def _patience(self) -> float | None:
        # No lock waits for longer, and whoever waits looks again.
        return min(max(0.0, self._later[0][0] - self._clock()), threading.TIMEOUT_MAX) if self._later else None


class Once:
    """Something that is done once for all that ask for it until then. In the herder's thread alone."""

    def __init__(self, inbox: Inbox, action: Action) -> None:
        self._inbox = inbox
        self._action = action
        self._waits = False

    def post(self) -> None:
        """Have it done after everything that was posted before, unless it waits for that already."""
        if not self._waits:
            self._waits = True
            self._inbox.post(self._do)

    def _do(self) -> None:
        self._waits = False
        self._action()
