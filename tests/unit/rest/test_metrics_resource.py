"""Scrapes over REST."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from equipment.scrapes import Scrape
from rest.app import create_admin_app, create_app
from worker.herder.cluster.standing import Trouble
from worker.metrics.lifetimes import LifetimesSeen, Starts
from worker.metrics.snapshot import ConnectorSeen, Snapshot
from worker.stores.status.store import State, Status
from worker.unit import Unit

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.2"
)


class Herder:
    """What REST asks of a herder for scrapes."""

    connectors = offsets = dead_letters = plugins = previews = cluster = loggers = peers = ping = unready = (
        histories
    ) = versions = timelines = None

    def troubles(self) -> list[Trouble]:
        return []

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = Snapshot(
            1000.0,
            "here:8083",
            True,
            {"c": ConnectorSeen("X", "sink")},
            {Unit("c"): Status(State.RUNNING, "here:8083", 1)},
            {},
            LifetimesSeen(Starts(), Starts(), {}, {}, 0.0),
            None,
            0,
        )


@pytest.fixture
def herder() -> Herder:
    return Herder()


@pytest.fixture
def client(herder: Herder) -> Iterator[FlaskClient]:
    with create_app(herder, "cluster").test_client() as client:
        yield client


@pytest.mark.parametrize("accept", [None, "*/*", "text/plain;version=0.0.4;q=0.3", "text/html"])
def test_prometheus_format_is_for_everybody(client: FlaskClient, accept: str | None) -> None:
    answer = client.get("/metrics", headers={} if accept is None else {"Accept": accept})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert Scrape(answer.text).labels("kafka_connect_connector_status") == [{"connector": "c", "status": "running"}]


def test_who_asks_for_openmetrics_gets_it(client: FlaskClient) -> None:
    answer = client.get("/metrics", headers={"Accept": PROMETHEUS})
    assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert Scrape(answer.text, openmetrics=True).named("sluice_worker_leader") == [1]


def test_another_dialect_is_asked_for_by_name(client: FlaskClient) -> None:
    assert Scrape(client.get("/metrics?format=confluent").text).named("kafka_connect_connector_metrics", connector="c")
    answer = client.get("/metrics?format=jmx")
    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/json")
    assert answer.get_json()["message"] == "Unknown format='jmx': use one of strimzi, confluent."


def test_a_worker_that_has_not_looked_yet_says_so(client: FlaskClient, herder: Herder) -> None:
    herder.snapshot = None
    assert client.get("/metrics").status_code == 503


def test_admin_listeners_have_them_as_well(herder: Herder) -> None:
    assert create_admin_app(herder).test_client().get("/metrics").status_code == 200
