"""Restarts that users request, done by the worker that runs the unit. Used only in the herder's thread."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from connect.errors import NotFoundError
from worker.errors import NotAssignedError, NotLeaderError, UnknownConnectorError
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.connectors import Connectors
from worker.herder.inbox import Inbox
from worker.herder.requests import Request, Steps
from worker.herder.settings import Stores
from worker.herder.units import Units
from worker.membership.membership import Membership
from worker.stores.config.store import ConnectorEntry, TargetState
from worker.stores.status.store import State, Status
from worker.unit import Unit

__all__ = ["Restarts", "restart_plan", "restarting"]

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS: Final = 10.0
_LOOK_AGAIN_SECONDS: Final = 0.05


class Restarts:
    """Restarts units that run here, and refuses others with the worker that can restart them.

    A unit that is about to be assigned, because its connector was just created or changed, is waited for, as in Kafka
    Connect. A request fails with :class:`~connect.errors.NotFoundError`, with :class:`~worker.errors.NotAssignedError`
    and the URL of the worker that runs the unit, or with :class:`~worker.errors.NotLeaderError` and the URL of the
    leader, which knows.
    """

    def __init__(
        self,
        stores: Stores,
        membership: Membership,
        connectors: Connectors,
        leadership: Leadership,
        units: Units,
        inbox: Inbox,
    ) -> None:
        self._configs = stores.configs
        self._statuses = stores.statuses
        self._membership = membership
        self._connectors = connectors
        self._leadership = leadership
        self._units = units
        self._inbox = inbox

    def connector(self, request: Request[dict[str, Any]], name: str) -> Steps[dict[str, Any]]:
        """Restart a connector without its tasks; the answer is empty."""
        yield from self._restart(request, Unit(name))
        return {}

    def task(self, request: Request[None], unit: Unit) -> Steps[None]:
        """Restart one task."""
        yield from self._restart(request, unit)

    def everywhere(
        self, request: Request[dict[str, Any]], name: str, *, include_tasks: bool, only_failed: bool
    ) -> Steps[dict[str, Any]]:
        """Have every worker restart its units of a connector (KIP-745); the answer is its status with the plan."""
        yield from self._leadership.lead(request)
        if not self._connectors.exists(name):
            raise UnknownConnectorError(f"Unknown connector: {name}")
        statuses = self._statuses.statuses()
        plan = restart_plan(name, statuses, include_tasks=include_tasks, only_failed=only_failed)
        shown = self._connectors.status(name, restarting(statuses, plan))
        if not plan:
            return {**shown, "message": f"Nothing of {name} has failed; nothing was restarted."}
        request.enter(f"asking for a restart of connector {name}")
        yield self._configs.put_restart(name, include_tasks=include_tasks, only_failed=only_failed)
        return shown

    def requested(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        """Restart this worker's units of a connector, as requested of all workers (KIP-745)."""
        statuses = self._statuses.statuses()
        plan = restart_plan(name, statuses, include_tasks=include_tasks, only_failed=only_failed)
        self._log(name, *self._membership.assigned(plan))
        self._units.restart(plan)

    @staticmethod
    def _log(name: str, *here: Unit) -> None:
        if here:
            logger.info("Restarting %s, as requested", name, extra={"context": name})

    def _restart(self, request: Request[Any], unit: Unit) -> Steps[None]:
        """Restart a unit or fail with its owner; retry for a while if neither is possible yet."""
        patience = _PATIENCE_SECONDS
        while not self._is_restarted(unit, patience):
            request.enter(f"waiting until a worker is to run {unit}")
            yield self._inbox.pause(_LOOK_AGAIN_SECONDS)
            patience -= _LOOK_AGAIN_SECONDS

    def _is_restarted(self, unit: Unit, patience: float) -> bool:
        entry = self._configs.connectors().get(unit.connector)
        if entry is None:
            raise UnknownConnectorError(f"Unknown connector: {unit.connector}")
        is_there = not unit.is_task or unit.task < len(entry.task_configs)
        if not is_there and (patience <= 0 or not self._has_tasks_to_come(unit.connector, entry)):
            raise NotFoundError(f"Unknown task: {unit.connector}-{unit.task}")
        if is_there and self._units.assigned(unit):
            self._log(str(unit), unit)
            self._units.restart([unit])
            return True
        if not self._membership.is_leader:
            raise NotLeaderError("Only the leader knows which worker runs what.", self._membership.leader_url)
        if (url := self._membership.owner_url(unit)) is not None or patience <= 0:
            raise NotAssignedError(f"{unit} does not run on this worker.", url)
        return False

    def _has_tasks_to_come(self, connector: str, entry: ConnectorEntry) -> bool:
        """Return whether the connector has not published its task configs yet."""
        status = self._statuses.statuses().get(Unit(connector))
        has_failed = status is not None and status.state is State.FAILED
        return entry.target is TargetState.STARTED and entry.applied != entry.config and not has_failed


def restart_plan(
    connector: str, statuses: Mapping[Unit, Status], *, include_tasks: bool, only_failed: bool
) -> frozenset[Unit]:
    """Return the units to restart: the connector, with its tasks if requested, or only the failed ones of these."""
    return frozenset(
        unit
        for unit, status in statuses.items()
        if unit.connector == connector
        and (include_tasks or not unit.is_task)
        and (not only_failed or status.state is State.FAILED)
    )


def restarting(statuses: Mapping[Unit, Status], plan: frozenset[Unit]) -> dict[Unit, Status]:
    """Return the statuses shown while ``plan`` is under way."""
    return {
        unit: replace(status, state=State.RESTARTING) if unit in plan else status for unit, status in statuses.items()
    }
