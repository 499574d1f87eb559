"""Two workers' REST servers over real sockets: https, and what one passes on to the other."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests
from flask import request
from requests.adapters import HTTPAdapter

from connect.errors import ConfigError
from equipment.brokers.certificates import Authority
from equipment.brokers.key_stores import PASSWORD as SECRET
from equipment.brokers.key_stores import write_stores
from equipment.fakes.cluster_herder import ClusterHerder
from equipment.waiting import wait_until
from rest.app import create_app
from rest.http.paths import escaped
from rest.peers.forwarding import MOST_FORWARDS, Forwarding
from rest.server.server import RestServer
from rest.server.tls import TlsSettings
from worker.errors import ForbiddenError, ForwardingError, UnavailableError
from worker.peers.client import PeerClient
from worker.peers.leader import LeaderClient, Publication
from worker.security.session_keys import new_key

pytestmark = pytest.mark.integration

PREFIX = "listeners.https.ssl."


class Worker:
    """A REST server with its herder."""

    def __init__(self, herder: ClusterHerder, props: dict[str, str], scheme: str, timeout: float) -> None:
        tls = TlsSettings(props)
        self.herder = herder
        self.server = RestServer([f"{scheme}://127.0.0.1:0"], tls)
        self.peers = PeerClient(tls.client_context() if scheme == "https" else None, timeout, MOST_FORWARDS)
        self.seen: list[tuple[str, dict[str, str]]] = []
        app = create_app(herder, "cluster", forwarding=Forwarding(self.peers), request_timeout=timeout)
        app.before_request(self._see)
        self.server.answer_with(app)
        self.url = f"{scheme}://127.0.0.1:{self.server.port}/"

    def close(self) -> None:
        self.server.close()
        self.peers.close()

    def _see(self) -> None:
        self.seen.append((request.full_path, dict(request.headers)))


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def worker() -> Iterator[Callable[..., Worker]]:
    """Makes workers; the first one leads."""
    connectors: dict[str, dict[str, str]] = {}
    workers: list[Worker] = []

    def make(props: dict[str, str] | None = None, scheme: str = "http", timeout: float = 10.0) -> Worker:
        herder = ClusterHerder(connectors, is_leader=not workers)
        herder.leader_url = workers[0].url if workers else None
        workers.append(Worker(herder, props or {}, scheme, timeout))
        return workers[-1]

    yield make
    for made in workers:
        made.close()


def inline(authority: Authority, host: str = "127.0.0.1", **more: str) -> dict[str, str]:
    """The settings of a worker whose certificates are in its configuration."""
    identity = authority.sign(host)
    props = {
        "keystore.key": identity.key_pem(),
        "keystore.certificate.chain": identity.certificate_pem,
        "truststore.certificates": authority.pem,
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return {PREFIX + key: value for key, value in props.items()}


def create(worker: Worker, authority: Authority | None = None, name: str = "lines", **headers: str) -> Any:
    with session(authority) as client:
        return client.post(
            f"{worker.url}connectors",
            json={"name": name, "config": {"connector.class": "C", "n": "1"}},
            headers=headers,
            timeout=30,
        )


def session(authority: Authority | None, context: ssl.SSLContext | None = None) -> requests.Session:
    """A client that trusts the authority."""
    client = requests.Session()
    client.trust_env = False
    if authority is not None or context is not None:
        context = context or ssl.create_default_context(cadata=authority.pem)
        client.mount("https://", _Trusting(context))
    return client


class _Trusting(HTTPAdapter):
    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, ssl_context=self._context, **options)

    def cert_verify(self, conn: Any, *_: Any) -> None:
        conn.cert_reqs = "CERT_REQUIRED"


def test_a_request_is_passed_on_to_the_leader_over_https(worker: Any, authority: Authority) -> None:
    leader, follower = (worker(inline(authority), "https") for _ in range(2))
    answer = create(follower, authority, "a/b", Authorization="Basic abc", Cookie="mine=1")
    assert answer.status_code == 201, answer.text
    assert answer.json()["config"]["n"] == "1"
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Location"] == f"{follower.url}connectors/a%2Fb"
    (path, headers) = leader.seen[-1]
    assert path == "/connectors?forward=true"
    assert headers["Authorization"] == "Basic abc"
    assert "Cookie" not in headers
    with session(authority) as client:
        assert client.delete(f"{follower.url}connectors/a%2Fb?x=1%2C2&forward=true", timeout=30).status_code == 204
    assert leader.seen[-1][0] == "/connectors/a%2Fb?x=1%2C2&forward=false"
    assert create(follower, authority, "again").status_code == 201
    assert create(follower, authority, "again").json()["message"] == "Connector again already exists"


def test_a_request_that_only_the_owner_may_do_goes_over_two_workers(worker: Any) -> None:
    leader, first, owner = worker(), worker(), worker()
    first.herder.owner_url, leader.herder.owner_url = leader.url, owner.url
    assert requests.post(f"{first.url}connectors/a/tasks/3/restart", timeout=30).status_code == 204
    assert owner.herder.restarted == [("a", 3)]
    owner.herder.owner_url = leader.url
    answer = requests.post(f"{first.url}connectors/a/tasks/3/restart", timeout=30)
    assert answer.status_code == 409, "they send it in a circle"


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_that_is_too_large_is_refused_as_such(worker: Any, is_chunked: bool) -> None:
    body = b'{"name": "lines", "config": {"a": "' + b"a" * (16 * 1024 * 1024) + b'"}}'
    sent: Any = (body[at : at + 2**20] for at in range(0, len(body), 2**20)) if is_chunked else body
    headers = {"Content-Type": "application/json"}
    answer = requests.post(f"{worker().url}connectors", data=sent, headers=headers, timeout=30)
    assert (answer.status_code, answer.json()["message"]) == (
        413,
        "HTTP 413 Request Entity Too Large: A body has at most 16777216 bytes.",
    )


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_of_dots_is_passed_on_as_it_is(worker: Any, name: str) -> None:
    _, follower = worker(), worker()
    assert create(follower, name=name).status_code == 201
    path = f"/connectors/{escaped(name)}"
    connection = http.client.HTTPConnection("127.0.0.1", follower.server.port, timeout=10)
    with closing(connection):
        connection.request("DELETE", path)
        with connection.getresponse() as answer:
            assert answer.status == 204


def test_a_leader_that_is_gone(worker: Any) -> None:
    leader, follower = worker(), worker()
    leader.close()
    answer = create(follower)
    assert answer.status_code == 500
    assert answer.json()["message"] == (
        f"IO Error trying to forward REST request: Connection refused ({leader.url}). "
        "That worker is not listening, so nothing was done: try again once the cluster has noticed"
    )


def test_a_leader_that_breaks_off(worker: Any) -> None:
    _, follower = worker(), worker()
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as client:
        leader = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        follower.herder.leader_url = leader
        asked = client.submit(create, follower)
        connection, _ = listening.accept()
        connection.recv(1)
        connection.close()
        answer = asked.result()
    assert answer.status_code == 500
    message = answer.json()["message"]
    assert message.startswith("IO Error trying to forward REST request: ")
    assert message.endswith(f"({leader}). That worker may have carried out the request: check before you repeat it")


def test_a_leader_whose_certificate_is_another_authoritys_is_not_asked(worker: Any, authority: Authority) -> None:
    worker(inline(Authority()), "https")
    answer = create(worker(inline(authority), "https"), authority)
    assert answer.status_code == 500
    assert "CERTIFICATE_VERIFY_FAILED" in answer.json()["message"]


@pytest.mark.parametrize(("check", "status"), [("https", 500), ("", 201)])
def test_the_host_of_a_certificate_is_checked_unless_that_is_off(
    worker: Any, authority: Authority, check: str, status: int
) -> None:
    worker(inline(authority, host="elsewhere.example"), "https")
    follower = worker(inline(authority, endpoint_identification_algorithm=check), "https")
    assert create(follower, authority).status_code == status


def test_clients_without_a_certificate_may_be_refused(worker: Any, authority: Authority) -> None:
    props = inline(authority, client_auth="required")
    worker(props, "https")
    follower = worker(props, "https")
    with pytest.raises(requests.RequestException):
        create(follower, authority)
    context = TlsSettings(inline(authority)).client_context()
    with session(None, context) as client:
        answer = client.post(f"{follower.url}connectors", json={"name": "a", "config": {}}, timeout=30)
    assert answer.status_code == 201, "a worker shows its certificate to the leader, too"


def test_a_silent_client_keeps_nobody_out(worker: Any, authority: Authority) -> None:
    served = worker(inline(authority), "https")
    with socket.create_connection(("127.0.0.1", served.server.port)), session(authority) as client:
        assert client.get(f"{served.url}connectors", timeout=5).json() == []


def test_who_speaks_no_tls_is_dropped(worker: Any, authority: Authority) -> None:
    served = worker(inline(authority), "https")
    with pytest.raises(requests.ConnectionError):
        requests.get(served.url.replace("https", "http"), timeout=5)
    with session(authority) as client:
        assert client.get(served.url, timeout=5).status_code == 200


def test_a_leader_that_hangs_does_not_keep_reads_from_being_answered(worker: Any) -> None:
    leader, follower = worker(timeout=6.0), worker(timeout=6.0)
    leader.herder.hangs = True
    with ThreadPoolExecutor(MOST_FORWARDS + 4) as clients:
        asked = [clients.submit(create, follower) for _ in range(MOST_FORWARDS + 4)]
        wait_until("the leader has as many as it gets", lambda: len(leader.seen) == MOST_FORWARDS)
        assert requests.get(f"{follower.url}connectors", timeout=5).json() == []
        answers = [done.result() for done in asked]
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [500] * MOST_FORWARDS + [503] * 4
    assert any("Request timed out. The worker is currently" in answer.json()["message"] for answer in answers)


def test_task_configs_reach_the_leader_signed(worker: Any, authority: Authority) -> None:
    leader, follower = (worker(inline(authority), "https") for _ in range(2))
    key = leader.herder.key = follower.herder.key = new_key("HmacSHA256", None, 0)
    client = LeaderClient(follower.peers, "HmacSHA256")
    configs = [{"a": "1", "ü": "…"}, {}]
    first, second = Publication(3, "ab12", 1), Publication(3, "ab12", 2)
    client.post_task_configs(leader.url, "a/b", configs, first, key).result(60)
    assert leader.herder.task_configs_by_name == {"a/b": configs}
    assert leader.herder.publications == {"a/b": first}
    client.fence(leader.url, "a/b", key).result(60)
    assert leader.herder.fenced == ["a/b"]
    client.post_task_configs(follower.url, "late", configs, second, key).result(60)
    assert leader.herder.task_configs_by_name["late"] == configs, "who leads no more passes it on, signature and all"
    assert leader.herder.publications["late"] == second
    with pytest.raises(ForbiddenError, match="Internal request contained invalid signature"):
        client.fence(leader.url, "a", new_key("HmacSHA256", None, 0)).result(60)
    leader.herder.key = None
    with pytest.raises(UnavailableError, match="has not been able to read a session key"):
        client.fence(leader.url, "a", key).result(60)
    leader.close()
    with pytest.raises(ForwardingError, match="Connection refused"):
        client.fence(leader.url, "a", key).result(60)
    client.close()


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Path:
    """Stores of every kind. Java's keytool takes seconds to make them, and nobody changes them."""
    folder = tmp_path_factory.mktemp("stores")
    identity = authority.sign("127.0.0.1")
    write_stores(folder, authority, identity)
    (folder / "key.pem").write_text(identity.certificate_pem + identity.key_pem())
    (folder / "encrypted.pem").write_text(identity.key_pem(SECRET) + identity.certificate_pem)
    return folder


def stored(stores: Path, key: str, trust: str, **passwords: str) -> dict[str, str]:
    props = {"keystore.location": str(stores / key), "truststore.location": str(stores / trust)}
    return {PREFIX + name: value for name, value in props.items()} | {
        PREFIX + name.replace("_", "."): value for name, value in passwords.items()
    }


@pytest.mark.parametrize(
    ("key", "trust", "passwords"),
    [
        ("key.jks", "trust.jks", {"keystore_password": SECRET, "key_password": "of-key"}),
        ("key.jks", "trust.p12", {"keystore_password": SECRET, "key_password": "of-key", "truststore_type": "JKS"}),
        ("key.p12", "trust.p12", {"keystore_password": SECRET, "keystore_type": "JKS"}),
        ("key.pem", "authority.pem", {"keystore_type": "PEM", "truststore_type": "PEM"}),
        ("encrypted.pem", "authority.pem", {"key_password": SECRET}),
    ],
)
def test_every_kind_of_store_is_read(
    worker: Any, stores: Path, authority: Authority, key: str, trust: str, passwords: dict[str, str]
) -> None:
    more = {} if trust.endswith(".pem") else {"truststore_password": SECRET}
    props = stored(stores, key, trust, **passwords, **more)
    worker(props, "https")
    assert create(worker(props, "https"), authority).status_code == 201


@pytest.mark.parametrize(
    ("key", "passwords", "named"),
    [
        ("key.jks", {"keystore_password": "wrong-one"}, "ssl.keystore.password"),
        ("key.jks", {"keystore_password": SECRET, "key_password": "wrong-one"}, "ssl.key.password"),
        ("key.p12", {"keystore_password": "wrong-one"}, "ssl.keystore.password"),
        ("encrypted.pem", {"key_password": "wrong-one"}, "ssl.key.password"),
        ("encrypted.pem", {}, "ssl.key.password"),
        ("absent.p12", {"keystore_password": SECRET}, "ssl.keystore.location"),
        ("trust.jks", {"keystore_password": SECRET}, "ssl.keystore.location"),
    ],
)
def test_what_is_wrong_with_a_store_is_said_without_its_password(
    stores: Path, key: str, passwords: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        TlsSettings(stored(stores, key, "trust.jks", truststore_password=SECRET, **passwords)).server_context()
    text = str(refused.value)
    assert refused.value.key == f"listeners.https.{named}", text
    assert SECRET not in text
    assert "wrong-one" not in text


def test_only_the_protocols_and_suites_that_are_listed_are_spoken(worker: Any, authority: Authority) -> None:
    served = worker(inline(authority, cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"), "https")
    context = ssl.create_default_context(cadata=authority.pem)
    with (
        socket.create_connection(("127.0.0.1", served.server.port)) as raw,
        context.wrap_socket(raw, server_hostname="127.0.0.1") as client,
    ):
        assert (client.version(), client.cipher()[0]) == ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384")


def test_json_survives(worker: Any) -> None:
    leader, follower = worker(), worker()
    body = json.dumps({"name": "n", "config": {"connector.class": "C", "text": "…€"}}, ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json; charset=utf-8"}
    answer = requests.post(f"{follower.url}connectors", data=body, headers=headers, timeout=30)
    assert answer.json()["config"]["text"] == "…€"
    assert leader.herder.connectors_by_name["n"]["text"] == "…€"
