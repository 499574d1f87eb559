"""The REST API over a herder whose children are threads: what is not in the recorded calls."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from concurrent.futures import Future
from multiprocessing.connection import Connection

import pytest
from flask.testing import FlaskClient

from connect.internals.plugins import PluginRegistry
from rest.app import create_admin_app, create_app
from rest.http.headers import AnswerHeaders
from worker.herder.cluster.standing import Trouble
from worker.herder.connectors.connectors import TopicTracking
from worker.herder.herder import Herder
from worker.herder.inbox import Inbox
from worker.herder.settings import Stores, WorkerSettings
from worker.membership.membership import SoloMembership
from worker.messages import messages
from worker.messages.messages import OffsetPairs, decode, encode
from worker.stores.config.store import MemoryConfigStore
from worker.stores.status.store import MemoryStatusStore
from worker.supervisor.process import ThreadLauncher
from worker.supervisor.supervisor import Supervisor


def child(connection: Connection) -> None:
    """Finds every configuration right, but for one that hangs."""
    first = decode(connection.recv_bytes())
    if isinstance(first, messages.ValidateConfig) and not first.config.get("hangs"):
        connection.send_bytes(encode(messages.Validated({"configs": []}, "source")))
        return
    try:
        connection.recv_bytes()
    except (EOFError, OSError):
        return


class NoOffsets:
    """There are no source offsets."""

    def of_connector(self, connector: str) -> Future[OffsetPairs]:
        raise AssertionError(f"nobody asks for the offsets of {connector}")

    def alter(self, connector: str, offsets: OffsetPairs) -> Future[None]:
        raise AssertionError(f"nobody alters the offsets of {connector}")


@pytest.fixture
def herder() -> Iterator[Herder]:
    herder = Herder(
        WorkerSettings({}, "host:8083", tracking=TopicTracking(enabled=True, resettable=False)),
        Stores(MemoryConfigStore(), MemoryStatusStore(), NoOffsets()),
        Inbox(),
        SoloMembership(),
        lambda notify: Supervisor(ThreadLauncher(child), notify, lambda *_: None, 5.0),
        PluginRegistry([]),
    )
    herder.start()
    yield herder
    herder.close()


@pytest.fixture
def client(herder: Herder) -> FlaskClient:
    headers = AnswerHeaders.of("http://ui.example", "GET,PUT", "set X-Frame-Options: DENY")
    return create_app(herder, "cluster", headers=headers).test_client()


def make(client: FlaskClient, name: str, **config: str) -> int:
    body = {"name": name, "config": {"connector.class": "C", **config}, "initial_state": "STOPPED"}
    return client.post("/connectors", json=body).status_code


@pytest.mark.parametrize("name", ["a/b", "with space", "a%2Fb", "naïve", "100%", "a?b"])
def test_every_name_can_be_addressed_by_the_location_it_is_given(client: FlaskClient, name: str) -> None:
    made = client.post(
        "/connectors", json={"name": name, "config": {"connector.class": "C"}, "initial_state": "stopped"}
    )
    assert made.status_code == 201
    path = made.headers["Location"].removeprefix("http://localhost")
    assert client.get(path + "/config").get_json()["name"] == name
    assert client.delete(path + "/").status_code == 204


def test_a_request_that_takes_too_long_says_what_it_waits_for(herder: Herder) -> None:
    client = create_app(herder, "cluster", request_timeout=0.3).test_client()
    body = {"name": "slow", "config": {"connector.class": "C", "hangs": "yes"}}
    answer = client.post("/connectors", json=body)
    assert answer.status_code == 500
    message = answer.get_json()["message"]
    assert message.startswith("Request timed out. The worker is currently waiting for C to validate connector slow's")
    patient = create_app(herder, "cluster").test_client()
    assert patient.get("/connectors").status_code == 200, "others are answered meanwhile"


def test_pages_of_an_allowed_origin_may_ask(client: FlaskClient) -> None:
    asked = {"Origin": "http://ui.example", "Access-Control-Request-Method": "PUT"}
    preflight = client.options("/connectors", headers=asked)
    assert preflight.headers["Access-Control-Allow-Origin"] == "http://ui.example"
    assert preflight.headers["Access-Control-Allow-Methods"] == "GET,PUT"
    other = client.get("/", headers={"Origin": "http://other.example"})
    assert "Access-Control-Allow-Origin" not in other.headers
    assert other.headers["X-Frame-Options"] == "DENY"


def test_pages_of_every_origin_get_no_credentials(herder: Herder) -> None:
    client = create_app(herder, "cluster", headers=AnswerHeaders.of("*", "", "")).test_client()
    asked = {
        "Origin": "http://other.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    preflight = client.options("/connectors", headers=asked)
    assert preflight.headers["Access-Control-Allow-Origin"] == "http://other.example"
    assert preflight.headers["Access-Control-Allow-Headers"] == "Content-Type"
    assert "Access-Control-Allow-Credentials" not in preflight.headers
    listed = create_app(herder, "cluster", headers=AnswerHeaders.of("*,http://ui.example", "", "")).test_client()
    shown = listed.get("/", headers={"Origin": "http://ui.example"})
    assert shown.headers["Access-Control-Allow-Credentials"] == "true"


@pytest.mark.parametrize(("works_on", "status", "health"), [(False, 503, "unhealthy"), (True, 200, "healthy")])
def test_what_keeps_a_worker_from_its_work_is_told_everywhere(works_on: bool, status: int, health: str) -> None:
    told = "The broker at b:1 <does> not answer since 03:39:14."
    troubles = [Trouble(1_764_300_000.0, told, works_on=works_on)]
    herder = Herder(
        WorkerSettings({}, "host:8083"),
        Stores(MemoryConfigStore(), MemoryStatusStore(), NoOffsets()),
        Inbox(),
        SoloMembership(),
        lambda notify: Supervisor(ThreadLauncher(child), notify, lambda *_: None, 5.0),
        PluginRegistry([]),
        lambda: troubles,
    )
    herder.start()
    try:
        client = create_app(herder, "cluster").test_client()
        answer = client.get("/health")
        document = {"since": "2025-11-28T03:20:00Z", "message": told}
        assert (answer.status_code, answer.json["status"], answer.json["troubles"]) == (status, health, [document])
        assert client.get("/cluster").json["troubles"] == [document]
        ready = client.get("/health/ready")
        assert (ready.status_code, ready.json["reasons"]) == (503, [told])
        assert client.get("/health/live").status_code == 200
        for page in ("/ui", "/ui/cluster", "/ui/plugins", "/ui/new"):
            shown = client.get(page, headers={"Accept": "text/html"}).text
            assert 'class="notice bad" data-key="1">The broker at b:1 &lt;does&gt; not answer' in shown
        troubles.clear()
        assert client.get("/health").json["status"] == "healthy"
        assert "troubles" not in client.get("/health").json
        assert 'class="notice bad" data-key="1"' not in client.get("/ui", headers={"Accept": "text/html"}).text
    finally:
        herder.close()


def test_what_the_brokers_refuse_is_in_the_health_of_a_worker(herder: Herder) -> None:
    refused = "Topic 'configs' cannot be used: the login hunter2 was refused"
    store = MemoryConfigStore()
    assert (store.refusal, herder.refusals()) == (None, [])

    class Refused(MemoryConfigStore):
        """A store whose brokers do not accept the password any more."""

        refusal = refused

    worker = Herder(
        WorkerSettings({}, "host:8083"),
        Stores(Refused(), MemoryStatusStore(), NoOffsets()),
        Inbox(),
        SoloMembership(),
        lambda notify: Supervisor(ThreadLauncher(child), notify, lambda *_: None, 5.0),
        PluginRegistry([]),
    )
    worker.start()
    try:
        client = create_app(worker, "cluster", hide=lambda text: text.replace("hunter2", "[hidden]")).test_client()
        health, ready = client.get("/health"), client.get("/health/ready")
        shown = refused.replace("hunter2", "[hidden]")
        assert (health.status_code, health.get_json()["warnings"]) == (200, [shown])
        assert (ready.status_code, ready.get_json()["reasons"]) == (503, [shown])
    finally:
        worker.close()


CHANGES = [
    ("POST", "/connectors/a/restart"),
    ("POST", "/connectors/a/tasks/0/restart"),
    ("PUT", "/connectors/a/stop"),
    ("DELETE", "/connectors/a"),
    ("PATCH", "/connectors/a/config"),
    ("PUT", "/admin/loggers/root"),
]


@pytest.mark.parametrize(("method", "path"), CHANGES)
@pytest.mark.parametrize(
    "page",
    [
        {"Origin": "http://other.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_pages_of_other_origins_change_nothing(
    client: FlaskClient, method: str, path: str, page: dict[str, str]
) -> None:
    assert make(client, "a") == 201
    answer = client.open(path, method=method, headers=page)
    assert answer.status_code == 403
    assert "access.control.allow.origin" in answer.get_json()["message"]
    assert client.get("/connectors", headers=page).get_json() == ["a"]


@pytest.mark.parametrize(("method", "path"), CHANGES)
@pytest.mark.parametrize(
    "asker",
    [
        {},
        {"Origin": "http://localhost"},
        {"Origin": "https://localhost"},
        {"Origin": "http://ui.example"},
        {"Origin": "http://ui.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ],
    ids=str,
)
def test_others_change_what_they_may(client: FlaskClient, method: str, path: str, asker: dict[str, str]) -> None:
    assert make(client, "a") == 201
    assert client.open(path, method=method, headers=asker).status_code != 403


def test_pages_of_other_origins_change_no_loggers_of_admin_listeners(herder: Herder) -> None:
    client = create_admin_app(herder).test_client()
    page = {"Origin": "http://other.example"}
    assert client.put("/admin/loggers/root", json={"level": "INFO"}, headers=page).status_code == 403


def test_admin_may_be_elsewhere(herder: Herder) -> None:
    without = create_app(herder, "cluster", with_admin=False).test_client()
    assert without.get("/admin/loggers").status_code == 404
    assert "/admin/loggers" not in without.get("/openapi.json").get_json()["paths"]
    alone = create_admin_app(herder).test_client()
    assert alone.get("/admin/loggers").status_code == 200
    assert alone.get("/connectors").status_code == 404


def test_topics_may_not_be_reset_where_that_is_forbidden(client: FlaskClient) -> None:
    answer = client.put("/connectors/a/topics/reset")
    assert (answer.status_code, answer.get_json()["message"]) == (403, "Topic tracking reset is disabled.")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"[1", "is not JSON"),
        (b'{"name": 1, "config": {}}', "contains no connector type"),
        (b'{"config": {"a": NaN}}', "NaN is not a JSON number"),
        (b'{"config": {"a": [1]}}', "The value of a must be a string, a number, a boolean or null, not an array"),
        (b'{"config": []}', "A configuration must be a JSON object"),
        (b'{"config": {"name": "x"}, "initial_state": 1}', "must be one of RUNNING, PAUSED, STOPPED"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"name": "\\uD800", "config": {}}', "lone surrogate \\ud800"),
        (b'{"config": {"a": "\\ude00\\ud83d"}}', "lone surrogate \\ude00"),
        (b'{"config": {"\\udfff": "a"}}', "lone surrogate \\udfff"),
        (b'{"config": {"a": "\xed\xa0\x80"}}', "is not JSON"),
    ],
)
def test_what_is_wrong_with_a_body_is_said(client: FlaskClient, body: bytes, text: str) -> None:
    answer = client.post("/connectors", data=body, content_type="application/json")
    assert answer.status_code == 400
    assert text in answer.get_json()["message"]


def test_another_content_type_is_told_which_to_send(client: FlaskClient) -> None:
    answer = client.post("/connectors", data=b"{}", content_type="text/plain")
    assert answer.status_code == 415
    remedy = "Send the header Content-Type: application/json, and JSON as the body."
    assert answer.get_json() == {"error_code": 415, "message": f"HTTP 415 Unsupported Media Type: {remedy}"}


@pytest.mark.parametrize("path", ["/connectors/n/config", "/connector-plugins/FileStreamSource/config/validate"])
def test_a_configuration_in_what_post_takes_is_told_apart(client: FlaskClient, path: str) -> None:
    answer = client.put(path, json={"name": "n", "config": {"connector.class": "FileStreamSource"}})
    assert answer.status_code == 400
    assert "send only the object under config" in answer.get_json()["message"]


def test_characters_may_be_escaped(client: FlaskClient) -> None:
    body = b'{"connector.class": "C", "a": "\\ud83d\\ude00\\u00e4\\\\u"}'
    for sent in (body, b"\xef\xbb\xbf" + body, body.decode().encode("utf-16")):
        shown = client.put("/connectors/n/config", data=sent, content_type="application/json").get_json()
        assert shown["config"]["a"] == "\N{GRINNING FACE}ä\\u"


def test_numbers_and_booleans_are_kept_as_they_are_written(client: FlaskClient) -> None:
    body = b'{"connector.class": "C", "a": 1.50, "b": true, "c": 12345678901234567890}'
    shown = client.put("/connectors/n/config", data=body, content_type="application/json; charset=utf-8").get_json()
    assert shown["config"] == {
        "connector.class": "C",
        "a": "1.50",
        "b": "true",
        "c": "12345678901234567890",
        "name": "n",
    }


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json; charset=utf-8", 200),
        ("text/plain, Application/JSON;v=1", 200),
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", 200),
        ("application/vnd.kafka.v2+json, application/*;q=0.1", 200),
        ("*", 200),
        ("", 200),
        ("text/html", 406),
        ("application/vnd.api+json", 406),
    ],
)
def test_clients_that_take_json_in_some_way_get_it(client: FlaskClient, accept: str, status: int) -> None:
    assert client.get("/connectors", headers={"Accept": accept}).status_code == status


def test_numbers_in_addresses_may_be_of_any_length(client: FlaskClient) -> None:
    digits = "1" * 5000
    assert make(client, "a") == 201
    assert client.get(f"/connectors/a/tasks/{digits}/status").status_code == 404
    assert client.post(f"/connectors/a/tasks/{digits}/restart").status_code == 404
    assert client.get(f"/connectors/a/dlq?limit=0000000001{digits}").status_code == 400
    offsets = f'{{"offsets": [{{"partition": {{}}, "offset": {{"at": {digits}}}}}]}}'
    answer = client.patch("/connectors/a/offsets", data=offsets, content_type="application/json")
    assert answer.status_code == 400


def test_a_name_of_null_is_none(client: FlaskClient) -> None:
    config = {"connector.class": "C", "name": None}
    made = client.put("/connectors/n/config", json=config)
    assert (made.status_code, made.get_json()["config"]["name"]) == (201, "n")
    assert client.post("/connectors", json={"name": "m", "config": config}).get_json()["name"] == "m"


def test_clients_that_look_at_the_version_find_that_of_the_api(client: FlaskClient) -> None:
    told = client.get("/").get_json()
    assert told["version"] == "4.3.1"
    assert told["commit"] == f"sluice-{importlib.metadata.version('sluice-connect')}"
    assert client.get("/openapi.json").get_json()["info"]["version"] == importlib.metadata.version("sluice-connect")
