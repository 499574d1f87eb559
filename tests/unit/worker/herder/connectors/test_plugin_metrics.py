"""What plugins measure of themselves, whichever worker runs the task and whichever is asked."""

from __future__ import annotations

import math
from concurrent.futures import Future
from typing import Any

import orjson
import pytest

from connect.errors import NotFoundError
from connect.internals.plugins import PluginRegistry
from equipment.fakes.herding import Place, WorkedInbox
from worker.herder.cluster.other_workers import OtherWorkers
from worker.herder.connectors.connectors import Connectors, TopicTracking
from worker.herder.connectors.plugin_metrics import PluginMetrics
from worker.metrics.measurements import Measurements
from worker.metrics.snapshot import OwnSeries, OwnValue
from worker.peers.owner import own_numbers
from worker.stores.config.store import MemoryConfigStore
from worker.stores.status.store import MemoryStatusStore, State, Status
from worker.unit import Unit

HERE, THERE = "here:1", "there:2"
LAG: OwnSeries = ("lag", ("topic", "orders"))
SHOWN = {"name": "lag", "labels": {"topic": "orders"}, "value": 7.0, "help": "Records behind."}


class Worker:
    """One worker of two: the first runs task 0 of the connector ``mirror``, the second task 1."""

    def __init__(self, worker_id: str, peer: Worker | None = None) -> None:
        self.peer, self.inbox = peer, WorkedInbox()
        self.configs, statuses = MemoryConfigStore(), MemoryStatusStore()
        self.measurements = Measurements(worker_id, statuses, Place(), self.inbox, None)
        connectors = Connectors(self.configs, statuses, PluginRegistry.discover(()), TopicTracking(), self.measurements)
        others = OtherWorkers(worker_id, statuses, Place(), self.inbox, self if peer else None)
        self.numbers = PluginMetrics(worker_id, statuses, connectors, self.measurements, others)
        self.configs.put_connector("mirror", {"name": "mirror", "connector.class": "MirrorSourceConnector"}, None)
        for task, runs_it in enumerate((HERE, THERE)):
            statuses.put(Unit("mirror", task), Status(State.RUNNING, runs_it, 1))
        self.asked: list[str] = []

    def own_numbers(self, url: str, connector: str) -> Future[list[dict[str, Any]]]:
        """Ask the peer, as over REST."""
        assert self.peer is not None
        self.asked.append(url)
        answer: Future[list[dict[str, Any]]] = Future()
        answer.set_result(own_numbers(orjson.loads(orjson.dumps(self.peer.numbers.own(connector)))))
        return answer

    def measures(self, task: int, value: float) -> None:
        """Say what a task of this worker has reported."""
        self.measurements.take_report(Unit("mirror", task), {}, {}, {LAG: OwnValue(value, "Records behind.")})

    def shown(self, name: str = "mirror") -> dict[str, Any]:
        """The answer to a request."""
        request = self.inbox.run(lambda request: self.numbers.gather(request, name))
        self.inbox.work()
        return request.result(0)


def test_all_tasks_are_shown_by_whichever_worker_is_asked() -> None:
    there = Worker(THERE)
    there.measures(1, 9.0)
    here = Worker(HERE, there)
    here.measures(0, 7.0)
    assert here.shown() == {
        "name": "mirror",
        "tasks": [
            {"id": 0, "worker_id": HERE, "measurements": [SHOWN]},
            {"id": 1, "worker_id": THERE, "measurements": [{**SHOWN, "value": 9.0}]},
        ],
    }
    assert here.asked == ["http://there:2/"]


def test_a_task_without_numbers_and_one_that_runs_here_no_longer_are_left_out() -> None:
    worker = Worker(HERE)
    assert worker.shown() == {"name": "mirror", "tasks": []}
    worker.measures(1, 9.0)
    assert worker.shown() == {"name": "mirror", "tasks": []}, "the other worker runs it now"


def test_a_number_that_json_has_not_is_null() -> None:
    worker = Worker(HERE)
    worker.measures(0, math.nan)
    assert worker.shown()["tasks"][0]["measurements"] == [{**SHOWN, "value": None}]


def test_an_unknown_connector_has_none() -> None:
    with pytest.raises(NotFoundError):
        Worker(HERE).shown("nobody")
    with pytest.raises(NotFoundError):
        Worker(HERE).numbers.own("nobody")


def test_a_connector_that_is_deleted_while_others_are_asked_has_an_answer() -> None:
    there = Worker(THERE)
    there.measures(1, 9.0)
    here = Worker(HERE, there)
    request = here.inbox.run(lambda request: here.numbers.gather(request, "mirror"))
    here.configs.remove_connector("mirror")
    here.inbox.work()
    assert [task["id"] for task in request.result(0)["tasks"]] == [1]
