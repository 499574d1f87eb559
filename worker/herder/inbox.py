"""The herder's inbox: actions to do now or later, and the requests that wait for an answer."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, TypeAlias, TypeVar

from connect.errors import ConnectError
from worker.errors import UnknownConnectorError

__all__ = ["Action", "Inbox", "Later", "Once", "Request", "Requests"]

T = TypeVar("T")


class Request(Future[T], Generic[T]):
    """A result to come, with the step that it is at, for a client that cannot wait any longer."""

    def __init__(self) -> None:
        super().__init__()
        self._broken_off = False
        self._stage = ("handling the requests before this one", time.time())

    @property
    def stage(self) -> tuple[str, float]:
        """The step that this request is at, and since when (seconds since 1970)."""
        return self._stage

    def enter(self, stage: str) -> None:
        """Begin a step: what the worker does from now on, such as ``reading the offsets``."""
        self._stage = (stage, time.time())

    def set_result(self, result: T) -> None:
        """Answer, unless it was broken off."""
        if not self._broken_off:
            super().set_result(result)

    def set_exception(self, exception: BaseException | None) -> None:
        """Fail, unless it was broken off."""
        if not self._broken_off:
            super().set_exception(exception)

    def follow(self, future: Future[T]) -> None:
        """Answer with the result of a future, or fail as it does."""

        def done(outcome: Future[T]) -> None:
            if (error := outcome.exception()) is not None:
                self.set_exception(error)
            else:
                self.set_result(outcome.result())

        future.add_done_callback(done)

    def break_off(self, error: ConnectError) -> None:
        """Fail at once, though work for it still goes on; the outcome of that work is not told any more."""
        if not self.done():
            self._broken_off = True
            super().set_exception(error)


Action: TypeAlias = Callable[[], None]


@dataclass(slots=True)
class Later:
    """An action for a later time, unless it is cancelled before."""

    action: Action
    cancelled: bool = field(default=False)

    def cancel(self) -> None:
        """Cancel the action. In the herder's thread, where it would be done."""
        self.cancelled = True


class Inbox:
    """Actions for one thread, which takes them with :meth:`take`. ``post`` may be called from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._actions: SimpleQueue[Action | None] = SimpleQueue()
        self._later: list[tuple[float, int, Later]] = []
        self._numbers = itertools.count()

    def post(self, action: Action) -> None:
        """Have an action done after everything that was posted before."""
        self._actions.put(action)

    def after(self, seconds: float, action: Action) -> Later:
        """Have an action done in so many seconds. To be called in the thread that takes alone."""
        later = Later(action)
        heapq.heappush(self._later, (self._clock() + seconds, next(self._numbers), later))
        return later

    @property
    def waiting(self) -> int:
        """How many actions were posted and not taken yet."""
        return self._actions.qsize()

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
    """An action that is done once for all who have asked for it until then. In the herder's thread alone."""

    def __init__(self, inbox: Inbox, action: Action) -> None:
        self._inbox = inbox
        self._action = action
        self._waits = False

    def post(self) -> None:
        """Have the action done after everything that was posted before, unless it waits for that already."""
        if not self._waits:
            self._waits = True
            self._inbox.post(self._do)

    def _do(self) -> None:
        self._waits = False
        self._action()


class Requests:
    """Has the thread of an inbox handle what other threads ask for. ``begin`` and ``ask`` may be called from any.

    Before a client is told that there is no such connector, ``catch_up`` brings this worker up to date, and the
    request is begun once more: another worker may have answered the client that made it a moment ago.
    """

    def __init__(self, inbox: Inbox, catch_up: Callable[[], Future[None]] | None = None) -> None:
        self._inbox = inbox
        self._catch_up = catch_up

    def begin(self, action: Callable[[Request[T]], None]) -> Request[T]:
        """Begin with a new request, which ``action`` answers sooner or later; what it raises fails the request."""
        request: Request[T] = Request()
        self._inbox.post(lambda: self._attempt(request, action, self._catch_up))
        return request

    def ask(self, answer: Callable[[], T]) -> Request[T]:
        """Answer at once, with what ``answer`` returns."""
        return self.begin(lambda request: request.set_result(answer()))

    def _attempt(
        self, request: Request[T], action: Callable[[Request[T]], None], catch_up: Callable[[], Future[None]] | None
    ) -> None:
        def again(outcome: Future[None], unknown: UnknownConnectorError) -> None:
            if outcome.exception() is not None:
                request.set_exception(unknown)
            else:
                self._attempt(request, action, None)

        try:
            action(request)
        except UnknownConnectorError as error:
            if catch_up is None:
                request.set_exception(error)
                return
            request.enter("reading the config topic to its end, to see whether the connector is new")
            done = partial(again, unknown=error)
            catch_up().add_done_callback(lambda outcome: self._inbox.post(partial(done, outcome)))
        except Exception as error:
            request.set_exception(error)

    def answer_when_written(self, request: Request[T], written: Future[None], result: Callable[[], T]) -> None:
        """Answer with ``result()`` once a write is in the store's view. In the thread of the inbox alone."""

        def done() -> None:
            try:
                if (error := written.exception()) is not None:
                    raise error
                request.set_result(result())
            except ConnectError as error:
                request.set_exception(error)

        written.add_done_callback(lambda _: self._inbox.post(done))
