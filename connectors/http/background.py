"""Runs one piece of work at a time in its own thread, so that a task can stop while a server does not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar

__all__ = ["LOOK", "Background", "Wait", "await_outcome"]

T = TypeVar("T")

Wait = Callable[[float], bool]
"""Waits, and returns whether the task may continue; see ``wait`` of a task's context."""

LOOK: Final = 0.001
"""How long to wait to find out whether the task must stop: a wait of 0 does not check."""

_SLICE_SECONDS: Final = 0.05
_LONGEST_SECONDS: Final = 1.0


class Background(Generic[T]):
    """Runs a piece of work and keeps the outcome until it is fetched. For use by a single thread."""

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
        self._outcomes: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()
        self._name = name
        self._thread: threading.Thread | None = None
        self.is_busy = False

    def begin(self, work: Callable[[], T]) -> None:
        """Start ``work``; no other work may be running."""
        if self._thread is None:
            # A daemon thread, so that the process can exit without waiting for a server.
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self.is_busy = True
        self._work.put(work)

    def outcome(self, seconds: float) -> tuple[T | None, BaseException | None] | None:
        """Return the result and the exception of the work; ``None`` if it does not finish within ``seconds``."""
        try:
            found = self._outcomes.get(timeout=seconds)
        except Empty:
            return None
        self.is_busy = False
        return found

    def close(self) -> None:
        """End the thread once its work is done."""
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
    """Wait for the outcome of the work; ``None`` if the task must stop, pause or attend to something else."""
    for _ in range(round(_LONGEST_SECONDS / _SLICE_SECONDS)):
        if (found := background.outcome(_SLICE_SECONDS)) is not None:
            return found
        if not wait(LOOK):
            return None
    return None
