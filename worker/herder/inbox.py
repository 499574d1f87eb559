"""The herder's inbox: actions to run now or later."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar

__all__ = ["Action", "Deferred", "Inbox", "Later", "Once", "together"]

T = TypeVar("T")


Action: TypeAlias = Callable[[], None]


class Deferred(Future[T], Generic[T]):
    """A future that is completed in the inbox's thread, where whoever waits for it goes on at once."""


def together(deferreds: Sequence[Deferred[T]]) -> Deferred[list[T]]:
    """Return a future of all results, in order, which fails as soon as one of them does."""
    results: Deferred[list[T]] = Deferred()

    def look(done: Future[T]) -> None:
        if results.done():
            return
        if (error := done.exception()) is not None:
            results.set_exception(error)
        elif all(each.done() for each in deferreds):
            results.set_result([each.result() for each in deferreds])

    for each in deferreds:
        each.add_done_callback(look)
    return results


@dataclass(slots=True)
class Later:
    """An action scheduled for later, which can be cancelled."""

    action: Action
    cancelled: bool = field(default=False)

    def cancel(self) -> None:
        """Cancel the action. Call this in the thread that would run it."""
        self.cancelled = True


class Inbox:
    """A queue of actions for one thread, which takes them with :meth:`take`. Any thread may call ``post``."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._actions: SimpleQueue[Action | None] = SimpleQueue()
        self._later: list[tuple[float, int, Later]] = []
        self._numbers = itertools.count()

    def post(self, action: Action) -> None:
        """Run an action after all actions posted before."""
        self._actions.put(action)

    def after(self, seconds: float, action: Action) -> Later:
        """Run an action in ``seconds``. Call this only in the thread that takes actions."""
        later = Later(action)
        heapq.heappush(self._later, (self._clock() + seconds, next(self._numbers), later))
        return later

    def pause(self, seconds: float) -> Deferred[None]:
        """Return a future that completes in ``seconds``. Call this only in the thread that takes actions."""
        over: Deferred[None] = Deferred()
        self.after(seconds, lambda: None if over.done() else over.set_result(None))
        return over

    def all_done(self, futures: Collection[Future[Any]], seconds: float) -> Deferred[None]:
        """Return a future that completes when all these have, or ``seconds`` are over. Call this only in the thread."""
        over = self.pause(seconds)

        def look() -> None:
            if not over.done() and all(future.done() for future in futures):
                over.set_result(None)

        for future in futures:
            future.add_done_callback(lambda _: self.post(look))
        return over

    @property
    def waiting(self) -> int:
        """The number of posted actions not taken yet."""
        return self._actions.qsize()

    def close(self) -> None:
        """Close the inbox: :meth:`take` returns ``None`` after all actions posted before."""
        self._actions.put(None)

    def take(self) -> Action | None:
        """Wait for the next action; return ``None`` when the inbox is closed. Actions that are due go first."""
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
        # The longest timeout of a lock; the loop waits again after it.
        return min(max(0.0, self._later[0][0] - self._clock()), threading.TIMEOUT_MAX) if self._later else None


class Once:
    """An action that runs once for all calls of :meth:`post` made before it runs. Used only in the herder's thread."""

    def __init__(self, inbox: Inbox, action: Action) -> None:
        self._inbox = inbox
        self._action = action
        self._waits = False

    def post(self) -> None:
        """Run the action after all actions posted before, unless it is already waiting."""
        if not self._waits:
            self._waits = True
            self._inbox.post(self._do)

    def _do(self) -> None:
        self._waits = False
        self._action()
