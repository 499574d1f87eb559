"""A cluster whose connectors change while its workers come and go."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from equipment.brokers.topics import create_topic
from equipment.waiting import wait_until
from equipment.workers.cluster import LONG_SESSIONS, Cluster, ClusterWorker
from equipment.workers.pipelines import Pipelines

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shared(clusters: Callable[..., Cluster], bootstrap: str) -> Cluster:
    """A cluster of three workers, and a topic of its name."""
    made = clusters(3).start()
    create_topic(bootstrap, made.folder.name)
    return made


@pytest.fixture
def trio(shared: Cluster) -> Cluster:
    """That cluster without connectors."""
    shared.delete_all()
    shared.start().wait_until_all_run()
    return shared


@pytest.mark.thorough
def test_fifty_connectors_are_created_at_once(trio: Cluster) -> None:
    def create(number: int) -> int:
        config = trio.config("Ticks", topic=trio.folder.name, ticks_seconds="5")
        body = {"name": f"one-of-{number}", "config": config}
        return trio.request("POST", "connectors", body, trio.workers[number % 3]).status_code

    with ThreadPoolExecutor(8) as pool:
        assert Counter(pool.map(create, range(50))) == {201: 50}
    trio.expected.update({f"one-of-{number}": 1 for number in range(50)})
    trio.wait_until_balanced()


@pytest.mark.thorough
def test_what_blocks_or_fails_is_alone_with_that(trio: Cluster) -> None:
    topic = trio.folder.name
    trio.ask("PUT", "connectors/blocks/config", {"connector.class": "BlocksInStart", "topic": topic})
    trio.ask("PUT", "connectors/raises/config", {"connector.class": "Raises", "topic": topic})
    blocking = {"connector.class": "BlocksInValidate", "topic": topic}
    with ThreadPoolExecutor(3) as pool:
        asked = [
            pool.submit(trio.request, "PUT", f"connectors/never-{number}/config", blocking, worker)
            for number, worker in enumerate(trio.workers)
        ]
        trio.create("good", "Ticks", 6, topic=topic)
        wait_until("its neighbours run", lambda: everywhere(trio, "good", ["RUNNING"] * 6), 60)
        assert not any(future.done() for future in asked)
        wait_until("it has failed", lambda: everywhere(trio, "raises", ["FAILED"]))
        assert "made to fail" in trio.ask("GET", "connectors/raises/status")["tasks"][0]["trace"]
        trio.ask("PUT", "connectors/good/pause")
        wait_until("it is paused", lambda: everywhere(trio, "good", ["PAUSED"] * 6))
        trio.ask("PUT", "connectors/good/resume")
        trio.ask("DELETE", "connectors/blocks")
        trio.ask("DELETE", "connectors/raises")
        trio.wait_until_all_run()
        for worker in trio.workers:
            worker.kill()
    trio.start().wait_until_balanced()


def tasks_of(cluster: Cluster, name: str, worker: ClusterWorker | None = None) -> list[str]:
    """The states of a connector's tasks, once it has a status."""
    response = cluster.request("GET", f"connectors/{name}/status", worker=worker)
    return [task["state"] for task in response.json()["tasks"]] if response.ok else []


def everywhere(cluster: Cluster, name: str, states: list[str]) -> bool:
    """Whether every worker says that a connector's tasks are in these states: they learn of it one after the other."""
    return all(tasks_of(cluster, name, worker) == states for worker in cluster.live)


def test_connectors_change_while_workers_come_and_go(trio: Cluster) -> None:
    # What is passed on to a leader that is killed is answered with 500, as by Kafka Connect: so the leader stays.
    topic, coming = trio.folder.name, trio.followers()[0]
    staying = [worker for worker in trio.workers if worker is not coming]
    end = threading.Event()

    def come_and_go() -> None:
        for leave in (coming.terminate, coming.kill):
            leave()
            coming.start()
            wait_until("it is back", coming.answers, 60)
        end.set()

    def change(name: str, worker: ClusterWorker) -> int:
        def ask(method: str, path: str, body: object = None) -> None:
            trio.ask(method, path, body, worker)

        rounds = 0
        while not end.is_set():
            for tasks in (1, 4, 2):
                ask("PUT", f"connectors/{name}/config", trio.config("Ticks", tasks, topic=topic))
            ask("PUT", f"connectors/{name}/pause")
            ask("PUT", f"connectors/{name}/resume")
            # The leader restarts it, and may hear of it later than this worker.
            wait_until("it has a status", lambda: all(tasks_of(trio, name, each) for each in staying), 60)
            ask("POST", f"connectors/{name}/restart?includeTasks=true")
            ask("DELETE", f"connectors/{name}")
            rounds += 1
        ask("PUT", f"connectors/{name}/config", trio.config("Ticks", 3, topic=topic))
        return rounds

    with ThreadPoolExecutor(3) as pool:
        churn = pool.submit(come_and_go)
        changing = [pool.submit(change, f"changing-{n}", staying[n]) for n in range(2)]
        churn.result()
        assert all(future.result() > 0 for future in changing)
    trio.expected.update({f"changing-{n}": 3 for n in range(2)})
    trio.wait_until_balanced()


@pytest.mark.parametrize("protocol", ["eager", "compatible"])
@pytest.mark.thorough
def test_older_protocols(cluster: Callable[..., Cluster], bootstrap: str, protocol: str) -> None:
    pair = cluster(2, connect_protocol=protocol).start()
    pipelines = Pipelines(pair, bootstrap, 2, 4)
    pipelines.create()
    pair.wait_until_balanced()
    with pipelines:
        for killed in (pair.leader(), pair.leader()):
            killed.kill()
            pair.wait_until_all_run()
            killed.start()
            wait_until("it is back", killed.answers, 60)
            pair.wait_until_balanced()
    pipelines.check()


def test_a_follower_that_restarts_gets_its_work_back(cluster: Callable[..., Cluster], bootstrap: str) -> None:
    """The delay is longer than a restart takes on a busy machine."""
    trio = cluster(3, scheduled_rebalance_max_delay_ms="25000", **LONG_SESSIONS).start()
    pipelines = Pipelines(trio, bootstrap, 2, 8)
    pipelines.create()
    trio.wait_until_balanced()
    with pipelines:
        worker = trio.followers()[0]
        before, processes = trio.placed(), trio.holders()
        restart(worker)
        trio.wait_until_balanced()
        assert trio.placed() == before
        stayed = set().union(*(before[other] for other in trio.workers if other is not worker))
        after = trio.holders()
        assert {unit: after[unit] for unit in stayed} == {unit: processes[unit] for unit in stayed}
    pipelines.check()


def test_a_leader_that_restarts_loses_nothing(cluster: Callable[..., Cluster], bootstrap: str) -> None:
    """The next leader does not know what the former one ran, so the work comes to rest only after the delay."""
    trio = cluster(3, scheduled_rebalance_max_delay_ms="5000").start()
    pipelines = Pipelines(trio, bootstrap, 2, 8)
    pipelines.create()
    trio.wait_until_balanced()
    with pipelines:
        restart(trio.leader())
        trio.wait_until_balanced()
    pipelines.check()


def restart(worker: ClusterWorker) -> None:
    """Stop a worker in good order and start it again."""
    assert worker.terminate() == 0
    worker.start()
    wait_until("it is back", worker.answers, 60)


@pytest.mark.thorough
def test_static_members_that_restart_move_nothing(cluster: Callable[..., Cluster], bootstrap: str) -> None:
    trio = cluster(3, group_instance_id=lambda number: f"worker-{number}", session_timeout_ms="120000").start()
    pipelines = Pipelines(trio, bootstrap, 2, 8)
    pipelines.create()
    trio.wait_until_balanced()
    with pipelines:
        for worker, leave in (
            (trio.followers()[0], "kill"),
            (trio.followers()[1], "terminate"),
            (trio.leader(), "kill"),
        ):
            before, processes = trio.placed(), trio.holders()
            getattr(worker, leave)()
            worker.start()
            wait_until("it is back", worker.answers, 60)
            trio.wait_until_all_run()
            assert trio.placed() == before
            stayed = set().union(*(before[other] for other in trio.workers if other is not worker))
            after = trio.holders()
            assert {unit: after[unit] for unit in stayed} == {unit: processes[unit] for unit in stayed}
    pipelines.check()
