"""A client of Kafka that is used now and then: it is closed when it rests, and made again when it is needed.

Even at rest a client costs three threads and more, and five to eight open files.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from confluent_kafka import Consumer, Producer

__all__ = ["OnDemandClient"]

C = TypeVar("C", Consumer, Producer)

_AT_REST: Final = 30.0


class OnDemandClient(Generic[C]):
    """Has a client as long as it is used, and for half a minute after that. Used by one thread at a time.

    The first is made at once, so that settings which are refused are known before they are needed.
    """

    def __init__(self, make: Callable[[], C], now: Callable[[], float] = time.monotonic) -> None:
        self._make: Callable[[], C] = make
        self._now = now
        self._client: C | None = make()
        self._rests_at = now() + _AT_REST

    @property
    def rests(self) -> bool:
        """Whether there is no client now, and so nothing to hear."""
        return self._client is None

    @property
    def client(self) -> C:
        """The client, which is about to be used."""
        self._rests_at = self._now() + _AT_REST
        if self._client is None:
            self._client = self._make()
        return self._client

    def serve(self) -> None:
        """Hear what the client has to say, and close it if it has rested for long and nothing is under way."""
        if self._client is None:
            return
        self._client.poll(0)
        # A producer is as long as what it was given and has not told the outcome of.
        is_used = isinstance(self._client, Producer) and len(self._client) > 0
        if not is_used and self._now() >= self._rests_at:
            self.close()

    def close(self) -> None:
        """Close the client, if there is one; what a producer was given and is not delivered is given up."""
        if self._client is None:
            return
        if isinstance(self._client, Producer):
            self._client.purge()
            self._client.flush(1.0)
        else:
            self._client.close()
        self._client = None
