"""Which part of the cluster's work is this worker's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Final, Protocol, TypeAlias

from worker.membership.events import Event, Joined, Lost, Refused
from worker.stores.config.store import ConfigSnapshot
from worker.unit import Unit

__all__ = [
    "Event",
    "GroupMembership",
    "Joined",
    "Lost",
    "Member",
    "Membership",
    "Refused",
    "Snapshot",
    "SoloMembership",
    "Tell",
]

Tell: TypeAlias = Callable[[Event], None]
"""Is given what happens in the group, in the member's thread."""

Snapshot: TypeAlias = Callable[[int], Future[ConfigSnapshot]]
"""The configurations, read to an offset at least if that can be; -1 is as far as they are read already."""

_LEAVE_SECONDS: Final = 5.0


class Membership(Protocol):
    """This worker's place in the cluster. Used by the herder's thread alone; no method waits, but for :meth:`close`."""

    @property
    def is_leader(self) -> bool:
        """Whether this worker writes configs (invariant I6)."""

    @property
    def generation(self) -> int:
        """The generation of the assignment; statuses carry it."""

    @property
    def leader_url(self) -> str | None:
        """Where the leader listens, if it is known."""

    def assigned(self, units: Iterable[Unit]) -> frozenset[Unit]:
        """Those of the units that this worker runs."""

    def owner_url(self, unit: Unit) -> str | None:
        """Where the worker listens that runs this unit. Only the leader knows of others'."""

    def may_run_tasks(self, connector: str) -> bool:
        """Whether some worker may run a task of a connector yet. Only the leader knows; others say yes."""

    def start(self, tell: Tell, snapshot: Snapshot) -> None:
        """Take part in the cluster; ``tell`` is given what happens, for :meth:`happened` to be called with."""

    def happened(self, event: Joined | Lost) -> None:
        """Take in what has happened; the answers to the questions above are as of the last event taken in."""

    def rejoin(self, reason: str, config_offset: int | None = None) -> None:
        """Have the work divided anew. Without an offset this also says that what was revoked is gone."""

    def leave(self, for_seconds: float | None) -> None:
        """Leave the cluster, and join it again after so long; without a time stay away."""

    def close(self) -> None:
        """Leave the cluster for good. What this worker ran must have stopped before."""


class Member(Protocol):
    """What :class:`~worker.membership.group.GroupMember` does: takes part in the group, in a thread of its own."""

    def start(self) -> None:
        """Begin to join."""

    def rejoin(self, reason: str, config_offset: int | None = None) -> None:
        """Take part in another round."""

    def leave(self, for_seconds: float | None) -> None:
        """Leave for so long."""

    def close(self) -> None:
        """Leave and end."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end."""


class GroupMembership:
    """The place of a worker in its group. ``member`` makes what takes part in the group for it, at the start."""

    def __init__(self, url: str, member: Callable[[Tell, Snapshot], Member]) -> None:
        self._url = url
        self._make = member
        self._member: Member | None = None
        self._joined: Joined | None = None
        self._generation = -1
        self._asked_offset = -1

    def start(self, tell: Tell, snapshot: Snapshot) -> None:
        """Begin to join the group."""
        self._member = self._make(tell, snapshot)
        self._member.start()

    def happened(self, event: Joined | Lost) -> None:
        """Take in what has happened."""
        self._joined = event if isinstance(event, Joined) else None
        if self._joined is not None:
            self._generation = self._joined.generation

    def rejoin(self, reason: str, config_offset: int | None = None) -> None:
        """Take part in another round; see :meth:`~worker.membership.group.GroupMember.rejoin`."""
        if config_offset is not None:
            self._asked_offset = max(self._asked_offset, config_offset)
        if self._member is not None:
            self._member.rejoin(reason, config_offset)

    def leave(self, for_seconds: float | None) -> None:
        """Leave the group for so long."""
        if self._member is not None:
            self._member.leave(for_seconds)

    def close(self) -> None:
        """Leave the group, and wait a moment until that is done."""
        if self._member is not None:
            self._member.close()
            self._member.join(_LEAVE_SECONDS)

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads, as far as it knows."""
        return self._joined is not None and self._joined.is_leader

    @property
    def generation(self) -> int:
        """The generation this worker is in or was last in; -1 before the first."""
        return self._generation

    @property
    def leader_url(self) -> str | None:
        """Where the leader listens; ``None`` while this worker is not in the group."""
        return self._joined.leader_url if self._joined is not None else None

    @property
    def rebalancing(self) -> bool:
        """Whether this worker is not in the group, or knows that another round must follow."""
        return self._joined is None or self._joined.mismatch or bool(self._joined.revoked)

    def assigned(self, units: Iterable[Unit]) -> frozenset[Unit]:
        """Those of the units that this worker holds."""
        return self._joined.held.intersection(units) if self._joined is not None else frozenset()

    def owner_url(self, unit: Unit) -> str | None:
        """Where the worker listens that holds this unit; a worker that does not lead knows its own alone."""
        if self._joined is None:
            return None
        return self._url if unit in self._joined.held else self._joined.owners.get(unit)

    def may_run_tasks(self, connector: str) -> bool:
        """Whether a task was given to a worker in the last round, or was still held by one that came into it.

        So may be what is given in a round that is to come, of newer configurations than the last. A worker that is not
        in the round has been out of the group for a session: what it ran has ended with its lease.
        """
        joined = self._joined
        if joined is None or not joined.is_leader or joined.mismatch or joined.config_offset < self._asked_offset:
            return True
        known = (joined.reported, joined.owners, joined.held)
        return any(unit.connector == connector and unit.is_task for units in known for unit in units)


class SoloMembership:
    """Always the leader, with everything assigned; see :class:`Membership`."""

    is_leader = True
    generation = 0
    leader_url = None
    rebalancing = False

    def assigned(self, units: Iterable[Unit]) -> frozenset[Unit]:
        """All of them."""
        return frozenset(units)

    def owner_url(self, _unit: Unit) -> str | None:
        """No other worker needs to be asked."""
        return None

    def may_run_tasks(self, _connector: str) -> bool:
        """There is no other worker."""
        return False

    def start(self, _tell: Tell, _snapshot: Snapshot) -> None:
        """There is nobody to join."""

    def happened(self, _event: Joined | Lost) -> None:
        """Nothing happens."""

    def rejoin(self, _reason: str, _config_offset: int | None = None) -> None:
        """There is nobody to divide the work with."""

    def leave(self, _for_seconds: float | None) -> None:
        """There is nobody to leave."""

    def close(self) -> None:
        """There is nobody to leave."""
