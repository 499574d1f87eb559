"""A thread that runs what is posted to it, in order, as the herder's does."""

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
        """Run ``action`` when what was posted before is done."""
        self._actions.put(action)

    def ask(self, question: Callable[[], T]) -> T:
        """The answer to a question that is asked in the thread."""
        future: Future[T] = Future()
        self.post(lambda: future.set_result(question()))
        return future.result(30)

    def close(self) -> None:
        """Run what was posted, and end."""
        self._actions.put(None)
        self._thread.join()

    def _loop(self) -> None:
        while (action := self._actions.get()) is not None:
            action()
