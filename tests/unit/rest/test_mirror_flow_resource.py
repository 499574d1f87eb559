"""Flows of mirrors over REST: validated as a whole, written so that asking again completes what a kill has cut off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from flask.testing import FlaskClient

from connect.errors import ConnectError
from equipment.waiting import wait_until
from equipment.workers.page_worker import PageWorker
from rest.app import create_app
from worker.stores.config.store import MemoryConfigStore, TargetState

FLOW = "/mirror/flows/A-%3EB"
CONFIG = {
    "topics": "orders",
    "source.cluster.bootstrap.servers": "127.0.0.1:9",
    "target.cluster.bootstrap.servers": "127.0.0.1:9",
}
NAMES = [f"A-B-Mirror{kind}Connector" for kind in ("Source", "Heartbeat", "Checkpoint")]


class BreakingStore(MemoryConfigStore):
    """Notes which connectors are written or removed, and refuses the one that is to be ``broken``."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []
        self.broken = ""

    def put_connector(
        self,
        name: str,
        config: Mapping[str, str],
        target: TargetState | None,
        drained: int | None = None,
        plugin_type: str | None = None,
        author: str | None = None,
    ) -> Future[None]:
        put = super().put_connector
        return self._noted(name) or put(name, config, target, drained, plugin_type, author)

    def remove_connector(self, name: str) -> Future[None]:
        remove = super().remove_connector
        return self._noted(name) or remove(name)

    def take_written(self) -> list[str]:
        """What was written since this was asked last."""
        written, self.written = self.written, []
        return written

    def _noted(self, name: str) -> Future[None] | None:
        if name == self.broken:
            failed: Future[None] = Future()
            failed.set_exception(ConnectError("The config topic does not answer."))
            return failed
        self.written.append(name)
        return None


@pytest.fixture(scope="module")
def configs() -> BreakingStore:
    return BreakingStore()


@pytest.fixture(scope="module")
def worker(configs: BreakingStore) -> Iterator[PageWorker]:
    worker = PageWorker(configs=configs)
    yield worker
    worker.close()


@pytest.fixture
def client(worker: PageWorker, configs: BreakingStore) -> Iterator[FlaskClient]:
    client = create_app(worker.herder, "cluster").test_client()
    yield client
    configs.broken = ""
    client.delete(FLOW)
    configs.take_written()


def put(client: FlaskClient, **keys: str) -> Any:
    return client.put(FLOW, json={**CONFIG, **{key.replace("_", "."): value for key, value in keys.items()}})


def numbers(client: FlaskClient) -> dict[str, Any]:
    shown = client.get(FLOW).get_json()
    return {key: shown[key] for key in ("lag", "latency", "failover", "verified")}


def test_a_flow_is_made_changed_shown_and_deleted(client: FlaskClient, configs: BreakingStore) -> None:
    assert client.get(FLOW).status_code == 404
    made = put(client)
    assert (made.status_code, made.headers["Location"]) == (201, f"http://localhost{FLOW}")
    assert configs.take_written() == NAMES
    shown = client.get(FLOW).get_json()
    assert (shown["name"], shown["source"], shown["target"]) == ("A->B", "A", "B")
    assert shown["config"] == CONFIG
    assert [(part["name"], part["as_flow"]) for part in shown["connectors"]] == [(name, True) for name in NAMES]
    assert [flow["name"] for flow in client.get("/mirror/flows").get_json()] == ["A->B"]
    assert put(client).status_code == 200
    assert configs.take_written() == []
    changed = put(client, topics="orders, customers")
    assert (changed.status_code, changed.get_json()["config"]["topics"]) == (200, "orders, customers")
    assert configs.take_written() == NAMES
    assert client.delete(FLOW).status_code == 204
    assert client.get("/connectors").get_json() == []
    assert client.delete(FLOW).status_code == 404


def test_a_flow_has_the_numbers_of_its_tasks_as_long_as_they_run(client: FlaskClient) -> None:
    put(client)
    wait_until("the tasks have told their numbers", lambda: all(numbers(client).values()))
    assert numbers(client) == {
        "lag": {"records": 4321, "seconds": 2.5, "partitions": 1},
        "latency": {"seconds": 0.012},
        "failover": {"groups": 1, "read_again": 7, "unknown_partitions": 1},
        "verified": {"at": "2026-09-21T14:13:20Z", "partitions": 1, "equal": 100, "differing": 1},
    }
    client.put(f"{FLOW}/stop")
    wait_until("there are none any more", lambda: not any(numbers(client).values()))


def test_all_mistakes_are_told_and_nothing_is_written(client: FlaskClient, configs: BreakingStore) -> None:
    refused = put(client, topics="a,a", sync_topic_configs_enabled="maybe", emit_heartbeats_interval_seconds="soon")
    assert refused.status_code == 400
    message = refused.get_json()["message"]
    assert message.startswith("Connector configuration is invalid and contains the following 3 error(s):\n")
    for key in ("'topics'", "sync.topic.configs.enabled", "emit.heartbeats.interval.seconds"):
        assert f"onfiguration {key}" in message
    assert client.put("/mirror/flows/A", json=CONFIG).status_code == 400
    assert client.put(FLOW, json={**CONFIG, "name": "x"}).status_code == 400
    assert configs.take_written() == []


@pytest.mark.parametrize("broken", NAMES[1:])
def test_asking_again_completes_what_was_cut_off(client: FlaskClient, configs: BreakingStore, broken: str) -> None:
    put(client)
    configs.take_written()
    configs.broken = broken
    assert put(client, topics="customers").status_code == 500
    shown = client.get(FLOW).get_json()
    assert (shown["state"], shown["config"]["topics"]) == ("INCOMPLETE", "customers")
    configs.broken = ""
    before = configs.take_written()
    assert put(client, topics="customers").get_json()["state"] != "INCOMPLETE"
    assert [*before, *configs.take_written()] == NAMES
    configs.broken = broken
    assert client.delete(FLOW).status_code == 500
    assert client.get(FLOW).get_json()["state"] == "INCOMPLETE"
    configs.broken = ""
    assert client.delete(FLOW).status_code == 204
    assert client.get("/connectors").get_json() == []


def test_a_flow_is_paused_and_resumed(client: FlaskClient, configs: BreakingStore) -> None:
    assert client.put(f"{FLOW}/pause").status_code == 404
    put(client)
    for change, target in (
        ("pause", TargetState.PAUSED),
        ("resume", TargetState.STARTED),
        ("stop", TargetState.STOPPED),
    ):
        assert client.put(f"{FLOW}/{change}").status_code == 202
        assert {entry.target for entry in configs.connectors().values()} == {target}


def test_of_two_changes_at_once_one_remains(worker: PageWorker, client: FlaskClient) -> None:
    asked = [
        worker.herder.connectors.put_all(
            {name: {"connector.class": "MirrorHeartbeatConnector", "name": name, **CONFIG, "topics": topics,
                    "source.cluster.alias": "A", "target.cluster.alias": "B"} for name in NAMES}
        )
        for topics in ("one", "two")
    ]  # fmt: skip
    assert sorted(request.result(60) for request in asked) == [False, True]
    assert client.get(FLOW).get_json()["state"] != "INCOMPLETE"
