"""The largest batch that a topic accepts, where that is less than the producer would send."""

from __future__ import annotations

import logging
from collections.abc import Callable

from confluent_kafka.admin import AdminClient

from connect.errors import ConnectError
from worker.kafka.topics.admin import describe_settings

__all__ = ["BatchLimits"]

logger = logging.getLogger(__name__)
_LIMIT = "max.message.bytes"


class BatchLimits:
    """Asks for the limits of topics, each once. Used by one thread.

    A broker refuses a batch that is larger than the topic's ``max.message.bytes``, with all the records in it. Java's
    producer then divides the batch and keeps the order; librdkafka goes on with the records behind it.
    """

    def __init__(self, admin: Callable[[], AdminClient], batch_size: int) -> None:
        """``batch_size`` is how many bytes of records the producer puts into a batch at most.

        ``admin`` gives a client, which is not kept.
        """
        self._admin = admin
        self._batch_size = batch_size
        self._known: dict[str, int | None] = {}

    def of(self, topic: str) -> int | None:
        """The most bytes of a batch for a topic; ``None`` if the producer makes none that large, or it is unknown."""
        if topic not in self._known:
            self._known[topic] = self._asked(topic)
        return self._known[topic]

    def forget(self, topic: str) -> None:
        """Ask again: the topic was not there before, or its limit was changed."""
        self._known.pop(topic, None)

    def _asked(self, topic: str) -> int | None:
        try:
            settings = describe_settings(self._admin(), topic) or {}
        except ConnectError as error:
            logger.debug("The largest batch that topic %s accepts is unknown: %s", topic, error)
            return None
        limit = int(settings.get(_LIMIT, self._batch_size))
        return limit if limit < self._batch_size else None
