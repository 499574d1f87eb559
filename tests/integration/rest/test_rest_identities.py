"""Two workers whose users sign in: what one passes on to the other, in whose name, and without their passwords."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from flask import Flask, request

from equipment.fakes.cluster_herder import ClusterHerder
from rest.access.access import Access
from rest.access.auditing import Auditing
from rest.access.guards import Guards
from rest.access.sign_in import SignIn
from rest.access.stored_configs import StoredConfigs
from rest.app import create_app
from rest.peers.forwarding import MOST_FORWARDS, Forwarding
from rest.peers.identities import Identities
from rest.server.server import RestServer
from worker.peers.client import PeerClient
from worker.peers.leader import LeaderClient, Publication
from worker.peers.owner import OwnerClient
from worker.security.audit import AuditFile, AuditLog
from worker.security.permissions import Roles, parse_roles
from worker.security.session_keys import SIGNATURE_HEADER, new_key, sign
from worker.security.users import Users
from worker.security.watched_file import WatchedFile

pytestmark = pytest.mark.integration

ROLES = """
[roles.operators]
users = ["alice"]
[[roles.operators.allow]]
rights = ["delete", "operate"]
"""


class GuardedWorker:
    """A REST server with its herder, which asks its clients to sign in."""

    def __init__(self, herder: ClusterHerder, folder: Path, name: str) -> None:
        self.herder = herder
        self.roles = folder / f"{name}.toml"
        self.roles.write_text(ROLES)
        self.peers = PeerClient(None, 5.0, MOST_FORWARDS)
        self.seen: list[dict[str, str]] = []
        identities = Identities(herder.peers, "HmacSHA256", name)
        roles: WatchedFile[Roles] = WatchedFile(self.roles, "file of roles", parse_roles, Roles())
        sign_in = SignIn(users=Users(folder / "users.properties"))
        access = Access(sign_in, roles, StoredConfigs(herder), passed_on=identities.in_name)
        forwarding = Forwarding(self.peers, identities, names_callers=True)
        self.audit = folder / f"{name}.json"
        log = AuditLog([AuditFile(self.audit)], name)
        guards = Guards(access=access, auditing=Auditing(log, StoredConfigs(herder), identities.in_name))
        app = create_app(herder, "cluster", forwarding=forwarding, request_timeout=5.0, guards=guards)
        app.before_request_funcs[None].insert(0, self._see)
        self.server = RestServer(["http://127.0.0.1:0"])
        self.server.answer_with(app)
        self.url = f"http://127.0.0.1:{self.server.port}/"

    def close(self) -> None:
        self.server.close()
        self.peers.close()

    def _see(self) -> None:
        self.seen.append({"Method": request.method, **request.headers})


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[GuardedWorker, GuardedWorker]]:
    (tmp_path / "users.properties").write_text("alice: pw\nbob: pw\n")
    connectors = {"a": {"connector.class": "C"}}
    follower = GuardedWorker(ClusterHerder(connectors), tmp_path, "follower")
    leader = GuardedWorker(ClusterHerder(connectors, is_leader=True), tmp_path, "leader")
    follower.herder.leader_url = leader.url
    follower.herder.key = leader.herder.key = new_key("HmacSHA256", None, 0)
    yield follower, leader
    follower.close()
    leader.close()


def test_a_request_is_passed_on_in_the_name_of_its_user(pair: tuple[GuardedWorker, GuardedWorker]) -> None:
    follower, leader = pair
    answer = requests.delete(f"{follower.url}connectors/a", auth=("alice", "pw"), timeout=30)
    assert answer.status_code == 204
    assert "Authorization" not in leader.seen[0]
    again = {name: value for name, value in leader.seen[0].items() if name.startswith("X-Sluice")}
    replayed = requests.delete(f"{leader.url}connectors/a?forward=true", headers=again, timeout=30)
    assert (replayed.status_code, replayed.json()["message"]) == (403, "Internal request was sent before.")
    done, refused = map(json.loads, leader.audit.read_text().splitlines())
    assert (done["type"], done["data"]["principal"]["name"]) == ("io.sluice.rest.changed", "alice")
    assert (done["data"]["address"], done["data"]["passed_on_by"]) == ("127.0.0.1", "follower")
    assert [change["key"] for change in done["data"]["changes"]] == ["connector.class"]
    assert (refused["type"], refused["data"]["principal"]) == ("io.sluice.rest.refused", None)
    assert not follower.audit.exists(), "the worker that did it has written it down"


def test_the_leader_decides_by_its_own_roles(pair: tuple[GuardedWorker, GuardedWorker]) -> None:
    follower, leader = pair
    leader.roles.write_text(ROLES.replace("alice", "carol"))
    answer = requests.delete(f"{follower.url}connectors/a", auth=("alice", "pw"), timeout=30)
    assert answer.status_code == 403
    assert answer.json()["message"].startswith("alice lacks the right delete on connector a.")
    refused = requests.delete(f"{follower.url}connectors/a", auth=("bob", "pw"), timeout=30)
    assert refused.status_code == 403
    assert len(leader.seen) == 1, "what a user may not do is not passed on"


def test_an_identity_that_nobody_signed_is_refused(pair: tuple[GuardedWorker, GuardedWorker]) -> None:
    follower, leader = pair
    follower.herder.key = new_key("HmacSHA256", None, 0)
    answer = requests.delete(f"{follower.url}connectors/a", auth=("alice", "pw"), timeout=30)
    assert (answer.status_code, answer.json()["message"]) == (403, "Internal request contained invalid signature.")
    follower.herder.key = None
    waits = requests.delete(f"{follower.url}connectors/a", auth=("alice", "pw"), timeout=30)
    assert waits.status_code == 503
    assert leader.herder.connectors_by_name == {"a": {"connector.class": "C"}}


def test_requests_of_workers_need_no_user(pair: tuple[GuardedWorker, GuardedWorker]) -> None:
    follower, leader = pair
    client = LeaderClient(follower.peers, "HmacSHA256", "follower")
    key = leader.herder.key
    client.post_task_configs(leader.url, "a", [{"x": "y"}], Publication(1, "0af1", 1), key).result(30)
    assert leader.herder.task_configs_by_name == {"a": [{"x": "y"}]}
    client.fence(follower.url, "a", key).result(30)
    assert SIGNATURE_HEADER not in leader.seen[0], "it is good for this one request alone"
    client.post_task_configs(follower.url, "b", [{"x": "z"}], Publication(1, "0af1", 2), key).result(30)
    assert leader.herder.task_configs_by_name["b"] == [{"x": "z"}], "the former leader passes it on"
    client.close()


def test_a_worker_reads_the_status_of_tasks_elsewhere(pair: tuple[GuardedWorker, GuardedWorker]) -> None:
    follower, leader = pair
    client = OwnerClient(follower.peers, lambda: leader.herder.key, "HmacSHA256", "follower")
    assert dict(client.measured(leader.url, "a").result(30)) == {}
    client.close()
    assert requests.get(f"{leader.url}connectors/a/status?forward=false", timeout=30).status_code == 401


def test_a_leader_of_kafka_connect_gets_the_signature_that_it_knows() -> None:
    app, seen, key = Flask(__name__), list[dict[str, str]](), new_key("HmacSHA256", None, 0)

    @app.put("/connectors/a/fence")
    def fence() -> tuple[dict[str, object], int]:
        seen.append(dict(request.headers))
        if SIGNATURE_HEADER not in request.headers:
            return {"error_code": 400, "message": "Internal request missing required signature"}, 400
        return {}, 200

    server, peers = RestServer(["http://127.0.0.1:0"]), PeerClient(None, 5.0, MOST_FORWARDS)
    server.answer_with(app)
    client = LeaderClient(peers, "HmacSHA256", "follower")
    client.fence(f"http://127.0.0.1:{server.port}/", "a", key).result(30)
    client.close()
    server.close()
    peers.close()
    assert seen[1][SIGNATURE_HEADER] == sign(key, "HmacSHA256", b"")[SIGNATURE_HEADER]
    assert "X-Sluice-Signature" not in seen[1]
