"""Changes several connectors as one, as the leader: all are checked before the first is written.

They are written one after the other, in the given order, in the herder's thread. Each step takes a turn of its
connector, and the next step takes its own turn before that one is over. So if two requests change the same connectors
at the same time, one stays ahead of the other, and the result is one of the two.

====================================  ==================================================================================
kill -9 here                          then
====================================  ==================================================================================
while they are checked                nothing is written
between two of them                   the first are written, the others unchanged, and the client gets no answer. The
                                      same request again does the rest, and skips what is already as requested
after the last, before the answer     the same request again finds nothing to do
====================================  ==================================================================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias

from worker.errors import UnknownConnectorError
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.writes import Checked, GivenConfig, Writes
from worker.herder.inbox import Inbox, Request
from worker.stores.config.store import TargetState

__all__ = ["ConnectorSets"]

_Step: TypeAlias = Callable[[Request[None]], None]


class ConnectorSets:
    """Puts, deletes, pauses and resumes sets of connectors."""

    def __init__(self, writes: Writes, connectors: Connectors, leadership: Leadership, inbox: Inbox) -> None:
        self._writes = writes
        self._connectors = connectors
        self._leadership = leadership
        self._inbox = inbox

    def put(self, request: Request[bool], configs: Mapping[str, GivenConfig], author: str | None) -> None:
        """Put configurations of several connectors; the answer is whether none of them existed before."""

        def go_on(checked: Mapping[str, Checked]) -> None:
            is_new = not any(map(self._connectors.exists, configs))
            steps = [
                partial(self._writes.write, name=name, checked=each, author=author) for name, each in checked.items()
            ]
            self._one_by_one(request, steps, is_new)

        self._leadership.as_leader(request, lambda: self._writes.check(request, configs, go_on))

    def delete(self, request: Request[None], names: Sequence[str], author: str | None) -> None:
        """Delete those of the given connectors that exist."""
        self._each(request, names, lambda name: partial(self._writes.delete, name=name, author=author))

    def set_target_state(self, request: Request[None], names: Sequence[str], target: TargetState) -> None:
        """Pause, resume or stop those of the given connectors that exist."""
        self._each(request, names, lambda name: partial(self._writes.set_target_state, name=name, target=target))

    def _each(self, request: Request[None], names: Sequence[str], step: Callable[[str], _Step]) -> None:
        def begin() -> None:
            known = [name for name in names if self._connectors.exists(name)]
            if not known:
                raise UnknownConnectorError(f"None of these connectors exists: {', '.join(names)}")
            self._one_by_one(request, [step(name) for name in known], None)

        self._leadership.as_leader(request, begin)

    def _one_by_one(self, request: Request[Any], steps: Iterable[_Step], result: object) -> None:
        left = deque(steps)

        def next_step() -> None:
            if not left:
                request.set_result(result)
                return
            attempt: Request[None] = Request()
            # Added before the queue's own callback, so that the next turn is taken before this one is over.
            attempt.add_done_callback(lambda done: self._inbox.post(partial(follow, done)))
            try:
                left.popleft()(attempt)
            except Exception as error:
                attempt.set_exception(error)

        def follow(done: Future[None]) -> None:
            error = done.exception()
            if error is not None and not isinstance(error, UnknownConnectorError):
                request.set_exception(error)
            else:
                # A connector that was deleted meanwhile needs no change.
                next_step()

        next_step()
