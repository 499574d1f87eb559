"""A Kafka client for occasional use: it is closed when idle and created again when needed.

Even an idle client costs three threads or more, and five to eight open files.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from confluent_kafka import Consumer, Producer

__all__ = ["OnDemandClient"]

C = TypeVar("C", Consumer, Producer)

_AT_REST_SECONDS: Final = 30.0


class OnDemandClient(Generic[C]):
    """Keeps a client while it is used and for half a minute after that. Used by one thread at a time.

    The first client is created at once, so that invalid settings are reported before they are needed.
    """

    def __init__(self, make: Callable[[], C], now: Callable[[], float] = time.monotonic) -> None:
        self._make: Callable[[], C] = make
        self._now = now
        self._client: C | None = make()
        self._rests_at = now() + _AT_REST_SECONDS

    @property
    def rests(self) -> bool:
        """Whether there is currently no client, and so no events to handle."""
        return self._client is None

    @property
    def client(self) -> C:
        """The client, which is created if needed; this counts as a use."""
        self._rests_at = self._now() + _AT_REST_SECONDS
        if self._client is None:
            self._client = self._make()
        return self._client

    def serve(self) -> None:
        """Handle the client's events, and close it if it has been idle for long and nothing is under way."""
        if self._client is None:
            return
        self._client.poll(0)
        # The length of a producer is the number of records without a delivery report.
        is_used = isinstance(self._client, Producer) and len(self._client) > 0
        if not is_used and self._now() >= self._rests_at:
            self.close()

    def close(self) -> None:
        """Close the client, if there is one; a producer's undelivered records are dropped."""
        if self._client is None:
            return
        if isinstance(self._client, Producer):
            self._client.purge()
            self._client.flush(1.0)
        else:
            self._client.close()
        self._client = None
