"""The cluster as one of its workers knows it."""

from __future__ import annotations

from worker.herder.cluster.view import cluster_document
from worker.stores.status.store import State, Status
from worker.unit import Unit

LEADER, IDLE = "http://a:8083/", "http://idle:8083/"


def status(worker: str, state: State = State.RUNNING) -> Status:
    return Status(state, worker, 1)


STATUSES = {
    Unit("x"): status("a:8083"),
    Unit("x", 0): status("b:8083"),
    Unit("x", 1): status("a:8083", State.FAILED),
    Unit("y"): status("b:8083", State.STOPPED),
    Unit("z"): status("c:8083", State.UNASSIGNED),
    Unit("w"): status("", State.UNASSIGNED),
}


def test_the_leader_knows_workers_that_run_nothing() -> None:
    found = cluster_document("a:8083", LEADER, [LEADER, "http://b:8083/", IDLE], STATUSES, {IDLE})
    assert found == [
        {
            "worker_id": "a:8083",
            "url": LEADER,
            "leads": True,
            "draining": False,
            "connectors": ["x"],
            "tasks": [{"connector": "x", "task": 1}],
            "failed": 1,
        },
        {
            "worker_id": "b:8083",
            "url": "http://b:8083/",
            "leads": False,
            "draining": False,
            "connectors": [],
            "tasks": [{"connector": "x", "task": 0}],
            "failed": 0,
        },
        {
            "worker_id": "idle:8083",
            "url": IDLE,
            "leads": False,
            "draining": True,
            "connectors": [],
            "tasks": [],
            "failed": 0,
        },
    ]


def test_others_know_the_leader_themselves_and_who_runs_something() -> None:
    found = cluster_document("d:8083", LEADER, [], STATUSES)
    assert [(worker["worker_id"], worker["url"]) for worker in found] == [
        ("a:8083", LEADER),
        ("b:8083", None),
        ("d:8083", None),
    ]


def test_a_standalone_worker_is_alone() -> None:
    assert [worker["worker_id"] for worker in cluster_document("d:8083", None, [], {})] == ["d:8083"]
