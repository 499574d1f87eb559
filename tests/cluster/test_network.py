"""A cluster whose network fails, and whose broker is killed. Each worker has its own way to the broker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster
from equipment.workers.pipelines import Pipelines
from equipment.workers.processes import descendants

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(300)]

WORKERS, PIPELINES, TICKS = 3, 3, 12


@dataclass(frozen=True, slots=True)
class Net:
    """A cluster and the broker behind its relays."""

    broker: ProxiedBroker
    cluster: Cluster
    pipelines: Pipelines


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, broker_jars: tuple[Path, ...]) -> Iterator[Net]:
    """The cluster that all tests of this file share."""
    folder = tmp_path_factory.mktemp("network")
    broker = ProxiedBroker(folder / "broker", broker_jars, WORKERS)
    cluster = Cluster(folder / f"cluster-{uuid4().hex[:12]}", broker.bootstrap_of, WORKERS)
    try:
        broker.start()
        cluster.start()
        pipelines = Pipelines(cluster, broker.bootstrap, PIPELINES, TICKS)
        pipelines.create()
        yield Net(broker, cluster, pipelines)
    finally:
        cluster.close()
        broker.close()


@pytest.fixture
def net(whole: Net) -> Iterator[Net]:
    """That cluster, whole and with lines on their way."""
    whole.cluster.wait_until_balanced()
    with whole.pipelines:
        yield whole


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["cut", "stall"])
def test_a_worker_is_cut_off_from_the_broker(net: Net, how: str) -> None:
    cluster, proxy = net.cluster, net.broker.proxy
    lonely = cluster.leader()
    port = net.broker.port(cluster.workers.index(lonely))
    tasks = cluster.placed()[lonely]
    (proxy.cut if how == "cut" else proxy.stall)(port)
    wait_until(
        "the others run what it ran",
        lambda: tasks <= set().union(*(cluster.placed()[other] for other in cluster.workers if other is not lonely)),
        60,
    )
    assert cluster.placed()[lonely] == set()
    assert lonely.get("").status_code == 200
    proxy.heal(port)
    cluster.wait_until_balanced()
    net.pipelines.check()


def test_the_broker_is_killed_and_started_again(net: Net) -> None:
    net.broker.kill()
    wait_until("the workers have given up their tasks", lambda: net.cluster.holders() == {}, 60)
    for worker in net.cluster.workers:
        assert len(descendants(worker.pid)) < TICKS
    net.broker.start()
    net.cluster.wait_until_balanced()
    net.pipelines.check()


@pytest.mark.thorough
def test_the_broker_is_away_for_a_moment(net: Net) -> None:
    net.broker.kill()
    net.broker.start()
    net.cluster.wait_until_balanced()
    net.pipelines.check()
