"""One piece of work at a time in a thread of its own, so that a task can be stopped while a server does not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar

__all__ = ["LOOK", "Background", "Wait", "await_outcome"]

T = TypeVar("T")

Wait = Callable[[float], bool]
"""Waits, and tells whether the task may go on; see ``wait`` of a task's context."""

LOOK: Final = 0.001
"""Seconds to wait in order to see whether the task is to stop: to wait for none at all does not look."""

_SLICE: Final = 0.05
_LONGEST: Final = 1.0


class Background(Generic[T]):
    """Runs what it is given, and keeps the outcome until it is asked for. For one thread to use."""

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
        self._outcomes: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()
        self._name = name
        self._thread: threading.Thread | None = None
        self.is_busy = False

    def begin(self, work: Callable[[], T]) -> None:
        """Run ``work``; there must be none under way."""
        if self._thread is None:
            # A daemon: whoever ends the process need not wait for a server.
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self.is_busy = True
        self._work.put(work)

    def outcome(self, seconds: float) -> tuple[T | None, BaseException | None] | None:
        """What the work has returned or raised; ``None`` if it is not done within so many seconds."""
        try:
            found = self._outcomes.get(timeout=seconds)
        except Empty:
            return None
        self.is_busy = False
        return found

    def close(self) -> None:
        """Let the thread end when its work is done."""
        if self._thread is not None:
            self._work.put(None)
            self._thread = None

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                self._outcomes.put((work(), None))
            except BaseException as error:
                self._outcomes.put((None, error))


def await_outcome(background: Background[T], wait: Wait) -> tuple[T | None, BaseException | None] | None:
    """The outcome of the work; ``None`` if the task is to stop or pause, or has other things to see to."""
    for _ in range(round(_LONGEST / _SLICE)):
        if (found := background.outcome(_SLICE)) is not None:
            return found
        if not wait(LOOK):
            return None
    return None
