"""Workers that do not come to their start: they end soon when they are told to, and say what is wrong."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import requests

from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.brokers.topics import create_topic
from equipment.ports import own_port
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from worker.embedded.ports import HOST

pytestmark = pytest.mark.integration

SOON = 20.0


@pytest.fixture(scope="module")
def broker_behind(tmp_path_factory: pytest.TempPathFactory, broker_jars: tuple[Path, ...]) -> Iterator[ProxiedBroker]:
    with ProxiedBroker.running(tmp_path_factory.mktemp("start") / "broker", broker_jars, 1) as broker:
        yield broker


@pytest.fixture
def proxied(broker_behind: ProxiedBroker) -> Iterator[ProxiedBroker]:
    yield broker_behind
    broker_behind.proxy.heal(broker_behind.port(0))


class Worker(DistributedWorker):
    """One whose address is known before it is up."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.address = f"http://{HOST}:{own_port()}"
        super().__init__(folder, bootstrap, listeners=self.address)

    def is_starting(self) -> bool:
        """Whether it listens, and answers that it is not ready."""
        try:
            return requests.get(f"{self.address}/health", timeout=60).status_code == 503
        except requests.ConnectionError:
            return False


@pytest.fixture
def worker(proxied: ProxiedBroker, tmp_path: Path) -> Iterator[Worker]:
    folder = tmp_path / f"start-{uuid4().hex[:12]}"
    folder.mkdir()
    worker = Worker(folder, proxied.bootstrap_of(0))
    yield worker
    worker.close()


def test_a_worker_that_waits_for_its_first_answer_ends_when_it_is_told_to(
    proxied: ProxiedBroker, worker: Worker
) -> None:
    proxied.proxy.stall(proxied.port(0))
    worker.start()
    wait_until("it listens", worker.is_starting)
    worker.signal(signal.SIGTERM)
    assert worker.wait(SOON) == 0
    assert "Stopping on SIGTERM" in worker.log()


def test_a_worker_that_waits_for_its_topics_ends_when_it_is_told_to(proxied: ProxiedBroker, worker: Worker) -> None:
    worker.start()
    wait_until("it makes its topics", lambda: "Created topic" in worker.log())
    proxied.proxy.stall(proxied.port(0))
    worker.signal(signal.SIGTERM)
    assert worker.wait(SOON) == 0


def test_a_worker_whose_topic_cannot_be_used_says_so(proxied: ProxiedBroker, worker: Worker) -> None:
    create_topic(proxied.bootstrap, f"{worker.group}-config", 2, **{"cleanup.policy": "compact"})
    assert worker.run() == 2
    assert "required to have a single partition" in worker.log()
    assert "Traceback" not in worker.log()
