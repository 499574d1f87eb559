"""Waits for many children at once; silent ones cost almost nothing."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Collection
from functools import partial
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from worker.supervisor.pipe import WorkerEnd

__all__ = ["ChildDescriptors", "Listener"]

_Interests: TypeAlias = tuple[tuple[int, int], ...]
"""Descriptors, each with the events to wait for."""

_SAYS: Final = select.EPOLLIN
_TAKES: Final = select.EPOLLOUT


class ChildDescriptors(Protocol):
    """The descriptors of a child that are waited for."""

    @property
    def pipe(self) -> WorkerEnd:
        """The pipe to the child."""

    @property
    def sentinel(self) -> int | None:
        """A descriptor that becomes readable when the child is gone."""

    @property
    def output(self) -> int | None:
        """A descriptor that becomes readable when the child prints."""


S = TypeVar("S", bound=ChildDescriptors)


class Listener(Generic[S]):
    """Has the kernel watch the descriptors of children (``epoll``), and tells it only what changes. For one thread.

    It takes its own descriptor at the start, since there may be none left later.
    """

    def __init__(self, wake: int | None = None) -> None:
        self._kernel = select.epoll()
        self._watched: dict[S, _Interests] = {}
        self._at: dict[int, S] = {}
        self._touched: set[S] = set()
        if wake is not None:
            self._kernel.register(wake, _SAYS)

    def ready(self, children: Collection[S], seconds: float | None) -> list[S]:
        """Wait until children report or end, or the descriptor ``wake`` becomes readable. Return those children.

        Sends pending commands meanwhile, as fast as the children read them.
        """
        self._follow(set(children))
        ready: dict[S, None] = {}
        for descriptor, events in self._kernel.poll(seconds):
            child = self._at.get(descriptor)
            if child is None:
                continue
            # The descriptors of a child change only when something is sent to it or received.
            self._touched.add(child)
            if events & ~_SAYS and child.pipe.waits_to_send:
                child.pipe.flush()
            if events & ~_TAKES:
                ready[child] = None
        return list(ready)

    def _follow(self, children: set[S]) -> None:
        """Have the kernel watch these children only. It forgets descriptors that are closed by itself."""
        known = self._watched.keys()
        added = children - known
        for child in added:
            child.pipe.when_touched = partial(self._touched.add, child)
        changed = {child: _interests(child) for child in (self._touched & children) | added}
        self._touched.clear()
        # Removed first, since a new descriptor may have the number of a closed one.
        for child in [*(known - children), *changed]:
            if child not in changed or self._watched.get(child) != changed[child]:
                self._ignore(child)
        for child, interests in changed.items():
            if child not in self._watched:
                self._watched[child] = interests
                for descriptor, events in interests:
                    self._kernel.register(descriptor, events)
                    self._at[descriptor] = child

    def _ignore(self, child: S) -> None:
        for descriptor, _ in self._watched.pop(child, ()):
            if self._at.get(descriptor) is child:
                del self._at[descriptor]
            with contextlib.suppress(OSError):
                self._kernel.unregister(descriptor)


def _interests(child: ChildDescriptors) -> _Interests:
    pipe = child.pipe
    own = () if pipe.closed else ((pipe.fileno(), _SAYS | _TAKES if pipe.waits_to_send else _SAYS),)
    others = tuple((each, _SAYS) for each in (child.sentinel, child.output) if each is not None)
    return own + others
