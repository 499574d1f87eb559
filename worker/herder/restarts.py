"""Restarts at the request of a user, by the worker that runs what is restarted. The herder's thread alone."""

from __future__ import annotations

from typing import Any

from connect.errors import NotFoundError
from worker.errors import NotAssignedError, NotLeaderError
from worker.herder.restart import restart_plan
from worker.herder.units import Units
from worker.membership.membership import Membership
from worker.stores.config import ConfigStore
from worker.stores.status import StatusStore
from worker.unit import Unit

__all__ = ["Restarts"]


class Restarts:
    """Restarts what runs here, and says who is to restart what does not.

    Raises :class:`~connect.errors.NotFoundError`, :class:`~worker.errors.NotAssignedError` with the URL of the worker
    that runs the unit, or :class:`~worker.errors.NotLeaderError` with that of the worker that knows.
    """

    def __init__(self, configs: ConfigStore, statuses: StatusStore, membership: Membership, units: Units) -> None:
        self._configs = configs
        self._statuses = statuses
        self._membership = membership
        self._units = units

    def connector(self, name: str) -> dict[str, Any]:
        """Restart a connector without its tasks; there is nothing to be shown of it."""
        if name not in self._configs.connectors():
            raise NotFoundError(f"Unknown connector: {name}")
        self._restart(Unit(name))
        return {}

    def task(self, unit: Unit) -> None:
        """Restart one task."""
        entry = self._configs.connectors().get(unit.connector)
        if entry is None:
            raise NotFoundError(f"Unknown connector: {unit.connector}")
        if unit.task >= len(entry.task_configs):
            raise NotFoundError(f"Unknown task: {unit.connector}-{unit.task}")
        self._restart(unit)

    def requested(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        """Restart what runs here of a connector, as every worker was asked to (KIP-745)."""
        statuses = self._statuses.statuses()
        self._units.restart(restart_plan(name, statuses, include_tasks=include_tasks, only_failed=only_failed))

    def _restart(self, unit: Unit) -> None:
        if self._units.assigned(unit):
            self._units.restart([unit])
        elif self._membership.is_leader:
            raise NotAssignedError(f"{unit} does not run on this worker.", self._membership.owner_url(unit))
        else:
            raise NotLeaderError("Only the leader knows which worker runs what.", self._membership.leader_url)
