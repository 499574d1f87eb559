"""A worker's membership of its cluster: whether it leads, and which connectors and tasks it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from worker.errors import BadRequestError
from worker.membership.events import Event, GroupCounts, Joined, Lost, Refused
from worker.membership.protocol import EAGER
from worker.stores.config.store import ConfigSnapshot
from worker.unit import Unit

if TYPE_CHECKING:
    from worker.membership.group import GroupMember

__all__ = [
    "Event",
    "GroupMembership",
    "Joined",
    "Lost",
    "Membership",
    "Refused",
    "Snapshot",
    "SoloMembership",
    "Tell",
]

Tell: TypeAlias = Callable[[Event], None]
"""Receives the group's events, in the member's thread."""

Snapshot: TypeAlias = Callable[[int], Future[ConfigSnapshot]]
"""Returns the configurations, read at least to an offset if possible; -1 means as far as they were already read."""

_LEAVE_SECONDS: Final = 5.0


class Membership(Protocol):
    """This worker's membership of the cluster. Used only in the herder's thread; only :meth:`close` blocks."""

    @property
    def is_leader(self) -> bool:
        """Whether this worker writes configs (invariant I6)."""

    @property
    def generation(self) -> int:
        """The generation of the assignment, which statuses carry."""

    @property
    def leader_url(self) -> str | None:
        """The URL of the leader, if known."""

    @property
    def members(self) -> frozenset[str]:
        """The URLs of all workers of the cluster; empty on a worker that does not lead."""

    @property
    def draining(self) -> frozenset[str]:
        """The URLs of the workers being drained; a worker that does not lead only knows about itself."""

    @property
    def rebalancing(self) -> bool:
        """Whether this worker waits to join its cluster, or for another round."""

    @property
    def counts(self) -> GroupCounts | None:
        """The counts of the group member; ``None`` without a group."""

    def assigned(self, units: Iterable[Unit]) -> frozenset[Unit]:
        """Return the subset of the units that this worker runs."""

    def owner_url(self, unit: Unit) -> str | None:
        """Return the URL of the worker that runs this unit. Only the leader knows other workers' units."""

    def may_run_tasks(self, connector: str) -> bool:
        """Return whether any worker may still run a task of a connector.

        Only the leader knows; other workers return true.
        """

    def start(self, tell: Tell, snapshot: Snapshot) -> None:
        """Join the cluster; ``tell`` receives the events, which must be passed to :meth:`happened`."""

    def happened(self, event: Joined | Lost) -> None:
        """Process an event; the properties above reflect the last event processed."""

    def rejoin(self, reason: str, config_offset: int | None = None) -> None:
        """Request a rebalance. Without an offset, this also says that the revoked units are gone."""

    def drain(self, *, draining: bool) -> None:
        """Have the leader give this worker's units to others and assign it no more; or take units again.

        Raises :class:`~worker.errors.BadRequestError` if units cannot be given away.
        """

    def leave(self, for_seconds: float | None) -> None:
        """Leave the cluster and join again after ``for_seconds``; if ``None``, stay away."""

    def close(self) -> None:
        """Leave the cluster permanently. All units must have stopped before."""


class GroupMembership:
    """A worker's membership of its group. ``member`` creates the group member at the start."""

    def __init__(self, url: str, member: Callable[[Tell, Snapshot], GroupMember]) -> None:
        self._url = url
        self._make = member
        self._member: GroupMember | None = None
        self._joined: Joined | None = None
        self._generation = -1
        self._asked_offset = -1
        self._draining = False

    def start(self, tell: Tell, snapshot: Snapshot) -> None:
        """Start joining the group."""
        self._member = self._make(tell, snapshot)
        self._member.start()

    def happened(self, event: Joined | Lost) -> None:
        """Process an event."""
        self._joined = event if isinstance(event, Joined) else None
        if self._joined is not None:
            self._generation = self._joined.generation

    def rejoin(self, reason: str, config_offset: int | None = None) -> None:
        """Join another round; see :meth:`~worker.membership.group.GroupMember.rejoin`."""
        if config_offset is not None:
            self._asked_offset = max(self._asked_offset, config_offset)
        if self._member is not None:
            self._member.rejoin(reason, config_offset)

    def drain(self, *, draining: bool) -> None:
        """Have this worker's units given to others, or take units again."""
        if self._joined is not None and self._joined.protocol_version == EAGER:
            raise BadRequestError(
                "A worker can only be drained with incremental rebalancing: set connect.protocol to sessioned or "
                "compatible on every worker."
            )
        self._draining = draining
        if self._member is not None:
            self._member.drain(draining=draining)

    def leave(self, for_seconds: float | None) -> None:
        """Leave the group for ``for_seconds``."""
        if self._member is not None:
            self._member.leave(for_seconds)

    def close(self) -> None:
        """Leave the group, and wait a moment for that."""
        if self._member is not None:
            self._member.close()
            self._member.join(_LEAVE_SECONDS)

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads, as far as it knows."""
        return self._joined is not None and self._joined.is_leader

    @property
    def generation(self) -> int:
        """The generation that this worker is or was last in; -1 before the first."""
        return self._generation

    @property
    def leader_url(self) -> str | None:
        """The URL of the leader; ``None`` while this worker is not in the group."""
        return self._joined.leader_url if self._joined is not None else None

    @property
    def members(self) -> frozenset[str]:
        """The URLs of all members of the last round, if this worker leads."""
        division = self._joined.division if self._joined is not None else None
        return division.members if division is not None else frozenset()

    @property
    def draining(self) -> frozenset[str]:
        """The URLs of the workers being drained, as far as this one knows."""
        division = self._joined.division if self._joined is not None else None
        others = division.draining - {self._url} if division is not None else frozenset()
        return others | {self._url} if self._draining else others

    @property
    def rebalancing(self) -> bool:
        """Whether this worker is not in the group, or knows that another round must follow."""
        return self._joined is None or self._joined.mismatch or bool(self._joined.revoked)

    @property
    def counts(self) -> GroupCounts:
        """The member's counts."""
        return self._member.counts if self._member is not None else GroupCounts()

    def assigned(self, units: Iterable[Unit]) -> frozenset[Unit]:
        """Return the subset of the units that this worker holds."""
        return self._joined.held.intersection(units) if self._joined is not None else frozenset()

    def owner_url(self, unit: Unit) -> str | None:
        """Return the URL of the worker that holds this unit; unless this worker leads, only its own units are known."""
        if self._joined is None:
            return None
        if unit in self._joined.held:
            return self._url
        return self._joined.division.owners.get(unit) if self._joined.division is not None else None

    def may_run_tasks(self, connector: str) -> bool:
        """Return whether the last round assigned a task of a connector, or a member still held one when it began.

        Also true while a round with newer configurations is due, which may assign one. A worker that is not in the
        round has been out of the group for a session, so its tasks have ended with its lease.
        """
        joined = self._joined
        if joined is None or joined.division is None or joined.mismatch or joined.config_offset < self._asked_offset:
            return True
        known = (joined.division.reported, joined.division.owners, joined.held)
        return any(unit.connector == connector and unit.is_task for units in known for unit in units)


class SoloMembership:
    """Always the leader, with all units assigned; see :class:`Membership`."""

    is_leader = True
    generation = 0
    leader_url = None
    rebalancing = False
    members: frozenset[str] = frozenset()
    draining: frozenset[str] = frozenset()
    counts = None

    def assigned(self, units: Iterable[Unit]) -> frozenset[Unit]:
        """Return all units."""
        return frozenset(units)

    def owner_url(self, _unit: Unit) -> str | None:
        """Return ``None``: there is no other worker."""
        return None

    def may_run_tasks(self, _connector: str) -> bool:
        """Return ``False``: there is no other worker."""
        return False

    def start(self, _tell: Tell, _snapshot: Snapshot) -> None:
        """Do nothing: there is no group to join."""

    def happened(self, _event: Joined | Lost) -> None:
        """Do nothing: no events come."""

    def rejoin(self, _reason: str, _config_offset: int | None = None) -> None:
        """Do nothing: there is no other worker."""

    def drain(self, *, draining: bool) -> None:
        """Refuse: no other worker could take the units."""
        if draining:
            raise BadRequestError(
                "A standalone worker cannot be drained: there is no other worker to take its connectors and tasks."
            )

    def leave(self, _for_seconds: float | None) -> None:
        """Do nothing: there is no group to leave."""

    def close(self) -> None:
        """Do nothing: there is no group to leave."""
