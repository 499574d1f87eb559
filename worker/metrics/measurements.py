"""The measurements of tasks: this worker's, and those that other workers report. Used only in the herder's thread.

A request for a status is answered at once with what is known, and makes this worker ask the others for newer values; a
request for the lag waits for their answers. Nothing is stored: a worker that restarts asks again.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from worker.formatting import utc_text
from worker.herder.inbox import Deferred, Inbox
from worker.membership.membership import Membership
from worker.messages.messages import Loads
from worker.metrics.snapshot import ClientSeen, OwnSeries, OwnValue, TaskSeen
from worker.metrics.work import Work, work_of, work_of_loads
from worker.peers.owner import OwnerClient, TaskMeasured
from worker.stores.status.store import State, Status, StatusStore
from worker.unit import Unit

__all__ = ["Document", "Measurements", "Values", "is_momentary"]

logger = logging.getLogger(__name__)
Values: TypeAlias = Mapping[str, float]
Document: TypeAlias = Mapping[str, Any]

_LAG: Final = "sink-record-lag"
_PARTITIONS: Final = "partition-count"
_AMOUNTS: Final = ("source-remaining-", "source-total-", "sink-drain-")
_UNCOMMITTED: Final = "sink-uncommitted-partition-count"
_MOMENTARY: Final = frozenset((_LAG, _UNCOMMITTED, "sink-record-active-count", "source-record-active-count"))
_MOVES: Final = frozenset((State.RUNNING, State.PAUSED))
_OLD_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 3.0
_MISSED: Final = 3
_LEAST_FRESH_SECONDS: Final = 10.0
"""A task that has missed this many reports, and at least this many seconds, has no current rate or lag."""
_FRESH_SECONDS: Final = 180.0
"""The seconds after which a silent task has no values: longer than a task at rest pauses between reports."""
_MOST_CLIENTS: Final = 3
_HAS_VALUES: Final = frozenset((State.RUNNING, State.PAUSED, State.FAILED))


_NOTHING: Final = TaskMeasured(None, None)
_UNSEEN: Final = TaskSeen()


class _Question(NamedTuple):
    worker_id: str
    connector: str


class _Heard(NamedTuple):
    worker_id: str
    measured: TaskMeasured
    at: float


@dataclass(slots=True, eq=False)
class _Waiting:
    open: set[_Question]
    over: Deferred[None]


class Measurements:
    """Keeps the latest values of each task. Without ``owners`` there are no other workers."""

    def __init__(
        self,
        worker_id: str,
        statuses: StatusStore,
        membership: Membership,
        inbox: Inbox,
        owners: OwnerClient | None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._worker_id = worker_id
        self._statuses = statuses
        self._membership = membership
        self._inbox = inbox
        self._owners = owners
        self._now = now
        self._own: dict[Unit, TaskMeasured] = {}
        self._totals: dict[str, float] | None = None
        self._totalled: list[TaskMeasured] = []
        self._taken: dict[Unit, float] = {}
        self._due: dict[Unit, float] = {}
        self._times: dict[Unit, float] = {}
        self._past: dict[Unit, tuple[TaskMeasured, TaskMeasured]] = {}
        self._reports: dict[Unit, TaskSeen] = {}
        self._others: dict[Unit, _Heard] = {}
        self._under_way: set[_Question] = set()
        self._answered: dict[_Question, float] = {}
        self._waiting: list[_Waiting] = []

    def take(self, unit: Unit, values: Values, pause: float = 0.0) -> None:
        """Keep the latest values of one of this worker's tasks, whose next report is due in ``pause`` seconds."""
        self._own[unit] = self._own.get(unit, _NOTHING)._replace(values=values)
        self._totals = None
        self._note_time(unit, pause)

    def _note_time(self, unit: Unit, pause: float) -> None:
        self._taken[unit] = self._now()
        self._due[unit] = self._taken[unit] + max(_MISSED * pause, _LEAST_FRESH_SECONDS)
        self._times[unit] = time.time()

    def take_report(
        self,
        unit: Unit,
        values: Values,
        histograms: Mapping[str, tuple[float, ...]],
        own: Mapping[OwnSeries, OwnValue | None],
    ) -> None:
        """Keep the latest values that only scrapes show, after those of :meth:`take`.

        ``own`` has the changed plugin metrics.
        """
        before = self._reports.get(unit, _UNSEEN)
        changed: Mapping[OwnSeries, OwnValue] = before.own
        if own:
            every: dict[OwnSeries, OwnValue | None] = {**before.own, **own}
            changed = {series: value for series, value in every.items() if value is not None}
        every_value = {**(self._own.get(unit, _NOTHING).values or {}), **values}
        self._reports[unit] = replace(before, values=every_value, histograms=histograms, at=time.time(), own=changed)

    def take_unchanged(self, unit: Unit, pause: float = 0.0) -> None:
        """Note that the latest values of one of this worker's tasks still hold."""
        if (before := self._reports.get(unit)) is not None:
            self._note_time(unit, pause)
            self._reports[unit] = replace(before, at=time.time())

    def take_client(self, unit: Unit, client: ClientSeen) -> None:
        """Keep the latest statistics of one of a task's clients."""
        before = self._reports.get(unit, _UNSEEN)
        others = [other for other in before.clients if other.client_id != client.client_id]
        self._reports[unit] = replace(before, clients=(*others[-_MOST_CLIENTS:], client))

    def drop_report(self, unit: Unit) -> None:
        """Drop the values that only scrapes show, because the unit has ended."""
        self._reports.pop(unit, None)

    def reports(self, statuses: Mapping[Unit, Status]) -> dict[Unit, TaskSeen]:
        """Return the latest values of these tasks of this worker, including those shown in statuses.

        Of a task that does not report any more only the counts are returned.
        """
        return {
            unit: seen if self.is_current(unit, statuses[unit]) else seen.counts()
            for unit, seen in self._reports.items()
            if unit in statuses
        }

    def own_numbers_of(self, unit: Unit) -> Mapping[OwnSeries, OwnValue]:
        """Return the latest plugin metrics of one of this worker's tasks."""
        return self._reports.get(unit, _UNSEEN).own

    def take_loads(self, unit: Unit, loads: Loads) -> None:
        """Keep the latest loads of one of this worker's tasks."""
        self._own[unit] = self._own.get(unit, _NOTHING)._replace(loads=asdict(loads))

    def of(self, unit: Unit, status: Status) -> TaskMeasured:
        """Return the latest values of a task, unless they were reported by a worker that no longer runs it.

        The same object is returned as long as nothing has changed.
        """
        return self._latest(unit, status)

    def is_current(self, unit: Unit, status: Status) -> bool:
        """Return whether the rates and the lag that one of this worker's tasks has reported are those of now."""
        is_live = status.state in _MOVES and status.hanging is None
        return is_live and self._now() < self._due.get(unit, 0.0)

    def loads_of(self, unit: Unit, status: Status) -> Document | None:
        """Return the latest loads of a task, with the same condition; ``None`` if it makes none."""
        return self._latest(unit, status).loads

    def _latest(self, unit: Unit, status: Status) -> TaskMeasured:
        if status.worker_id == self._worker_id:
            own = self._own.get(unit, _NOTHING)
            return own if own.values is None or self.is_current(unit, status) else self._past_of(unit, own)
        heard = self._others.get(unit)
        if heard is None or heard.worker_id != status.worker_id:
            return _NOTHING
        is_current = status.state in _MOVES and status.hanging is None and self._now() < heard.at + _FRESH_SECONDS
        return heard.measured if is_current else self._past_of(unit, heard.measured)

    def _past_of(self, unit: Unit, measured: TaskMeasured) -> TaskMeasured:
        """Return the measurements of a task whose rates and lag are no longer those of now."""
        kept = self._past.get(unit)
        if kept is None or kept[0] is not measured:
            taken = self._times.get(unit)
            at = measured.at or (None if taken is None else utc_text(taken))
            kept = self._past[unit] = measured, _without_moment(measured, at)
        return kept[1]

    def fresh(self) -> dict[Unit, Values]:
        """Return the values of this worker's tasks that have reported in the last three minutes."""
        now = self._now()
        return {
            unit: measured.values
            for unit, measured in self._own.items()
            if measured.values is not None and now < self._due[unit]
        }

    def totals(self) -> dict[str, float]:
        """Return the sums of this worker's tasks; without a lag if the lag of one sink is unknown."""
        statuses = self._statuses.statuses()
        parts = [self.of(unit, statuses[unit]) if unit in statuses else own for unit, own in self._own.items()]
        if self._totals is None or not _same(parts, self._totalled):
            self._totals, self._totalled = _totals([measured.values or {} for measured in parts]), parts
        return dict(self._totals)

    def works(self) -> dict[str, Work]:
        """Return how far the tasks of this worker are, by connector, where the whole is known."""
        statuses = self._statuses.statuses()
        parts: dict[str, list[TaskMeasured]] = {}
        for unit in self._own:
            if unit in statuses and statuses[unit].worker_id == self._worker_id:
                parts.setdefault(unit.connector, []).append(self.of(unit, statuses[unit]))
        found = {name: _work(measured) for name, measured in parts.items()}
        return {name: work for name, work in found.items() if work is not None}

    def forget(self, connector: str) -> None:
        """Forget the values of a deleted connector."""
        self._own = {unit: measured for unit, measured in self._own.items() if unit.connector != connector}
        self._totals = None
        self._reports = {unit: seen for unit, seen in self._reports.items() if unit.connector != connector}
        self._taken = {unit: at for unit, at in self._taken.items() if unit.connector != connector}
        self._due = {unit: at for unit, at in self._due.items() if unit.connector != connector}
        self._times = {unit: at for unit, at in self._times.items() if unit.connector != connector}
        self._past = {unit: kept for unit, kept in self._past.items() if unit.connector != connector}
        self._others = {unit: heard for unit, heard in self._others.items() if unit.connector != connector}
        self._answered = {asked: at for asked, at in self._answered.items() if asked.connector != connector}

    def refresh(self, connector: str) -> None:
        """Ask the other workers, unless they were asked a moment ago; does not wait for the answers."""
        self._ask(connector)

    def gather(self, connector: str) -> Deferred[None]:
        """Ask the other workers, and return a future that completes when all have answered or time is up."""
        waiting = _Waiting(self._ask(connector), Deferred())
        if waiting.open:
            self._waiting.append(waiting)
            self._inbox.after(_PATIENCE_SECONDS, lambda: self._end(waiting))
        else:
            waiting.over.set_result(None)
        return waiting.over

    def _ask(self, connector: str) -> set[_Question]:
        """Ask each worker that was not asked a moment ago. Return the open requests."""
        if self._owners is None or (leader := self._membership.leader_url) is None:
            return set()
        scheme, now = urlsplit(leader).scheme, time.monotonic()
        questions = {_Question(worker_id, connector) for worker_id in self._elsewhere(connector)}
        for question in questions - self._under_way:
            if now - self._answered.get(question, -math.inf) >= _OLD_SECONDS:
                self._under_way.add(question)
                self._put(question, self._owners.measured(f"{scheme}://{question.worker_id}/", connector))
        return questions & self._under_way

    def _elsewhere(self, connector: str) -> set[str]:
        return {
            status.worker_id
            for unit, status in self._statuses.statuses().items()
            if unit.connector == connector and unit.is_task and status.state in _HAS_VALUES
        } - {self._worker_id}

    def _put(self, question: _Question, answer: Future[Mapping[int, TaskMeasured]]) -> None:
        answer.add_done_callback(lambda done: self._inbox.post(lambda: self._take_answer(question, done)))

    def _take_answer(self, question: _Question, done: Future[Mapping[int, TaskMeasured]]) -> None:
        self._under_way.discard(question)
        self._answered[question] = time.monotonic()
        if (error := done.exception()) is not None:
            # Its session is about to end, or it is overloaded, so its tasks are shown without numbers.
            logger.debug("Worker %s did not report the measurements of its tasks: %s", question.worker_id, error)
        values = {} if error is not None else done.result()
        kept = {unit: heard for unit, heard in self._others.items() if not _answers(question, unit, heard)}
        new = {
            Unit(question.connector, task): _Heard(question.worker_id, item, self._now())
            for task, item in values.items()
        }
        self._others = kept | new
        for waiting in [waiting for waiting in self._waiting if question in waiting.open]:
            waiting.open.discard(question)
            if not waiting.open:
                self._end(waiting)

    def _end(self, waiting: _Waiting) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            waiting.over.set_result(None)


def _answers(question: _Question, unit: Unit, heard: _Heard) -> bool:
    return unit.connector == question.connector and heard.worker_id == question.worker_id


def _same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))


def is_momentary(name: str) -> bool:
    """Return whether a value is that of a moment, such as a rate or a lag, rather than a count."""
    return name in _MOMENTARY or name.endswith("-rate") or name.startswith(_AMOUNTS)


def _without_moment(measured: TaskMeasured, at: str | None) -> TaskMeasured:
    values = measured.values or {}
    old = {**(measured.old or {}), **{name: value for name, value in values.items() if is_momentary(name)}}
    counts = {name: value for name, value in values.items() if not is_momentary(name)}
    return TaskMeasured(counts, measured.loads, old or None, at)


def _work(tasks: Sequence[TaskMeasured]) -> Work | None:
    loads = [measured.loads for measured in tasks if measured.loads is not None]
    return work_of_loads(loads) or work_of([measured.values or {} for measured in tasks])


def _totals(all_values: Sequence[Values]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for values in all_values:
        for key, value in values.items():
            totals[key] = totals.get(key, 0.0) + value
    if any(_PARTITIONS in values and _LAG not in values for values in all_values):
        totals.pop(_LAG, None)
    return totals
