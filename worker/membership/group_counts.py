"""Counts and times of a group member since it started. Each change makes a new value, so any thread may read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

__all__ = ["GroupCounts"]


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """The rounds and heartbeats of a member; times are ``time.monotonic`` seconds."""

    rounds: int = 0
    round_seconds: float = 0.0
    longest_round: float = 0.0
    last_round: float | None = None
    failed_joins: int = 0
    heartbeats: int = 0
    last_heartbeat: float | None = None
    connection: Mapping[str, float] = field(default_factory=dict)

    def joined(self, began: float, now: float) -> GroupCounts:
        """Return the counts after another round."""
        seconds = now - began
        return replace(
            self,
            rounds=self.rounds + 1,
            round_seconds=self.round_seconds + seconds,
            longest_round=max(self.longest_round, seconds),
            last_round=now,
        )

    def not_joined(self) -> GroupCounts:
        """Return the counts after a failed attempt to join."""
        return replace(self, failed_joins=self.failed_joins + 1)

    def beaten(self, now: float, connection: Mapping[str, float]) -> GroupCounts:
        """Return the counts after an answered heartbeat, with the connection's traffic so far."""
        return replace(self, heartbeats=self.heartbeats + 1, last_heartbeat=now, connection=connection)
