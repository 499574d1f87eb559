"""The largest batch that a topic accepts, if that is less than the producer would send."""

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
    """Looks up the limits of topics, each once. Used by one thread.

    A broker rejects a batch larger than the topic's ``max.message.bytes`` with all its records. Java's producer then
    splits the batch and keeps the order; librdkafka continues with the records after the batch.
    """

    def __init__(self, admin: Callable[[], AdminClient], batch_size: int) -> None:
        """``batch_size`` is the maximum number of bytes in one of the producer's batches.

        ``admin`` returns a client, which is not kept.
        """
        self._admin = admin
        self._batch_size = batch_size
        self._known: dict[str, int | None] = {}

    def of(self, topic: str) -> int | None:
        """Return the maximum batch size for a topic; ``None`` if it does not limit the producer, or is unknown."""
        if topic not in self._known:
            self._known[topic] = self._asked(topic)
        return self._known[topic]

    def forget(self, topic: str) -> None:
        """Look the limit up again: the topic did not exist before, or its limit was changed."""
        self._known.pop(topic, None)

    def _asked(self, topic: str) -> int | None:
        try:
            settings = describe_settings(self._admin(), topic) or {}
        except ConnectError as error:
            logger.debug("The maximum batch size of topic %s is unknown: %s", topic, error)
            return None
        limit = int(settings.get(_LIMIT, self._batch_size))
        return limit if limit < self._batch_size else None
