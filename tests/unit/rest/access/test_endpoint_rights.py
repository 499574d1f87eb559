"""Who may do what: roles against every endpoint of the API, and what each role sees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from equipment.fakes.cluster_herder import ClusterHerder
from equipment.fakes.guarded_api import PLUGIN, basic, guards_of, small_herder
from rest.access.guards import AllowedHosts
from rest.access.rights import NEEDS, InBody, Who, need_of
from rest.access.sign_in import SignIn
from rest.app import create_app
from rest.openapi import openapi_document
from rest.peers.forwarding import MOST_FORWARDS, Forwarding
from worker.herder.herder import Herder
from worker.peers.client import PeerClient
from worker.security.permissions import OF_WORKER, Right, Roles, Target, parse_roles
from worker.security.principals import Principal
from worker.security.users import Users
from worker.security.watched_file import WatchedFile

DOCUMENT = openapi_document("of a test")["paths"]
OPERATIONS = [
    (method.upper(), path)
    for path, item in DOCUMENT.items()
    for method in item
    if method not in ("parameters", "summary")
]
EACH_RIGHT = "\n".join(
    f'[roles.{right}]\nusers = ["{right}"]\n[[roles.{right}.allow]]\nrights = ["{right}"]\n' for right in Right
)
ROLES = (
    EACH_RIGHT
    + """
[roles.nobody]
users = ["nobody"]

[roles.shop]
users = ["shop"]
[[roles.shop.allow]]
connectors = ["shop-*"]
rights = ["edit", "operate"]
plugins = ["shop.*"]
client_overrides = ["linger.ms"]
[[roles.shop.deny]]
connectors = ["shop-secret"]
rights = ["view"]

[roles.all]
groups = ["*"]
users = ["root"]
[[roles.all.allow]]
rights = ["*"]
"""
)
NAMES = [*Right, "nobody", "shop", "root"]
SECRET = "4711-of-the-shop"
CONFIG = {
    "connector.class": PLUGIN,
    "pin": SECRET,
    "token.count": "5",
    "db.password": SECRET,
    "referred.password": "${file:/etc/x:pw}",
    "url": f"postgresql://shop:{SECRET}@db/x",
    "producer.override.sasl.jaas.config": SECRET,
    "topic": "orders",
}
HIDDEN_CONFIG = {
    "name": "shop-orders",
    "connector.class": PLUGIN,
    "pin": "[hidden]",
    "token.count": "5",
    "db.password": "[hidden]",
    "referred.password": "${file:/etc/x:pw}",
    "url": "postgresql://shop:[hidden]@db/x",
    "producer.override.sasl.jaas.config": "[hidden]",
    "topic": "orders",
}


@pytest.fixture(scope="module")
def herder() -> Iterator[Herder]:
    with small_herder() as herder:
        yield herder


@pytest.fixture
def roles_file(tmp_path: Path) -> Path:
    file = tmp_path / "roles.toml"
    file.write_text(ROLES)
    return file


@pytest.fixture
def client(herder: Herder, roles_file: Path, tmp_path: Path) -> FlaskClient:
    passwords = tmp_path / "users.properties"
    passwords.write_text("".join(f"{name}: pw\n" for name in NAMES))
    roles: WatchedFile[Roles] = WatchedFile(roles_file, "file of roles", parse_roles, Roles())
    guards = guards_of(herder, SignIn(users=Users(passwords)), roles)
    client = create_app(herder, "cluster", guards=guards).test_client()
    for name in ("shop-orders", "shop-secret", "other"):
        body = {"name": name, "config": CONFIG, "initial_state": "STOPPED"}
        client.post("/connectors", json=body, headers=basic("root", "pw"))
    return client


def ask(client: FlaskClient, user: str, method: str, path: str, body: Any = None) -> Any:
    return client.open(path, method=method, headers=basic(user, "pw"), json=body)


def test_every_operation_of_the_document_has_a_rule() -> None:
    undecided = [f"{method} {path}" for method, path in OPERATIONS if need_of(path, method) is None]
    assert not undecided, f"Say in rest/access/rights.py which right these need: {', '.join(undecided)}"


def test_every_route_has_a_rule() -> None:
    peers = PeerClient(None, 1.0, MOST_FORWARDS)
    app = create_app(ClusterHerder({}), "cluster", forwarding=Forwarding(peers))
    peers.close()
    undecided = []
    for rule in app.url_map.iter_rules():
        alternatives = re.search(r"<any\((.*)\):\w+>", rule.rule)
        for choice in alternatives[1].split(", ") if alternatives else [""]:
            path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", re.sub(r"<any\(.*\):\w+>", choice, rule.rule))
            if not path.startswith("/ui"):
                undecided += [f"{method} {path}" for method in rule.methods or () if need_of(path, method) is None]
    assert not undecided, f"Say in rest/access/rights.py which right these need: {', '.join(undecided)}"


BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/connectors"): {"name": "new", "config": CONFIG, "initial_state": "STOPPED"},
    ("PUT", "/connectors/{name}/config"): CONFIG,
    ("PATCH", "/connectors/{name}/config"): {"topic": "orders"},
    ("PUT", "/mirror/flows/{flow}"): {"topics": "orders"},
    ("PUT", "/connector-plugins/{plugin}/config/validate"): CONFIG,
    ("PUT", "/connector-plugins/{plugin}/config/choices"): CONFIG,
}
GUARDED = [pair for pair in OPERATIONS if isinstance(need_of(pair[1], pair[0]), Right | InBody)]


@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_an_operation_is_refused_without_its_right(client: FlaskClient, method: str, path: str) -> None:
    need = need_of(path, method)
    right = need.right if isinstance(need, InBody) else need
    assert isinstance(right, Right)
    concrete = path
    for part, value in (("name", "other"), ("task", "0"), ("plugin", PLUGIN), ("logger", "x"), ("flow", "other->b")):
        concrete = concrete.replace(f"{{{part}}}", value)
    roles = parse_roles(ROLES)
    for user in [*Right, "nobody"]:
        if right in _rights(roles, user):
            continue
        answer = ask(client, user, method, concrete, BODIES.get((method, path)))
        assert answer.status_code == 403, f"{user} may {method} {path}"
        assert f" lacks the right {right}" in answer.get_json()["message"]


def _rights(roles: Roles, user: str) -> frozenset[Right]:
    permissions = roles.permissions(Principal(user, "basic"))
    return permissions.on(Target("other", (PLUGIN,))) | {right for right in OF_WORKER if permissions.may(right)}


HARMLESS = [
    ("GET", "/connectors/{name}", "view"),
    ("GET", "/connectors/{name}/config", "configs"),
    ("GET", "/connectors/{name}/tasks", "configs"),
    ("GET", "/connectors/{name}/topics", "view"),
    ("GET", "/connectors/{name}/logs", "view"),
    ("PUT", "/connectors/{name}/stop", "operate"),
    ("PUT", "/connectors/{name}/topics/reset", "operate"),
    ("PATCH", "/connectors/{name}/config", "edit"),
    ("PUT", "/connectors/{name}/config", "edit"),
    ("PUT", "/connector-plugins/{plugin}/config/validate", "edit"),
    ("GET", "/admin/loggers", "cluster"),
    ("PUT", "/admin/loggers/{logger}", "admin"),
]


@pytest.mark.parametrize(("method", "path", "user"), HARMLESS)
def test_an_operation_is_done_with_its_right(client: FlaskClient, method: str, path: str, user: str) -> None:
    concrete = path.replace("{name}", "other").replace("{plugin}", PLUGIN).replace("{logger}", "access.of.a.test")
    body = {"level": "INFO"} if path.startswith("/admin") else BODIES.get((method, path))
    assert ask(client, user, method, concrete, body).status_code in (200, 202, 204)


def test_lists_show_what_the_caller_may_see(client: FlaskClient) -> None:
    assert ask(client, "root", "GET", "/connectors").get_json() == ["other", "shop-orders", "shop-secret"]
    assert ask(client, "shop", "GET", "/connectors").get_json() == ["shop-orders"]
    assert ask(client, "nobody", "GET", "/connectors").get_json() == []
    expanded = ask(client, "shop", "GET", "/connectors?expand=info&expand=status").get_json()
    assert expanded["shop-orders"]["info"]["config"] == HIDDEN_CONFIG
    assert list(expanded) == ["shop-orders"]
    who = ask(client, "shop", "GET", "/whoami").get_json()
    assert who["connectors"] == {"shop-orders": ["view", "configs", "operate", "edit"]}
    one = ask(client, "configs", "GET", "/whoami?connector=other").get_json()
    assert (one["connectors"], one["rights"]) == ({"other": ["view", "configs"]}, [])


def test_what_may_not_be_seen_may_not_be_touched(client: FlaskClient) -> None:
    for method, path in (("GET", "status"), ("PUT", "stop"), ("PATCH", "config")):
        assert ask(client, "shop", method, f"/connectors/shop-secret/{path}", {}).status_code == 403
    assert ask(client, "shop", "PUT", "/connectors/%20shop-secret%20/config", CONFIG).status_code == 403
    body = {"name": " shop-secret ", "config": CONFIG}
    assert ask(client, "shop", "POST", "/connectors", body).status_code == 403


def test_configurations_are_shown_by_right(client: FlaskClient) -> None:
    path = "/connectors/shop-orders"
    assert ask(client, "secrets", "GET", f"{path}/config").get_json() == {"name": "shop-orders", **CONFIG}
    for shown in (
        ask(client, "configs", "GET", f"{path}/config").get_json(),
        ask(client, "configs", "GET", path).get_json()["config"],
    ):
        assert shown == HIDDEN_CONFIG
    assert ask(client, "view", "GET", path).get_json()["config"] == {"name": "shop-orders", "connector.class": PLUGIN}


def test_a_hidden_secret_that_is_sent_back_stays(client: FlaskClient) -> None:
    client.put("/connectors/shop-back/config", json=CONFIG, headers=basic("root", "pw"))
    sent = {**HIDDEN_CONFIG, "name": "shop-back", "topic": "changed"}
    answer = ask(client, "edit", "PUT", "/connectors/shop-back/config", sent)
    assert answer.get_json()["config"] == sent
    stored = ask(client, "root", "GET", "/connectors/shop-back/config").get_json()
    assert stored == {"name": "shop-back", **CONFIG, "topic": "changed"}
    ask(client, "root", "DELETE", "/connectors/shop-back")


def test_a_role_may_use_some_plugins_and_overrides(client: FlaskClient) -> None:
    plain = {"connector.class": "com.shop.OrdersConnector", "producer.override.linger.ms": "5"}
    made = ask(client, "shop", "PUT", "/connectors/shop-new/config", plain)
    assert made.status_code == 201
    other = ask(client, "shop", "PUT", "/connectors/shop-new/config", {"connector.class": "bank.PayrollSink"})
    assert other.get_json()["message"].startswith("shop lacks the right edit on connector shop-new.")
    patched = ask(client, "shop", "PATCH", "/connectors/shop-new/config", {"connector.class": "bank.PayrollSink"})
    assert patched.status_code == 403
    batch = {"producer.override.batch.size": "5"}
    refused = ask(client, "shop", "PATCH", "/connectors/shop-new/config", batch)
    assert refused.get_json()["message"].startswith(
        "shop may not override client settings of connector shop-new with producer.override.batch.size."
    )
    validated = ask(
        client,
        "shop",
        "PUT",
        "/connector-plugins/bank.PayrollSink/config/validate",
        {"connector.class": "bank.PayrollSink"},
    )
    assert validated.status_code == 403
    assert ask(client, "shop", "PATCH", "/connectors/shop-new/config", {"topic": "x"}).status_code == 200
    ask(client, "root", "PATCH", "/connectors/shop-new/config", {"connector.class": "bank.PayrollSink"})
    assert ask(client, "shop", "PUT", "/connectors/shop-new/config", plain).status_code == 403, "it is not theirs now"
    ask(client, "root", "DELETE", "/connectors/shop-new")


def test_roles_change_with_their_file_and_a_broken_one_changes_nothing(client: FlaskClient, roles_file: Path) -> None:
    assert ask(client, "nobody", "GET", "/connectors").get_json() == []
    roles_file.write_text(ROLES.replace('users = ["nobody"]', 'users = ["nobody"]\nallow = [{rights = ["view"]}]'))
    assert "other" in ask(client, "nobody", "GET", "/connectors").get_json()
    roles_file.write_text(ROLES + "[roles.x]\nusers = []\n")
    assert "other" in ask(client, "nobody", "GET", "/connectors").get_json()
    health = ask(client, "nobody", "GET", "/health").get_json()
    assert health["status"] == "healthy"
    assert health["warnings"] == [
        "The file of roles is broken, so its previous contents stay in force. The worker's log says what is wrong."
    ]
    roles_file.write_text(ROLES)
    assert ask(client, "nobody", "GET", "/connectors").get_json() == []
    assert "warnings" not in ask(client, "nobody", "GET", "/health").get_json()


def test_only_workers_may_send_what_workers_send() -> None:
    assert [path for path, needs in NEEDS.items() for need in needs.values() if need is Who.WORKERS] == [
        "/connectors/{name}/tasks",
        "/connectors/{name}/fence",
    ]


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("connect.example", True),
        ("a.b.internal:8083", True),
        ("WORKER-1:8083", True),
        ("localhost", True),
        ("127.0.0.1:8083", True),
        ("[::1]:8083", True),
        ("evil.example", False),
        ("connect.example.evil", False),
        ("", False),
    ],
)
def test_a_worker_answers_to_its_names(herder: Herder, host: str, allowed: bool) -> None:
    hosts = AllowedHosts(["connect.example", "*.internal"], "worker-1")
    assert hosts.allows(host) == allowed
    client = create_app(herder, "cluster", guards=guards_of(herder, SignIn(), hosts=hosts)).test_client()
    if host:
        assert client.get("/", headers={"Host": host}).status_code == (401 if allowed else 403)


def test_the_document_says_how_to_sign_in(client: FlaskClient) -> None:
    document = client.get("/openapi.json", headers=basic("root", "pw")).get_json()
    assert document["security"] == [{"password": []}, {"token": []}, {"session": []}]
    assert document["components"]["securitySchemes"]["password"] == {"type": "http", "scheme": "basic"}
    assert document["paths"]["/session"]["post"]["security"] == []
    assert "security" not in document["paths"]["/connectors"]["get"]
    assert "security" not in openapi_document("where nobody signs in")
