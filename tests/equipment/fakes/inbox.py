"""A thread that runs posted actions in order, like the herder's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

__all__ = ["Inbox"]

T = TypeVar("T")


class Inbox:
    """Runs actions one after the other until it is closed."""

    def __init__(self) -> None:
        self._actions: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="inbox", daemon=True)
        self._thread.start()

    def post(self, action: Callable[[], None]) -> None:
        """Run ``action`` after everything that was posted before."""
        self._actions.put(action)

    def ask(self, question: Callable[[], T]) -> T:
        """Run a function in the thread, and return its result."""
        future: Future[T] = Future()
        self.post(lambda: future.set_result(question()))
        return future.result(30)

    def close(self) -> None:
        """Run all posted actions, and end."""
        self._actions.put(None)
        self._thread.join()

    def _loop(self) -> None:
        while (action := self._actions.get()) is not None:
            action()
