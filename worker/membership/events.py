"""Events that a group member sends to the herder, its counts, and errors of joining and heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from connect.errors import ConnectError
from worker.unit import Unit

__all__ = [
    "Division",
    "Event",
    "GenerationLostError",
    "GroupCounts",
    "Joined",
    "Lost",
    "MemberRefusedError",
    "NotJoinedError",
    "Refused",
]


class NotJoinedError(ConnectError):
    """Joining failed but may succeed next time. ``at_once`` is set if there is no reason to wait."""

    def __init__(self, message: str, *, at_once: bool = False) -> None:
        super().__init__(message)
        self.at_once = at_once


class GenerationLostError(ConnectError):
    """The group has moved on without this member: other workers may run its units."""


class MemberRefusedError(ConnectError):
    """The broker refuses this member permanently; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Division:
    """The assignment of a group's work, as its leader made it.

    ``owners`` has the URL of the worker that runs each unit, ``reported`` the units that members still held when the
    round began. ``members`` are the URLs of all workers, including those without units, and ``draining`` those being
    drained.
    """

    owners: Mapping[Unit, str]
    reported: frozenset[Unit]
    members: frozenset[str] = frozenset()
    draining: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Joined:
    """A round is complete. ``held`` are this worker's units from now on, ``revoked`` those it must give up.

    When the revoked units are gone, the herder calls ``rejoin(reason)`` without an offset. The member joins no other
    round before that, so no unit is assigned elsewhere while it still runs here. ``mismatch`` means that the leader
    knew older configurations than a member, and nothing changed. Only the leader has the ``division`` of the work.
    """

    generation: int
    member_id: str
    protocol_version: int
    leader_url: str
    mismatch: bool
    config_offset: int
    held: frozenset[Unit]
    revoked: frozenset[Unit]
    division: Division | None

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads."""
        return self.division is not None


@dataclass(frozen=True, slots=True)
class Lost:
    """This worker has lost all its units: stop every unit, and kill those not gone after ``within`` seconds.

    Complete ``stopped`` when all are gone; only then does the member join again. Without a ``reason`` this is part of a
    round (eager protocol) or of the worker's end; otherwise the worker has lost its cluster.
    """

    stopped: Future[None]
    within: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The broker refuses this worker permanently; the member has ended."""

    message: str


Event: TypeAlias = Joined | Lost | Refused


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
