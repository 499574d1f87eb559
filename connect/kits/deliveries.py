"""Messages that a server delivers to a client's thread and a source task publishes: bounded, and acknowledged in order.

The client's thread puts what it receives into an :class:`Inbox`, from which the task takes it. While the inbox is full,
the client's thread waits, and does not read its socket: the server keeps the rest. What Kafka has acknowledged is
given to :class:`Unsettled`, which says how far the server may be told.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["Inbox", "Unsettled"]

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class Inbox(Generic[T]):
    """A queue for ``most_items`` and ``most_bytes``. ``arrived`` is called when there is something after nothing was.

    If it is full, :meth:`put` waits up to ``patience_seconds`` and then adds all the same: the thread that puts has
    other duties, such as sending heartbeats. An inbox that nobody empties thus grows by one message in that time.
    """

    most_items: int
    most_bytes: int
    patience_seconds: float
    arrived: Callable[[], None]
    _queue: deque[tuple[T, int]] = field(default_factory=deque)
    _room: threading.Condition = field(default_factory=threading.Condition)
    _bytes: int = 0
    _is_awaited: bool = True
    _is_closed: bool = False

    @property
    def items(self) -> int:
        """How many messages wait."""
        return len(self._queue)

    @property
    def bytes(self) -> int:
        """How many bytes they have."""
        return self._bytes

    def put(self, item: T, size: int) -> None:
        """Add a message. Called by the client's thread."""
        with self._room:
            if not self._has_room():
                self._room.wait_for(self._has_room, self.patience_seconds)
            if self._is_closed:
                return
            was_awaited, self._is_awaited = self._is_awaited, False
            self._queue.append((item, size))
            self._bytes += size
        if was_awaited:
            self.arrived()

    def take(self, most: int) -> list[T]:
        """Remove and return the oldest messages."""
        with self._room:
            taken = [self._queue.popleft() for _ in range(min(most, len(self._queue)))]
            self._bytes -= sum(size for _, size in taken)
            if not taken:
                self._is_awaited = True
            self._room.notify_all()
        return [item for item, _ in taken]

    def close(self) -> None:
        """Forget everything, and take nothing more."""
        with self._room:
            self._is_closed = True
            self._queue.clear()
            self._bytes = 0
            self._room.notify_all()

    def _has_room(self) -> bool:
        return self._is_closed or (len(self._queue) < self.most_items and self._bytes < self.most_bytes)


@dataclass(slots=True)
class Unsettled(Generic[K]):
    """What was delivered and is not acknowledged to the server yet, in the order of delivery. Used by the task."""

    _open: dict[K, bool] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._open)

    def add(self, key: K) -> None:
        """Note a delivery."""
        self._open[key] = False

    def settle(self, key: K) -> None:
        """Note that Kafka has it, or that it is given up. A key that is not known is ignored."""
        if key in self._open:
            self._open[key] = True

    def take(self) -> list[K]:
        """Remove and return what is settled, as far as nothing before it is open."""
        settled: list[K] = []
        for key, is_settled in self._open.items():
            if not is_settled:
                break
            settled.append(key)
        for key in settled:
            del self._open[key]
        return settled

    def take_all(self) -> list[K]:
        """Remove and return all that is settled, whatever is before it: for the end."""
        settled = [key for key, is_settled in self._open.items() if is_settled]
        for key in settled:
            del self._open[key]
        return settled
