"""Workers whose broker hangs, and workers in the group of another cluster: what they say, and what runs afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests
from click.testing import CliRunner

from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.brokers.topics import admin_client
from equipment.proofs import thorough
from equipment.waiting import wait_until
from equipment.workers.cluster import SHORT_SESSIONS, Cluster, ClusterWorker
from equipment.workers.pipelines import Pipelines
from equipment.workers.standalone import StandaloneWorker
from worker.cli.main import main

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(300)]

TOLD = "This worker has lost its cluster since 20"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, broker_jars: tuple[Path, ...]) -> Iterator[ProxiedBroker]:
    with ProxiedBroker.running(tmp_path_factory.mktemp("hang") / "broker", broker_jars, 3) as broker:
        yield broker


@pytest.mark.parametrize("workers", [1, *thorough(3)])
def test_work_goes_on_at_once_after_a_hang_of_the_broker(broker: ProxiedBroker, tmp_path: Path, workers: int) -> None:
    """The delay is far longer than the test may take, so a worker that took itself for a lost one would be noticed."""
    folder = tmp_path / f"cluster-{uuid4().hex[:12]}"
    props = {**SHORT_SESSIONS, "scheduled_rebalance_max_delay_ms": "600000"}
    cluster = Cluster(folder, broker.bootstrap_of, workers, **props)
    try:
        cluster.start()
        pipelines = Pipelines(cluster, broker.bootstrap, 2, 4)
        pipelines.create()
        cluster.wait_until_balanced()
        with pipelines:
            before = cluster.placed()
            broker.freeze()
            try:
                wait_until("the workers have given up their tasks", lambda: cluster.holders() == {}, 60)
                for worker in cluster.workers:
                    check_that_it_says_so(worker)
            finally:
                broker.thaw()
            cluster.wait_until_all_run(60)
            if workers == 1:
                assert cluster.placed() == before
            for worker in cluster.workers:
                wait_until("it is ready again", lambda worker=worker: ready(worker).ok, 60)
                assert requests.get(f"{worker.url()}health", timeout=30).json().get("troubles") is None
        pipelines.check()
    finally:
        broker.thaw()
        cluster.close()


def ready(worker: ClusterWorker) -> requests.Response:
    return requests.get(f"{worker.url()}health/ready", timeout=30)


def check_that_it_says_so(worker: ClusterWorker) -> None:
    (health,) = wait_until("it knows", lambda: troubled(worker), 30)
    assert (health.status_code, health.json()["status"]) == (503, "unhealthy")
    (trouble,) = health.json()["troubles"]
    assert trouble["message"].startswith(TOLD)
    assert ready(worker).json()["reasons"][0].startswith(TOLD)
    assert [each for each in states(worker) if each != "UNASSIGNED"] == []
    page = requests.get(f"{worker.url()}ui", headers={"Accept": "text/html"}, timeout=30).text
    assert f'class="notice bad" data-key="1">{TOLD}' in page
    for command in (["status"], ["connectors", "list"], ["workers", "list"]):
        done = CliRunner().invoke(main, [*command, "--url", worker.url()])
        assert (done.exit_code, TOLD in done.output) == (3, True), done.output
        assert "RUNNING" not in done.output
    put = requests.put(f"{worker.url()}connectors/new/config", json={"connector.class": "FileStreamSink"}, timeout=30)
    assert put.status_code == 503
    assert put.json()["message"].startswith(TOLD)


def troubled(worker: ClusterWorker) -> list[requests.Response]:
    answer = requests.get(f"{worker.url()}health", timeout=30)
    return [answer] if answer.status_code == 503 else []


def states(worker: ClusterWorker) -> list[str]:
    views: dict[str, Any] = requests.get(f"{worker.url()}connectors?expand=status", timeout=30).json()
    statuses = [view["status"] for view in views.values()]
    return [part["state"] for status in statuses for part in (status["connector"], *status["tasks"])]


def test_two_clusters_with_one_group_are_told_apart(broker: ProxiedBroker, tmp_path: Path) -> None:
    group = f"group-{uuid4().hex[:12]}"
    made = [Cluster(tmp_path / f"{group}-{name}", broker.bootstrap_of, 1, group_id=group) for name in ("one", "two")]
    one, two = made
    try:
        one.start()
        one.create("theirs", "TicksConnector", topic="ticks")
        one.wait_until_all_run()
        two.start()
        (worker,) = two.workers
        reasons = wait_until("it says so", lambda: strange(worker), 60)
        assert f"another Connect cluster uses group.id={group} with other topics" in reasons[0]
        put = requests.put(
            f"{worker.url()}connectors/new/config", json=two.config("TicksConnector", topic="ticks"), timeout=30
        )
        assert (put.status_code, f"group.id={group}" in put.json()["message"]) == (503, True)
        assert f"another Connect cluster uses group.id={group}" in worker.log()
    finally:
        for cluster in made:
            cluster.close()


def strange(worker: ClusterWorker) -> list[str]:
    reasons: list[str] = ready(worker).json()["reasons"]
    return reasons if any("another Connect cluster" in reason for reason in reasons) else []


def test_a_killed_worker_runs_nothing_and_gets_its_work_back_at_once(broker: ProxiedBroker, tmp_path: Path) -> None:
    props = {**SHORT_SESSIONS, "scheduled_rebalance_max_delay_ms": "600000"}
    cluster = Cluster(tmp_path / f"cluster-{uuid4().hex[:12]}", broker.bootstrap_of, 3, **props)
    try:
        cluster.start()
        pipelines = Pipelines(cluster, broker.bootstrap, 2, 6)
        pipelines.create()
        cluster.wait_until_balanced()
        with pipelines:
            before = cluster.placed()
            killed, leader = cluster.followers()[0], cluster.leader()
            killed.kill()
            for worker in cluster.live:
                wait_until(
                    "nothing is shown as running on it",
                    lambda worker=worker: killed.address not in running_at(worker),
                    60,
                )
            assert cluster.leader() is leader
            killed.start()
            cluster.wait_until_all_run(60)
            assert cluster.placed()[killed] == before[killed]
        pipelines.check()
    finally:
        cluster.close()


def running_at(worker: ClusterWorker) -> set[str]:
    views: dict[str, Any] = requests.get(f"{worker.url()}connectors?expand=status", timeout=30).json()
    statuses = [view["status"] for view in views.values()]
    parts = [part for status in statuses for part in (status["connector"], *status["tasks"])]
    return {part["worker_id"] for part in parts if part["state"] in ("RUNNING", "PAUSED", "RESTARTING")}


@pytest.mark.thorough
def test_a_config_topic_that_is_deleted_is_told_and_writes_are_refused(broker: ProxiedBroker, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / f"cluster-{uuid4().hex[:12]}", broker.bootstrap_of, 1)
    topic = f"{cluster.folder.name}-config"
    try:
        cluster.start()
        cluster.create("ticks", "TicksConnector", topic=f"{cluster.folder.name}-ticks")
        cluster.wait_until_all_run()
        (worker,) = cluster.workers
        admin = admin_client(broker.bootstrap)
        admin.delete_topics([topic])[topic].result(30)
        (reason,) = wait_until("it is not ready", lambda: ready(worker).json()["reasons"], 60)
        assert reason.startswith(f"Topic '{topic}' ")
        put = requests.put(f"{worker.url()}connectors/after/config", json={"connector.class": "X"}, timeout=60)
        assert (put.status_code, put.json()["message"].startswith(f"Topic '{topic}' ")) == (503, True)
        absent = requests.get(f"{worker.url()}connectors/after", timeout=60)
        assert (absent.status_code, f"Topic '{topic}' " in absent.json()["message"]) == (503, True)
        known = requests.get(f"{worker.url()}connectors/ticks/config", timeout=60)
        assert (known.status_code, known.json()["connector.class"]) == (200, "TicksConnector")
        told = [line for line in worker.log().splitlines() if " ERROR " in line and topic in line]
        assert len(told) == 1
    finally:
        cluster.close()


@pytest.mark.thorough
def test_a_standalone_worker_says_that_its_broker_hangs_and_works_on(broker: ProxiedBroker, tmp_path: Path) -> None:
    worker = StandaloneWorker(tmp_path / "alone", broker.bootstrap_of(0)).start()
    try:
        wait_until("it is ready", lambda: worker.get("health/ready").ok, 60)
        broker.freeze()
        (reason,) = wait_until("it is not ready", lambda: worker.get("health/ready").json()["reasons"], 60)
        assert reason.startswith("No broker of bootstrap.servers answers since 20")
        health = worker.get("health")
        assert (health.status_code, health.json()["troubles"][0]["message"]) == (200, reason)
        broker.thaw()
        wait_until("it is ready again", lambda: worker.get("health/ready").ok, 60)
    finally:
        broker.thaw()
        worker.close()
