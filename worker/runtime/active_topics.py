"""Which topics a task writes to or reads from, told to the worker as they are seen (KIP-158)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from worker.supervisor import messages

__all__ = ["ActiveTopics"]


class ActiveTopics:
    """Tells the worker of each topic when it is used first, and again after :meth:`forget`.

    So the topics of a connector that were reset come back with the next records.
    """

    def __init__(self, send: Callable[[messages.ActiveTopics], None], *, enabled: bool) -> None:
        self._send = send
        self._enabled = enabled
        self._told: set[str] = set()

    def see(self, topics: Iterable[str]) -> None:
        """Records of these topics have passed."""
        if self._enabled and (new := set(topics) - self._told):
            self._told |= new
            self._send(messages.ActiveTopics(sorted(new)))

    def forget(self) -> None:
        """Tell of every topic again that is used from now on."""
        self._told.clear()
