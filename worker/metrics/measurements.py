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
from typing import Any, Final, NamedTuple, Protocol, TypeAlias
from urllib.parse import urlsplit

from worker.herder.inbox import Action, Inbox
from worker.membership.membership import Membership
from worker.metrics.history import Part
from worker.metrics.snapshot import ClientSeen, OwnSeries, OwnValue, TaskSeen
from worker.stores.status.store import State, Status, StatusStore
from worker.supervisor.messages.messages import Loads
from worker.unit import Unit

__all__ = ["Document", "Measurements", "Owners", "TaskMeasured", "Values"]

logger = logging.getLogger(__name__)
Values: TypeAlias = Mapping[str, float]
Document: TypeAlias = Mapping[str, Any]

_LAG: Final = "sink-record-lag"
_PARTITIONS: Final = "partition-count"
_OLD: Final = 2.0
_PATIENCE: Final = 3.0
_FRESH: Final = 180.0
"""The seconds after which a silent task has no values: longer than a task at rest pauses between reports."""
_MOST_CLIENTS: Final = 3
_HAS_VALUES: Final = frozenset((State.RUNNING, State.PAUSED, State.FAILED))


class TaskMeasured(NamedTuple):
    """The latest measurements of a task: its values, and its loads if it is a bulk sink."""

    values: Values | None
    loads: Document | None


_NOTHING: Final = TaskMeasured(None, None)
_UNSEEN: Final = TaskSeen()


class Owners(Protocol):
    """Asks other workers about the tasks that they run."""

    def measured(self, url: str, connector: str) -> Future[Mapping[int, TaskMeasured]]:
        """Return the latest measurements of a connector's tasks on the worker at ``url``, by task number."""

    def history(self, url: str, connector: str | None, step: int) -> Future[Part]:
        """Return the history of tasks on the worker at ``url``, of one connector or all, in steps
        of this many seconds.
        """

    def own_numbers(self, url: str, connector: str) -> Future[list[dict[str, Any]]]:
        """Return the plugin metrics of a connector's tasks on the worker at ``url``."""


class _Question(NamedTuple):
    worker_id: str
    connector: str


class _Told(NamedTuple):
    worker_id: str
    measured: TaskMeasured


@dataclass(slots=True, eq=False)
class _Waiting:
    open: set[_Question]
    go_on: Action


class Measurements:
    """Keeps the latest values of each task. Without ``owners`` there are no other workers."""

    def __init__(
        self,
        worker_id: str,
        statuses: StatusStore,
        membership: Membership,
        inbox: Inbox,
        owners: Owners | None,
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
        self._taken: dict[Unit, float] = {}
        self._reports: dict[Unit, TaskSeen] = {}
        self._others: dict[Unit, _Told] = {}
        self._under_way: set[_Question] = set()
        self._answered: dict[_Question, float] = {}
        self._waiting: list[_Waiting] = []

    def take(self, unit: Unit, values: Values) -> None:
        """Keep the latest values of one of this worker's tasks."""
        self._own[unit] = self._own.get(unit, _NOTHING)._replace(values=values)
        self._totals = None
        self._taken[unit] = self._now()

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

    def take_unchanged(self, unit: Unit) -> None:
        """Note that the latest values of one of this worker's tasks still hold."""
        if (before := self._reports.get(unit)) is not None:
            self._taken[unit] = self._now()
            self._reports[unit] = replace(before, at=time.time())

    def take_client(self, unit: Unit, client: ClientSeen) -> None:
        """Keep the latest statistics of one of a task's clients."""
        before = self._reports.get(unit, _UNSEEN)
        others = [other for other in before.clients if other.client_id != client.client_id]
        self._reports[unit] = replace(before, clients=(*others[-_MOST_CLIENTS:], client))

    def drop_report(self, unit: Unit) -> None:
        """Drop the values that only scrapes show, because the unit has ended."""
        self._reports.pop(unit, None)

    def reports(self) -> dict[Unit, TaskSeen]:
        """Return the latest values of each of this worker's tasks, including those shown in statuses."""
        return dict(self._reports)

    def own_numbers_of(self, unit: Unit) -> Mapping[OwnSeries, OwnValue]:
        """Return the latest plugin metrics of one of this worker's tasks."""
        return self._reports.get(unit, _UNSEEN).own

    def take_loads(self, unit: Unit, loads: Loads) -> None:
        """Keep the latest loads of one of this worker's tasks."""
        self._own[unit] = self._own.get(unit, _NOTHING)._replace(loads=asdict(loads))

    def of(self, unit: Unit, status: Status) -> Values | None:
        """Return the latest values of a task, unless they were reported by a worker that no longer runs it."""
        return self._latest(unit, status).values

    def loads_of(self, unit: Unit, status: Status) -> Document | None:
        """Return the latest loads of a task, with the same condition; ``None`` if it makes none."""
        return self._latest(unit, status).loads

    def _latest(self, unit: Unit, status: Status) -> TaskMeasured:
        if status.worker_id == self._worker_id:
            return self._own.get(unit, _NOTHING)
        told = self._others.get(unit)
        return told.measured if told is not None and told.worker_id == status.worker_id else _NOTHING

    def fresh(self) -> dict[Unit, Values]:
        """Return the values of this worker's tasks that have reported in the last three minutes."""
        since = self._now() - _FRESH
        return {
            unit: measured.values
            for unit, measured in self._own.items()
            if measured.values is not None and self._taken[unit] >= since
        }

    def totals(self) -> dict[str, float]:
        """Return the sums of this worker's tasks; without a lag if the lag of one sink is unknown."""
        if self._totals is None:
            self._totals = _totals([measured.values or {} for measured in self._own.values()])
        return dict(self._totals)

    def forget(self, connector: str) -> None:
        """Forget the values of a deleted connector."""
        self._own = {unit: measured for unit, measured in self._own.items() if unit.connector != connector}
        self._totals = None
        self._reports = {unit: seen for unit, seen in self._reports.items() if unit.connector != connector}
        self._taken = {unit: at for unit, at in self._taken.items() if unit.connector != connector}
        self._others = {unit: told for unit, told in self._others.items() if unit.connector != connector}
        self._answered = {asked: at for asked, at in self._answered.items() if asked.connector != connector}

    def refresh(self, connector: str) -> None:
        """Ask the other workers, unless they were asked a moment ago; does not wait for the answers."""
        self._ask(connector)

    def gather(self, connector: str, go_on: Action) -> None:
        """Ask the other workers, and call ``go_on`` when all have answered or time is up."""
        if not (asked := self._ask(connector)):
            go_on()
            return
        waiting = _Waiting(asked, go_on)
        self._waiting.append(waiting)
        self._inbox.after(_PATIENCE, lambda: self._end(waiting))

    def _ask(self, connector: str) -> set[_Question]:
        """Ask each worker that was not asked a moment ago. Returns the open requests."""
        if self._owners is None or (leader := self._membership.leader_url) is None:
            return set()
        scheme, now = urlsplit(leader).scheme, time.monotonic()
        questions = {_Question(worker_id, connector) for worker_id in self._elsewhere(connector)}
        for question in questions - self._under_way:
            if now - self._answered.get(question, -math.inf) >= _OLD:
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
        kept = {unit: told for unit, told in self._others.items() if not _answers(question, unit, told)}
        new = {Unit(question.connector, task): _Told(question.worker_id, item) for task, item in values.items()}
        self._others = kept | new
        for waiting in [waiting for waiting in self._waiting if question in waiting.open]:
            waiting.open.discard(question)
            if not waiting.open:
                self._end(waiting)

    def _end(self, waiting: _Waiting) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            waiting.go_on()


def _answers(question: _Question, unit: Unit, told: _Told) -> bool:
    return unit.connector == question.connector and told.worker_id == question.worker_id


def _totals(all_values: Sequence[Values]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for values in all_values:
        for key, value in values.items():
            totals[key] = totals.get(key, 0.0) + value
    if any(_PARTITIONS in values and _LAG not in values for values in all_values):
        totals.pop(_LAG, None)
    return totals
