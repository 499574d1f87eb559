"""The only producer of a cluster, and brokers that go away in the middle of what it does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from connect.errors import ConnectError
from connect.internals.kafka.settings.client import ClientKind
from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.brokers.topics import create_topic
from worker.kafka.clients.fencing_producer import FencingProducer
from worker.kafka.clients.roles import internal_properties
from worker.stores.config.records import claim_record

pytestmark = pytest.mark.integration


@pytest.fixture
def proxied(tmp_path: Path, broker_jars: tuple[Path, ...]) -> Iterator[ProxiedBroker]:
    with ProxiedBroker.running(tmp_path / "broker", broker_jars, 1) as broker:
        yield broker


def test_after_a_write_that_was_not_ended_in_time_the_next_claim_makes_it_write_again(proxied: ProxiedBroker) -> None:
    create_topic(proxied.bootstrap, "configs", 1)
    # The first transaction of a broker takes longer: there has to be a topic for it.
    Producer({"bootstrap.servers": proxied.bootstrap, "transactional.id": "first"}).init_transactions(60)
    # A worker's requests may take longer than such a transaction.
    worker = {"bootstrap.servers": proxied.bootstrap_of(0), "request.timeout.ms": "60000"}
    props = internal_properties(worker, ClientKind.PRODUCER, "leader")
    lost: list[bool] = []
    producer = FencingProducer("configs", props, "connect-cluster-c", 5.0, lambda: lost.append(True))
    producer.start()
    try:
        producer.claim(claim_record()).result(30)
        producer.write([(b"connector-a", b"{}")]).result(30)
        proxied.proxy.stall(proxied.port(0))
        with pytest.raises(ConnectError, match="could not be written to"):
            producer.write([(b"connector-b", b"{}")]).result(30)
        assert lost == [True]
        proxied.proxy.heal(proxied.port(0))
        producer.claim(claim_record()).result(30)
        producer.write([(b"connector-c", b"{}")]).result(30)
    finally:
        producer.close()
