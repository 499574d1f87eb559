"""Snapshots of this worker for scrapes, taken every two seconds in the herder's thread; any thread may read ``latest``.

A scrape never waits for the herder: it shows the last snapshot and its age.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from worker.herder.connectors.connectors import Connectors
from worker.herder.inbox import Inbox
from worker.herder.settings import Stores, WorkerSettings
from worker.membership.membership import Membership
from worker.metrics.lifetimes import Lifetimes
from worker.metrics.measurements import Measurements
from worker.metrics.snapshot import ConnectorSeen, GroupSeen, Snapshot
from worker.stores.status.store import Status
from worker.supervisor.lifecycle import Phase
from worker.supervisor.notices import Changed, ClientMeasured, JvmLaunched, Launched, Measured, Rested, StillMeasured
from worker.unit import Unit

__all__ = ["Snapshots"]

_INTERVAL_SECONDS: Final = 2.0
_PROTOCOL_KEY: Final = "connect.protocol"
_DEFAULT_PROTOCOL: Final = "sessioned"


class Snapshots:
    """Collects the reports of units and takes snapshots of them."""

    def __init__(
        self,
        worker: WorkerSettings,
        stores: Stores,
        membership: Membership,
        measurements: Measurements,
        connectors: Connectors,
        inbox: Inbox,
    ) -> None:
        self._worker_id = worker.id
        self._protocol = worker.props.get(_PROTOCOL_KEY, _DEFAULT_PROTOCOL).upper()
        self._configs = stores.configs
        self._statuses = stores.statuses
        self._membership = membership
        self._measurements = measurements
        self._connectors = connectors
        self._inbox = inbox
        self._started = time.time()
        self._lives = Lifetimes()
        self._sources: tuple[object, ...] = ()
        self._statuses_seen: Mapping[Unit, Status] = {}
        self._connectors_seen: Mapping[str, ConnectorSeen] = {}
        self.latest: Snapshot | None = None
        """The last snapshot, which any thread may read."""

    def start(self) -> None:
        """Take a snapshot, and another every two seconds."""
        self.latest = self._snapshot()
        self._inbox.after(_INTERVAL_SECONDS, self.start)

    def heard(
        self, notice: Launched | JvmLaunched | Rested | Changed | Measured | StillMeasured | ClientMeasured
    ) -> None:
        """Record a unit's new phase or its report."""
        match notice:
            case Launched(unit, pid):
                self._lives.launched(unit, pid, time.monotonic())
            case JvmLaunched(pid, jvm):
                self._lives.jvm_launched(pid, jvm)
            case Rested(unit):
                self._lives.rested(unit)
            case Changed():
                self._lives.changed(notice.unit, notice.phase, time.monotonic())
                if notice.phase is Phase.GONE:
                    self._measurements.drop_report(notice.unit)
            case Measured():
                self._measurements.take(notice.unit, notice.values, notice.pause)
                self._measurements.take_report(notice.unit, notice.details, notice.histograms, notice.own)
            case StillMeasured(unit, pause):
                self._measurements.take_unchanged(unit, pause)
            case ClientMeasured(unit, client):
                self._measurements.take_client(unit, client)

    def forget(self, connector: str) -> None:
        """Forget the counts of a deleted connector."""
        self._lives.forget(connector)

    def _snapshot(self) -> Snapshot:
        self._see_own()
        return Snapshot(
            at=time.time(),
            worker_id=self._worker_id,
            is_leader=self._membership.is_leader,
            connectors=self._connectors_seen,
            statuses=self._statuses_seen,
            tasks=self._measurements.reports(self._statuses_seen),
            lives=self._lives.seen(time.monotonic()),
            group=self._group(),
            inbox=self._inbox.waiting,
            started=self._started,
        )

    def _see_own(self) -> None:
        """Find this worker's units anew, unless nothing that decides about them has changed."""
        membership = self._membership
        sources = (
            self._statuses.statuses(),
            self._configs.connectors(),
            membership.generation,
            membership.leader_url,
        )
        if sources != self._sources:
            self._sources = sources
            self._statuses_seen = self._own_statuses()
            self._connectors_seen = self._own_connectors(self._statuses_seen)

    def _own_statuses(self) -> dict[Unit, Status]:
        """Return the statuses of the units that this worker runs; each unit has one owner, so a cluster counts
        it once.
        """
        ours = {
            unit: status for unit, status in self._statuses.statuses().items() if status.worker_id == self._worker_id
        }
        assigned = self._membership.assigned(ours)
        return {unit: status for unit, status in ours.items() if unit in assigned}

    def _own_connectors(self, statuses: Mapping[Unit, Status]) -> dict[str, ConnectorSeen]:
        entries = self._configs.connectors()
        return {
            unit.connector: ConnectorSeen(
                entries[unit.connector].config.get("connector.class", ""), self._connectors.type(unit.connector)
            )
            for unit in statuses
            if not unit.is_task and unit.connector in entries
        }

    def _group(self) -> GroupSeen | None:
        counts = self._membership.counts
        if counts is None:
            return None
        now = time.monotonic()
        return GroupSeen(
            client_id=f"connect-{self._worker_id}",
            leader_url=self._membership.leader_url,
            protocol=self._protocol,
            epoch=self._membership.generation,
            is_rebalancing=self._membership.rebalancing,
            failed_joins=counts.failed_joins,
            rebalances=counts.rounds,
            rebalance_seconds=counts.round_seconds,
            longest_rebalance=counts.longest_round,
            since_rebalance=None if counts.last_round is None else now - counts.last_round,
            heartbeats=counts.heartbeats,
            since_heartbeat=None if counts.last_heartbeat is None else now - counts.last_heartbeat,
            connection=counts.connection,
        )
