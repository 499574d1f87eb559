"""Messages between the thread that receives them and the task that publishes them: bounded, and counted."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Counts", "Inbox", "Messages"]

_MESSAGE_OVERHEAD_BYTES = 100


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages that were received together.

    ``cut`` are the places of those that are not complete, ``receipts`` what to acknowledge each with, if at all.
    """

    lines: Sequence[bytes]
    senders: Sequence[str]
    at: float
    cut: Collection[int] = ()
    receipts: Sequence[Any] = ()

    @property
    def size(self) -> int:
        """Roughly the bytes of memory."""
        return sum(map(len, self.lines)) + _MESSAGE_OVERHEAD_BYTES * len(self.lines)


@dataclass(slots=True)
class Counts:
    """What has happened since the start. Each number is written by the receiving thread alone."""

    messages: int = 0
    octets: int = 0
    cut: int = 0
    dropped: int = 0
    connections: int = 0
    refused_connections: int = 0
    broken_connections: int = 0


@dataclass(slots=True)
class Inbox:
    """A queue with room for ``most_messages`` and ``most_bytes``, more than which is never asked for.

    ``arrived`` is called when there is something after there was nothing to take, ``emptied`` when there is room after
    there was none.
    """

    most_messages: int
    most_bytes: int
    arrived: Callable[[], None]
    emptied: Callable[[], None]
    _queue: deque[tuple[Messages, int]] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _messages: int = 0
    _bytes: int = 0
    _is_awaited: bool = True

    @property
    def messages(self) -> int:
        """How many messages wait."""
        return self._messages

    @property
    def bytes(self) -> int:
        """Roughly how much memory they take."""
        return self._bytes

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be received now."""
        return self._messages >= self.most_messages or self._bytes >= self.most_bytes

    def put(self, messages: Messages) -> None:
        """Add messages. Called by the receiving thread, which first looks whether there is room."""
        size = messages.size
        with self._lock:
            was_awaited, self._is_awaited = self._is_awaited, False
            self._queue.append((messages, size))
            self._messages += len(messages.lines)
            self._bytes += size
        if was_awaited:
            self.arrived()

    def take(self, most: int) -> list[Messages]:
        """Remove and return the oldest messages: those received together stay together, beyond ``most`` if need be."""
        taken: list[Messages] = []
        count = 0
        with self._lock:
            was_full, self._is_awaited = self.is_full, not self._queue
            while self._queue and count < most:
                messages, size = self._queue.popleft()
                taken.append(messages)
                count += len(messages.lines)
                self._bytes -= size
            self._messages -= count
            has_room = was_full and not self.is_full
        if has_room:
            self.emptied()
        return taken
