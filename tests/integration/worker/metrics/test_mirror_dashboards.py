"""The queries of Strimzi's dashboards for MirrorMaker 2 find their series in the scrape of a worker that mirrors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from equipment.brokers.topics import create_topic, produce
from equipment.brokers.written_flow import commit
from equipment.scrapes import Scrape
from equipment.waiting import wait_until
from equipment.workers.cluster import LONG_SESSIONS
from equipment.workers.distributed import DistributedWorker
from equipment.workers.standalone import PATIENT
from worker.embedded.broker.server import BrokerInfo

pytestmark = pytest.mark.cluster

DATA = Path(__file__).parent / "data"
OFTEN = {"statistics.interval.ms": "200"}


@pytest.fixture
def worker(bootstrap: str, tmp_path: Path) -> Iterator[DistributedWorker]:
    """A worker of a cluster at the target."""
    worker = DistributedWorker(tmp_path, bootstrap, **PATIENT, **LONG_SESSIONS).start()
    try:
        yield worker
    finally:
        worker.close()


def _deploy(worker: DistributedWorker, kind: str, config: dict[str, str]) -> str:
    name = f"Mirror{kind}Connector"
    config = {"connector.class": f"org.apache.kafka.connect.mirror.{name}", **config}
    made = requests.post(f"{worker.url()}connectors", json={"name": name, "config": config}, timeout=60)
    assert made.status_code == 201, made.text
    return name


def test_every_query_finds_its_series(
    worker: DistributedWorker, bootstrap: str, second_broker: BrokerInfo, topic: str
) -> None:
    source, alias = second_broker.bootstrap_servers, f"A{topic[-12:]}"
    create_topic(source, topic)
    produce(source, topic, [b"one", b"two"])
    commit(source, f"{topic}-group", topic, 1)
    flow = {
        "source.cluster.alias": alias,
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": bootstrap,
        "topics": topic,
        "groups": f"{topic}-group",
        "replication.factor": "1",
        **{f"{kind}.topic.replication.factor": "1" for kind in ("offset-syncs", "checkpoints")},
    }
    _deploy(worker, "Source", {
        **flow,
        "heartbeats.replication.enabled": "false",
        **{f"{kind}.{key}": value for kind in ("source.consumer", "producer.override") for key, value in OFTEN.items()},
    })  # fmt: skip
    _deploy(worker, "Checkpoint", {**flow, "emit.checkpoints.interval.seconds": "1"})
    produced = 2

    def missing(dialect: str) -> list[str]:
        # Means are of the last thirty seconds: something has to move.
        nonlocal produced
        produce(source, topic, [b"more"])
        produced += 1
        commit(source, f"{topic}-group", topic, produced)
        selectors = [line for line in (DATA / f"mirror_{dialect}.txt").read_text().splitlines() if line[0] != "#"]
        found = Scrape(worker.get(f"metrics?format={dialect}").text)
        return [selector for selector in selectors if not found.answers(selector)]

    for dialect in ("strimzi", "confluent"):
        try:
            wait_until("each selector finds a series", lambda dialect=dialect: not missing(dialect), 50)
        except AssertionError as error:
            raise AssertionError(f"{error}: none for {', '.join(missing(dialect))}") from None
    place = {"source": alias, "target": "B", "topic": f"{alias}.{topic}", "partition": "0"}
    count = "kafka_connect_mirror_mirrorsourceconnector_record_count"

    def counted() -> bool:
        return Scrape(worker.get("metrics").text).named(count, **place) == [produced]

    wait_until("all records are counted", counted, 60)
    found = Scrape(worker.get("metrics").text)
    assert found.labels(count) == [place]
    assert found.labels("kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms") == [
        {**place, "group": f"{topic}-group"}
    ]
    client = f"{alias}->B|MirrorSourceConnector-0|replication-consumer"
    lag = {"clientid": client, "topic": topic, "partition": "0"}
    assert found.labels("kafka_consumer_fetch_manager_records_lag") == [lag]
