"""The names of senders, asked of the DNS in threads, so that a server that does not answer holds up nothing else."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from queue import Empty, SimpleQueue
from typing import Final

__all__ = ["SenderNames"]

_THREADS: Final = 4
_PATIENCE_SECONDS: Final = 1.0
_SLICE_SECONDS: Final = 0.05
_MOST_KNOWN: Final = 10_000


class SenderNames:
    """Remembers the name of each address for ``seconds``; an address without a name is its own.

    Used by the task's thread; the threads that ask only take addresses and give answers.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._known: dict[str, tuple[str, float]] = {}
        self._asked: set[str] = set()
        self._questions: SimpleQueue[str | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[str, str]] = SimpleQueue()
        for number in range(_THREADS):
            # As daemons they do not keep the process when it ends.
            threading.Thread(target=self._ask, name=f"syslog names {number}", daemon=True).start()

    def names(self, addresses: Collection[str], goes_on: Callable[[], bool]) -> Mapping[str, str]:
        """Return the name of each address.

        One that the DNS does not tell within a second, or before the task is to stop, is the address itself.
        """
        now = time.monotonic()
        self._take_answers(0.0)
        fresh = {address for address in addresses if self._is_to_ask(address, now)}
        self._asked |= fresh
        for address in fresh:
            self._questions.put(address)
        # What was waited for once is not waited for again.
        while fresh & self._asked and (left := now + _PATIENCE_SECONDS - time.monotonic()) > 0:
            self._take_answers(min(left, _SLICE_SECONDS))
            if not goes_on():
                break
        return {address: self._known[address][0] if address in self._known else address for address in addresses}

    def close(self) -> None:
        """End the threads, without waiting for those that wait for an answer."""
        for _ in range(_THREADS):
            self._questions.put(None)

    def _is_to_ask(self, address: str, now: float) -> bool:
        known = self._known.get(address)
        return address not in self._asked and (known is None or known[1] < now)

    def _take_answers(self, seconds: float) -> None:
        """Take the answers that are there, waiting so long for the first."""
        try:
            address, name = self._answers.get(timeout=seconds) if seconds else self._answers.get_nowait()
            while True:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[address] = (name, time.monotonic() + self._seconds)
                self._asked.discard(address)
                address, name = self._answers.get_nowait()
        except Empty:
            return

    def _ask(self) -> None:
        while (address := self._questions.get()) is not None:
            try:
                name = socket.gethostbyaddr(address)[0]
            except OSError:
                name = address
            self._answers.put((address, name))
