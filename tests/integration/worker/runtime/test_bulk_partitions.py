"""How many requests it takes to know where the partitions of many topics end."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from connect.data import TopicPartition
from equipment.brokers.topics import produce
from equipment.waiting import wait_until
from worker.config.connector import SinkConnectorConfig
from worker.config.internal_topics import InternalTopics
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker
from worker.runtime.bulk.partitions import Partitions
from worker.runtime.sink.topic_choice import TopicChoice

pytestmark = pytest.mark.integration

TOPICS: Final = int(os.environ.get("SLUICE_MANY_TOPICS", "50"))
"""1000 shows what it is for, and takes a while."""
EACH: Final = 10
_FEW_TOPICS: Final = 100


@pytest.fixture
def bootstrap(bootstrap: str, broker_jars: tuple[Path, ...], tmp_path: Path) -> Iterator[str]:
    """The bootstrap servers of a broker that has memory for the partitions: for few of them, that of all tests."""
    if TOPICS <= _FEW_TOPICS:
        yield bootstrap
        return
    with EmbeddedBroker(BrokerConfig(folder=tmp_path, port=0, heap="1g")).lease() as info:
        yield info.bootstrap_servers


class Counted:
    """Clients that count the requests they send."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._sent: dict[str, Counter[str]] = {"consumer": Counter(), "admin": Counter()}
        self._at = {"consumer": 0.0, "admin": 0.0}
        settings = {"bootstrap.servers": bootstrap, "statistics.interval.ms": 100}
        self.consumer = Consumer({**settings, "group.id": topic, "stats_cb": self._note("consumer")})
        self.admin = AdminClient({**settings, "stats_cb": self._note("admin")})
        config = SinkConnectorConfig.parse(
            {"name": topic, "connector.class": "SparkSink", "topics.regex": f"{topic}-[0-9]+"}
        )
        self.partitions = Partitions(self.consumer, self.admin, TopicChoice(config, InternalTopics({})), 0.5)

    def _note(self, client: str) -> Callable[[str], None]:
        def note(text: str) -> None:
            told = json.loads(text)
            brokers: dict[str, Any] = told["brokers"]
            self._at[client] = told["ts"] / 1e6
            self._sent[client] = sum((Counter(broker["req"]) for broker in brokers.values()), Counter())

        return note

    def sent(self) -> Counter[str]:
        """The requests so far, by kind, once the clients have counted those that were made before."""
        asked = time.monotonic()

        def counted() -> bool:
            self.consumer.poll(0)
            self.admin.poll(0)
            return min(self._at.values()) > asked

        wait_until("the clients have counted", counted)
        return self._sent["consumer"] + self._sent["admin"]

    def during(self, action: Callable[[], object]) -> Counter[str]:
        """The requests that an action makes."""
        before = self.sent()
        action()
        return self.sent() - before


@pytest.fixture
def clients(bootstrap: str, topic: str) -> Iterator[Counted]:
    clients = Counted(bootstrap, topic)
    names = [f"{topic}-{number}" for number in range(TOPICS)]
    for start in range(0, TOPICS, 100):
        made = clients.admin.create_topics([NewTopic(name, EACH, 1) for name in names[start : start + 100]])
        for future in made.values():
            future.result(60)
    yield clients
    for future in clients.admin.delete_topics(names).values():
        future.result(60)
    clients.consumer.close()


def test_many_partitions_take_few_requests(clients: Counted, bootstrap: str, topic: str) -> None:
    partitions = clients.partitions

    def ready() -> bool:
        # The brokers know a new topic a moment later than the controller.
        try:
            partitions.ends(partitions.all(anew=True))
        except KafkaException:
            return False
        return len(partitions.all()) == TOPICS * EACH

    wait_until("the topics are there", ready, seconds=120 + TOPICS)
    produce(bootstrap, f"{topic}-7", [b"x"] * 3, 4)
    wait_until("the group answers", lambda: partitions.committed(partitions.all()), seconds=60)
    found = clients.during(lambda: partitions.all(anew=True))
    # One for the client, and one for the ids of the topics, which may be looked for at the controller.
    assert found.keys() == {"Metadata"}
    assert found["Metadata"] <= 3
    everything = partitions.all()
    began = time.monotonic()
    assert clients.during(lambda: partitions.ends(everything)) == {"ListOffsets": 1}
    assert clients.during(lambda: partitions.beginnings(everything)) == {"ListOffsets": 1}
    assert clients.during(lambda: partitions.committed(everything)) == {"OffsetFetch": 1}
    print(f"{len(everything)} partitions: {time.monotonic() - began:.1f} s")
    ends = partitions.ends(everything)
    assert {tp: end for tp, end in ends.items() if end} == {TopicPartition(f"{topic}-7", 4): 3}
