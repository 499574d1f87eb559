"""A flow of MirrorMaker 2 is continued by ours on the same topics, and by MirrorMaker again: nothing twice, no gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition

from connectors.mirror import MirrorClient
from connectors.mirror.records import OffsetSync
from equipment.brokers.topics import admin_client, committed, create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_connect import JavaConnect, JavaConnectJars
from equipment.workers.java_mirror_client import java_mirror_client
from equipment.workers.standalone import StandaloneWorker
from worker.embedded.broker.server import BrokerInfo

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(400)]

SECONDS = 120.0


class Pair:
    """The clusters, a topic of the source with transactions, and a group that has read all of it."""

    def __init__(self, source: str, target: str, topic: str) -> None:
        self.source, self.target, self.topic = source, target, topic
        self.alias = f"A{topic[-8:]}".replace(".", "-").replace("_", "-")
        self.remote, self.group = f"{self.alias}.{topic}", f"group-{topic}"
        self.syncs = f"mm2-offset-syncs.{self.alias}-B.internal"
        self._numbers = count()
        self._committed: list[bytes] = []
        create_topic(source, topic)
        self._producer = Producer({"bootstrap.servers": source, "transactional.id": topic})
        self._producer.init_transactions(60)

    def connector(self, kind: str) -> dict[str, str]:
        """The configuration of a connector, as Java's takes it."""
        converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
        return {
            "connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector",
            "tasks.max": "1",
            "source.cluster.alias": self.alias,
            "target.cluster.alias": f"{self.alias}-B",
            "source.cluster.bootstrap.servers": self.source,
            "target.cluster.bootstrap.servers": self.target,
            "source.consumer.isolation.level": "read_committed",
            "topics": self.topic,
            "groups": self.group,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "checkpoints.topic.replication.factor": "1",
            "refresh.topics.interval.seconds": "1",
            "refresh.groups.interval.seconds": "1",
            "emit.checkpoints.interval.seconds": "1",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": "1",
            "sync.topic.acls.enabled": "false",
            **{f"{role}.converter": converter for role in ("key", "value", "header")},
        }

    def write(self) -> None:
        """Write two transactions around one that is aborted, and have the group read all of them."""
        for number in range(3):
            self._producer.begin_transaction()
            values = [b"%d" % next(self._numbers) for _ in range(20)]
            for value in values:
                self._producer.produce(self.topic, value, b"k", headers=[("h", value)])
            if number == 1:
                self._producer.flush(30)
                self._producer.abort_transaction(30)
            else:
                self._producer.commit_transaction(30)
                self._committed += values
        last = read_topic(self.source, self.topic)[-1].offset()
        place = TopicPartition(self.topic, 0, last + 1)
        admin = admin_client(self.source)

        def is_done() -> bool:
            asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(self.group, [place])])
            return all(each.error is None for each in asked[self.group].result(30).topic_partitions)

        wait_until("the offset is committed", is_done)

    def wait_for_all(self) -> None:
        """Wait until the target has every record, each once, and the group is behind the last."""

        def arrived() -> list[tuple[bytes, int]]:
            known = admin_client(self.target).list_topics(timeout=30).topics
            found = read_topic(self.target, self.remote) if self.remote in known else []
            return [(each.value(), each.offset()) for each in found] if len(found) >= len(self._committed) else []

        found = wait_until("all records arrive", arrived, SECONDS)
        assert [value for value, _ in found] == self._committed
        end = found[-1][1] + 1
        wait_until("the group follows", lambda: committed(self.target, self.group, self.remote) == [end], SECONDS)


@pytest.fixture
def pair(bootstrap: str, second_broker: BrokerInfo, topic: str) -> Pair:
    """Two clusters; the workers are at the first."""
    return Pair(second_broker.bootstrap_servers, bootstrap, topic)


@pytest.fixture
def props(bootstrap: str, topic: str) -> dict[str, str]:
    """The worker properties of both: one group, the same topics."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": topic,
        **{f"{kind}.storage.topic": f"{topic}-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "scheduled.rebalance.max.delay.ms": "0",
        "exactly.once.source.support": "enabled",
    }


@pytest.fixture
def ours(tmp_path: Path, bootstrap: str, props: dict[str, str]) -> Iterator[DistributedWorker]:
    """Our worker, not started."""
    worker = DistributedWorker(tmp_path / "ours", bootstrap, **props)
    yield worker
    worker.close()


@pytest.mark.thorough
def test_ours_continues_a_flow_of_mirrormaker_and_mirrormaker_continues_ours(
    pair: Pair, props: dict[str, str], ours: DistributedWorker, java_connect: Callable[..., JavaConnect]
) -> None:
    java = java_connect(props).start()
    pair.write()
    java.create("src", pair.connector("Source"))
    java.create("cp", pair.connector("Checkpoint"))
    pair.wait_for_all()
    java.stop()
    by_java = _written(pair, props)

    pair.write()
    ours.start()
    pair.wait_for_all()
    assert ours.terminate() == 0, ours.log()
    by_both = _written(pair, props)
    # The same keys: nothing is known under two names. And of the same form are the values.
    assert by_both.keys() == by_java.keys()

    pair.write()
    java.start()
    pair.wait_for_all()
    java.stop()
    assert _written(pair, props).keys() == by_java.keys()


@pytest.mark.thorough
def test_the_mirror_client_of_java_reads_what_ours_writes(
    pair: Pair, standalone: Callable[..., StandaloneWorker], java_connect_jars: JavaConnectJars, tmp_path: Path
) -> None:
    worker = standalone(offset_flush_interval_ms="1000")
    heartbeats = {**pair.connector("Heartbeat"), "heartbeats.topic.replication.factor": "1"}
    # Written at the source, and mirrored from there.
    heartbeats |= {"target.cluster.bootstrap.servers": pair.source, "producer.override.bootstrap.servers": pair.source}
    for name, props in {
        **{kind: pair.connector(kind) for kind in ("Source", "Checkpoint")},
        "Beat": heartbeats,
    }.items():
        worker.connector(name, **{key.replace(".", "_"): value for key, value in props.items()})
    pair.write()
    worker.start()
    pair.wait_for_all()
    beats = f"{pair.alias}.heartbeats"
    wait_until("heartbeats are mirrored", lambda: beats in _topics(pair.target), SECONDS)
    assert worker.terminate() == 0, worker.log()

    answers = java_mirror_client(java_connect_jars, tmp_path, pair.target, pair.alias, pair.group)
    (end,) = committed(pair.target, pair.group, pair.remote)
    assert answers["offsets"] == {f"{pair.remote}-0": end}
    assert {pair.remote, beats} <= set(answers["remote"])
    assert pair.alias in answers["upstream"]
    assert answers["hops"] == 1
    with MirrorClient({"bootstrap.servers": pair.target}) as client:
        places = client.translate_offsets(pair.group, pair.alias)
        assert {f"{at.topic}-{at.partition}": place.offset for at, place in places.items()} == answers["offsets"]
        assert client.remote_topics(pair.alias) == set(answers["remote"])
        assert client.replication_hops(pair.alias) == answers["hops"]


@pytest.mark.thorough
def test_a_flow_at_least_once_is_continued_by_the_same_file_of_offsets(
    pair: Pair,
    java_connect: Callable[..., JavaConnect],
    standalone: Callable[..., StandaloneWorker],
    tmp_path: Path,
) -> None:
    """Workers that are stopped in order leave nothing to come again: each record is there once."""
    kept = {"offset.storage.file.filename": str(tmp_path / "offsets"), "offset.flush.interval.ms": "1000"}
    files = {kind: pair.connector(kind) for kind in ("Source", "Checkpoint")}
    java = java_connect(kept, [{"name": name, **props} for name, props in files.items()])
    ours = standalone(**{key.replace(".", "_"): value for key, value in kept.items()})
    for name, props in files.items():
        ours.connector(name, **{key.replace(".", "_"): value for key, value in props.items()})

    pair.write()
    java.start()
    pair.wait_for_all()
    java.stop()

    pair.write()
    ours.start()
    pair.wait_for_all()
    assert ours.terminate() == 0, ours.log()

    pair.write()
    java.start()
    pair.wait_for_all()
    java.stop()


def _topics(bootstrap: str) -> set[str]:
    return set(admin_client(bootstrap).list_topics(timeout=30).topics)


def _written(pair: Pair, props: dict[str, str]) -> dict[bytes, bytes]:
    """The newest value of each key among source offsets, syncs and checkpoints, where all are of Java's form."""
    offsets = {each.key(): each.value() for each in read_topic(pair.target, props["offset.storage.topic"])}
    source = b'["src",{"cluster":"%s","partition":0,"topic":"%s"}]' % (pair.alias.encode(), pair.topic.encode())
    last = read_topic(pair.source, pair.topic)[-1].offset()
    assert offsets[source] == b'{"offset":%d}' % last
    syncs = {each.key(): each.value() for each in read_topic(pair.source, pair.syncs)}
    assert [OffsetSync.decode(key, value).upstream for key, value in syncs.items()] == [last]
    checkpoints = {each.key(): each.value() for each in read_topic(pair.target, f"{pair.alias}.checkpoints.internal")}
    assert len(checkpoints) == 1
    return {**offsets, **syncs, **checkpoints}
