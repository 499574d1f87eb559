"""The audit: which requests are written down, and what of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from connect.errors import ConnectError
from equipment.fakes.guarded_api import OTHER_PLUGIN, PLUGIN, basic, small_herder
from equipment.fakes.herding import Clock
from rest.access.access import Access
from rest.access.auditing import Auditing
from rest.access.guards import Guards, RequestRate
from rest.access.sign_in import SignIn
from rest.access.stored_configs import StoredConfigs
from rest.app import create_app
from worker.herder.herder import Herder
from worker.security.audit import AuditEntry, AuditFile, AuditKind, AuditLog, AuditLogger
from worker.security.permissions import Roles, parse_roles
from worker.security.principals import Principal
from worker.security.users import Users
from worker.security.watched_file import WatchedFile

ROLES = """
[roles.editors]
users = ["alice"]
[[roles.editors.allow]]
rights = ["edit", "delete", "offsets", "repair"]
"""
SECRET = "4711-geheim"
CONFIG = {"connector.class": PLUGIN, "pin": SECRET, "topic": "a\u2028\nb"}


class Kept:
    """Keeps events, unless it is full."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.full = False

    def write(self, line: bytes) -> None:
        if self.full:
            raise ConnectError("the disk is full")
        self.lines.append(line.decode())

    def close(self) -> None:
        self.full = True

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture(scope="module")
def herder() -> Iterator[Herder]:
    with small_herder() as herder:
        yield herder


@pytest.fixture
def kept() -> Kept:
    return Kept()


def client_of(herder: Herder, folder: Path, kept: Kept, *, required: bool = False) -> FlaskClient:
    (folder / "users.properties").write_text("alice: pw\nbob: pw\n")
    (folder / "roles.toml").write_text(ROLES)
    roles: WatchedFile[Roles] = WatchedFile(folder / "roles.toml", "file of roles", parse_roles, Roles())
    configs = StoredConfigs(herder)
    log = AuditLog([kept], "host:8083", required=required, hide=lambda text: text.replace(SECRET, "[hidden]"))
    guards = Guards(
        access=Access(SignIn(users=Users(folder / "users.properties")), roles, configs),
        auditing=Auditing(log, configs, lambda: None),
    )
    return create_app(herder, "cluster", guards=guards).test_client()


def test_changes_are_written_with_what_they_change(herder: Herder, tmp_path: Path, kept: Kept) -> None:
    client, alice = client_of(herder, tmp_path, kept), basic("alice", "pw")
    body = {"name": "a/b", "config": CONFIG, "initial_state": "STOPPED"}
    client.post("/connectors", json=body, headers={**alice, "X-Reason": "ticket 5"})
    changed = {**CONFIG, "pin": "other", "topic": "c"}
    client.put("/connectors/a%2Fb/config", json=changed, headers=alice)
    client.patch("/connectors/a%2Fb/offsets", json={"offsets": []}, headers=alice)
    client.post("/connectors/a%2Fb/offsets/reset?dry_run=true", json={"to": "earliest"}, headers=alice)
    client.delete("/connectors/a%2Fb", headers=alice)
    made, put, offsets, dry, gone = kept.events()
    assert {key: made[key] for key in ("specversion", "source", "type", "subject", "sequence")} == {
        "specversion": "1.0",
        "source": "/workers/host:8083",
        "type": "io.sluice.rest.changed",
        "subject": "connectors/a/b",
        "sequence": f"{1:020d}",
    }
    assert made["data"] == {
        "principal": {"name": "alice", "mechanism": "basic", "groups": []},
        "address": "127.0.0.1",
        "method": "POST",
        "path": "/connectors",
        "connector": "a/b",
        "status": 201,
        "dry_run": False,
        "reason": "ticket 5",
        "changes": [
            {"key": "connector.class", "before": None, "after": PLUGIN},
            {"key": "name", "before": None, "after": "a/b"},
            {"key": "pin", "before": None, "after": "[hidden]"},
            {"key": "topic", "before": None, "after": "a\u2028\nb"},
        ],
    }
    assert put["data"]["changes"] == [
        {"key": "pin", "before": "[hidden]", "after": "[hidden]"},
        {"key": "topic", "before": "a\u2028\nb", "after": "c"},
    ]
    assert (offsets["type"], offsets["data"]["request"]) == ("io.sluice.rest.failed", {"offsets": []})
    assert offsets["data"]["message"]
    assert dry["data"]["dry_run"] is True
    assert [change["after"] for change in gone["data"]["changes"]] == [None] * 4
    assert len({event["id"] for event in kept.events()}) == 5
    assert not any(SECRET in line or "\n" in line or not line.isascii() for line in kept.lines)


def test_a_repair_is_written_by_what_it_changes(herder: Herder, tmp_path: Path, kept: Kept) -> None:
    client, alice = client_of(herder, tmp_path, kept), basic("alice", "pw")
    config = {"connector.class": OTHER_PLUGIN, "topics": "t"}
    client.post("/connectors", json={"name": "s", "config": config, "initial_state": "STOPPED"}, headers=alice)
    edit = {"to": "topic", "dry_run": True, "value": {"text": "good" * 2000}}
    assert client.post("/connectors/s/dlq/0:5/repair", json=edit, headers=basic("bob", "pw")).status_code == 403
    assert client.post("/connectors/s/dlq/0:5/repair", json=edit, headers=alice).status_code == 200
    client.delete("/connectors/s", headers=alice)
    repaired = kept.events()[2]["data"]
    assert repaired["changes"] == [{"key": "value", "before": "bad", "after": "good"}]
    assert (repaired["request"], repaired["dry_run"]) == ({"to": "topic", "dry_run": True}, True)


def test_refusals_are_written_and_reads_are_not(herder: Herder, tmp_path: Path, kept: Kept) -> None:
    client = client_of(herder, tmp_path, kept)
    client.get("/connectors", headers=basic("alice", "pw"))
    client.put("/connector-plugins/x/config/validate", json=CONFIG, headers=basic("alice", "pw"))
    assert kept.lines == []
    client.get("/connectors")
    client.put("/connectors/a/stop", headers=basic("bob", "pw"))
    client.post("/session", json={"user": "bob", "password": "wrong"})
    client.post("/session", json={"user": "bob", "password": "pw"})
    nobody, bob, wrong, right = kept.events()
    assert (nobody["type"], nobody["data"]["status"]) == ("io.sluice.rest.refused", 401)
    assert (nobody["data"]["principal"], nobody["data"]["message"]) == (None, "User cannot access the resource.")
    assert (bob["data"]["status"], bob["data"]["principal"]["name"]) == (403, "bob")
    assert bob["data"]["message"].startswith("bob lacks the right operate on connector a.")
    assert (wrong["type"], wrong["data"]["status"]) == ("io.sluice.rest.refused", 401)
    assert (right["type"], right["data"]["principal"]["name"]) == ("io.sluice.rest.changed", "bob")


def test_a_change_that_cannot_be_written_down_is_not_made(herder: Herder, tmp_path: Path, kept: Kept) -> None:
    client, alice = client_of(herder, tmp_path, kept, required=True), basic("alice", "pw")
    body = {"name": "r", "config": CONFIG, "initial_state": "STOPPED"}
    kept.full = True
    refused = client.post("/connectors", json=body, headers=alice)
    assert refused.status_code == 503
    assert refused.get_json()["message"].startswith("Nothing is changed: audit.required is set")
    assert client.get("/connectors/r", headers=alice).status_code == 404
    kept.full = False
    assert client.post("/connectors", json=body, headers=alice).status_code == 201
    assert [event["type"] for event in kept.events()] == ["io.sluice.rest.began", "io.sluice.rest.changed"]
    client.delete("/connectors/r", headers=alice)


def test_an_event_that_cannot_be_written_is_logged(caplog: pytest.LogCaptureFixture, kept: Kept) -> None:
    kept.full = True
    log = AuditLog([kept, AuditLogger()], "host:8083")
    with caplog.at_level("INFO"):
        log.write(AuditKind.CHANGED, AuditEntry(None, "10.0.0.1", None, "PUT", "/connectors/a/stop", "a", 202))
    error, logged = (record.getMessage() for record in caplog.records)
    assert error.startswith("An audit event could not be written: the disk is full. It was: {")
    assert json.loads(logged)["subject"] == "connectors/a"
    log.close()
    assert kept.full


def test_a_flood_of_refusals_is_counted(kept: Kept) -> None:
    clock = Clock()
    log = AuditLog([kept], "host:8083", clock=clock)
    nobody = AuditEntry(None, "10.0.0.1", None, "GET", "/", None, 401)
    for _ in range(25):
        log.write(AuditKind.REFUSED, nobody)
    assert len(kept.lines) == 10
    log.write(AuditKind.REFUSED, AuditEntry(Principal("bob", "basic"), "10.0.0.1", None, "GET", "/", None, 403))
    assert kept.events()[-1]["data"]["suppressed"] == 15
    clock.now += 1
    log.write(AuditKind.REFUSED, nobody)
    assert "suppressed" not in kept.events()[-1]["data"]


def test_a_file_has_a_line_an_event_and_may_be_rotated(tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "audit.json")
    file.write(b"1")
    (tmp_path / "audit.json").rename(tmp_path / "audit.1")
    file.write(b"2")
    file.write(b"3")
    file.close()
    assert (tmp_path / "audit.json").read_text() == "2\n3\n"
    with pytest.raises(ConnectError, match="cannot be written"):
        AuditFile(tmp_path).write(b"4")


def test_an_address_may_ask_so_often(herder: Herder) -> None:
    clock = Clock()
    rate = RequestRate(2, clock=clock)
    client = create_app(herder, "cluster", guards=Guards(rate=rate)).test_client()
    assert [client.get("/").status_code for _ in range(7)] == [200] * 6 + [429]
    assert client.get("/").headers["Retry-After"] == "1"
    assert rate.take("10.0.0.2"), "others are answered"
    clock.now += 0.5
    assert [client.get("/").status_code for _ in range(2)] == [200, 429]
