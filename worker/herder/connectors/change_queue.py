"""One thing at a time is done to a connector, and the leader keeps the order. The herder's thread alone.

Whatever may start a connector is a write of the leader: a target state, a configuration, a removal, a run by the
clock. So whoever needs a connector to stay stopped takes a turn of it, and no worker starts any of it meanwhile.

========================================  ==============================================================================
kill -9 here                              then
========================================  ==============================================================================
a turn is under way                       the leader's processes end with it; whoever asked has no answer. The next
                                          leader knows of no turn, and may start the connector
this worker ceases to lead                what needs the connector stopped is broken off, its process is killed, and
                                          whoever asked is told that some of it may be done; who waits is told who leads
this worker is frozen                     its processes end with its lease, before another leads; thawed, it leads no
                                          more
========================================  ==============================================================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from connect.errors import ConnectError
from worker.herder.cluster.leadership import Leadership
from worker.herder.inbox import Action, Request

__all__ = ["LEAD_LOST", "ChangeQueue", "broken_off"]

LEAD_LOST: Final = "this worker ceased to lead the cluster"


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    """A change to a connector until ``request`` is answered; an ``exclusive`` one needs it to stay stopped."""

    request: Request[Any]
    begin: Action
    exclusive: bool


class ChangeQueue:
    """The turns of each connector, first come, first served. ``post`` has something done in the herder's thread."""

    def __init__(self, leadership: Leadership, post: Callable[[Action], None]) -> None:
        self._leadership = leadership
        self._post = post
        self._lines: dict[str, deque[_Turn]] = {}
        leadership.when_lost(lambda: self.end(LEAD_LOST))

    def is_free(self, connector: str) -> bool:
        """Whether nothing is done to a connector now."""
        return connector not in self._lines

    def is_held(self, connector: str) -> bool:
        """Whether a request needs a connector to stay stopped, or waits to."""
        return any(turn.exclusive for turn in self._lines.get(connector, ()))

    def take(self, connector: str, request: Request[Any], begin: Action, *, exclusive: bool = False) -> None:
        """Call ``begin`` once every earlier turn of the connector is over; later ones wait for ``request`` to end.

        The request fails if ``begin`` raises, or if another worker becomes the leader.
        """
        turn = _Turn(request, begin, exclusive)
        line = self._lines.setdefault(connector, deque())
        line.append(turn)
        self._await(connector, turn)
        if line[0] is turn:
            self._begin(turn)
        else:
            request.enter(f"waiting until this is done to connector {connector}: {line[0].request.stage[0]}")

    def take_next(self, connector: str, request: Request[Any], begin: Action) -> None:
        """Call ``begin`` once the write that is under way is over, before all that waits.

        What needs the connector to stay stopped writes none of it, and may wait for this: then it is called at once.
        """
        turn = _Turn(request, begin, exclusive=False)
        line = self._lines.setdefault(connector, deque())
        if line and line[0].exclusive:
            self._begin(turn)
            return
        line.insert(1, turn)
        self._await(connector, turn)
        if line[0] is turn:
            self._begin(turn)

    def _await(self, connector: str, turn: _Turn) -> None:
        turn.request.add_done_callback(lambda _: self._post(lambda: self._over(connector, turn)))

    def end(self, reason: str) -> None:
        """Begin nothing that waits, and break off what needs a connector stopped: this worker leads no more."""
        for connector, line in list(self._lines.items()):
            self.break_off(connector, reason)
            for turn in list(line)[1:]:
                turn.request.break_off(self._leadership.refusal())

    def break_off(self, connector: str, reason: str) -> None:
        """Break off what needs a connector to stay stopped, if it is under way, because it does not."""
        line = self._lines.get(connector)
        if not line or not line[0].exclusive:
            # A write is on its way, and is refused or not.
            return
        request = line[0].request
        request.break_off(broken_off(request, connector, reason))

    def _begin(self, turn: _Turn) -> None:
        if turn.request.done():
            # Refused while it waited; what follows it begins when that is noticed.
            return
        try:
            if not self._leadership.is_ready:
                raise self._leadership.refusal()
            turn.begin()
        except Exception as error:
            turn.request.set_exception(error)

    def _over(self, connector: str, turn: _Turn) -> None:
        line = self._lines[connector]
        was_first = line[0] is turn
        line.remove(turn)
        if not line:
            del self._lines[connector]
        elif was_first:
            self._begin(line[0])


def broken_off(request: Request[Any], connector: str, reason: str) -> ConnectError:
    """The error of a request that was broken off in the middle."""
    return ConnectError(
        f"The request was broken off while {request.stage[0]}, because {reason}. Part of it may be done: look at GET "
        f"/connectors/{connector}/offsets or /connectors/{connector}/dlq, and ask again."
    )
