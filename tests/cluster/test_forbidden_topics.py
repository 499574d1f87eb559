"""The internal topics of a cluster, and rules about plugins, hold for a user who may edit some connectors only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from equipment.brokers.topics import create_topic, produce, read_so_far
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster
from worker.security.api_tokens import TokenFile

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(240)]

PASSWORD = "payroll-4711"
ROLES = """
[roles.administrators]
users = ["root"]
[[roles.administrators.allow]]
rights = ["*"]

[roles.shop]
users = ["alice"]
[[roles.shop.allow]]
connectors = ["shop-*"]
rights = ["edit", "preview", "operate", "dead-letters", "view"]
client_overrides = ["linger.ms"]
[[roles.shop.deny]]
plugins = ["Datagen", "HttpSink"]
rights = ["edit"]
"""


class Caller:
    """A user of the cluster's only worker."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}

    def ask(self, method: str, path: str, body: Any = None) -> requests.Response:
        return requests.request(method, self._url + path, json=body, headers=self._headers, timeout=90)

    def put(self, name: str, **config: str) -> requests.Response:
        return self.ask("PUT", f"connectors/{name}/config", _keys(config))

    def preview(self, plugin: str, **config: str) -> requests.Response:
        body = _keys({"connector_class": plugin, "name": "shop-preview", **config})
        return self.ask("POST", f"connector-plugins/{plugin}/config/preview?from=beginning&limit=3", body)


def _keys(config: dict[str, str]) -> dict[str, str]:
    return {key.replace("_", "."): value for key, value in config.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("internal-topics")


@pytest.fixture(scope="module")
def cluster(bootstrap: str, folder: Path) -> Iterator[Cluster]:
    (folder / "roles.toml").write_text(ROLES)
    cluster = Cluster(
        folder,
        bootstrap,
        workers=1,
        rest_authentication_tokens_file=str(folder / "tokens.json"),
        rest_authentication_health_open="true",
        rest_authorization_file=str(folder / "roles.toml"),
        config_providers="env",
        config_providers_env_class="EnvVarConfigProvider",
    )
    cluster.start({"DENIED_CLASS": "Datagen", "INTERNAL": f"{folder.name}-config"})
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def tokens(folder: Path) -> TokenFile:
    return TokenFile(folder / "tokens.json")


@pytest.fixture(scope="module")
def root(cluster: Cluster, tokens: TokenFile) -> Caller:
    root = Caller(cluster.workers[0].url(), tokens.create("root", [], None))
    wait_until("the worker leads", lambda: root.ask("GET", "health/ready").ok, 90)
    config = {"connector_class": "FileStreamSink", "topics": "hr", "file": "/dev/null", "some_password": PASSWORD}
    made = root.ask("POST", "connectors", {"name": "hr", "config": _keys(config), "initial_state": "STOPPED"})
    assert made.status_code == 201, made.text
    return root


@pytest.fixture
def alice(cluster: Cluster, tokens: TokenFile, root: Caller) -> Caller:
    return Caller(cluster.workers[0].url(), tokens.create("alice", [], None))


@pytest.mark.parametrize(
    ("key", "config"),
    [
        ("topics", {"connector_class": "FileStreamSink", "file": "/dev/null", "topics": "orders,{}"}),
        ("topics", {"connector_class": "FileStreamSink", "file": "/dev/null", "topics": "${env:INTERNAL}"}),
        (
            "errors.deadletterqueue.topic.name",
            {
                "connector_class": "FileStreamSink",
                "file": "/dev/null",
                "topics": "orders",
                "errors_tolerance": "all",
                "errors_deadletterqueue_topic_name": "{}",
            },
        ),
        ("topic", {"connector_class": "FileStreamSource", "file": "/dev/null", "topic": "{}"}),
        (
            "offsets.storage.topic",
            {"connector_class": "FileStreamSource", "file": "/dev/null", "topic": "t", "offsets_storage_topic": "{}"},
        ),
    ],
)
@pytest.mark.parametrize("kind", ["config", "config-history", "status", "__consumer_offsets"])
def test_no_connector_may_name_an_internal_topic(
    alice: Caller, folder: Path, key: str, config: dict[str, str], kind: str
) -> None:
    topic = kind if kind.startswith("__") else f"{folder.name}-{kind}"
    named = {own: value.replace("{}", topic) for own, value in config.items()}

    answer = alice.put("shop-internal", **named)

    assert answer.status_code == 400, answer.text
    assert f"for configuration {key}: It is not for connectors" in answer.json()["message"]
    assert alice.ask("GET", "connectors/shop-internal").status_code in (403, 404)


def test_a_preview_shows_nothing_of_an_internal_topic(alice: Caller, folder: Path) -> None:
    named = alice.preview("FileStreamSink", file="/dev/null", topics=f"{folder.name}-config")
    matched = alice.preview("FileStreamSink", file="/dev/null", topics_regex=f"{folder.name}-.*")

    assert named.status_code == 400 and "It is not for connectors" in named.text
    assert "session-key" not in named.text + matched.text and PASSWORD not in named.text + matched.text
    assert matched.ok and "none of its topics exists" in matched.text


def test_a_pattern_matches_no_internal_topic(alice: Caller, bootstrap: str, folder: Path, tmp_path: Path) -> None:
    topic = f"{folder.name}-orders"
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b'"an order"'])
    out = tmp_path / "out.txt"

    made = alice.put(
        "shop-all",
        connector_class="FileStreamSink",
        file=str(out),
        topics_regex=f"({folder.name}-.*|__.*)",
        value_converter="StringConverter",
    )

    assert made.status_code == 201, made.text
    wait_until("the order is there", lambda: out.exists() and "an order" in out.read_text(), 60)
    assert alice.ask("GET", "connectors/shop-all/topics").json() == {"shop-all": {"topics": [topic]}}
    assert out.read_text() == '"an order"\n'


def test_a_routed_record_reaches_no_internal_topic(
    alice: Caller, root: Caller, bootstrap: str, folder: Path, tmp_path: Path
) -> None:
    topic, lines = f"{folder.name}-config", tmp_path / "lines.txt"
    lines.write_text("evil\n")

    made = alice.put(
        "shop-routed",
        connector_class="FileStreamSource",
        file=str(lines),
        topic="elsewhere",
        value_converter="StringConverter",
        transforms="r",
        transforms_r_type="RegexRouter",
        transforms_r_regex=".*",
        transforms_r_replacement=topic,
        errors_tolerance="all",
    )

    assert made.status_code == 201, made.text
    status = wait_until("the task fails", lambda: _failed(alice, "shop-routed"), 60)
    assert f"cannot be written to topic {topic}" in status["trace"]
    assert b"evil" not in read_so_far(bootstrap, topic)
    assert root.ask("DELETE", "connectors/shop-routed").status_code == 204


def _failed(caller: Caller, name: str) -> dict[str, Any] | None:
    tasks = caller.ask("GET", f"connectors/{name}/status").json().get("tasks", [])
    return next((task for task in tasks if task["state"] == "FAILED"), None)


@pytest.mark.parametrize(
    "plugin",
    [
        "Datagen",
        "DatagenConnector",
        "io.confluent.kafka.connect.datagen.DatagenConnector",
        "connectors.datagen.DatagenConnector",
        "HttpSinkConnector",
        "HttpSink",
        "io.confluent.connect.http.HttpSinkConnector",
        "${env:DENIED_CLASS}",
    ],
)
def test_a_denied_plugin_is_denied_under_each_of_its_names(alice: Caller, plugin: str) -> None:
    answer = alice.put(
        "shop-denied",
        connector_class=plugin,
        kafka_topic="users",
        quickstart="users",
        topics="users",
        http_url="http://localhost:1",
    )
    assert answer.status_code in (400, 403), answer.text
    assert answer.status_code == 403 or "find any class that implements Connector" in answer.text or "$" in plugin
    assert alice.ask("GET", "connectors/shop-denied/config").status_code in (403, 404)


def test_a_class_takes_no_reference(root: Caller) -> None:
    answer = root.put("referring", connector_class="${env:DENIED_CLASS}", kafka_topic="users", quickstart="users")
    assert answer.status_code == 400, answer.text
    assert "may not refer to a config provider: write the class itself" in answer.json()["message"]
