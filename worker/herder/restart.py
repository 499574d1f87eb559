"""What a restart of a connector restarts (KIP-745): a function of the statuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from worker.stores.status import State, Status
from worker.unit import Unit

__all__ = ["restart_plan", "restarting"]


def restart_plan(
    connector: str, statuses: Mapping[Unit, Status], *, include_tasks: bool, only_failed: bool
) -> frozenset[Unit]:
    """The units to restart: the connector, with its tasks if asked for, or only what of them has failed."""
    return frozenset(
        unit
        for unit, status in statuses.items()
        if unit.connector == connector
        and (include_tasks or not unit.is_task)
        and (not only_failed or status.state is State.FAILED)
    )


def restarting(statuses: Mapping[Unit, Status], plan: frozenset[Unit]) -> dict[Unit, Status]:
    """The statuses as they are shown once ``plan`` is under way."""
    return {
        unit: replace(status, state=State.RESTARTING) if unit in plan else status for unit, status in statuses.items()
    }
