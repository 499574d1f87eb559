"""A cluster whose users sign in: any worker takes their requests, and workers need no user for their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster
from worker.security.api_tokens import TokenFile

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(240)]

ROLES = """
[roles.deployers]
users = ["deployer"]
[[roles.deployers.allow]]
rights = ["edit", "operate", "delete"]
"""


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("signed-in")


@pytest.fixture
def cluster(bootstrap: str, folder: Path) -> Iterator[Cluster]:
    (folder / "roles.toml").write_text(ROLES)
    cluster = Cluster(
        folder,
        bootstrap,
        workers=2,
        rest_authentication_tokens_file=str(folder / "tokens.json"),
        rest_authentication_health_open="true",
        rest_authorization_file=str(folder / "roles.toml"),
        audit_file=lambda number: str(folder / f"audit-{number}.json"),
    )
    yield cluster
    for worker in cluster.workers:
        worker.close()


def test_a_follower_passes_on_what_its_user_may_do(cluster: Cluster, folder: Path) -> None:
    tokens = TokenFile(folder / "tokens.json")
    deployer = {"Authorization": f"Bearer {tokens.create('deployer', [], None)}"}
    other = {"Authorization": f"Bearer {tokens.create('other', [], None)}"}
    cluster.start()
    (follower,) = wait_until("both have joined", lambda: len(cluster.followers()) == 1 and cluster.followers())
    url = f"{follower.url()}connectors/lines"
    config = {
        "connector.class": "DatagenConnector",
        "tasks.max": "4",
        "kafka.topic": "signed-in",
        "quickstart": "users",
        "max.interval": "100",
    }

    refused = requests.put(f"{url}/config", json=config, headers=other, timeout=60)
    made = wait_until("the leader takes it", lambda: _unless_busy("PUT", f"{url}/config", deployer, config))

    assert refused.status_code == 403
    assert made.status_code == 201, made.text
    # Their configs come to the leader by a signed request of the worker that runs the connector.
    wait_until("its tasks run on both", lambda: len(_workers(url, deployer)) == 2, 90)
    wait_until("a restart is done", lambda: _unless_busy("POST", f"{url}/restart?includeTasks=true", deployer))
    leader = cluster.leader()
    (event,) = [event for event in _events(folder, cluster.workers.index(leader)) if event["data"]["method"] == "PUT"]
    assert (event["data"]["principal"]["name"], event["data"]["passed_on_by"]) == ("deployer", follower.address)
    assert event["data"]["address"] == "127.0.0.1"
    told = [event["data"]["status"] for event in _events(folder, cluster.workers.index(follower))]
    assert 201 not in told, "the worker that did it has written it down"


def _unless_busy(
    method: str, url: str, headers: dict[str, str], body: dict[str, str] | None = None
) -> requests.Response | None:
    answer = requests.request(method, url, json=body, headers=headers, timeout=60)
    return None if answer.status_code in (409, 503) else answer


def _workers(url: str, headers: dict[str, str]) -> set[str]:
    answer = requests.get(f"{url}/status", headers=headers, timeout=60)
    tasks = answer.json()["tasks"] if answer.ok else []
    return {task["worker_id"] for task in tasks if task["state"] == "RUNNING"}


def _events(folder: Path, number: int) -> list[dict[str, dict[str, object]]]:
    file = folder / f"audit-{number}.json"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
