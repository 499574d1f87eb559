"""A flow that keeps the names of topics, has its syncs at the target, and takes the defaults of the source."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from connect.testing import ConnectorTestContext, StoredOffsets
from connectors.mirror import MirrorSourceConnector
from connectors.mirror.records import OffsetSync
from equipment.brokers.topics import create_topic, produce, read_topic
from equipment.scripts.tasks import RunningTask
from equipment.waiting import wait_until
from worker.embedded.broker.server import BrokerInfo


@pytest.fixture
def props(bootstrap: str, second_broker: BrokerInfo, topic: str) -> dict[str, str]:
    """The flow from the first cluster to the second."""
    return {
        "name": "identity",
        "connector.class": "MirrorSourceConnector",
        # The name of the topic of syncs has it.
        "source.cluster.alias": topic,
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": second_broker.bootstrap_servers,
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "offset-syncs.topic.location": "target",
        "offset-syncs.topic.replication.factor": "1",
        "replication.factor": "1",
        "use.defaults.from": "source",
        "sync.topic.acls.enabled": "false",
        "topics": topic,
    }


def test_names_stay_settings_come_with_their_defaults_and_syncs_lie_at_the_target(
    props: dict[str, str], bootstrap: str, second_broker: BrokerInfo, topic: str
) -> None:
    target = second_broker.bootstrap_servers
    create_topic(bootstrap, topic, 1, **{"retention.ms": "-1"})
    produce(bootstrap, topic, [b"a", b"b", b"c"])
    context = ConnectorTestContext(StoredOffsets())
    connector = MirrorSourceConnector(MirrorSourceConnector.config_class.parse(props), context)
    connector.start()
    try:
        wait_until("the topic is there", lambda: connector.task_configs(1))
        wait_until("its settings are, too", lambda: "segment.ms" in _own_settings(target, topic))
        assert _own_settings(target, topic)["retention.ms"] == "-1"
    finally:
        context.stop()
        connector.stop()
    task = RunningTask(target, {**props, "task.assigned.partitions": f"{topic}-0", "task.index": "0"})
    try:
        wait_until("the records come", lambda: len(read_topic(target, topic)) == 3)
        task.stop()
    finally:
        task.close()
    assert [one.value() for one in read_topic(target, topic)] == [b"a", b"b", b"c"]
    syncs = [
        OffsetSync.decode(one.key(), one.value()) for one in read_topic(target, f"mm2-offset-syncs.{topic}.internal")
    ]
    assert syncs[-1] == OffsetSync(topic, 0, 2, 2)


def _own_settings(bootstrap: str, topic: str) -> dict[str, str]:
    """The settings that a topic has of its own; none while it is not there."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if topic not in admin.list_topics(timeout=30).topics:
        return {}
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    return {
        name: each.value for name, each in admin.describe_configs([asked])[asked].result(30).items() if each.source == 1
    }
