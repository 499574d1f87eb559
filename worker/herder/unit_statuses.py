"""Writes the statuses of this worker's units to the status store. Used only in the herder's thread."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from worker.herder.cluster.standing import LIVE
from worker.herder.settings import Stores, WorkerSettings
from worker.membership.membership import Membership
from worker.stores.config.store import TargetState
from worker.stores.status.store import Hang, Skips, State, Status, Wait
from worker.unit import Unit

__all__ = ["AT_REST", "UnitStatuses"]

AT_REST: Final[Mapping[TargetState, State]] = {
    TargetState.PAUSED: State.PAUSED,
    TargetState.STOPPED: State.STOPPED,
}
"""The states of connectors that a user has paused or stopped."""


class UnitStatuses:
    """Writes statuses while this worker is a member of its cluster and its lease has not expired.

    After that, another worker may run the units, and writes their statuses (invariant I6).
    """

    def __init__(self, worker: WorkerSettings, stores: Stores, membership: Membership) -> None:
        self._worker_id = worker.id
        self._lease = worker.lease
        self._configs = stores.configs
        self._statuses = stores.statuses
        self._membership = membership
        self._is_part = True

    def joined(self) -> None:
        """Resume writing: this worker has joined its cluster."""
        self._is_part = True

    def lost(self) -> None:
        """Stop writing: this worker is no longer a member of its cluster."""
        self._is_part = False

    def speaks_for(self, unit: Unit) -> bool:
        """Return whether this worker may write the status of one of its units."""
        return self._may_write() and unit.connector in self._configs.connectors()

    def of(self, unit: Unit) -> Status | None:
        """Return the status of a unit, whichever worker wrote it."""
        return self._statuses.statuses().get(unit)

    def is_ours(self, status: Status) -> bool:
        """Return whether this worker wrote a status."""
        return status.worker_id == self._worker_id

    def put(
        self,
        unit: Unit,
        state: State,
        trace: str | None,
        version: str | None,
        restarts: int,
        *,
        drained: bool,
        hanging: Hang | None,
        waiting: Wait | None,
        skipped: Skips | None,
    ) -> None:
        """Write the status of a unit; without a ``version``, the last known one is kept."""
        if not self.speaks_for(unit):
            return
        before = self.of(unit)
        if version is None and before is not None:
            version = before.version
        generation = self._membership.generation
        status = Status(
            state,
            self._worker_id,
            generation,
            trace,
            version,
            drained,
            restarts,
            hanging,
            waiting=waiting,
            skipped=skipped,
        )
        self._statuses.put(unit, status.after(before, time.time_ns() // 1_000_000))

    def disown(self, held: Collection[Unit]) -> None:
        """As the leader, say of each unit that no member of the cluster runs that it is unassigned.

        Its worker has left or was killed, and can say nothing any more; whoever gets the unit says the rest.
        """
        if not self._may_write():
            return
        connectors, now = self._configs.connectors(), time.time_ns() // 1_000_000
        for unit, status in self._statuses.statuses().items():
            if status.state in LIVE and unit not in held and unit.connector in connectors:
                left = replace(
                    status, state=State.UNASSIGNED, generation=self._membership.generation, trace=None, hanging=None
                )
                self._statuses.put(unit, left.after(status, now))

    def remove(self, unit: Unit) -> None:
        """Remove the status of a unit that has ended and should not run any more."""
        if self._may_write():
            self._statuses.remove(unit)

    def remove_connector(self, connector: str) -> None:
        """Remove the statuses and topics of a deleted connector and its tasks."""
        if not self._may_write():
            return
        self._statuses.remove_topics(connector)
        for unit in [unit for unit in self._statuses.statuses() if unit.connector == connector]:
            self._statuses.remove(unit)

    def remove_leftovers(self, connector: str, running: Collection[Unit]) -> None:
        """Remove the statuses of former tasks that no worker runs, and which no worker would remove otherwise.

        The task was assigned elsewhere before it had ended, or its worker was killed.
        """
        entry = self._configs.connectors().get(connector)
        if entry is None or not self._is_part:
            return
        for unit, status in self._statuses.statuses().items():
            is_left = unit.connector == connector and unit.is_task and unit.task >= len(entry.task_configs)
            is_to_remove = self._membership.is_leader or self.is_ours(status)
            if is_left and is_to_remove and unit not in running:
                self._statuses.remove(unit)

    def at_rest(self, running: Collection[Unit]) -> dict[Unit, State]:
        """Return the connectors of this worker that are paused or stopped, but whose statuses do not say so yet."""
        connectors = self._configs.connectors()
        resting = {Unit(name): AT_REST[entry.target] for name, entry in connectors.items() if entry.target in AT_REST}
        assigned = self._membership.assigned(resting).difference(running)
        statuses = self._statuses.statuses()
        return {
            unit: resting[unit]
            for unit in assigned
            if unit not in statuses or statuses[unit].state is not resting[unit]
        }

    def _may_write(self) -> bool:
        return self._is_part and not (self._lease is not None and self._lease.is_over())
