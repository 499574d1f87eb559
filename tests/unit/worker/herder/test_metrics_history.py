"""Histories as the herder notes and gathers them."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from connect.internals.plugins import PluginRegistry
from equipment.fakes.herding import Place, WorkedInbox
from worker.herder.cluster.other_workers import OtherWorkers
from worker.herder.connectors.connectors import Connectors, TopicTracking
from worker.herder.metrics_history import Histories
from worker.herder.requests import Request, Requests
from worker.metrics.history import Part, Recorded, Series
from worker.metrics.measurements import Measurements
from worker.runtime.metrics import ReportPace
from worker.stores.config.store import MemoryConfigStore
from worker.stores.status.store import MemoryStatusStore, State, Status
from worker.unit import Unit

HERE, THERE = "here:1", "there:2"
SINK = {"partition-count": 2.0, "sink-record-send-rate": 3.0, "sink-record-lag": 5.0}
SOURCE = {"source-record-write-rate": 2.0, "source-remaining-rows": 7.0, "source-remaining-bytes": 9.0}


class FarWorkers:
    """Other workers, which answer when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None, int]] = []
        self.answer: Future[Part] = Future()

    def history(self, url: str, connector: str | None, step: int, _seconds: int) -> Future[Part]:
        self.asked.append((url, connector, step))
        return self.answer


class Worker:
    """A worker with one sink and one source; task 1 of the sink runs elsewhere."""

    def __init__(self) -> None:
        self.inbox, self.far, self.statuses = WorkedInbox(), FarWorkers(), MemoryStatusStore()
        self.measurements = Measurements(HERE, self.statuses, Place(), self.inbox, None, self.inbox.time)
        others = OtherWorkers(HERE, self.statuses, Place(), self.inbox, self.far)
        configs = MemoryConfigStore()
        for name in ("sink", "source"):
            configs.put_connector(name, {"name": name}, None)
        connectors = Connectors(configs, self.statuses, PluginRegistry([]), TopicTracking(), self.measurements)
        self.histories = Histories(
            Requests(self.inbox),
            HERE,
            self.statuses,
            connectors,
            self.measurements,
            others,
            self.inbox,
            self.inbox.time,
        )
        self.runs(Unit("sink", 0), HERE)
        self.runs(Unit("sink", 1), THERE)
        self.runs(Unit("source", 0), HERE)
        self.measurements.take(Unit("sink", 0), SINK)
        self.measurements.take(Unit("source", 0), SOURCE)

    def runs(self, unit: Unit, worker: str, state: State = State.RUNNING) -> None:
        self.statuses.put(unit, Status(state, worker, 1))

    def own(self) -> Part:
        return self.histories.recorded().part(2)

    def asked_for(self, connector: str | None) -> Request[tuple[Recorded, list[Part]]]:
        request = self.histories.gathered(connector, 10)
        self.inbox.work()
        return request


def test_a_point_is_noted_every_two_seconds() -> None:
    worker = Worker()
    worker.histories.start()
    for seconds in (3.0, 2.0, 2.0):
        worker.inbox.work(seconds)
    assert worker.own().connectors == {
        "sink": Series("records", [3.0] * 4, [5.0] * 4),
        "source": Series("bytes", [2.0] * 4, [9.0] * 4),
    }


def test_a_task_at_rest_has_a_point_in_every_slot() -> None:
    worker = Worker()
    worker.histories.start()
    pace = ReportPace(worker.inbox.time, phase=0.0)
    for _ in range(240):
        if pace.due():
            worker.measurements.take_report(Unit("sink", 0), SINK, {}, {})
            pace.reported(changed=False)
            worker.measurements.take_unchanged(Unit("sink", 0), pace.next_report - worker.inbox.time())
        worker.inbox.work(seconds=1)
    assert None not in worker.own().connectors["sink"].lag


@pytest.mark.parametrize(
    ("unit", "worker_id", "state"),
    [(Unit("sink", 0), THERE, State.RUNNING), (Unit("sink", 0), HERE, State.FAILED)],
    ids=["moved", "failed"],
)
def test_a_task_that_does_not_run_here_any_more_has_no_points(unit: Unit, worker_id: str, state: State) -> None:
    worker = Worker()
    worker.runs(unit, worker_id, state)
    worker.histories.start()
    assert set(worker.own().connectors) == {"source"}


def test_the_lag_of_a_connector_is_unknown_while_that_of_one_task_is() -> None:
    worker = Worker()
    worker.runs(Unit("sink", 2), HERE)
    worker.measurements.take(Unit("sink", 2), {"partition-count": 1.0, "sink-record-send-rate": 1.0})
    worker.runs(Unit("source", 1), HERE)
    worker.measurements.take(Unit("source", 1), {"source-record-write-rate": 1.0})
    worker.histories.start()
    assert worker.own().connectors == {
        "sink": Series("records", [4.0], [None]),
        "source": Series(None, [3.0], [None]),
    }


def test_the_other_workers_are_asked_and_waited_for() -> None:
    worker = Worker()
    worker.histories.start()
    request = worker.asked_for("sink")
    assert worker.far.asked == [("http://there:2/", "sink", 10)]
    assert not request.done()
    part = Part(0, {"sink": Series("records", [1.0], [1])})
    worker.far.answer.set_result(part)
    worker.inbox.work()
    recorded, parts = request.result(0)
    assert (set(recorded.part(10).connectors), parts) == ({"sink"}, [part])


def test_a_worker_that_does_not_answer_or_refuses_is_left_out() -> None:
    worker = Worker()
    request = worker.asked_for(None)
    worker.inbox.work(seconds=5)
    assert request.result(0)[1] == []
    worker.far.answer.set_exception(OSError("connection refused"))
    assert worker.asked_for(None).result(0)[1] == []


def test_nobody_is_asked_about_what_runs_here_alone() -> None:
    worker = Worker()
    assert worker.asked_for("source").done()
    assert worker.far.asked == []
