"""What each worker of a cluster tells of it, and a change on a condition that the leader makes for another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from equipment.waiting import wait_until
from equipment.workers.cluster import LONG_SESSIONS, Cluster, ClusterWorker
from worker.cli.main import main

pytestmark = [pytest.mark.cluster, pytest.mark.integration]


def view(worker: ClusterWorker) -> dict[str, object]:
    return dict(requests.get(f"{worker.url()}cluster", timeout=30).json())


@pytest.fixture(scope="module")
def shared(clusters: Callable[..., Cluster]) -> Cluster:
    """Two workers; what one of them ran waits for it to come back."""
    return clusters(2, scheduled_rebalance_max_delay_ms="300000", **LONG_SESSIONS).start()


@pytest.fixture
def pair(shared: Cluster) -> Iterator[Cluster]:
    """These workers, without connectors before the test and after it."""
    yield shared
    shared.delete_all()


def create(pair: Cluster, name: str, topic: str, folder: Path) -> None:
    """Create a connector that has a task on each worker."""
    file = folder / "said"
    file.touch()
    pair.create(name, "Talkative", tasks=2, talkative_file=str(file), topic=topic)
    pair.wait_until_balanced()


def test_every_worker_tells_of_the_cluster(pair: Cluster, topic: str, tmp_path: Path) -> None:
    create(pair, "told", topic, tmp_path)
    leader, (follower,) = pair.leader(), pair.followers()
    ids = sorted(worker.url().removeprefix("http://").rstrip("/") for worker in pair.live)

    def complete() -> dict[str, object] | None:
        seen = view(leader)
        workers = seen["workers"]
        assert isinstance(workers, list)
        return seen if sum(len(worker["tasks"]) for worker in workers) == 2 else None

    seen = wait_until("the leader knows who runs the tasks", complete)
    assert (seen["is_leader"], seen["complete"], seen["mode"]) == (True, True, "distributed")
    assert [worker["worker_id"] for worker in seen["workers"]] == ids
    assert sum(worker["leads"] for worker in seen["workers"]) == 1
    assert seen["rebalances"][0]["generation"] == seen["generation"]
    assert seen["processes"][0]["connector"] is None
    other = view(follower)
    assert (other["is_leader"], other["complete"], other["leader_url"]) == (False, False, leader.url())
    assert [worker["worker_id"] for worker in other["workers"]] == ids
    page = requests.get(f"{follower.url()}ui/cluster", timeout=30)
    assert page.status_code == 200
    assert "this page on the leader" in page.text
    assert requests.get(f"{follower.url()}ui", timeout=30).text.count('data-key="told"') == 1
    url = f"{follower.url()}connectors/told/config"
    tag = {"If-Match": requests.get(url, timeout=30).headers["ETag"]}
    assert requests.get(f"{leader.url()}connectors/told/config", timeout=30).headers["ETag"] == tag["If-Match"]
    assert requests.patch(url, json={"tasks.max": "1"}, headers=tag, timeout=60).status_code == 200, "by the leader"
    refused = requests.patch(url, json={"tasks.max": "2"}, headers=tag, timeout=60)
    assert (refused.status_code, refused.json()["error_code"]) == (412, 412)


def test_a_worker_is_drained_before_it_is_restarted(pair: Cluster, topic: str, tmp_path: Path) -> None:
    create(pair, "talk", topic, tmp_path)
    leader, (follower,) = pair.leader(), pair.followers()
    for one in (leader, follower):
        path = f"connectors/talk/logs?worker={one.address}"
        told = [pair.request("GET", path, worker=worker).json()["worker_id"] for worker in pair.live]
        assert told == [one.address] * 2, "whoever is asked"
    page = requests.get(f"{follower.url()}ui/connectors/talk/logs?worker={leader.address}", timeout=30).text
    assert f'Log lines of worker <span class="code">{leader.address}</span>' in page
    assert page.count("?worker=127.0.0.1") == 2
    drain = f"cluster/workers/{follower.address}/drain"
    assert pair.request("PUT", drain, worker=leader).status_code == 202, "by the worker itself, whoever is asked"
    tasks = {"talk-0", "talk-1"}
    wait_until("the leader runs everything", lambda: pair.placed() == {leader: tasks, follower: set()}, 90)
    drained = {worker["worker_id"]: worker["draining"] for worker in view(leader)["workers"]}
    assert drained == {leader.address: False, follower.address: True}
    page = requests.get(f"{leader.url()}ui/cluster", timeout=30).text
    assert (page.count("End draining"), page.count(">Drain<")) == (1, 1)
    history = f"{follower.url()}connectors/talk/config/history"
    kept = wait_until("the change is in the history", lambda: requests.get(history, timeout=30).json()["versions"])
    assert (len(kept), kept[0]["author"], kept[0]["config"]["topic"]) == (1, None, topic)
    starts = pair.starts()
    assert follower.terminate() == 0
    pair.wait_until_all_run()
    assert pair.starts() == starts, "nobody noticed"
    pair.start()
    pair.wait_until_balanced()
    there = ["--url", leader.url().rstrip("/")]
    done = CliRunner().invoke(main, ["workers", "drain", follower.address, *there])
    assert (done.exit_code, done.output) == (0, f"{follower.address} runs nothing any more.\n")
    done = CliRunner().invoke(main, ["workers", "list", *there])
    assert re.search(rf"{follower.address} +follows, is drained +0 +0 +0", done.output)
    done = CliRunner().invoke(main, ["workers", "undrain", follower.address, *there])
    assert (done.exit_code, done.output) == (0, f"{follower.address} takes work again.\n")
    pair.wait_until_balanced()
    done = CliRunner().invoke(main, ["workers", "drain", "nobody:1", "--url", follower.url().rstrip("/")])
    assert (done.exit_code, leader.address in done.output) == (1, True)


def test_a_flow_of_a_mirror_is_one_object_whoever_is_asked(pair: Cluster, bootstrap: str, topic: str) -> None:
    follower, path = pair.followers()[0], f"mirror/flows/{topic}-%3EB"
    # It is not enabled, so that it runs without tasks.
    config = {f"{cluster}.cluster.bootstrap.servers": bootstrap for cluster in ("source", "target")}
    config |= {"topics": topic, "enabled": "false", "emit.heartbeats.enabled": "false"}
    wrong = pair.request("PUT", path, body={**config, "sync.topic.configs.enabled": "maybe"}, worker=follower)
    assert (wrong.status_code, "sync.topic.configs.enabled" in wrong.json()["message"]) == (400, True)
    assert pair.request("PUT", path, body=config, worker=follower).status_code == 201

    def states() -> set[str]:
        answers = [pair.request("GET", path, worker=worker) for worker in pair.live]
        return {answer.json()["state"] if answer.ok else str(answer.status_code) for answer in answers}

    wait_until("all know that it runs", lambda: states() == {"RUNNING"}, 90)
    assert pair.request("PUT", path, body=config, worker=follower).status_code == 200
    assert pair.request("PUT", f"{path}/pause", worker=follower).status_code == 202
    wait_until("all know that it is paused", lambda: states() == {"PAUSED"}, 90)
    assert f'data-flow="{topic}-&gt;B"' in requests.get(f"{follower.url()}ui/flows", timeout=30).text
    assert pair.request("DELETE", path, worker=follower).status_code == 204
    wait_until("all know that it is gone", lambda: states() == {"404"}, 90)
