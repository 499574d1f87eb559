"""Planted failures, whose causes an operator reads from ``sluice status`` alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner, Result

from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.brokers.topics import create_topic, produce
from equipment.fakes.http_api import Answer, HttpApi, serving_api
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker
from worker.cli.main import main

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

MakeWorker = Callable[..., StandaloneWorker]
PLUGINS = Path(__file__).parents[3] / "equipment" / "misbehaving_plugins"


@pytest.fixture(scope="module")
def worker(shared_standalone: Callable[..., StandaloneWorker]) -> StandaloneWorker:
    return shared_standalone()


@pytest.fixture
def api() -> Iterator[HttpApi]:
    with serving_api() as api:
        yield api


def status(worker: StandaloneWorker, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["status", *arguments, "--url", worker.url()])


def create(worker: StandaloneWorker, name: str, **config: str) -> None:
    props = {key.replace("__", "."): value for key, value in config.items()}
    requests.put(f"{worker.url()}connectors/{name}/config", json=props, timeout=90).raise_for_status()


def told(worker: StandaloneWorker, name: str, cause: str) -> Result:
    """The status of a connector, once it tells the cause."""
    return wait_until(
        f"the status tells {cause!r}",
        lambda: done if cause in (done := status(worker, name)).output else None,
        seconds=120,
    )


def test_a_full_disk(worker: StandaloneWorker, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"one"])
    create(worker, topic, connector__class="FileStreamSink", file="/dev/full", topics=topic)
    assert told(worker, topic, "No space left on device").exit_code == 3


def test_a_bad_record(worker: StandaloneWorker, bootstrap: str, tmp_path: Path, topic: str) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"{oops"])
    create(
        worker,
        topic,
        connector__class="FileStreamSink",
        file=str(tmp_path / "out"),
        topics=topic,
        value__converter="JsonConverter",
        value__converter__schemas__enable="false",
    )
    done = told(worker, topic, "not valid JSON")
    assert done.exit_code == 3
    assert f"{topic}:0:0" in done.output


def test_a_wrong_password(worker: StandaloneWorker, bootstrap: str, api: HttpApi, topic: str) -> None:
    api.route("/", Answer(401))
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"one"])
    config = {"http.auth.type": "BASIC", "http.auth.user": "ann", "http.auth.password": "wrong-one"}
    url = {"http.url": f"{api.url}/", "max.retries": "0", "http.authorization.type": "none"}
    create(worker, topic, connector__class="HttpSink", topics=topic, **config, **url)
    done = told(worker, topic, "401")
    assert done.exit_code == 3
    assert "wrong-one" not in done.output


def test_a_topic_that_is_missing(worker: StandaloneWorker, tmp_path: Path, topic: str) -> None:
    override = {"consumer.override.allow.auto.create.topics": "false"}
    create(worker, topic, connector__class="FileStreamSink", file=str(tmp_path / "o"), topics=topic, **override)
    assert told(worker, topic, f"Topic {topic} does not exist").exit_code == 0


def test_a_plugin_that_hangs(standalone: MakeWorker, topic: str) -> None:
    worker = standalone(plugin_path=str(PLUGINS), task_hang_warning_ms="1000").start()
    create(worker, topic, connector__class="misbehaving.MisbehavingSourceConnector", does="hangs")
    assert "misbehaving.py:" in told(worker, topic, "Start has not returned since ").output


def test_a_broker_that_is_gone(broker_jars: tuple[Path, ...], standalone: MakeWorker, tmp_path: Path) -> None:
    with ProxiedBroker.running(tmp_path / "broker", broker_jars, 1) as broker:
        worker = standalone(bootstrap_servers=broker.bootstrap).start()
        assert status(worker).exit_code == 0
        broker.kill()
        told_of = wait_until(
            "the status tells of the broker",
            lambda: done if "No broker of bootstrap.servers answers since" in (done := status(worker)).output else None,
            seconds=120,
        )
        assert told_of.exit_code == 3


def test_the_cluster_lists_them_with_their_causes(worker: StandaloneWorker, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"one"])
    create(worker, topic, connector__class="FileStreamSink", file="/dev/full", topics=topic)
    told(worker, topic, "No space left on device")
    done = status(worker, "-o", "json")
    assert done.exit_code == 3
    causes = {failure["connector"]: failure["cause"] for failure in json.loads(done.stdout)["failed"]}
    assert "No space left on device" in causes[topic]
