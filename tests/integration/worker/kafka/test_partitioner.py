"""Records without a partition land where Java's default partitioner puts them."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError, Message, Producer

from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientKind
from worker.kafka.clients import roles
from worker.kafka.topics import admin as topics
from worker.kafka.topics.creation import NewTopic

PARTITIONS = 7

# murmur2 as org.apache.kafka.common.utils.Utils of Kafka 4.3.1 computes it.
JAVA_MURMUR2 = {
    b"": 275646681,
    b"a": -1563381124,
    b"ab": 316155434,
    b"abc": 479470107,
    b"abcd": -1323649548,
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "näh€".encode(): -429042868,
    b"order-1": 1221710326,
    b"order-2": -1055499005,
    b"order-3": -849583649,
}


@pytest.fixture
def partitioned(bootstrap: str, topic: str) -> str:
    worker = {"bootstrap.servers": bootstrap}
    admin = librdkafka.admin(roles.internal_properties(worker, ClientKind.ADMIN, "tests"))
    topics.create(admin, NewTopic(topic, partitions=PARTITIONS, replication_factor=1))
    return topic


@pytest.fixture
def producer(bootstrap: str, topic: str) -> Producer:
    worker = {"bootstrap.servers": bootstrap}
    return librdkafka.producer(roles.source_producer_properties(worker, {"name": topic}, 0))


def produced(producer: Producer, topic: str, key: bytes | None) -> int:
    """The partition that a source task's producer chose."""
    chosen: list[int | None] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        assert error is None
        chosen.append(message.partition())

    producer.produce(topic, value=b"v", key=key, on_delivery=on_delivery)
    assert producer.flush(30) == 0
    assert chosen[0] is not None
    return chosen[0]


def test_a_key_decides_as_in_java(producer: Producer, partitioned: str) -> None:
    expected = {key: (value & 0x7FFFFFFF) % PARTITIONS for key, value in JAVA_MURMUR2.items()}
    assert {key: produced(producer, partitioned, key) for key in expected} == expected


def test_records_without_a_key_are_spread(producer: Producer, partitioned: str) -> None:
    seen: set[int] = set()
    deadline = time.monotonic() + 30
    while len(seen) < 2:
        assert time.monotonic() < deadline
        seen.add(produced(producer, partitioned, None))
    assert seen <= set(range(PARTITIONS))
