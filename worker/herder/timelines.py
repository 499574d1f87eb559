"""What has happened to each connector: starts, failures, restarts, moves between workers, waits and lost records.

Each worker reads it off the statuses of the whole cluster as they arrive, so all of them know the same. It is kept in
memory: after a restart it begins with the newest status of each unit. It is bounded (invariant I9): 50 events of some
600 bytes at most for each connector, 30 MB for a thousand connectors that keep failing; one that runs has a few.
"""

from __future__ import annotations

import enum
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Final

from worker.formatting import counted
from worker.herder.connectors.connectors import Connectors
from worker.herder.requests import Requests, answered
from worker.stores.status.store import Skips, State, Status
from worker.traces import cause_of
from worker.unit import Unit

__all__ = ["MOST_EVENTS", "Event", "Happening", "Timelines", "happened"]

MOST_EVENTS: Final = 50
"""How many events are kept for a connector."""
_MOST_CHARACTERS: Final = 300
_MOST_TASKS: Final = 20
_ALIKE_SECONDS: Final = 60.0
"""The same that happens to several tasks within so many seconds is one event."""
_LOOKED_THROUGH: Final = 8
"""Among so many newest events such a one is looked for."""


class Happening(enum.StrEnum):
    """What may happen to a connector or task."""

    STARTED = "started"
    PAUSED = "paused"
    STOPPED = "stopped"
    FAILED = "failed"
    RESTARTING = "restarting"
    RESTARTED = "restarted by restart.policy"
    UNASSIGNED = "without a worker"
    MOVED = "moved"
    HANGS = "hangs"
    RETURNED = "no longer hangs"
    WAITS = "waits"
    FOUND = "no longer waits"
    LOST = "lost records"


_LIVE: Final = (State.RUNNING, State.PAUSED)
_BY_STATE: Final = {
    State.RUNNING: Happening.STARTED,
    State.PAUSED: Happening.PAUSED,
    State.STOPPED: Happening.STOPPED,
    State.FAILED: Happening.FAILED,
    State.RESTARTING: Happening.RESTARTING,
    State.UNASSIGNED: Happening.UNASSIGNED,
}


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened to the connector, or to those of its ``tasks``; ``count`` is to how many.

    ``at`` is when it happened last, in seconds since 1970, ``worker_id`` where, and ``text`` says more.
    """

    at: float
    what: Happening
    text: str
    worker_id: str
    tasks: tuple[int, ...] = ()
    count: int = 1


def happened(unit: Unit, before: Status | None, after: Status, now: float) -> Iterator[Event]:
    """Return what the statuses of a unit, one following the other, say has happened."""
    tasks = (unit.task,) if unit.is_task else ()

    def event(what: Happening, text: str = "", at: float = now) -> Event:
        return Event(at, what, text[:_MOST_CHARACTERS], after.worker_id, tasks)

    since = now if after.changed is None else after.changed / 1000
    if after.state is State.UNASSIGNED and (before is None or before.state not in _LIVE):
        return  # it is about to start
    if before is None or before.state is not after.state:
        yield event(*_entered(before, after), at=since)
    elif before.worker_id != after.worker_id and after.worker_id:
        yield event(Happening.MOVED, f"from {before.worker_id}")
    if after.hanging is not None and (before is None or before.hanging is None):
        yield event(Happening.HANGS, f"{after.hanging.method} has not returned, at {after.hanging.line}")
    elif before is not None and before.hanging is not None and after.hanging is None and after.state is State.RUNNING:
        yield event(Happening.RETURNED)
    yield from _waited(before, after, event)
    if after.skipped is not None and (before is None or before.skipped != after.skipped):
        at = now if before is not None else _seconds(after.skipped.last, now)
        yield event(Happening.LOST, _lost(after.skipped), at=at)


def _entered(before: Status | None, after: Status) -> tuple[Happening, str]:
    """Return the event of a unit that has entered a state."""
    if after.state is State.FAILED:
        return Happening.FAILED, cause_of(after.trace or "")
    if after.state is State.RUNNING and before is not None and after.restarts > before.restarts:
        return Happening.RESTARTED, f"{counted(after.restarts, 'restart')} since it last ran for long"
    if after.state is State.RUNNING and before is not None and before.worker_id not in ("", after.worker_id):
        return Happening.STARTED, f"moved from {before.worker_id}"
    return _BY_STATE[after.state], ""


def _waited(before: Status | None, after: Status, event: Callable[[Happening, str], Event]) -> Iterator[Event]:
    was = None if before is None or before.waiting is None else before.waiting.reason
    now = None if after.waiting is None else after.waiting.reason
    if now is not None and now != was:
        yield event(Happening.WAITS, now)
    elif was is not None and now is None and after.state is State.RUNNING:
        yield event(Happening.FOUND, "")


def _lost(skips: Skips) -> str:
    lost = f"{counted(skips.records, 'record')} since the start"
    if skips.dead_letters:
        lost += f" ({counted(skips.dead_letters, 'dead letter')})"
    return f"{lost}, the last: {skips.reason}" if skips.reason else lost


def _seconds(iso: str, now: float) -> float:
    try:
        return datetime.fromisoformat(iso).timestamp()
    except ValueError:
        return now


class Timelines:
    """Keeps the newest events of each connector. Used only in the herder's thread, unless a method says otherwise."""

    def __init__(self, requests: Requests, connectors: Connectors, clock: Callable[[], float] = time.time) -> None:
        self._requests = requests
        self._connectors = connectors
        self._clock = clock
        self._events: dict[str, deque[Event]] = {}

    def heard(self, unit: Unit, before: Status | None, after: Status | None) -> None:
        """Note what has happened between two statuses of a unit; ``None`` is no status."""
        if after is None:
            if not unit.is_task:
                self.forget(unit.connector)
            return
        events = self._events.setdefault(unit.connector, deque(maxlen=MOST_EVENTS))
        for event in happened(unit, before, after, self._clock()):
            _add(events, event)

    def forget(self, connector: str) -> None:
        """Forget what happened to a deleted connector."""
        self._events.pop(connector, None)

    @answered
    def of(self, connector: str) -> list[Event]:
        """Return what happened to a connector, the newest first. Any thread may call this.

        Fails with :class:`~connect.errors.NotFoundError` if there is no such connector.
        """
        self._connectors.entry(connector)
        return sorted(self._events.get(connector, ()), key=lambda event: event.at)[::-1]


def _add(events: deque[Event], event: Event) -> None:
    """Add an event; if the same has just happened to other tasks, to that one. Losses of a task follow each other."""
    for index, last in enumerate(islice(reversed(events), _LOOKED_THROUGH)):
        place = len(events) - 1 - index
        if event.what is Happening.LOST and last.what is Happening.LOST and last.tasks == event.tasks:
            events[place] = event
            return
        alike = (last.what, last.text, last.worker_id) == (event.what, event.text, event.worker_id)
        others = event.tasks and last.tasks and not set(event.tasks).intersection(last.tasks)
        if alike and others and abs(event.at - last.at) <= _ALIKE_SECONDS:
            tasks = tuple(sorted((*last.tasks, *event.tasks)))[:_MOST_TASKS]
            events[place] = replace(last, at=max(last.at, event.at), tasks=tasks, count=last.count + 1)
            return
    events.append(event)
