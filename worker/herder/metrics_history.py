"""The throughput and lag of connectors over time, recorded every two seconds and gathered from all workers on request.

Used only in the herder's thread. Histories are for display: a worker that does not answer in time is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from worker.herder.cluster.other_workers import LIVE, OtherWorkers
from worker.herder.connectors.connectors import Connectors
from worker.herder.inbox import Inbox
from worker.herder.requests import Request, Requests, Steps, answered, asked
from worker.metrics.history import SECONDS, SLOT, History, Part, Point, Recorded
from worker.metrics.measurements import Measurements, Values
from worker.stores.status.store import Status, StatusStore
from worker.unit import Unit

__all__ = ["Histories"]

_PARTITIONS: Final = "partition-count"
_LAG: Final = "sink-record-lag"
_SENT: Final = "sink-record-send-rate"
_WRITTEN: Final = "source-record-write-rate"
_REMAINING: Final = "source-remaining-"


class Histories:
    """Records the histories of this worker's tasks, and asks the other workers for theirs."""

    def __init__(
        self,
        requests: Requests,
        worker_id: str,
        statuses: StatusStore,
        connectors: Connectors,
        measurements: Measurements,
        others: OtherWorkers,
        inbox: Inbox,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._requests = requests
        self._worker_id = worker_id
        self._statuses = statuses
        self._connectors = connectors
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

    def recorded(self, connector: str | None = None, seconds: int = SECONDS) -> Recorded:
        """Return this worker's history of one connector, or of all, over so many seconds."""
        return self._history.recorded(connector, seconds)

    @asked
    def gathered(
        self, request: Request[tuple[Recorded, list[Part]]], connector: str | None, step: int, seconds: int = SECONDS
    ) -> Steps[tuple[Recorded, list[Part]]]:
        """Return all workers' histories of one connector or of all, in steps of ``step`` seconds, for any thread."""
        self._check(connector)
        parts = yield from self._others.gather(
            request, connector, lambda owners, url: owners.history(url, connector, step, seconds)
        )
        return self.recorded(connector, seconds), parts

    @answered
    def own(self, connector: str | None, seconds: int = SECONDS) -> Recorded:
        """Return this worker's history, for another worker. Any thread may call this."""
        self._check(connector)
        return self.recorded(connector, seconds)

    def _check(self, connector: str | None) -> None:
        if connector is not None:
            self._connectors.entry(connector)

    def _latest_points(self) -> dict[str, Point]:
        """Return the points of now: those of the last time if no task has reported anything new, as when all rest."""
        fresh, statuses = self._measurements.fresh(), self._statuses.statuses()
        if (fresh, statuses) != self._sources:
            self._sources = fresh, statuses
            self._points = self._points_of(fresh, statuses)
        return self._points

    def _points_of(self, fresh: Mapping[Unit, Values], statuses: Mapping[Unit, Status]) -> dict[str, Point]:
        tasks: dict[str, list[Values]] = {}
        silent: set[str] = set()
        for unit, status in statuses.items():
            if not unit.is_task or status.worker_id != self._worker_id:
                continue
            values = fresh.get(unit)
            if values is not None and status.state in LIVE and status.hanging is None:
                tasks.setdefault(unit.connector, []).append(values)
            else:
                silent.add(unit.connector)
        return {name: _point(values, is_whole=name not in silent) for name, values in tasks.items()}


def _point(tasks: list[Values], *, is_whole: bool) -> Point:
    """Return the point of a connector, from the values of its tasks; the lag is unknown if one task's lag is unknown.

    ``is_whole`` is whether these are all of its tasks on this worker.
    """
    if any(_PARTITIONS in values for values in tasks):
        lags = [values[_LAG] for values in tasks if _LAG in values]
        is_known = is_whole and len(lags) == len(tasks)
        return Point(_total(tasks, _SENT), sum(lags) if is_known else None, "records")
    left = sorted({key for values in tasks for key in values if key.startswith(_REMAINING)})
    rate = _total(tasks, _WRITTEN)
    if not left or not is_whole or not all(left[0] in values for values in tasks):
        return Point(rate, None, None)
    return Point(rate, _total(tasks, left[0]), left[0].removeprefix(_REMAINING))


def _total(tasks: list[Values], key: str) -> float:
    return sum(values.get(key, 0.0) for values in tasks)
