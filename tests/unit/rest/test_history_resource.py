"""The histories of connectors over REST, and as workers read them from each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask import Flask
from flask.testing import FlaskClient

from connect.errors import NotFoundError
from equipment.fakes.cluster_herder import answered, refused
from rest.app import create_app
from worker.herder.cluster.standing import Trouble
from worker.herder.requests import Request
from worker.metrics.history import History, Part, Point, Recorded, Series
from worker.peers.owner import history_part


class Herder:
    """What REST asks of a herder for histories; another worker knows of one more task."""

    connectors = offsets = dead_letters = plugins = previews = cluster = loggers = peers = ping = unready = None
    versions = timelines = None

    def troubles(self) -> list[Trouble]:
        return []

    def __init__(self) -> None:
        self.histories = self
        self.history = History()
        self.history.note(1000.0, {"c": Point(4.0, 7.0, "records")})

    def own(self, connector: str | None, seconds: int) -> Request[Recorded]:
        return answered(self.history.recorded(connector, seconds))

    def gathered(self, connector: str | None, step: int, seconds: int) -> Request[tuple[Recorded, list[Part]]]:
        if connector == "unknown":
            return refused(NotFoundError("Connector unknown not found"))
        there = Part(1000 // step, {"c": Series("records", [1.0], [2.0])})
        return answered((self.history.recorded(connector, seconds), [there]))


@pytest.fixture
def client() -> Iterator[FlaskClient]:
    app: Flask = create_app(Herder(), "cluster")
    with app.test_client() as client:
        yield client


@pytest.mark.parametrize(("path", "step"), [("/history", 10), ("/connectors/c/history", 2), ("/history?step=20", 20)])
def test_the_workers_are_added_up(client: FlaskClient, path: str, step: int) -> None:
    assert client.get(path).get_json() == {
        "end": 1000,
        "step": step,
        "connectors": {"c": {"unit": "records", "rate": [5.0], "lag": [9]}},
    }


@pytest.mark.parametrize("path", ["/history?step=10&forward=false", "/connectors/c/history?step=10&forward=false"])
def test_another_worker_is_told_what_this_one_has_noted_and_reads_it_back(client: FlaskClient, path: str) -> None:
    assert history_part(client.get(path).get_json()) == Part(100, {"c": Series("records", [4.0], [7])})


@pytest.mark.parametrize("step", ["", "0", "1", "3", "302", "-2", "2.0", "٢", "9" * 5000])
def test_other_steps_are_refused(client: FlaskClient, step: str) -> None:
    answer = client.get("/history", query_string={"step": step})
    assert (answer.status_code, answer.get_json()["message"]) == (
        400,
        f"Invalid step={step!r}: use an even number of seconds from 2 to 300.",
    )


def test_a_connector_that_is_unknown_has_no_history(client: FlaskClient) -> None:
    assert client.get("/connectors/unknown/history").status_code == 404
