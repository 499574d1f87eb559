"""What is done from time to time: heartbeats, which show that a connector is alive and carry its offset on while there
are no other records, and what takes its time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from connect.data import Offset, Schema, SourceRecord

__all__ = ["Heartbeat", "Seldom"]

_TIMES_LONGER: Final = 49

_KEY: Final = Schema.struct(
    {"serverName": Schema.string()}, name="io.debezium.connector.common.ServerNameKey", version=1
)
_VALUE: Final = Schema.struct({"ts_ms": Schema.int64()}, name="io.debezium.connector.common.Heartbeat", version=1)


class Heartbeat:
    """Makes a heartbeat when one is due: at the first look, and then after each interval; never if that is zero."""

    def __init__(self, topic: str, server: str, partition: Offset, interval_ms: int) -> None:
        self._topic = topic
        self._key = {"serverName": server}
        self._partition = partition
        self._interval_s = interval_ms / 1000
        self._due_at = 0.0

    def is_due(self, now: float) -> bool:
        """Return whether a heartbeat is due at a monotonic time; it then counts as sent."""
        if not self._interval_s or now < self._due_at:
            return False
        self._due_at = now + self._interval_s
        return True

    def seconds_left(self, now: float, at_most: float) -> float:
        """Return how long it is until the next one."""
        return max(0.0, min(at_most, self._due_at - now)) if self._interval_s else at_most

    def record(self, ts_ms: int, offset: Offset) -> SourceRecord:
        """Return the heartbeat."""
        return SourceRecord(
            self._topic,
            {"ts_ms": ts_ms},
            _VALUE,
            self._key,
            _KEY,
            source_partition=self._partition,
            source_offset=offset,
        )


class Seldom:
    """Has what may take long be done for no more than a fiftieth of the time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock()

    def run(self, action: Callable[[], None]) -> None:
        """Do it, unless it is too early for that."""
        begun = self._clock()
        if begun < self._at:
            return
        try:
            action()
        finally:
            ended = self._clock()
            self._at = ended + _TIMES_LONGER * (ended - begun)
