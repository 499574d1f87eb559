"""Clients made for Kafka Connect work against a worker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import kafka_connect
import pytest
import requests

from equipment.brokers.certificates import Authority
from equipment.ports import own_port
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker


def test_kafka_connect_py(standalone: Callable[..., StandaloneWorker], topic: str, tmp_path: Path) -> None:
    worker = standalone().start()
    client = kafka_connect.KafkaConnect(url=worker.url().rstrip("/"))
    assert client.get_cluster_info()["kafka_cluster_id"]
    config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "in.txt"), "topic": topic}
    client.create_connector({"name": "lines", "config": config})
    # As with Kafka Connect there is no status (404) before its first state is written; the client raises that.
    worker.wait_for_states("lines", "RUNNING", "RUNNING")
    assert client.get_connector("lines")["type"] == "source"
    assert client.get_connector_task_status("lines", 0)["state"] == "RUNNING"
    client.update_connector("lines", config | {"batch.size": "5"})
    assert client.get_connector_config("lines")["batch.size"] == "5"
    client.pause_connector("lines")
    wait_until("it is paused", lambda: client.get_connector_status("lines")["connector"]["state"] == "PAUSED")
    client.resume_connector("lines")
    client.restart_connector("lines", include_tasks=True)
    assert client.list_connector_topics("lines") == {"lines": {"topics": []}}
    assert any(plugin["class"].endswith("FileStreamSourceConnector") for plugin in client.list_connector_plugins())
    client.delete_connector("lines")
    assert client.list_connectors() == []


@pytest.mark.parametrize("admin", ["", "http://127.0.0.1:0"])
def test_admin_is_not_at_the_main_listener_when_it_has_its_own(
    standalone: Callable[..., StandaloneWorker], admin: str
) -> None:
    worker = standalone(admin_listeners=admin).start()
    wait_until("the worker answers", lambda: worker.get("health").status_code == 200)
    assert worker.get("admin/loggers").status_code == 404


@pytest.mark.parametrize("has_own", [True, False], ids=["admin.listeners.https", "ssl"])
def test_admin_listeners_have_keys_of_their_own(
    standalone: Callable[..., StandaloneWorker], tmp_path: Path, has_own: bool
) -> None:
    """Else it is the worker's ``ssl.*`` and not ``listeners.https.*``, as in Kafka Connect."""
    port = own_port()
    authorities = {prefix: Authority() for prefix in ("", "listeners.https.", "admin.listeners.https.")}
    stores = {}
    for prefix, authority in authorities.items():
        identity = authority.sign("127.0.0.1")
        stores[prefix] = tmp_path / f"{prefix}worker.pem"
        stores[prefix].write_text(identity.key_pem() + identity.certificate_pem)
        stores[prefix].with_suffix(".trust").write_text(authority.pem)
    shown = [prefix for prefix in stores if has_own or not prefix.startswith("admin")]
    props = {f"{prefix}ssl.keystore.location": str(stores[prefix]) for prefix in shown}
    types = {f"{prefix}ssl.keystore.type": "PEM" for prefix in shown}
    listeners = {"listeners": "https://127.0.0.1:0", "admin.listeners": f"https://127.0.0.1:{port}"}

    worker = standalone(**listeners, **props, **types).start()

    url, expected = f"https://127.0.0.1:{port}/admin/loggers", shown[-1] if has_own else ""
    trusted = {prefix: str(store.with_suffix(".trust")) for prefix, store in stores.items()}
    wait_until("the worker answers", lambda: answers(f"{worker.url()}health", trusted["listeners.https."]))
    assert [prefix for prefix in trusted if answers(url, trusted[prefix])] == [expected]


def answers(url: str, authority: str) -> bool:
    try:
        return requests.get(url, verify=authority, timeout=30).ok
    except requests.exceptions.SSLError:
        return False
