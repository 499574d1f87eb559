"""The producer of a source task that rests: it is closed while there is nothing to send, and made again for the next.

A client of Kafka costs three threads, some ten files and a few wake-ups a second, whether it is used or not. It is let
go only when nothing that it was given is under way, so there are no crash points but those of any send: what Kafka has
not acknowledged is read again. What follows is another producer's, behind all that is acknowledged, so the order of
records is kept. Producers of transactions do not rest: they hold their transactional id against former processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer

__all__ = ["RestingProducer"]


class RestingProducer:
    """A producer that can rest. Used by the task's thread alone.

    It is there from the beginning, so that a login which is refused is known before the first record.
    """

    def __init__(self, make: Callable[[], Producer], on_rest: Callable[[], None] = lambda: None) -> None:
        self._make = make
        self._on_rest = on_rest
        self._producer: Producer | None = make()

    @property
    def produce(self) -> Callable[..., Any]:
        """See ``Producer.produce``; for several records in a row it need be asked for once."""
        if self._producer is None:
            self._producer = self._make()
        return self._producer.produce

    def poll(self, seconds: float = 0.0) -> int:
        """See ``Producer.poll``. While it rests there is nothing to hear of, but the time passes."""
        if self._producer is not None:
            return self._producer.poll(seconds)
        if seconds:
            time.sleep(seconds)
        return 0

    def flush(self, seconds: float = -1.0) -> int:
        """See ``Producer.flush``."""
        return 0 if self._producer is None else self._producer.flush(seconds)

    def list_topics(self, topic: str, /, *, timeout: float) -> Any:
        """See ``Producer.list_topics``. While it rests there is nobody to learn of it."""
        return None if self._producer is None else self._producer.list_topics(topic, timeout=timeout)

    def rest(self) -> None:
        """Let go of the client until there is something to send, unless it has not heard of all that it was given."""
        if self._producer is None or len(self._producer):
            return
        self._producer.close()
        self._producer = None
        self._on_rest()
