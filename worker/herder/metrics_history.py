"""The throughput and lag of connectors over time, recorded every two seconds and gathered from all workers on request.

Used only in the herder's thread. Histories are for display: a worker that does not answer in time is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from worker.herder.cluster.other_workers import LIVE, OtherWorkers
from worker.herder.connectors.connectors import Connectors
from worker.herder.inbox import Inbox, Request, Requests
from worker.metrics.history import SLOT, History, Part, Point, Recorded
from worker.metrics.measurements import Measurements, Values
from worker.stores.status.store import Status, StatusStore
from worker.unit import Unit

__all__ = ["Histories", "HistoryRequests"]

_PARTITIONS: Final = "partition-count"
_LAG: Final = "sink-record-lag"
_SENT: Final = "sink-record-send-rate"
_WRITTEN: Final = "source-record-write-rate"
_REMAINING: Final = "source-remaining-"


class Histories:
    """Records the histories of this worker's tasks, and asks the other workers for theirs."""

    def __init__(
        self,
        worker_id: str,
        statuses: StatusStore,
        measurements: Measurements,
        others: OtherWorkers,
        inbox: Inbox,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._worker_id = worker_id
        self._statuses = statuses
        self._measurements = measurements
        self._inbox = inbox
        self._others = others
        self._clock = clock
        self._history = History()
        self._sources: tuple[object, ...] = ()
        self._points: dict[str, Point] = {}

    def start(self) -> None:
        """Record the first points, and more every two seconds."""
        now = self._clock()
        self._history.note(now, self._latest_points())
        # In the middle of the next slot, so that no slot is missed if the timer fires slightly late.
        self._inbox.after(SLOT * 1.5 - now % SLOT, self.start)

    def forget(self, connector: str) -> None:
        """Forget the history of a deleted connector."""
        self._history.forget(connector)

    def recorded(self, connector: str | None = None) -> Recorded:
        """Return this worker's history of one connector, or of all."""
        return self._history.recorded(connector)

    def gather(self, request: Request[tuple[Recorded, list[Part]]], connector: str | None, step: int) -> None:
        """Complete the request with this worker's history and those of the others, in steps of ``step`` seconds."""
        self._others.gather(
            request,
            connector,
            lambda owners, url: owners.history(url, connector, step),
            lambda parts: (self.recorded(connector), parts),
        )

    def _latest_points(self) -> dict[str, Point]:
        """Return the points of now: those of the last time if no task has reported anything new, as when all rest."""
        fresh, statuses = self._measurements.fresh(), self._statuses.statuses()
        if (fresh, statuses) != self._sources:
            self._sources = fresh, statuses
            self._points = self._points_of(fresh, statuses)
        return self._points

    def _points_of(self, fresh: Mapping[Unit, Values], statuses: Mapping[Unit, Status]) -> dict[str, Point]:
        tasks: dict[str, list[Values]] = {}
        for unit, values in fresh.items():
            status = statuses.get(unit)
            if status is not None and status.worker_id == self._worker_id and status.state in LIVE:
                tasks.setdefault(unit.connector, []).append(values)
        return {connector: _point(values) for connector, values in tasks.items()}


class HistoryRequests:
    """Requests for histories. Methods may be called from any thread."""

    def __init__(self, requests: Requests, histories: Histories, connectors: Connectors) -> None:
        self._requests = requests
        self._histories = histories
        self._connectors = connectors

    def gathered(self, connector: str | None, step: int) -> Request[tuple[Recorded, list[Part]]]:
        """Return all workers' histories of one connector or of all, in steps of ``step`` seconds."""

        def begin(request: Request[tuple[Recorded, list[Part]]]) -> None:
            self._check(connector)
            self._histories.gather(request, connector, step)

        return self._requests.begin(begin)

    def own(self, connector: str | None) -> Request[Recorded]:
        """Return this worker's history, for another worker."""

        def look() -> Recorded:
            self._check(connector)
            return self._histories.recorded(connector)

        return self._requests.ask(look)

    def _check(self, connector: str | None) -> None:
        if connector is not None:
            self._connectors.entry(connector)


def _point(tasks: list[Values]) -> Point:
    """The point of a connector, from the values of its tasks; the lag is unknown if one task's lag is unknown."""
    if any(_PARTITIONS in values for values in tasks):
        lags = [values[_LAG] for values in tasks if _LAG in values]
        return Point(_total(tasks, _SENT), sum(lags) if len(lags) == len(tasks) else None, "records")
    left = sorted({key for values in tasks for key in values if key.startswith(_REMAINING)})
    rate = _total(tasks, _WRITTEN)
    if not left or not all(left[0] in values for values in tasks):
        return Point(rate, None, None)
    return Point(rate, _total(tasks, left[0]), left[0].removeprefix(_REMAINING))


def _total(tasks: list[Values], key: str) -> float:
    return sum(values.get(key, 0.0) for values in tasks)
