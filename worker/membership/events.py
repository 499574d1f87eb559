"""What a group member tells the herder."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeAlias

from worker.unit import Unit

__all__ = ["Event", "Joined", "Lost", "Refused"]


@dataclass(frozen=True, slots=True)
class Joined:
    """A round is over. ``held`` is what this worker is to run from now on, ``revoked`` what it is to stop for others.

    When the revoked units are gone the herder calls ``rejoin(reason)`` without an offset: the member takes part in no
    other round before, so that nobody is given what still runs here. With ``mismatch`` the leader knew older
    configurations than a member, and nothing changed. Only the leader knows ``owners``, who is to run what, by URL, and
    ``reported``, what the members still held when the round began.
    """

    generation: int
    member_id: str
    leader_id: str
    leader_url: str
    is_leader: bool
    mismatch: bool
    config_offset: int
    held: frozenset[Unit]
    revoked: frozenset[Unit]
    protocol_version: int
    owners: Mapping[Unit, str] = field(default_factory=dict)
    reported: frozenset[Unit] = frozenset()


@dataclass(frozen=True, slots=True)
class Lost:
    """This worker holds nothing any more: stop every unit, kill what is not gone within so many seconds.

    Complete ``stopped`` when all are gone; only then does the member join again.
    """

    stopped: Future[None]
    within: float


@dataclass(frozen=True, slots=True)
class Refused:
    """The broker will not have this worker in the group, and trying again would not help; the member has ended."""

    message: str


Event: TypeAlias = Joined | Lost | Refused
