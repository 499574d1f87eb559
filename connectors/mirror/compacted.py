"""Reads an internal topic of a mirror from its beginning to its end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from connect.errors import DataError, RetriableError

__all__ = ["TO_END", "Take", "read_to_end"]

logger = logging.getLogger(__name__)

TO_END: Final = {"enable.partition.eof": "true", "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
"""What a consumer has to be made with for :func:`read_to_end`."""

Take: TypeAlias = Callable[[bytes | None, bytes | None], None]
"""Called with the key and the value of a record."""

_MOST: Final = 1000
_SLICE: Final = 0.5
_ABSENT: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})


def read_to_end(consumer: Consumer, topic: str, take: Take, seconds: float) -> None:
    """Give ``take`` the key and the value of each record of partition 0; a topic that is not there has none.

    A record that ``take`` refuses with a :class:`~connect.errors.DataError` is logged and left out. Raises
    :class:`~connect.errors.RetriableError` if the end is not reached within ``seconds``.
    """
    deadline = time.monotonic() + seconds
    consumer.assign([TopicPartition(topic, 0, 0)])
    while time.monotonic() < deadline:
        for message in consumer.consume(_MOST, timeout=_SLICE):
            error = message.error()
            if error is None:
                _take(topic, take, message.key(), message.value())
            elif error.code() == KafkaError._PARTITION_EOF or error.code() in _ABSENT:
                return
            elif error.code() == KafkaError._AUTO_OFFSET_RESET or not error.retriable():
                raise RetriableError(f"Topic {topic} cannot be read: {error.str()}") from KafkaException(error)
    raise RetriableError(f"Topic {topic} could not be read to its end within {seconds:g} s.")


def _take(topic: str, take: Take, key: bytes | None, value: bytes | None) -> None:
    try:
        take(key, value)
    except DataError as error:
        logger.warning("A record of topic %s is left out: %s", topic, error)
