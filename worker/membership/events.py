"""What a group member tells the herder, and how an attempt to join a group, or a sign of life, may fail."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeAlias

from connect.errors import ConnectError
from worker.unit import Unit

__all__ = ["Event", "GenerationLostError", "Joined", "Lost", "MemberRefusedError", "NotJoinedError", "Refused"]


class NotJoinedError(ConnectError):
    """It did not work out this time and may the next; ``at_once`` if there is no reason to wait."""

    def __init__(self, message: str, *, at_once: bool = False) -> None:
        super().__init__(message)
        self.at_once = at_once


class GenerationLostError(ConnectError):
    """The group has gone on without this member: what it held may be another's by now."""


class MemberRefusedError(ConnectError):
    """The broker will not have this member whatever it does; the message says what to change."""


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
