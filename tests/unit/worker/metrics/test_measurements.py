"""What is known of tasks that other workers run."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import pytest

from equipment.fakes.herding import Place, WorkedInbox
from worker.metrics.measurements import Measurements, Values
from worker.peers.owner import TaskMeasured
from worker.stores.status.store import Hang, MemoryStatusStore, State, Status
from worker.unit import Unit

HERE, THERE = "here:1", "there:2"


class FarWorkers:
    """Other workers, which answer when the test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: list[Future[Mapping[int, TaskMeasured]]] = []

    def measured(self, url: str, connector: str) -> Future[Mapping[int, TaskMeasured]]:
        self.asked.append(f"{url}{connector}")
        self.answers.append(Future())
        return self.answers[-1]


class Worker:
    """A worker that runs task 0 of a connector whose task 1 runs elsewhere."""

    def __init__(self) -> None:
        self.inbox, self.far, self.statuses = WorkedInbox(), FarWorkers(), MemoryStatusStore()
        self.time = 1000.0
        self.measurements = Measurements(HERE, self.statuses, Place(), self.inbox, self.far, lambda: self.time)
        self.runs(0, HERE)
        self.runs(1, THERE)

    def runs(self, task: int, worker: str) -> None:
        """Say who runs a task."""
        self.statuses.put(Unit("c", task), Status(State.RUNNING, worker, 1))

    def of(self, task: int) -> Values | None:
        """What is known of it."""
        return self.measured(task).values

    def measured(self, task: int) -> TaskMeasured:
        """What is known of it, now and before."""
        unit = Unit("c", task)
        return self.measurements.of(unit, self.statuses.statuses()[unit])

    def loads_of(self, task: int) -> Mapping[str, Any] | None:
        """What is known of its loads."""
        unit = Unit("c", task)
        return self.measurements.loads_of(unit, self.statuses.statuses()[unit])


def test_others_are_asked_once_and_shown_as_soon_as_they_have_answered() -> None:
    worker = Worker()
    worker.measurements.take(Unit("c", 0), {"n": 1.0})
    worker.measurements.refresh("c")
    worker.measurements.refresh("c")
    assert worker.far.asked == ["http://there:2/c"]
    assert (worker.of(0), worker.of(1)) == ({"n": 1.0}, None)
    worker.far.answers[0].set_result({0: TaskMeasured({"n": 7.0}, None), 1: TaskMeasured({"n": 2.0}, {"last": []})})
    worker.inbox.work()
    worker.measurements.refresh("c")
    assert len(worker.far.asked) == 1, "they were asked a moment ago"
    assert (worker.of(0), worker.of(1)) == ({"n": 1.0}, {"n": 2.0}), "of its own tasks a worker knows best"
    assert (worker.loads_of(0), worker.loads_of(1)) == (None, {"last": []})
    assert worker.measurements.totals() == {"n": 1.0}


def test_the_lag_of_all_is_unknown_as_long_as_that_of_one_sink_is() -> None:
    measurements = Worker().measurements
    measurements.take(Unit("source", 0), {"source-record-write-total": 3.0})
    measurements.take(Unit("a", 0), {"sink-record-lag": 3.0, "partition-count": 1.0})
    measurements.take(Unit("b", 0), {"partition-count": 1.0})
    assert "sink-record-lag" not in measurements.totals()
    measurements.take(Unit("b", 0), {"sink-record-lag": 4.0, "partition-count": 1.0})
    assert measurements.totals()["sink-record-lag"] == 7.0


def test_what_was_measured_where_a_task_ran_before_is_not_shown() -> None:
    worker = Worker()
    worker.measurements.take(Unit("c", 0), {"n": 1.0})
    worker.measurements.refresh("c")
    worker.far.answers[0].set_result({1: TaskMeasured({"n": 2.0}, None)})
    worker.inbox.work()
    worker.runs(0, THERE)
    worker.runs(1, "elsewhere:3")
    assert (worker.of(0), worker.of(1)) == (None, None)


def test_who_wants_the_lag_waits_for_the_answers() -> None:
    worker, seen = Worker(), list[Values | None]()
    worker.measurements.gather("c").add_done_callback(lambda _: seen.append(worker.of(1)))
    worker.inbox.work()
    assert seen == []
    worker.far.answers[0].set_result({1: TaskMeasured({"n": 2.0}, None)})
    worker.inbox.work()
    assert seen == [{"n": 2.0}]
    worker.measurements.gather("c").add_done_callback(lambda _: seen.append(worker.of(1)))
    assert seen == [{"n": 2.0}] * 2, "they were asked a moment ago"
    worker.inbox.work(seconds=60)
    assert len(seen) == 2


def test_a_worker_that_does_not_answer_is_not_waited_for_and_has_no_numbers() -> None:
    worker, seen = Worker(), list[Values | None]()
    worker.measurements.gather("c").add_done_callback(lambda _: seen.append(worker.of(1)))
    worker.inbox.work(seconds=5)
    assert seen == [None]
    worker.far.answers[0].set_exception(OSError("connection refused"))
    worker.inbox.work()
    assert worker.of(1) is None
    worker.measurements.forget("c")
    worker.measurements.refresh("c")
    assert len(worker.far.asked) == 2


def test_values_that_a_task_says_are_unchanged_stay_fresh() -> None:
    worker = Worker()
    unit = Unit("c", 0)
    worker.measurements.take_unchanged(unit)
    assert worker.measurements.reports(worker.statuses.statuses()) == {}, "it has reported nothing yet"
    worker.measurements.take(unit, {"sink-record-lag": 7.0})
    worker.measurements.take_report(unit, {"partition-count": 1.0}, {}, {})
    before = worker.measurements.reports(worker.statuses.statuses())[unit]
    worker.measurements.take_unchanged(unit)
    after = worker.measurements.reports(worker.statuses.statuses())[unit]
    assert after.at > before.at
    assert after.values == before.values == {"sink-record-lag": 7.0, "partition-count": 1.0}
    assert worker.measurements.fresh() == {unit: {"sink-record-lag": 7.0}}


WORKING = {"sink-record-lag": 7.0, "sink-record-send-rate": 2.5, "sink-record-send-total": 40.0, "partition-count": 1.0}
OF_THEN = {"sink-record-lag": 7.0, "sink-record-send-rate": 2.5}
COUNTS = {"sink-record-send-total": 40.0, "partition-count": 1.0}


@pytest.mark.parametrize(
    ("state", "hanging"),
    [
        (State.FAILED, None),
        (State.UNASSIGNED, None),
        (State.RESTARTING, None),
        (State.STOPPED, None),
        (State.RUNNING, Hang("poll", "2026-01-31T12:00:00Z", "a.py:1", "")),
    ],
    ids=["failed", "unassigned", "restarting", "stopped", "hanging"],
)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "elsewhere"])
def test_a_task_that_does_not_run_has_no_rate_and_no_lag_of_now(
    state: State, hanging: Hang | None, elsewhere: bool
) -> None:
    worker = Worker()
    task = 1 if elsewhere else 0
    if elsewhere:
        worker.measurements.refresh("c")
        worker.far.answers[0].set_result({1: TaskMeasured(WORKING, None)})
        worker.inbox.work()
    else:
        worker.measurements.take(Unit("c", 0), WORKING)
    assert worker.measured(task) == TaskMeasured(WORKING, None)
    status = Status(state, THERE if elsewhere else HERE, 1, hanging=hanging)
    worker.statuses.put(Unit("c", task), status)
    found = worker.measured(task)
    assert (found.values, found.old) == (COUNTS, OF_THEN)
    assert found is worker.measured(task), "the same object while nothing changes, for the views that are kept"
    assert elsewhere or found.at is not None
    if not elsewhere:
        assert "sink-record-lag" not in worker.measurements.totals()


@pytest.mark.parametrize(("pause", "patience"), [(0.0, 10.0), (2.5, 10.0), (20.0, 60.0), (160.0, 480.0)])
def test_a_task_that_has_missed_three_reports_has_no_rate_and_no_lag_of_now(pause: float, patience: float) -> None:
    worker, unit = Worker(), Unit("c", 0)
    worker.measurements.take(unit, WORKING, pause)
    worker.measurements.take_report(unit, {"put-batch-avg-time-ms": 3.0, "offset-commit-seq-no": 2.0}, {}, {})
    worker.time += patience - 0.1
    assert worker.of(0) == WORKING
    worker.time += 0.1
    found = worker.measured(0)
    assert (found.values, found.old) == (COUNTS, OF_THEN)
    assert worker.measurements.fresh() == {}
    kept = worker.measurements.reports(worker.statuses.statuses())[unit].values
    assert kept == {"sink-record-send-total": 40.0, "offset-commit-seq-no": 2.0}
    worker.measurements.take_unchanged(unit, pause)
    assert worker.of(0) == WORKING, "it has reported again"


def test_what_another_worker_calls_old_stays_old() -> None:
    worker = Worker()
    worker.measurements.refresh("c")
    told = TaskMeasured(COUNTS, None, OF_THEN, "2026-01-31T12:00:00Z")
    worker.far.answers[0].set_result({1: told})
    worker.inbox.work()
    worker.statuses.put(Unit("c", 1), Status(State.FAILED, THERE, 1))
    assert worker.measured(1) == told
