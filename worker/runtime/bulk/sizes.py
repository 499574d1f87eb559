"""Estimates the size of the records of a bulk sink's topics from a few of them, to plan loads by bytes."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, Final

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Message

from connect.data import TopicPartition

__all__ = ["OffsetSizes"]

logger = logging.getLogger(__name__)
_HOLDS_SECONDS: Final = 600.0
_UNKNOWN_FOR_SECONDS: Final = 60.0
_ENOUGH: Final = 20
_PATIENCE_SECONDS: Final = 5.0
_STEP_SECONDS: Final = 0.5


class _Sample:
    """A few records of a partition from an offset on."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._offsets = 0
        self._bytes = 0
        self.missing = _ENOUGH

    def take(self, message: Message) -> None:
        """Count a message; an error, such as the end of the partition, is the last."""
        if message.error() is not None:
            self.missing = 0
            return
        headers: Any = message.headers() or []
        parts = [message.key(), message.value(), *(part for header in headers for part in header)]
        self._bytes += sum(len(part) for part in parts if part is not None)
        offset = message.offset() or 0
        if self._first is None:
            # It may not be the requested offset, whose record may have been deleted.
            self._first = offset
        self._offsets = offset - self._first + 1
        self.missing -= 1

    @property
    def offset_bytes(self) -> float | None:
        """The bytes per offset; ``None`` without records."""
        return self._bytes / self._offsets if self._offsets > 0 else None


class OffsetSizes:
    """Reads a few records of each topic that has some waiting, with a separate consumer.

    It samples a topic again after ten minutes. Sizes are uncompressed, as the records are loaded.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._known: dict[str, float] = {}
        self._due: dict[str, float] = {}

    def of(self, waiting: Mapping[TopicPartition, int]) -> Mapping[str, float]:
        """Return the bytes per offset of each topic, from records at the first waiting offsets of its partitions.

        Topics from which no record could be read are missing.
        """
        now = time.monotonic()
        # The partitions of a topic are assumed to be alike, so one of them is read.
        places = {tp.topic: (tp, first) for tp, first in waiting.items() if self._due.get(tp.topic, 0.0) <= now}
        if places:
            found = self._sample(dict(places.values()))
            self._known |= found
            self._due |= {topic: now + (_HOLDS_SECONDS if topic in found else _UNKNOWN_FOR_SECONDS) for topic in places}
        return self._known

    def _sample(self, places: Mapping[TopicPartition, int]) -> dict[str, float]:
        samples = {tp: _Sample() for tp in places}
        try:
            self._consumer.assign([confluent_kafka.TopicPartition(*tp, first) for tp, first in places.items()])
            self._read(samples)
            self._consumer.unassign()
        except KafkaException as error:
            logger.debug("The size of records could not be looked up: %s", error)
        sizes = {tp.topic: sample.offset_bytes for tp, sample in samples.items()}
        return {topic: size for topic, size in sizes.items() if size is not None}

    def _read(self, samples: Mapping[TopicPartition, _Sample]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        missing = set(samples)
        while missing and time.monotonic() < deadline:
            message = self._consumer.poll(_STEP_SECONDS)
            if message is None:
                continue
            tp = TopicPartition(message.topic() or "", message.partition() or 0)
            if tp in missing:
                samples[tp].take(message)
                if samples[tp].missing <= 0:
                    missing.discard(tp)
