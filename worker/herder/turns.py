"""What is done for one connector after the other, and for different connectors at once. The herder's thread alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias

from worker.herder.inbox import Inbox

__all__ = ["Turn", "Turns"]

Turn: TypeAlias = Callable[[], Future[Any] | None]
"""Begins something and says when it is done; ``None`` is at once. It raises nothing."""


class Turns:
    """Lets each begin when the one before it is done, whatever came of that."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._lines: dict[str, deque[Turn]] = {}

    def take(self, name: str, turn: Turn) -> None:
        """Begin now, or when those that came before are done."""
        line = self._lines.setdefault(name, deque())
        line.append(turn)
        if len(line) == 1:
            self._go_on(name)

    def _go_on(self, name: str) -> None:
        line = self._lines[name]
        while line:
            if (under_way := line[0]()) is not None:
                under_way.add_done_callback(lambda _: self._inbox.post(lambda: self._over(name)))
                return
            line.popleft()
        del self._lines[name]

    def _over(self, name: str) -> None:
        self._lines[name].popleft()
        self._go_on(name)
