"""The REST API of a cluster's worker: what it passes on, what workers ask of each other, and how it is."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from connect.errors import ConnectError
from equipment.fakes.cluster_herder import ClusterHerder
from rest.app import create_admin_app, create_app
from rest.peers.forwarding import MOST_FORWARDS, Forwarding
from worker.peers.client import PeerClient
from worker.peers.leader import PUBLICATION_HEADER, Publication
from worker.security.session_keys import new_key, sign

BUSY = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
LEADERLESS = "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."


@pytest.fixture
def herder() -> ClusterHerder:
    return ClusterHerder({"a": {}})


@pytest.fixture
def client(herder: ClusterHerder) -> Iterator[FlaskClient]:
    peers = PeerClient(None, 1.0, MOST_FORWARDS)
    yield create_app(herder, "cluster", forwarding=Forwarding(peers), request_timeout=0.2).test_client()
    peers.close()


@pytest.mark.parametrize("forward", ["false", "maybe", ""])
def test_what_was_passed_on_twice_is_refused(client: FlaskClient, herder: ClusterHerder, forward: str) -> None:
    herder.leader_url = "http://127.0.0.1:1/"
    answer = client.delete(f"/connectors/a?forward={forward}")
    assert (answer.status_code, answer.get_json()["message"]) == (409, BUSY)


@pytest.mark.parametrize("query", ["", "?forward=true"])
def test_without_a_known_leader_nothing_is_passed_on(client: FlaskClient, query: str) -> None:
    answer = client.delete(f"/connectors/a{query}")
    assert (answer.status_code, answer.get_json()["message"]) == (409, LEADERLESS)


def test_task_configs_are_taken_from_workers_alone(client: FlaskClient, herder: ClusterHerder) -> None:
    herder.is_leader, herder.key = True, new_key("HmacSHA256", None, 0)
    body = b'[ {"task.class": "T"} ]'
    headers = {"Content-Type": "application/json", **sign(herder.key, "HmacSHA256", body)}
    assert client.post("/connectors/a%2Fb/tasks", data=body, headers=headers).status_code == 204
    assert herder.task_configs_by_name == {"a/b": [{"task.class": "T"}]}
    other = client.post("/connectors/a/tasks", data=body + b" ", headers=headers)
    assert (other.status_code, other.get_json()["message"]) == (403, "Internal request contained invalid signature.")
    unsigned = client.post("/connectors/a/tasks", json=[])
    assert unsigned.get_json() == {"error_code": 400, "message": "Internal request missing required signature"}
    assert client.post("/connectors/a/tasks", json=[{"a": 1}]).status_code == 400
    assert herder.publications == {"a/b": None}, "a worker of Kafka Connect does not number them"


@pytest.mark.parametrize(("said", "status"), [("5 0af1 17", 204), ("5 0af1", 400), ("-1 0af1 2", 400), ("1 x 2", 400)])
def test_task_configs_may_be_numbered(client: FlaskClient, herder: ClusterHerder, said: str, status: int) -> None:
    herder.is_leader, herder.key = True, new_key("HmacSHA256", None, 0)
    headers = {"Content-Type": "application/json", **sign(herder.key, "HmacSHA256", b"[]"), PUBLICATION_HEADER: said}
    assert client.post("/connectors/a/tasks", data=b"[]", headers=headers).status_code == status
    assert herder.publications == ({"a": Publication(5, "0af1", 17)} if status == 204 else {})


def test_a_fence_is_asked_for_by_workers_alone(client: FlaskClient, herder: ClusterHerder) -> None:
    key = new_key("HmacSHA256", None, 0)
    assert client.put("/connectors/a/fence", headers=sign(key, "HmacSHA256", b"")).status_code == 503
    herder.key = key
    assert client.put("/connectors/a/fence", headers=sign(key, "HmacSHA256", b"")).status_code == 204
    assert client.put("/connectors/a/fence").status_code == 400
    assert herder.fenced == ["a"]


def test_what_workers_ask_of_each_other_is_not_described(client: FlaskClient) -> None:
    paths = client.get("/openapi.json").get_json()["paths"]
    assert "/connectors/{name}/fence" not in paths
    assert "post" not in paths["/connectors/{name}/tasks"]


@pytest.mark.parametrize("is_admin_apart", [False, True])
def test_a_level_may_be_set_for_the_cluster(client: FlaskClient, herder: ClusterHerder, is_admin_apart: bool) -> None:
    asked = create_admin_app(herder, distributed=True).test_client() if is_admin_apart else client
    answer = asked.put("/admin/loggers/a.b?scope=cluster", json={"level": "debug"})
    assert (answer.status_code, answer.get_data()) == (204, b"")
    assert herder.cluster_levels == {"a.b": "debug"}
    loud = asked.put("/admin/loggers/a.b?scope=cluster", json={"level": "LOUD"})
    assert loud.get_json() == {"error_code": 404, "message": "invalid log level 'LOUD'."}
    assert logging.getLogger("a.b").level == logging.NOTSET, "it comes to this worker by the config topic"


def test_names_and_numbers_are_answered_as_they_are(client: FlaskClient, herder: ClusterHerder) -> None:
    herder.connectors_by_name = {"ü": {"big": 2**70}, "a": {"half": "\ud800"}}  # type: ignore[dict-item]
    answer = client.get("/connectors")
    assert (answer.get_data(), answer.headers["Content-Type"]) == ('["a","ü"]'.encode(), "application/json")
    assert client.get("/connectors/%C3%BC/config").get_json() == {"big": 2**70}
    assert client.get("/connectors/a/config").get_json() == {"half": "\ud800"}


def test_probes_tell_whether_a_worker_lives_and_is_ready(client: FlaskClient, herder: ClusterHerder) -> None:
    for path, status in (("live", "alive"), ("ready", "ready")):
        answer = client.get(f"/health/{path}")
        assert (answer.status_code, answer.get_json()) == (200, {"status": status, "reasons": []})
    herder.reasons = ["It has not joined yet."]
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.get_json()) == (503, {"status": "not ready", "reasons": herder.reasons})
    herder.broken = ConnectError("no answer")
    answer = client.get("/health/live")
    assert (answer.status_code, answer.get_json()) == (503, {"status": "dead", "reasons": ["no answer"]})


def test_a_worker_whose_herder_fails_is_not_healthy(client: FlaskClient, herder: ClusterHerder) -> None:
    assert client.get("/health").get_json()["status"] == "healthy"
    herder.broken = ConnectError("The config topic cannot be read.")
    answer = client.get("/health")
    assert answer.status_code == 500
    assert answer.get_json() == {
        "status": "unhealthy",
        "message": "Worker was unable to handle this request and may be unable to handle other requests. "
        "The config topic cannot be read.",
    }
