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

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from worker.errors import UnknownConnectorError
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.writes import GivenConfig, Writes
from worker.herder.requests import Attempt, Request, Steps
from worker.stores.config.store import TargetState

__all__ = ["ConnectorSets"]

_Change: TypeAlias = Callable[[Request[None]], Steps[None]]


class ConnectorSets:
    """Puts, deletes, pauses and resumes sets of connectors."""

    def __init__(self, writes: Writes, connectors: Connectors, leadership: Leadership) -> None:
        self._writes = writes
        self._connectors = connectors
        self._leadership = leadership

    def put(self, request: Request[bool], configs: Mapping[str, GivenConfig], author: str | None = None) -> Steps[bool]:
        """Validate several configurations and create or update the connectors; return whether all are new.

        If one is invalid, none is written. Connectors that already have their configuration are left alone.
        """
        yield from self._leadership.lead(request)
        checked = yield from self._writes.check(request, configs)
        is_new = not any(map(self._connectors.exists, configs))
        yield from _one_by_one(
            partial(self._writes.write, name=name, checked=each, author=author) for name, each in checked.items()
        )
        return is_new

    def delete(self, request: Request[None], names: Sequence[str], author: str | None = None) -> Steps[None]:
        """Stop and delete those of the given connectors that exist; fails if none exists."""
        known = yield from self._known(request, names)
        yield from _one_by_one(partial(self._writes.delete, name=name, author=author) for name in known)

    def set_target_state(self, request: Request[None], names: Sequence[str], target: TargetState) -> Steps[None]:
        """Pause, resume or stop those of the given connectors that exist; fails if none exists."""
        known = yield from self._known(request, names)
        yield from _one_by_one(partial(self._writes.set_target_state, name=name, target=target) for name in known)

    def _known(self, request: Request[None], names: Sequence[str]) -> Steps[list[str]]:
        yield from self._leadership.lead(request)
        known = [name for name in names if self._connectors.exists(name)]
        if not known:
            raise UnknownConnectorError(f"None of these connectors exists: {', '.join(names)}")
        return known


def _one_by_one(changes: Iterable[_Change]) -> Steps[None]:
    for change in changes:
        attempt: Request[None] = Request()
        # A connector that was deleted meanwhile needs no change.
        with suppress(UnknownConnectorError):
            yield Attempt(attempt, change(attempt))
