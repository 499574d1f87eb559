"""The names of senders, asked of the DNS in threads, so that a server that does not answer holds up nothing else."""

from __future__ import annotations

import socket
import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final

__all__ = ["SenderNames"]

_THREADS: Final = 4
_PATIENCE_SECONDS: Final = 1.0
_MOST_KNOWN: Final = 10_000


class SenderNames:
    """Remembers the name of each address for ``seconds``; an address without a name is its own."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._known: dict[str, tuple[str, float]] = {}
        self._asked: dict[str, Future[str]] = {}
        self._pool = ThreadPoolExecutor(_THREADS, "syslog names")

    def names(self, addresses: Collection[str]) -> Mapping[str, str]:
        """Return the name of each address. What the DNS does not tell within a second is the address itself."""
        now = time.monotonic()
        for address in addresses:
            known = self._known.get(address)
            if (known is None or known[1] < now) and address not in self._asked:
                self._asked[address] = self._pool.submit(_name, address)
        if awaited := [self._asked[address] for address in addresses if address in self._asked]:
            wait(awaited, _PATIENCE_SECONDS)
            self._keep(now)
        return {address: self._known[address][0] if address in self._known else address for address in addresses}

    def close(self) -> None:
        """End the threads, without waiting for those that wait for an answer."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _keep(self, now: float) -> None:
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        for address, asked in list(self._asked.items()):
            if asked.done():
                self._known[address] = (asked.result(), now + self._seconds)
                del self._asked[address]


def _name(address: str) -> str:
    try:
        return socket.gethostbyaddr(address)[0]
    except OSError:
        return address
