"""Scheduling of jobs: sequential within a lane, concurrent across lanes."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Hashable, Iterable

from connectors.http.sink_requests import Job

__all__ = ["Lanes"]


class Lanes:
    """Jobs in lanes, of which only the first job of each is handed out. Pure: callers pass the time."""

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self._lanes: dict[Hashable, deque[Job]] = {}
        self._ready: deque[Hashable] = deque()
        self._waiting: list[tuple[float, int, Hashable]] = []
        self._order = itertools.count()
        for job in jobs:
            self.add(job)

    def add(self, job: Job) -> None:
        """Add a job at the end of its lane."""
        lane = self._lanes.get(job.lane)
        if lane is None:
            self._lanes[job.lane] = deque([job])
            self._ready.append(job.lane)
        else:
            lane.append(job)

    def next(self, now: float) -> Job | None:
        """Return the next job that may start now, if there is one."""
        while self._waiting and self._waiting[0][0] <= now:
            self._ready.append(heapq.heappop(self._waiting)[2])
        return self._lanes[self._ready.popleft()][0] if self._ready else None

    def done(self, job: Job) -> None:
        """Remove a finished job, and continue with the next in its lane."""
        lane = self._lanes[job.lane]
        lane.popleft()
        if lane:
            self._ready.append(job.lane)
        else:
            del self._lanes[job.lane]

    def again(self, job: Job, due: float) -> None:
        """Hand the job out again at ``due``; its lane waits for it."""
        heapq.heappush(self._waiting, (due, next(self._order), job.lane))

    @property
    def is_empty(self) -> bool:
        """Whether all jobs are done."""
        return not self._lanes

    @property
    def due(self) -> float | None:
        """The time when the next waiting job is handed out again, if there is one."""
        return self._waiting[0][0] if self._waiting else None
