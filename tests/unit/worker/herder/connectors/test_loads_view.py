"""The loads of a bulk sink, whichever worker runs its task and whichever is asked."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Final

import pytest

from connect.errors import NotFoundError
from connect.internals.plugins import PluginRegistry
from equipment.fakes.herding import Place, WorkedInbox
from worker.herder.connectors.connectors import Connectors, TopicTracking
from worker.messages import messages
from worker.metrics.measurements import Measurements
from worker.peers.owner import TaskMeasured, tasks_measured
from worker.stores.config.store import MemoryConfigStore
from worker.stores.status.store import MemoryStatusStore, State, Status
from worker.unit import Unit

HERE, THERE = "here:1", "there:2"
TASK = Unit("lake", 0)
LOADS: Final = messages.Loads({"number": 2}, [{"number": 1}], None)
SHOWN: Final = {"id": 0, "worker_id": HERE, "current": {"number": 2}, "last": [{"number": 1}], "retry": None}


class Worker:
    """One worker of two; the task of the connector ``lake`` runs on the first."""

    def __init__(self, worker_id: str, peer: Worker | None = None) -> None:
        self.peer = peer
        self.inbox = WorkedInbox()
        configs, statuses = MemoryConfigStore(), MemoryStatusStore()
        self.measurements = Measurements(worker_id, statuses, Place(), self.inbox, self if peer else None)
        tracking = TopicTracking()
        self.connectors = Connectors(configs, statuses, PluginRegistry.discover(()), tracking, self.measurements)
        config = {"name": "lake", "connector.class": "SparkSink"}
        configs.put_connector("lake", config, None)
        configs.put_task_configs("lake", [config])
        statuses.put(Unit("lake"), Status(State.RUNNING, HERE, 1))
        statuses.put(TASK, Status(State.RUNNING, HERE, 1))

    def measured(self, url: str, connector: str) -> Future[Mapping[int, TaskMeasured]]:
        """Ask the peer, as over REST."""
        assert self.peer is not None
        answer: Future[Mapping[int, TaskMeasured]] = Future()
        answer.set_result(tasks_measured(self.peer.connectors.status_for_workers(connector)))
        return answer

    def loads(self) -> dict[str, Any]:
        """The answer to a request."""
        request = self.inbox.run(lambda request: self.connectors.loads(request, "lake"))
        self.inbox.work()
        return request.result(0)


def test_the_worker_that_runs_the_task_shows_its_loads() -> None:
    worker = Worker(HERE)
    assert worker.loads() == {"name": "lake", "tasks": []}
    worker.measurements.take_loads(TASK, LOADS)
    assert worker.loads() == {"name": "lake", "tasks": [SHOWN]}


def test_another_worker_asks_it() -> None:
    runs = Worker(HERE)
    runs.measurements.take_loads(TASK, LOADS)
    runs.measurements.take(TASK, {"records": 3.0})
    asked = Worker(THERE, runs)
    assert asked.loads() == {"name": "lake", "tasks": [SHOWN]}
    task = asked.connectors.status("lake")["tasks"][0]
    assert task["metrics"] == {"records": 3.0}
    assert "loads" not in task, "Java's clients see what they know"


def test_an_unknown_connector_has_none() -> None:
    worker = Worker(HERE)
    with pytest.raises(NotFoundError):
        worker.inbox.run(lambda request: worker.connectors.loads(request, "sea")).result(0)
