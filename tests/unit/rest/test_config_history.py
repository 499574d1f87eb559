"""The history of a configuration: who has changed what, and going back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from equipment.fakes.guarded_api import PLUGIN, basic, guards_of, small_herder
from rest.access.sign_in import SignIn
from rest.app import create_app
from worker.security.permissions import Roles, parse_roles
from worker.security.users import Users
from worker.security.watched_file import WatchedFile

ROLES = """
[roles.root]
users = ["ann", "bob"]
[[roles.root.allow]]
rights = ["*"]
[roles.looks]
users = ["eve"]
[[roles.looks.allow]]
rights = ["configs"]
"""
HISTORY = "/connectors/c/config/history"
ANN, BOB, EVE = basic("ann", "pw"), basic("bob", "pw"), basic("eve", "pw")
SECRETS = ("first-pin", "second-pin")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[FlaskClient]:
    (tmp_path / "users").write_text("ann: pw\nbob: pw\neve: pw\n")
    (tmp_path / "roles").write_text(ROLES)
    roles: WatchedFile[Roles] = WatchedFile(tmp_path / "roles", "file of roles", parse_roles, Roles())
    with small_herder() as herder:
        guards = guards_of(herder, SignIn(users=Users(tmp_path / "users")), roles)
        client = create_app(herder, "cluster", guards=guards).test_client()
        config = {"connector.class": PLUGIN, "pin": SECRETS[0], "a": "1"}
        body = {"name": "c", "config": config, "initial_state": "STOPPED"}
        assert client.post("/connectors", json=body, headers=ANN).status_code == 201
        patch = {"a": None, "b": "2", "pin": SECRETS[1]}
        assert client.patch("/connectors/c/config", json=patch, headers=BOB).status_code == 200
        yield client


def changes(client: FlaskClient, headers: dict[str, str] = ANN) -> list[tuple[Any, ...]]:
    versions = client.get(HISTORY, headers=headers).get_json()["versions"]
    return [(item["version"], item["author"], {change["key"] for change in item["changes"]}) for item in versions]


def test_each_version_says_who_has_changed_what(client: FlaskClient) -> None:
    answer = client.get(HISTORY, headers=ANN)
    shown = answer.get_json()
    newest = shown["versions"][0]
    assert newest["changes"] == [
        {"key": "a", "before": "1", "after": None},
        {"key": "b", "before": None, "after": "2"},
        {"key": "pin", "before": SECRETS[0], "after": SECRETS[1]},
    ]
    assert changes(client) == [(2, "bob", {"a", "b", "pin"}), (1, "ann", {"name", "connector.class", "pin", "a"})]
    assert (
        answer.headers["ETag"]
        == f'"{shown["revision"]}"'
        == client.get("/connectors/c/config", headers=ANN).headers["ETag"]
    )


def test_secrets_are_hidden_and_their_change_is_told(client: FlaskClient) -> None:
    answer = client.get(HISTORY, headers=EVE)
    assert {"key": "pin", "before": "[hidden]", "after": "[hidden]"} in answer.get_json()["versions"][0]["changes"]
    assert not any(secret in answer.get_data(as_text=True) for secret in SECRETS)


def test_a_version_is_restored_with_its_secrets(client: FlaskClient) -> None:
    before = client.get("/connectors/c/config", headers=ANN).headers["ETag"]
    restored = client.post(f"{HISTORY}/1/restore", headers={**BOB, "If-Match": before})
    assert restored.status_code == 200
    assert client.get("/connectors/c/config", headers=ANN).get_json() == {
        "name": "c",
        "connector.class": PLUGIN,
        "pin": SECRETS[0],
        "a": "1",
    }
    assert changes(client)[0] == (3, "bob", {"a", "b", "pin"})
    late = client.post(f"{HISTORY}/2/restore", headers={**ANN, "If-Match": before})
    assert (late.status_code, "has been changed since" in late.get_json()["message"]) == (412, True)


def test_a_deleted_connector_is_made_again(client: FlaskClient) -> None:
    assert client.delete("/connectors/c", headers=BOB).status_code == 204
    deleted = client.get(HISTORY, headers=ANN).get_json()
    assert (deleted["revision"], deleted["versions"][0]["author"], deleted["versions"][0]["config"]) == (
        None,
        "bob",
        None,
    )
    assert client.post(f"{HISTORY}/3/restore", headers=ANN).status_code == 404, "that is its end"
    made = client.post(f"{HISTORY}/2/restore", headers=ANN)
    assert (made.status_code, made.headers["Location"]) == (201, "http://localhost/connectors/c")
    assert client.get("/connectors/c/config", headers=ANN).get_json()["pin"] == SECRETS[1]


def test_who_may_not_edit_may_not_restore(client: FlaskClient) -> None:
    refused = client.post(f"{HISTORY}/1/restore", headers=EVE)
    assert (refused.status_code, "eve lacks the right edit" in refused.get_json()["message"]) == (403, True)


@pytest.mark.parametrize("version", ["0", "77", "x", "-1", "9" * 40])
def test_there_is_no_such_version(client: FlaskClient, version: str) -> None:
    assert client.post(f"{HISTORY}/{version}/restore", headers=ANN).status_code == 404


def test_nobody_knows_the_history_of_a_connector_that_never_was(client: FlaskClient) -> None:
    answer = client.get("/connectors/nobody/config/history", headers=ANN)
    assert (answer.status_code, answer.get_json()["message"]) == (404, "Connector nobody not found")
