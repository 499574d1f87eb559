"""Partitions whose topic was made anew at the source, and when they may be read again."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from connect.data import TopicPartition
from connect.source import OffsetStorageReader
from connectors.mirror.source.offsets import RESET, source_offset, source_partition

__all__ = ["Renewals"]

_LOOK_AGAIN: Final = 0.5


class Renewals:
    """Partitions that wait until nothing that is stored speaks of their former topic. For the task's thread.

    That is once their offset is :data:`~connectors.mirror.source.offsets.RESET`, which the task passes. Only then may
    it be written which topic they have now, and only then are they read.

    Crash points: before the offset is reset, the next start finds another topic than the one that is written, and
    begins with this again. After it, and before the topic is written, it finds that there is nothing to begin with.
    After that, the first offset of the new topic is stored as every other.
    """

    def __init__(self, alias: str, offsets: OffsetStorageReader) -> None:
        self._alias = alias
        self._offsets = offsets
        self._waiting: set[TopicPartition] = set()
        self._look_at = 0.0

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Wait for these as well."""
        self._waiting.update(partitions)

    def ready(self) -> list[TopicPartition]:
        """Return those whose offset is reset. It may be called at every poll: it asks twice a second at most."""
        if not self._waiting or time.monotonic() < self._look_at:
            return []
        self._look_at = time.monotonic() + _LOOK_AGAIN
        waiting = sorted(self._waiting)
        stored = self._offsets.offsets([source_partition(self._alias, each) for each in waiting])
        return [each for each, offset in zip(waiting, stored, strict=True) if offset == source_offset(RESET)]

    def end(self, partitions: Iterable[TopicPartition]) -> None:
        """These are read again."""
        self._waiting.difference_update(partitions)
