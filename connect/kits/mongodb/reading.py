"""A thread that reads ahead, so that a poll does not wait for the server."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, Protocol, TypeVar

__all__ = ["ReadAhead", "ReadItem"]

_MOST_BYTES: Final = 16 * 1024 * 1024
"""How much is read ahead; at least one event is."""
_MOST_EVENTS: Final = 10_000


class ReadItem(Protocol):
    """What is read: an event, or without one a position that was reached."""

    @property
    def event(self) -> bytes | None: ...


T = TypeVar("T", bound=ReadItem)


class ReadAhead(Generic[T]):
    """Reads in a thread. What goes wrong there is raised by :meth:`take`.

    ``read`` is given a function that tells whether to end, and yields what it reads.
    """

    def __init__(self, read: Callable[[Callable[[], bool]], Iterator[T]], wake: Callable[[], None]) -> None:
        self._read = read
        self._wake = wake
        self._lock = threading.Condition()
        self._items: deque[T] = deque()
        self._bytes = 0
        self._error: Exception | None = None
        self._is_stopped = False
        threading.Thread(target=self._run, name="change stream", daemon=True).start()

    def take(self, most: int) -> list[T]:
        """Return what was read, up to so many events. Raises what went wrong after it."""
        with self._lock:
            if not self._items and self._error is not None:
                raise self._error
            taken = [self._items.popleft() for _ in range(min(most, len(self._items)))]
            self._bytes -= sum(len(item.event) for item in taken if item.event is not None)
            self._lock.notify()
            return taken

    def stop(self) -> None:
        """End the thread; it is not waited for, as it may wait for the server."""
        with self._lock:
            self._is_stopped = True
            self._lock.notify()

    def _run(self) -> None:
        try:
            for item in self._read(lambda: self._is_stopped):
                if not self._put(item):
                    return
        except Exception as error:
            with self._lock:
                self._error = error
            self._wake()

    def _put(self, item: T) -> bool:
        """Hand an item on, waiting until there is room; return whether to go on."""
        size = 0 if item.event is None else len(item.event)
        with self._lock:
            while self._items and (self._bytes + size > _MOST_BYTES or len(self._items) >= _MOST_EVENTS):
                if self._is_stopped:
                    return False
                self._lock.wait(1.0)
            was_empty = not self._items
            self._items.append(item)
            self._bytes += size
            is_stopped = self._is_stopped
        if was_empty and not is_stopped:
            self._wake()
        return not is_stopped
