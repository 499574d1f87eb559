"""A worker whose clients sign in: what is made up for its API neither breaks it nor shows what a role may not see.

``make fuzz`` makes up more: SLUICE_FUZZ_EXAMPLES is how many calls of each operation for each principal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings

from equipment.brokers.topics import create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker
from rest.openapi import openapi_document
from worker.security.api_tokens import TokenFile

EXAMPLES = int(os.environ.get("SLUICE_FUZZ_EXAMPLES", "2"))
SECRET = "geheim-4711"
HIDDEN = "payroll-of-all"
ROLES = """
[roles.root]
users = ["root"]
[[roles.root.allow]]
rights = ["*"]

[roles.viewer]
users = ["viewer"]
[[roles.viewer.allow]]
connectors = ["shop-*"]
rights = ["view", "configs"]
"""
API = schemathesis.openapi.from_dict(openapi_document("of a test"))


class SecuredWorker(StandaloneWorker):
    """A worker with tokens for each of its principals, by name."""

    tokens: dict[str, dict[str, str]]
    audit_topic: str


@pytest.fixture(scope="module")
def worker(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredWorker]:
    """A worker with a connector that the viewer may see and one that it may not."""
    folder = tmp_path_factory.mktemp("secured")
    (folder / "roles.toml").write_text(ROLES)
    (folder / "users.properties").write_text("root: from-the-cellar\n")
    module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
    (folder / "jaas.conf").write_text(f'KafkaConnect {{ {module} required file="{folder / "users.properties"}"; }};')
    topic = f"audit-{uuid4().hex[:10]}"
    create_topic(bootstrap, topic)
    tokens = TokenFile(folder / "tokens.json")
    worker = SecuredWorker(
        folder,
        bootstrap,
        rest_extension_classes="BasicAuthSecurityRestExtension",
        rest_authentication_tokens_file=str(folder / "tokens.json"),
        rest_authorization_file=str(folder / "roles.toml"),
        audit_file=str(folder / "audit.json"),
        audit_topic=topic,
        audit_required="true",
    )
    worker.audit_topic = topic
    worker.tokens = {
        name: {"Authorization": f"Bearer {tokens.create(name, [], None)}"} for name in ("root", "viewer", "nobody")
    }
    worker.start(environ={"KAFKA_OPTS": f"-Djava.security.auth.login.config={folder / 'jaas.conf'}"})
    try:
        for name in ("shop-a", HIDDEN):
            config = {
                "connector.class": "FileStreamSource",
                "file": str(folder / name),
                "topic": name,
                "some.password": SECRET,
                "producer.override.linger.ms": "7",
            }
            body = {"name": name, "config": config, "initial_state": "STOPPED"}
            made = requests.post(f"{worker.url()}connectors", json=body, headers=worker.tokens["root"], timeout=60)
            assert made.status_code == 201, made.text
        yield worker
    finally:
        worker.close()


def test_nothing_made_up_breaks_the_worker_or_shows_more(worker: SecuredWorker) -> None:
    for found in API.get_all_operations():
        make_calls_up(found.ok(), worker)


def make_calls_up(operation: Any, worker: SecuredWorker) -> None:
    """Send calls of one operation in the name of each principal."""

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(operation.as_strategy())
    def call(case: Any) -> None:
        base = worker.url().rstrip("/")
        made = case.as_transport_kwargs(base_url=base)
        given = {key: quote(str(value), safe="") for key, value in (case.path_parameters or {}).items()}
        paths = (None, "shop-a", HIDDEN) if "name" in given else (None,)
        for name in ("viewer", "nobody", None):
            headers = {**made["headers"], **(worker.tokens[name] if name else {})}
            for path in paths:
                url = made["url"] if path is None else base + operation.path.format(**{**given, "name": path})
                answer = requests.request(**{**made, "url": url, "headers": headers}, timeout=60)
                where = f"{name} {operation.label} {path}: {answer.status_code} {answer.text[:300]}"
                assert answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR, where
                assert SECRET not in answer.text, where
                if path != HIDDEN:
                    assert HIDDEN not in answer.text, where
                if name is None and operation.path != "/session":
                    assert answer.status_code == HTTPStatus.UNAUTHORIZED, where

    call()


def test_a_user_signs_in_as_in_java(worker: SecuredWorker) -> None:
    known = requests.get(f"{worker.url()}connectors", auth=("root", "from-the-cellar"), timeout=60)
    assert known.json() == [HIDDEN, "shop-a"]
    unknown = requests.get(f"{worker.url()}connectors", auth=("root", "x"), timeout=60)
    assert (unknown.status_code, unknown.text) == (401, "User cannot access the resource.")
    assert unknown.headers["Content-Type"] == "application/json"
    seen = requests.get(f"{worker.url()}connectors/shop-a/config", headers=worker.tokens["viewer"], timeout=60)
    assert (seen.json()["some.password"], seen.json()["topic"]) == ("[hidden]", "shop-a")


def test_changes_are_in_the_file_and_in_the_topic(worker: SecuredWorker, bootstrap: str) -> None:
    url, root = f"{worker.url()}connectors/shop-a/config", worker.tokens["root"]
    requests.patch(url, json={"batch.size": "77", "some.password": "other"}, headers=root, timeout=60)

    def changed() -> list[Any]:
        events = [json.loads(line) for line in (Path(worker.folder) / "audit.json").read_text().splitlines()]
        return [event for event in events if event["type"].endswith("changed") and event["data"]["method"] == "PATCH"]

    (event,) = wait_until("the change is in the file", changed)
    assert event["data"]["principal"]["name"] == "root"
    assert event["data"]["changes"] == [
        {"key": "batch.size", "before": None, "after": "77"},
        {"key": "some.password", "before": "[hidden]", "after": "[hidden]"},
    ]
    written = [json.loads(message.value()) for message in read_topic(bootstrap, worker.audit_topic)]
    assert event in written
    everything = (Path(worker.folder) / "audit.json").read_text() + json.dumps(written) + worker.log()
    assert SECRET not in everything and "from-the-cellar" not in everything
    assert not [value for header in worker.tokens.values() for value in header.values() if value[7:] in everything]
