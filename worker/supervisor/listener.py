"""Waits for many children at once, at a cost that hardly grows with those that are silent."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Collection
from functools import partial
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from worker.supervisor.pipe import WorkerEnd

__all__ = ["Listener", "Speaker"]

_Interests: TypeAlias = tuple[tuple[int, int], ...]
"""Descriptors, and the events of each that are waited for."""

_SAYS: Final = select.EPOLLIN
_TAKES: Final = select.EPOLLOUT


class Speaker(Protocol):
    """The part of a child that is listened to."""

    @property
    def pipe(self) -> WorkerEnd:
        """The pipe to it."""

    @property
    def sentinel(self) -> int | None:
        """A descriptor that becomes readable when it is gone."""

    @property
    def output(self) -> int | None:
        """A descriptor that becomes readable when it prints."""


S = TypeVar("S", bound=Speaker)


class Listener(Generic[S]):
    """Knows which descriptors the kernel watches, and tells it only what is new. Used by one thread.

    It has one descriptor, from the beginning, since later there may be none left, until it is forgotten.
    """

    def __init__(self, wake: int | None = None) -> None:
        self._kernel = select.epoll()
        self._watched: dict[S, _Interests] = {}
        self._at: dict[int, S] = {}
        self._touched: set[S] = set()
        if wake is not None:
            self._kernel.register(wake, _SAYS)

    def ready(self, children: Collection[S], seconds: float | None) -> list[S]:
        """Wait until children say something or are gone, or the descriptor ``wake`` can be read; return those children.

        Meanwhile, pending commands are sent as the children take them.
        """
        self._follow(set(children))
        ready: dict[S, None] = {}
        for descriptor, events in self._kernel.poll(seconds):
            child = self._at.get(descriptor)
            if child is None:
                continue
            # Its descriptors change only while it is spoken to or heard.
            self._touched.add(child)
            if events & ~_SAYS and child.pipe.waits_to_send:
                child.pipe.flush()
            if events & ~_TAKES:
                ready[child] = None
        return list(ready)

    def _follow(self, children: set[S]) -> None:
        """Have the kernel watch these, and nothing else. Descriptors that were closed it has forgotten by itself."""
        known = self._watched.keys()
        added = children - known
        for child in added:
            child.pipe.when_touched = partial(self._touched.add, child)
        changed = {child: _interests(child) for child in (self._touched & children) | added}
        self._touched.clear()
        # First, since the numbers of descriptors that were closed may be those of new ones.
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


def _interests(child: Speaker) -> _Interests:
    pipe = child.pipe
    own = () if pipe.closed else ((pipe.fileno(), _SAYS | _TAKES if pipe.waits_to_send else _SAYS),)
    others = tuple((each, _SAYS) for each in (child.sentinel, child.output) if each is not None)
    return own + others
