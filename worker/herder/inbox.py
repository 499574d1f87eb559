"""The herder's inbox: actions to run now or later, and requests that wait for an answer."""

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
    """A future result with its current stage, which is reported to a client that times out."""

    def __init__(self) -> None:
        super().__init__()
        self._broken_off = False
        self._stage = ("handling the requests before this one", time.time())

    @property
    def stage(self) -> tuple[str, float]:
        """The current stage and when it began (seconds since 1970)."""
        return self._stage

    def enter(self, stage: str) -> None:
        """Enter a stage, which says what the worker is doing, such as ``reading the offsets``."""
        self._stage = (stage, time.time())

    def set_result(self, result: T) -> None:
        """Complete the request, unless it was cancelled."""
        if not self._broken_off:
            super().set_result(result)

    def set_exception(self, exception: BaseException | None) -> None:
        """Fail the request, unless it was cancelled."""
        if not self._broken_off:
            super().set_exception(exception)

    def follow(self, future: Future[T]) -> None:
        """Complete or fail as a future does."""

        def done(outcome: Future[T]) -> None:
            if (error := outcome.exception()) is not None:
                self.set_exception(error)
            else:
                self.set_result(outcome.result())

        future.add_done_callback(done)

    def break_off(self, error: ConnectError) -> None:
        """Fail immediately, although work for the request continues; the outcome of that work is discarded."""
        if not self.done():
            self._broken_off = True
            super().set_exception(error)


Action: TypeAlias = Callable[[], None]


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


class Requests:
    """Runs requests of other threads in the inbox's thread. Any thread may call ``begin`` and ``ask``.

    Before a request fails with "no such connector", ``catch_up`` brings this worker up to date and the request is run
    once more: another worker may have just created the connector.
    """

    def __init__(self, inbox: Inbox, catch_up: Callable[[], Future[None]] | None = None) -> None:
        self._inbox = inbox
        self._catch_up = catch_up

    def begin(self, action: Callable[[Request[T]], None]) -> Request[T]:
        """Create a request and pass it to ``action``, which completes it eventually; an exception fails the request."""
        request: Request[T] = Request()
        self._inbox.post(lambda: self._attempt(request, action, self._catch_up))
        return request

    def ask(self, answer: Callable[[], T]) -> Request[T]:
        """Complete a request with the return value of ``answer``."""
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
        """Complete a request with ``result()`` once a write is in the store's view. Only in the inbox's thread."""

        def done() -> None:
            try:
                if (error := written.exception()) is not None:
                    raise error
                request.set_result(result())
            except ConnectError as error:
                request.set_exception(error)

        written.add_done_callback(lambda _: self._inbox.post(done))
