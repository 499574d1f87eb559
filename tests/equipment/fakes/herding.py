"""Fakes for tests of a herder's parts: a clock, an inbox that runs on request, and a membership."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

from worker.herder.inbox import Inbox
from worker.herder.requests import Request, Requests, Steps
from worker.membership.events import Event, Joined, Lost
from worker.stores.config.store import ConfigSnapshot
from worker.unit import Unit

__all__ = ["Clock", "Place", "WorkedInbox"]

T = TypeVar("T")


class Clock:
    """A clock that advances on request."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class WorkedInbox(Inbox):
    """An inbox whose actions :meth:`work` runs, in the calling thread."""

    def __init__(self) -> None:
        self.time = Clock()
        super().__init__(self.time)

    def run(self, steps: Callable[[Request[T]], Steps[T]]) -> Request[T]:
        """Run the steps of a new request now, as far as they come."""
        request: Request[T] = Request()
        return Requests(self).run(request, steps(request))

    def work(self, seconds: float = 0.0) -> None:
        """Advance the clock, then run all due actions and those that they post."""
        self.time.now += seconds
        done = 1
        while done:
            done = 0
            self.close()
            while (action := self.take()) is not None:
                action()
                done += 1


class Place:
    """A membership in a state that the test sets; records the calls."""

    def __init__(self, *, is_leader: bool = True, leader_url: str | None = "http://leader:8083/") -> None:
        self.is_leader = is_leader
        self.leader_url = leader_url
        self.generation = 1
        self.rebalancing = False
        self.counts = None
        self.held: frozenset[Unit] | None = None
        self.rejoined: list[tuple[str, int | None]] = []
        self.left: list[float | None] = []
        self.members: frozenset[str] = frozenset()
        self.draining: frozenset[str] = frozenset()
        self.run_elsewhere: set[str] = set()
        self.tell: Callable[[Event], None] = lambda _: None

    def assigned(self, units: Iterable[Unit]) -> frozenset[Unit]:
        return frozenset(units) if self.held is None else self.held.intersection(units)

    def owner_url(self, unit: Unit) -> str | None:
        return f"http://owner-of-{unit.connector}:8083/"

    def may_run_tasks(self, connector: str) -> bool:
        return connector in self.run_elsewhere

    def start(self, tell: Callable[[Event], None], snapshot: Callable[[int], Future[ConfigSnapshot]]) -> None:
        self.tell = tell
        self.snapshot = snapshot

    def happened(self, event: Joined | Lost) -> None:
        if isinstance(event, Joined):
            self.held, self.generation = event.held, event.generation
            self.is_leader, self.leader_url = event.is_leader, event.leader_url
        else:
            self.held, self.is_leader, self.leader_url = frozenset(), False, None

    def rejoin(self, reason: str, config_offset: int | None = None) -> None:
        self.rejoined.append((reason, config_offset))

    def leave(self, for_seconds: float | None) -> None:
        self.left.append(for_seconds)

    def close(self) -> None:
        self.held = frozenset()
