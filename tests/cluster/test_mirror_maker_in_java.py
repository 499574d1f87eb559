"""MirrorMaker's own connectors run in a JVM of ours: records, groups and heartbeats, through kills."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition

from equipment.brokers.topics import committed, create_topic, produce, read_so_far
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_plugins import downloaded_plugin, kill_jvm
from worker.embedded.broker.server import BrokerInfo

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(590)]

PATIENCE: Final = 200.0
EACH: Final = 300


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    """Commit an offset of a group."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def test_mirror_makers_connectors_mirror_a_topic_and_a_group_through_kills(
    bootstrap: str, second_broker: BrokerInfo, tmp_path: Path
) -> None:
    name = f"orders-{uuid4().hex[:12]}"
    source, target, group = bootstrap, second_broker.bootstrap_servers, f"{name}-readers"
    create_topic(source, name)
    here = f"a.{name}"
    written: list[bytes] = []

    def write() -> None:
        more = [f"{name} {number}".encode() for number in range(len(written), len(written) + EACH)]
        produce(source, name, more)
        written.extend(more)

    def mirrored() -> list[bytes]:
        return read_so_far(target, here)

    def wait_for_all() -> None:
        wait_until("all is mirrored", lambda: mirrored()[-1:] == written[-1:], PATIENCE)

    clusters = {
        "engine": "java",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        # Others mirror between the clusters of these tests, too.
        "offset-syncs.topic.location": "target",
    }
    topics = ("", "offset-syncs.topic.", "checkpoints.topic.", "heartbeats.topic.")
    clusters |= {f"{prefix}replication.factor": "1" for prefix in topics}
    configs: dict[str, dict[str, str]] = {
        "Source": {"topics": name, "refresh.topics.interval.seconds": "2", "sync.topic.acls.enabled": "false"},
        "Checkpoint": {
            "topics": name,
            "groups": group,
            "emit.checkpoints.interval.seconds": "1",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": "1",
            "refresh.groups.interval.seconds": "2",
        },
        "Heartbeat": {"emit.heartbeats.interval.seconds": "1"},
    }
    worker = DistributedWorker(
        tmp_path / "ours",
        target,
        plugin_path=str(downloaded_plugin(tmp_path / "plugins", "kafka_mirror")),
        java_plugins_jvm_options="-Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        offset_flush_interval_ms="500",
    ).start()
    path = f"connectors/{name}-Source"
    try:
        write()
        commit(source, group, name, EACH)
        for kind, own in configs.items():
            plugin = {"connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector"}
            worker.ask("PUT", f"connectors/{name}-{kind}/config", {**clusters, **plugin, **own})
        wait_for_all()
        write()
        kill_jvm(worker, f"{name}-Source")
        wait_for_all()
        write()
        worker.kill()
        worker.start()
        wait_for_all()
        # What was not committed when it was killed is repeated, in order, and nothing is lost.
        assert list(dict.fromkeys(mirrored())) == written
        # The group goes on in the mirror where it was, or before, since not every offset is known there: all that it
        # has not read is to come. That may be there before, too, since it may have come twice.
        commit(source, group, name, 2 * EACH)
        wait_until("the group has an offset in the mirror", lambda: committed(target, group, here)[0] > 0, PATIENCE)
        assert set(mirrored()[committed(target, group, here)[0] :]) >= set(written[2 * EACH :])
        assert read_so_far(target, "heartbeats")
        for kind in configs:
            worker.wait_for_states(f"{name}-{kind}", "RUNNING", "RUNNING")
        # Its offsets can be read, and set where MirrorMaker agrees.
        worker.ask("PUT", f"{path}/stop")
        worker.wait_for_states(f"{name}-Source", "STOPPED")
        partition = {"cluster": "a", "partition": 0, "topic": name}

        def offsets(last: int) -> dict[str, Any]:
            return {"offsets": [{"partition": partition, "offset": {"offset": last}}]}

        assert worker.ask("GET", f"{path}/offsets") == offsets(3 * EACH - 1)
        with pytest.raises(AssertionError, match="'cluster'"):
            worker.ask("PATCH", f"{path}/offsets", {"offsets": [{"partition": {"x": 1}, "offset": {"offset": 1}}]})
        worker.ask("PATCH", f"{path}/offsets", offsets(EACH - 1))
        before = mirrored()
        worker.ask("PUT", f"{path}/resume")
        wait_until("the rest has come again", lambda: len(mirrored()) >= len(before) + 2 * EACH, PATIENCE)
        assert mirrored() == before + written[EACH:]
    finally:
        worker.close()
