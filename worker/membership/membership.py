"""Which part of the cluster's work is this worker's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from worker.unit import Unit

__all__ = ["Membership"]


class Membership(Protocol):
    """This worker's place in the cluster, as the herder sees it."""

    @property
    def is_leader(self) -> bool:
        """Whether this worker writes configs (invariant I6)."""

    @property
    def generation(self) -> int:
        """The generation of the assignment; statuses carry it."""

    def assigned(self, units: Iterable[Unit]) -> frozenset[Unit]:
        """Those of the units that this worker runs."""
