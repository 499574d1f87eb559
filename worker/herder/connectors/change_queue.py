"""A queue for each connector: the leader makes one change at a time to it. Used only in the herder's thread.

A connector can only be started by a write of the leader: of a target state, a configuration, a removal, or a scheduled
run. So whatever needs a connector to stay stopped takes its turn in the queue, and no worker starts it meanwhile.

========================================  ==============================================================================
kill -9 here                              then
========================================  ==============================================================================
a turn is under way                       the leader's child processes end with it, and the client gets no answer. The
                                          next leader knows of no turn and may start the connector
this worker stops leading                 an exclusive change is cancelled and its process killed, and its client learns
                                          that it may be partly done; waiting clients learn who leads
this worker is frozen                     its child processes end with its lease, before another worker leads; when it
                                          continues, it no longer leads
========================================  ==============================================================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from connect.errors import ConnectError
from worker.herder.cluster.leadership import Leadership
from worker.herder.inbox import Action, Deferred
from worker.herder.requests import Request, Steps

__all__ = ["LEAD_LOST", "ChangeQueue", "broken_off"]

LEAD_LOST: Final = "this worker is no longer the leader of the cluster"


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    """A change to a connector that lasts until ``request`` completes; an ``exclusive`` one needs it to stay stopped."""

    request: Request[Any]
    exclusive: bool
    begun: Deferred[None] = field(default_factory=Deferred)


class ChangeQueue:
    """Lets changes to each connector take turns, in order. ``post`` runs an action in the herder's thread."""

    def __init__(self, leadership: Leadership, post: Callable[[Action], None]) -> None:
        self._leadership = leadership
        self._post = post
        self._lines: dict[str, deque[_Turn]] = {}
        leadership.when_lost(lambda: self.end(LEAD_LOST))

    def is_free(self, connector: str) -> bool:
        """Return whether no change to a connector is under way."""
        return connector not in self._lines

    def is_held(self, connector: str) -> bool:
        """Return whether a request needs a connector to stay stopped, or waits for that."""
        return any(turn.exclusive for turn in self._lines.get(connector, ()))

    def turn(self, connector: str, request: Request[Any], *, exclusive: bool = False) -> Steps[None]:
        """Wait until all earlier turns of the connector are over; later ones wait until ``request`` completes.

        Raises who leads if another worker does by then.
        """
        turn = _Turn(request, exclusive)
        line = self._lines.setdefault(connector, deque())
        line.append(turn)
        self._await(connector, turn)
        if line[0] is turn:
            self._begin(turn)
        else:
            request.enter(f"waiting for another change to connector {connector}: {line[0].request.stage[0]}")
        yield turn.begun

    def next_turn(self, connector: str, request: Request[Any]) -> Steps[None]:
        """Wait until the write that is under way is over, before all turns that wait.

        An exclusive request does not write, and may wait for this one: then this one does not wait.
        """
        turn = _Turn(request, exclusive=False)
        line = self._lines.setdefault(connector, deque())
        if line and line[0].exclusive:
            self._begin(turn)
        else:
            line.insert(1, turn)
            self._await(connector, turn)
            if line[0] is turn:
                self._begin(turn)
        yield turn.begun

    def _await(self, connector: str, turn: _Turn) -> None:
        turn.request.add_done_callback(lambda _: self._post(lambda: self._over(connector, turn)))

    def end(self, reason: str) -> None:
        """Begin no waiting change, and cancel exclusive ones: this worker no longer leads."""
        for connector, line in list(self._lines.items()):
            self.break_off(connector, reason)
            for turn in list(line)[1:]:
                if not turn.begun.done():
                    turn.begun.set_exception(self._leadership.refusal())

    def break_off(self, connector: str, reason: str) -> None:
        """Cancel an exclusive change that is under way, because the connector does not stay stopped."""
        line = self._lines.get(connector)
        if not line or not line[0].exclusive:
            # A write is on its way, and the store accepts or refuses it.
            return
        request = line[0].request
        request.break_off(broken_off(request, connector, reason))

    def _begin(self, turn: _Turn) -> None:
        if turn.request.done() or turn.begun.done():
            # Refused while it waited; the next turn begins in _over.
            return
        if self._leadership.is_ready:
            turn.begun.set_result(None)
        else:
            turn.begun.set_exception(self._leadership.refusal())

    def _over(self, connector: str, turn: _Turn) -> None:
        line = self._lines[connector]
        was_first = line[0] is turn
        line.remove(turn)
        if not line:
            del self._lines[connector]
        elif was_first:
            self._begin(line[0])


def broken_off(request: Request[Any], connector: str, reason: str) -> ConnectError:
    """Return the error of a request that was cancelled while it was under way."""
    return ConnectError(
        f"The request was cancelled while {request.stage[0]}, because {reason}. It may be partly done: check GET "
        f"/connectors/{connector}/offsets or /connectors/{connector}/dlq, and send it again."
    )
