"""Requests to the herder, and the steps that answer them. Steps run in the herder's thread, one request's at a time.

The *steps* of a request are a generator. It yields what it waits for, is sent the result or has the error raised where
it waits, and returns the answer. So a change reads downwards: lead; check; validate; take a turn; check again; write;
answer. Between two waits nothing else happens in the herder; during one, anything may.

===================================  ===================================================================================
steps wait for                       and go on
===================================  ===================================================================================
a :class:`Deferred`: the lead, a     at once, within the action that completes it; without waiting if it is done
turn, a child process's answer, the
end of units, another request
any other future                     in an action of their own, after all that were posted before it was done, even if
                                     it was done before. A store posts what it has read before it completes a write, so
                                     its view then has the write
an :class:`Attempt`                  in an action of their own, before the turns that it took are over
===================================  ===================================================================================

===================================  ===================================================================================
meanwhile                            then
===================================  ===================================================================================
another worker becomes the leader,   who waits for the lead or for a turn is told who leads. A validation goes on, and
or this worker loses its cluster     the lead is checked after it. A write goes on: the store accepts or refuses it. A
                                     request that needs its connector stopped, a replay and a fencing are broken off
this worker stops                    the same for turns; what waits for anything else is not continued
the lease is over                    no turn begins, and nobody gets the lead
the client goes away                 nothing: the steps go on, and the answer is discarded
a second change of one connector     it waits in :mod:`worker.herder.connectors.change_queue` until the request that
                                     has the turn is completed. It checks again when its turn begins
a request is broken off              its steps are closed where they wait (``finally`` runs), what they wait for is
                                     discarded, its child process is ended, and its turn is over
a step raises                        the request fails with it, and its turn is over. Before the first wait, "no such
                                     connector" has this worker read the config topic to its end and begin once more
kill -9                              nothing of this is kept: the client gets no answer, and what was written counts
===================================  ===================================================================================
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from connect.errors import ConnectError
from worker.errors import UnavailableError, UnknownConnectorError
from worker.herder.inbox import Action, Deferred, Inbox

__all__ = ["Attempt", "Request", "Requests", "Steps", "answered", "asked"]

P = ParamSpec("P")
T = TypeVar("T")


class Request(Deferred[T], Generic[T]):
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

    def break_off(self, error: ConnectError) -> None:
        """Fail immediately, although work for the request continues; the outcome of that work is discarded."""
        if not self.done():
            self._broken_off = True
            super().set_exception(error)


@dataclass(frozen=True, slots=True)
class Attempt(Generic[T]):
    """Steps within those of a request. They have a request of their own, and so their turns end before its own do."""

    request: Request[T]
    steps: Steps[T]


Steps: TypeAlias = Generator["Future[Any] | Attempt[Any]", Any, T]
"""Yields what it waits for, is sent the result, and returns its own."""


class Requests:
    """Runs the steps of requests in the inbox's thread.

    Before a request fails with "no such connector", ``catch_up`` brings this worker up to date and the steps begin once
    more: another worker may have just created the connector.
    """

    def __init__(self, inbox: Inbox, catch_up: Callable[[], Future[None]] | None = None) -> None:
        self._inbox = inbox
        self._catch_up = catch_up

    def begin(self, steps: Callable[[Request[T]], Steps[T]]) -> Request[T]:
        """Return a request that ``steps`` answer. Any thread may call this."""
        request: Request[T] = Request()
        self._inbox.post(lambda: self._attempt(request, steps))
        return request

    def ask(self, answer: Callable[[], T]) -> Request[T]:
        """Return a request that is answered with the return value of ``answer``. Any thread may call this."""
        return self.begin(lambda _: _at_once(answer))

    def from_steps(self, steps: Callable[Concatenate[Request[T], P], Steps[T]]) -> Callable[P, Request[T]]:
        """Return a function that any thread may call. It returns the request that the steps answer."""
        return lambda *args, **kwargs: self.begin(lambda request: steps(request, *args, **kwargs))

    def from_answer(self, answer: Callable[P, T]) -> Callable[P, Request[T]]:
        """Return a function that any thread may call. It returns the request that ``answer`` answers at once."""
        return lambda *args, **kwargs: self.ask(lambda: answer(*args, **kwargs))

    def run(self, request: Request[T], steps: Steps[T]) -> Request[T]:
        """Run the steps of a request now, in the inbox's thread, as far as they come."""
        _Run(request, steps, self._inbox.post).go_on()
        return request

    def start(self, steps: Callable[[Request[None]], Steps[None]]) -> None:
        """Run steps that no client waits for. An error that they do not handle is raised in the inbox's thread."""
        request: Request[None] = Request()
        request.add_done_callback(lambda done: self._inbox.post(done.result) if done.exception() is not None else None)
        self.run(request, steps(request))

    def _attempt(self, request: Request[T], steps: Callable[[Request[T]], Steps[T]]) -> None:
        run: _Run[T] | None = None
        try:
            run = _Run(request, steps(request), self._inbox.post)
            run.advance()
        except UnknownConnectorError as error:
            if self._catch_up is None or (run is not None and run.has_waited):
                request.set_exception(error)
            else:
                self.run(request, self._once_more(request, steps, self._catch_up, error))
        except Exception as error:
            request.set_exception(error)

    def _once_more(
        self,
        request: Request[T],
        steps: Callable[[Request[T]], Steps[T]],
        catch_up: Callable[[], Future[None]],
        unknown: UnknownConnectorError,
    ) -> Steps[T]:
        request.enter("reading the config topic to its end, to see whether the connector is new")
        try:
            yield catch_up()
        except Exception as error:
            raise UnavailableError(
                f"{unknown}, as far as this worker has read the config topic, and it cannot read on: {error}"
            ) from error
        return (yield from steps(request))


class _Answers(Protocol):
    """An object with methods that any thread may call, as :func:`asked` and :func:`answered` make them."""

    _requests: Requests


A = TypeVar("A", bound=_Answers)


def asked(steps: Callable[Concatenate[A, Request[T], P], Steps[T]]) -> Callable[Concatenate[A, P], Request[T]]:
    """Make steps a method that any thread may call. It returns the request that they answer."""

    @wraps(steps)
    def begin(self: A, /, *args: P.args, **kwargs: P.kwargs) -> Request[T]:
        return self._requests.from_steps(partial(steps, self))(*args, **kwargs)

    return begin


def answered(answer: Callable[Concatenate[A, P], T]) -> Callable[Concatenate[A, P], Request[T]]:
    """Make a method one that any thread may call. It returns the request that is answered with its return value."""

    @wraps(answer)
    def begin(self: A, /, *args: P.args, **kwargs: P.kwargs) -> Request[T]:
        return self._requests.from_answer(partial(answer, self))(*args, **kwargs)

    return begin


class _Run(Generic[T]):
    """The steps of a request, and how far they are."""

    def __init__(self, request: Request[T], steps: Steps[T], post: Callable[[Action], None]) -> None:
        self._request = request
        self._steps = steps
        self._post = post
        self._under_way = False
        self.has_waited = False
        """Whether the steps have waited for anything, if only for what was done already."""
        request.add_done_callback(lambda _: self._close())

    def go_on(self, outcome: Future[Any] | None = None) -> None:
        """Continue with what the steps have waited for. What they raise fails the request."""
        try:
            self.advance(outcome)
        except Exception as error:
            self._request.set_exception(error)

    def advance(self, outcome: Future[Any] | None = None) -> None:
        """Continue until the steps wait or end. Raises what they raise."""
        if self._request.done():
            return
        self._under_way = True
        try:
            awaited = self._next(outcome)
            while isinstance(awaited, Deferred) and awaited.done() and not self._request.done():
                awaited = self._next(awaited)
        except StopIteration as end:
            self._request.set_result(end.value)
            return
        finally:
            self._under_way = False
        if self._request.done():
            self._close()
        else:
            self._await(awaited)

    def _next(self, outcome: Future[Any] | None) -> Future[Any] | Attempt[Any]:
        if outcome is None:
            return next(self._steps)
        self.has_waited = True
        error = CancelledError() if outcome.cancelled() else outcome.exception()
        return self._steps.send(outcome.result()) if error is None else self._steps.throw(error)

    def _await(self, awaited: Future[Any] | Attempt[Any]) -> None:
        if isinstance(awaited, Deferred):
            awaited.add_done_callback(self.go_on)
            return
        future = awaited.request if isinstance(awaited, Attempt) else awaited
        future.add_done_callback(lambda done: self._post(partial(self.go_on, done)))
        if isinstance(awaited, Attempt):
            _Run(awaited.request, awaited.steps, self._post).go_on()

    def _close(self) -> None:
        """Close the steps of a request that is completed from elsewhere; steps that are under way, once they wait."""
        if not self._under_way:
            self._steps.close()


def _at_once(answer: Callable[[], T]) -> Steps[T]:
    yield from ()
    return answer()
