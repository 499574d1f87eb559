"""Workers of a cluster that are killed, frozen and started again while 40 tasks move data.

After each of these every task runs once, on a live worker, no task was ever run by two processes at once, no line is
lost on its way through topics to files, and every live worker answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster, ClusterWorker
from equipment.workers.pipelines import Pipelines
from equipment.workers.processes import descendants

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(300)]

MOST = 60.0
"""Seconds from a kill until others have taken over, on a busy machine; the session of a worker takes 6 of them."""
PIPELINES, TICKS = 8, 24


@dataclass(frozen=True, slots=True)
class Load:
    """A cluster of three workers with 40 tasks."""

    cluster: Cluster
    pipelines: Pipelines


@pytest.fixture(scope="module")
def loaded(clusters: Callable[..., Cluster], bootstrap: str) -> Load:
    """The cluster that all tests of this file share."""
    cluster = clusters(3).start()
    pipelines = Pipelines(cluster, bootstrap, PIPELINES, TICKS)
    pipelines.create()
    return Load(cluster, pipelines)


@pytest.fixture
def load(loaded: Load) -> Iterator[Load]:
    """That cluster, whole and with lines on their way."""
    loaded.cluster.start().wait_until_balanced()
    with loaded.pipelines:
        yield loaded


def took_over_within(load: Load, since: float) -> float:
    """Wait until all tasks run again; the seconds from a kill until the last of them was started elsewhere."""
    load.cluster.wait_until_all_run()
    return max(float(start.split()[2]) for start in load.cluster.starts()) - since


def kill(load: Load, worker: ClusterWorker) -> None:
    """Kill a worker, and see what the others make of it."""
    killed = time.monotonic()
    worker.kill()
    seconds = took_over_within(load, killed)
    print(f"taken over {seconds:.1f} s after the kill")
    assert seconds < MOST
    load.pipelines.check()


def task_states(cluster: Cluster, name: str) -> list[str]:
    """The states of a connector's tasks, as one of the workers tells them."""
    return [task["state"] for task in cluster.ask("GET", f"connectors/{name}/status")["tasks"]]


def test_the_work_is_divided(load: Load) -> None:
    counts = sorted(len(units) for units in load.cluster.placed().values())
    assert counts == [13, 13, 14]


@pytest.mark.thorough
def test_a_follower_is_killed(load: Load) -> None:
    kill(load, load.cluster.followers()[0])


def test_the_leader_is_killed(load: Load) -> None:
    kill(load, load.cluster.leader())


def test_a_frozen_worker_loses_its_children_before_others_run_its_tasks(load: Load) -> None:
    cluster = load.cluster
    frozen = cluster.followers()[0]
    children = descendants(frozen.pid)
    tasks = cluster.placed()[frozen]
    cluster.freeze(frozen)
    cluster.wait_until_all_run()
    assert not tasks & {unit for unit, pid in cluster.holders().items() if pid in children}
    frozen_log = len(frozen.log())
    cluster.thaw(frozen)
    wait_until("the worker knows what it missed", lambda: "stops all connectors and tasks" in frozen.log()[frozen_log:])
    cluster.wait_until_balanced()
    load.pipelines.check()


@pytest.mark.thorough
def test_all_workers_are_killed_and_started_again(load: Load) -> None:
    cluster = load.cluster
    cluster.ask("PUT", "connectors/line00/pause")
    wait_until("it is paused", lambda: task_states(cluster, "line00") == ["PAUSED"])
    configs = {name: cluster.ask("GET", f"connectors/{name}") for name in cluster.expected}
    for worker in cluster.workers:
        worker.kill()
    cluster.start()
    assert {name: cluster.ask("GET", f"connectors/{name}") for name in cluster.expected} == configs
    wait_until("it is paused again", lambda: task_states(cluster, "line00") in ([], ["PAUSED"]))
    cluster.ask("PUT", "connectors/line00/resume")
    cluster.wait_until_all_run()
    load.pipelines.check()
