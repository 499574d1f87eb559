"""When an offset sync is written: a decision for each partition, by what Kafka has acknowledged."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["Pair", "SyncSchedule"]

Pair: TypeAlias = tuple[int, int]
"""The offset of a record at the source, and at the target."""


class SyncSchedule:
    """Tells which offset syncs of one partition are due, as MirrorMaker 2 does. For one thread.

    One is due at once for the first record, after a hole at the source, when the target has gone back, and when the
    target is more than ``lag`` records past the last that was due at once. Otherwise the newest pair waits for the
    next commit.
    """

    def __init__(self, lag: int) -> None:
        self._lag = lag
        self._last: Pair | None = None
        self._synced: int | None = None
        self._delayed: Pair | None = None

    def acknowledged(self, upstream: int, downstream: int, length: int = 1) -> list[Pair]:
        """Take ``length`` records in step from these offsets on; answer the syncs that are due at once, in order."""
        due: list[Pair] = []
        at = 0 if self._is_due(upstream, downstream) else self._next(downstream, 0)
        while at < length:
            due.append((upstream + at, downstream + at))
            self._synced = downstream + at
            at = self._next(downstream, at + 1)
        self._last = upstream + length - 1, downstream + length - 1
        self._delayed = None if due and due[-1] == self._last else self._last
        return due

    def committed(self) -> Pair | None:
        """The sync that is due at a commit, if one waits."""
        delayed, self._delayed = self._delayed, None
        return delayed

    def _is_due(self, upstream: int, downstream: int) -> bool:
        if self._last is None or self._synced is None:
            return True
        return upstream != self._last[0] + 1 or downstream < self._last[1]

    def _next(self, downstream: int, least: int) -> int:
        """How far after ``downstream`` the next is due by its distance from the last, but not before ``least``."""
        assert self._synced is not None
        return max(least, self._synced + 1 + self._lag - downstream)
