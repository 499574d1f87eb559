"""Previews over REST: what is asked of the child process, what is answered, and how many there may be at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from connect.internals.plugins import PluginEntry, PluginKind, PluginRegistry
from rest.app import create_app
from worker.herder.herder import Herder
from worker.herder.inbox import Inbox
from worker.herder.previews import MOST_AT_ONCE
from worker.herder.settings import Stores, WorkerSettings
from worker.membership.membership import SoloMembership
from worker.messages import messages
from worker.messages.messages import OffsetPairs, decode, encode
from worker.stores.config.store import MemoryConfigStore
from worker.stores.status.store import MemoryStatusStore
from worker.supervisor.process import ThreadLauncher
from worker.supervisor.supervisor import Supervisor

RECORD = {"task": 0, "origin": None, "steps": [{"step": "polled", "record": {"value": 1}}]}
TABLE = {"table": "t", "place": "/lake/t", "folders": [], "columns": [], "rows": []}
WORKER = {"bootstrap.servers": "here:9092"}


class Children:
    """Answers inquiries as a child process would, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[messages.PreviewConnector] = []
        self.go_on = threading.Event()
        self.begun = threading.Semaphore(0)

    def __call__(self, connection: Connection) -> None:
        first = decode(connection.recv_bytes())
        if isinstance(first, messages.ValidateConfig):
            wrong = ["It is wrong."] if first.config.get("wrong") else []
            infos = {"configs": [{"definition": None, "value": {"errors": wrong}}]}
            connection.send_bytes(encode(messages.Validated(infos, "source")))
        elif isinstance(first, messages.PreviewConnector):
            self._preview(first, connection)
        else:
            self._wait_for_the_end(connection)

    def _preview(self, inquiry: messages.PreviewConnector, connection: Connection) -> None:
        self.asked.append(inquiry)
        self.begun.release()
        if inquiry.config.get("waits"):
            self.go_on.wait(60)
        if inquiry.config.get("refused"):
            connection.send_bytes(encode(messages.Refused("file: there is none", invalid=True)))
            return
        connection.send_bytes(encode(messages.Previewed(RECORD)))
        connection.send_bytes(encode(messages.Previewed(TABLE)))
        connection.send_bytes(encode(messages.PreviewEnded("that is all")))

    def _wait_for_the_end(self, connection: Connection) -> None:
        try:
            connection.recv_bytes()
        except (EOFError, OSError):
            return


class StoredOffsets:
    """Every connector has one offset."""

    def of_connector(self, connector: str) -> Future[OffsetPairs]:
        found: Future[OffsetPairs] = Future()
        found.set_result([({"of": connector}, {"at": 7})])
        return found

    def alter(self, connector: str, offsets: OffsetPairs) -> Future[None]:
        raise AssertionError(f"nobody alters the offsets of {connector}")


@pytest.fixture
def children() -> Children:
    return Children()


@pytest.fixture
def app(children: Children) -> Iterator[Flask]:
    entry = PluginEntry(PluginKind.CONNECTOR, "odd.OddSource", type="source")
    herder = Herder(
        WorkerSettings(WORKER, "host:8083"),
        Stores(MemoryConfigStore(), MemoryStatusStore(), StoredOffsets()),
        Inbox(),
        SoloMembership(),
        lambda notify: Supervisor(ThreadLauncher(children), notify, lambda *_: None, 5.0),
        PluginRegistry([entry]),
    )
    herder.start()
    yield create_app(herder, "cluster")
    children.go_on.set()
    herder.close()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def make(client: FlaskClient, **config: str) -> None:
    body = {"name": "n", "config": {"connector.class": "OddSource", **config}, "initial_state": "STOPPED"}
    assert client.post("/connectors", json=body).status_code == 201


def given(client: FlaskClient, query: str = "", **config: str | None) -> Any:
    body = {"connector.class": "OddSource", "name": "n", **config}
    return client.post(f"/connector-plugins/OddSource/config/preview{query}", json=body)


def test_a_deployed_connector_is_shown(client: FlaskClient, children: Children) -> None:
    make(client, file="/in")
    answer = client.post("/connectors/n/preview")
    assert (answer.status_code, answer.json) == (
        200,
        {"name": "n", "records": [RECORD], "tables": [TABLE], "end": "that is all", "failed": False, "trace": None},
    )
    (asked,) = children.asked
    assert (asked.config["file"], asked.worker) == ("/in", WORKER)
    assert (asked.records, asked.seconds, asked.bytes, asked.from_beginning) == (10, 10, 1 << 20, False)
    assert asked.offsets == [[{"of": "n"}, {"at": 7}]]


def test_a_configuration_that_is_not_deployed_is_shown(client: FlaskClient, children: Children) -> None:
    answer = given(client, "?limit=3&seconds=5&bytes=2048&from=beginning", file="/in")
    assert (answer.status_code, answer.json["records"]) == (200, [RECORD])
    (asked,) = children.asked
    assert (asked.config["file"], asked.config["name"]) == ("/in", "n")
    assert (asked.records, asked.seconds, asked.bytes, asked.from_beginning) == (3, 5, 2048, True)
    assert asked.offsets == []
    assert client.get("/connectors").json == []


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("limit=0", "limit is '0'; it must be a number from 1 to 100."),
        ("limit=1e9", "limit is '1e9'"),
        ("seconds=21", "seconds is '21'; it must be a number from 1 to 20."),
        ("bytes=99999999999", "bytes is '99999999999'"),
        ("from=end", "from is 'end'; it must be stored or beginning."),
    ],
)
def test_what_is_wrong_with_a_query_is_said(client: FlaskClient, children: Children, query: str, text: str) -> None:
    make(client)
    for answer in (client.post(f"/connectors/n/preview?{query}"), given(client, f"?{query}")):
        assert answer.status_code == 400
        assert text in answer.json["message"]
    assert children.asked == []


def test_what_is_wrong_with_a_configuration_is_said(client: FlaskClient, children: Children) -> None:
    assert client.post("/connectors/none/preview").status_code == 404
    for answer, text in (
        (given(client, wrong="yes"), "It is wrong."),
        (given(client, name=""), "The configuration has no name"),
        (client.post("/connector-plugins/Odd/config/preview", json={"name": "n"}), "contains no connector type"),
        (client.post("/connector-plugins/Odd/config/preview", json={"config": {}}), "is the configuration itself"),
    ):
        assert answer.status_code == 400
        assert text in answer.json["message"]
    assert children.asked == []
    refused = given(client, refused="yes")
    assert (refused.status_code, refused.json["message"]) == (400, "file: there is none")


def test_more_than_a_few_at_once_are_told_to_come_back(app: Flask, children: Children) -> None:
    with ThreadPoolExecutor(MOST_AT_ONCE) as asking:
        waiting = [asking.submit(lambda: given(app.test_client(), waits="yes")) for _ in range(MOST_AT_ONCE)]
        for _ in waiting:
            assert children.begun.acquire(timeout=60)
        refused = given(app.test_client())
        assert refused.status_code == 503
        assert refused.headers["Retry-After"] == "5"
        children.go_on.set()
        assert [answer.result(60).status_code for answer in waiting] == [200] * MOST_AT_ONCE
    assert given(app.test_client()).status_code == 200
    assert given(app.test_client()).status_code == 200
