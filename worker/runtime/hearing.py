"""One thread that reads the pipes of all units of a process."""

from __future__ import annotations

import contextvars
import logging
import select
import threading
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass

__all__ = ["Hearing"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Ear:
    hear: Callable[[], bool]
    end: Callable[[], None]
    context: Context


class Hearing:
    """Has what can be read be read, in the context of who asked for that. May be used from any thread.

    A message that has come in part is waited for: the worker sends all of it as fast as it is read.
    """

    def __init__(self) -> None:
        self._kernel = select.epoll()
        self._ears: dict[int, _Ear] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._listen, name="commands", daemon=True)

    def start(self) -> None:
        """Begin to read, in a thread that belongs to nobody who asks for it."""
        self._thread.start()

    def add(self, descriptor: int, hear: Callable[[], bool], end: Callable[[], None]) -> None:
        """Call ``hear`` whenever the descriptor can be read, until it returns ``False``; then ``end``, once.

        From then on the descriptor is not looked at, and may be closed.
        """
        with self._lock:
            self._ears[descriptor] = _Ear(hear, end, contextvars.copy_context())
            self._kernel.register(descriptor, select.EPOLLIN)

    def _listen(self) -> None:
        while True:
            for descriptor, _ in self._kernel.poll():
                ear = self._ears[descriptor]
                if not ear.context.run(_heard, ear):
                    with self._lock:
                        del self._ears[descriptor]
                        self._kernel.unregister(descriptor)
                    ear.context.run(ear.end)


def _heard(ear: _Ear) -> bool:
    try:
        return ear.hear()
    except Exception:
        # A defect of ours; the others of this process must still be heard.
        logger.exception("What the worker says is not understood, and no more of it is heard")
        return False
