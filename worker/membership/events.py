"""Events that a group member tells the herder, and errors of joining and heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeAlias

from connect.errors import ConnectError
from worker.unit import Unit

__all__ = [
    "Division",
    "Event",
    "GenerationLostError",
    "Joined",
    "Lost",
    "MemberRefusedError",
    "NotJoinedError",
    "Refused",
]


class NotJoinedError(ConnectError):
    """Joining failed this time but may work the next; ``at_once`` if there is no reason to wait."""

    def __init__(self, message: str, *, at_once: bool = False) -> None:
        super().__init__(message)
        self.at_once = at_once


class GenerationLostError(ConnectError):
    """The group has gone on without this member: its units may be another's by now."""


class MemberRefusedError(ConnectError):
    """The broker refuses this member for good; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Division:
    """The work of a group as its leader has divided it.

    ``owners`` has the URL of the worker that runs each unit, ``reported`` the units that members still held when the
    round began. ``members`` are the URLs of all workers, those that run nothing too, and ``draining`` of those that are
    to be rid of their work.
    """

    owners: Mapping[Unit, str]
    reported: frozenset[Unit]
    members: frozenset[str] = frozenset()
    draining: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Joined:
    """A round is over. ``held`` are the units that this worker runs from now on, ``revoked`` those it must give up.

    When the revoked units are gone the herder calls ``rejoin(reason)`` without an offset. The member takes part in no
    other round before, so that no unit is given away while it still runs here. With ``mismatch`` the leader knew older
    configurations than a member, and nothing changed. The leader alone has the ``division`` of the work.
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
    """This worker no longer holds anything: stop every unit, and kill those not gone after ``within`` seconds.

    Complete ``stopped`` when all are gone; only then does the member join again.
    """

    stopped: Future[None]
    within: float


@dataclass(frozen=True, slots=True)
class Refused:
    """The broker refuses this worker for good, and trying again would not help; the member has ended."""

    message: str


Event: TypeAlias = Joined | Lost | Refused
