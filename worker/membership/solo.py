"""The membership of standalone mode: one worker that leads and runs everything."""

from __future__ import annotations

from collections.abc import Iterable

from worker.membership.membership import Joined, Lost, Snapshot, Tell
from worker.unit import Unit

__all__ = ["SoloMembership"]


class SoloMembership:
    """Always the leader, with everything assigned; see :class:`~worker.membership.membership.Membership`."""

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
