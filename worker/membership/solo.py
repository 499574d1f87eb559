"""The membership of standalone mode: one worker that leads and runs everything."""

from __future__ import annotations

from collections.abc import Iterable

from worker.unit import Unit

__all__ = ["SoloMembership"]


class SoloMembership:
    """Always the leader, with everything assigned; see :class:`~worker.membership.membership.Membership`."""

    is_leader = True
    generation = 0

    def assigned(self, units: Iterable[Unit]) -> frozenset[Unit]:
        """All of them."""
        return frozenset(units)
