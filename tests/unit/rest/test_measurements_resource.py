"""What plugins measure of themselves, over REST and on the page of a connector."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from connect.errors import ConnectError, NotFoundError
from equipment.fakes.cluster_herder import answered, refused
from rest.app import create_app
from worker.herder.cluster.standing import Trouble
from worker.herder.connectors.versions import ConfigHistory
from worker.herder.requests import Request
from worker.herder.timelines import Event

LAG = {"name": "lag", "labels": {"topic": "<orders>"}, "value": 1234.5, "help": "Records behind."}
OWN = {"name": "c", "tasks": [{"id": 0, "worker_id": "here:1", "measurements": [LAG]}]}
ALL = {"name": "c", "tasks": [*OWN["tasks"], {"id": 1, "worker_id": "there:2", "measurements": [LAG]}]}


class Herder:
    """What REST asks of a herder for the numbers of plugins."""

    offsets = dead_letters = plugins = previews = cluster = loggers = peers = ping = unready = None

    def troubles(self) -> list[Trouble]:
        return []

    def __init__(self) -> None:
        self.connectors = self.histories = self.timelines = self.versions = self
        self.broken = False

    def of(self, _connector: str) -> Request[list[Event]]:
        return answered([])

    def read(self, _connector: str) -> Request[ConfigHistory]:
        return refused(ConnectError("no history"))

    def info(self, name: str) -> Request[dict[str, Any]]:
        config = {"connector.class": "MirrorSourceConnector"}
        return answered({"name": name, "config": config, "tasks": [], "type": "source"})

    def status(self, name: str) -> Request[dict[str, Any]]:
        running = {"state": "RUNNING", "worker_id": "here:1"}
        task = {"id": 0, **running, "metrics": {"source-remaining-records": 4321.0}}
        return answered({"name": name, "connector": running, "tasks": [task], "type": "source"})

    def topics(self, name: str) -> Request[list[str]]:
        return answered([])

    def gathered(self, connector: str | None, step: int, seconds: int) -> Request[Any]:
        return refused(ConnectError("There is no history."))

    def measurements(self, name: str, *, of_all: bool = True) -> Request[dict[str, Any]]:
        if name == "unknown":
            return refused(NotFoundError("Connector unknown not found"))
        if self.broken:
            return refused(ConnectError("It cannot be told."))
        return answered(ALL if of_all else OWN)


@pytest.fixture
def herder() -> Herder:
    return Herder()


@pytest.fixture
def client(herder: Herder) -> Iterator[FlaskClient]:
    with create_app(herder, "cluster").test_client() as client:
        yield client


def test_all_are_shown_and_another_worker_is_told_of_this_ones(client: FlaskClient) -> None:
    assert client.get("/connectors/c/measurements").get_json() == ALL
    assert client.get("/connectors/c/measurements?forward=false").get_json() == OWN


def test_an_unknown_connector_has_none(client: FlaskClient) -> None:
    assert client.get("/connectors/unknown/measurements").status_code == 404


def test_the_page_has_them_as_a_table(client: FlaskClient) -> None:
    page = client.get("/ui/connectors/c/measurements").text
    assert "Measurements of the plugin, by topic" in page
    assert re.findall(
        r'<td class="code">(.*?)</td><td class="number">(.*?)</td><td class="number">(.*?)</td>', page
    ) == [
        ("&lt;orders&gt;", "0", "1,234.500"),
        ("&lt;orders&gt;", "1", "1,234.500"),
    ]
    assert 'title="Records behind."' in page
    assert "rows, those with the greatest" not in page, "all are shown"


def test_the_page_says_why_there_are_none(client: FlaskClient, herder: Herder) -> None:
    herder.broken = True
    assert "It cannot be told." in client.get("/ui/connectors/c/measurements").text


def test_the_lag_of_a_task_is_what_is_left_of_its_source(client: FlaskClient) -> None:
    page = client.get("/ui/connectors/c").text
    assert '<td class="number" data-label="Lag">4,321</td>' in page
