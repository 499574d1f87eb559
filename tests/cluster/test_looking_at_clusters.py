"""What each worker of a cluster tells of it, and a change on a condition that the leader makes for another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster, ClusterWorker

pytestmark = [pytest.mark.cluster, pytest.mark.integration]


def view(worker: ClusterWorker) -> dict[str, object]:
    return dict(requests.get(f"{worker.url()}cluster", timeout=30).json())


def test_every_worker_tells_of_the_cluster(cluster: Callable[..., Cluster], topic: str, tmp_path: Path) -> None:
    file = tmp_path / "said"
    file.touch()
    pair = cluster(2).start()
    pair.create("talk", "Talkative", tasks=2, talkative_file=str(file), topic=topic)
    pair.wait_until_balanced()
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
    assert "the same page at the leader" in page.text
    assert requests.get(f"{follower.url()}ui", timeout=30).text.count('data-key="talk"') == 1
    url = f"{follower.url()}connectors/talk/config"
    tag = {"If-Match": requests.get(url, timeout=30).headers["ETag"]}
    assert requests.get(f"{leader.url()}connectors/talk/config", timeout=30).headers["ETag"] == tag["If-Match"]
    assert requests.patch(url, json={"tasks.max": "1"}, headers=tag, timeout=60).status_code == 200, "by the leader"
    refused = requests.patch(url, json={"tasks.max": "2"}, headers=tag, timeout=60)
    assert (refused.status_code, refused.json()["error_code"]) == (412, 412)
