"""A flow that keeps the names of topics, has its syncs at the target, and takes the defaults of the source."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import ConfigResource

from connect.testing import ConnectorTestContext, StoredOffsets
from connectors.mirror import MirrorSourceConnector
from connectors.mirror.records import OffsetSync
from equipment.brokers.topics import admin_client, create_topic, produce, read_topic
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


def test_flows_both_ways_do_not_circle_where_records_tell_where_they_come_from(
    props: dict[str, str], bootstrap: str, second_broker: BrokerInfo, topic: str
) -> None:
    ends = {"A": bootstrap, "B": second_broker.bootstrap_servers}
    for alias, servers in ends.items():
        create_topic(servers, topic)
        produce(servers, topic, [b"first of %s" % alias.encode()])
    running = []
    try:
        for source, target in (("A", "B"), ("B", "A")):
            flow = {
                **props,
                "source.cluster.alias": source,
                "target.cluster.alias": target,
                "source.cluster.bootstrap.servers": ends[source],
                "target.cluster.bootstrap.servers": ends[target],
                "mirror.provenance.header": "from",
                "task.assigned.partitions": f"{topic}-0",
                "task.index": "0",
            }
            running.append(
                RunningTask(ends[target], {key: value for key, value in flow.items() if "syncs." not in key})
            )

        def values(alias: str) -> set[bytes]:
            return {one.value() for one in read_topic(ends[alias], topic)}

        firsts = {b"first of A", b"first of B"}
        wait_until("both have both", lambda: values("A") == values("B") == firsts)
        for alias, servers in ends.items():
            produce(servers, topic, [b"last of %s" % alias.encode()])
        lasts = {b"last of A", b"last of B"}
        # A record that comes over after the copies says that these were read, and left where they are.
        wait_until("both have all", lambda: values("A") == values("B") == firsts | lasts)
        for task in running:
            task.stop()
    finally:
        for task in running:
            task.close()
    for alias, other in (("A", "B"), ("B", "A")):
        found = [(one.value(), one.headers()) for one in read_topic(ends[alias], topic)]
        assert len(found) == len(firsts | lasts)
        for value, headers in found:
            is_own = value.endswith(alias.encode())
            assert headers == (None if is_own else [("from", other.encode())])


def _own_settings(bootstrap: str, topic: str) -> dict[str, str]:
    """The settings that a topic has of its own; none while it is not there."""
    admin = admin_client(bootstrap)
    if topic not in admin.list_topics(timeout=30).topics:
        return {}
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    return {
        name: each.value for name, each in admin.describe_configs([asked])[asked].result(30).items() if each.source == 1
    }


def test_a_cluster_is_not_mirrored_onto_itself_under_the_same_names(
    props: dict[str, str], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    context = ConnectorTestContext(StoredOffsets())
    same = {**props, "target.cluster.bootstrap.servers": bootstrap}
    connector = MirrorSourceConnector(MirrorSourceConnector.config_class.parse(same), context)
    connector.start()
    try:
        wait_until("the connector fails", lambda: context.errors)
        assert connector.task_configs(1) == []
    finally:
        context.stop()
        connector.stop()
    assert "each topic would be copied onto itself endlessly" in str(context.errors[0])


def test_a_copy_on_the_same_cluster_is_not_copied_again(props: dict[str, str], bootstrap: str, topic: str) -> None:
    for name in (topic, f"{topic}.{topic}", f"{topic}-configs"):
        create_topic(bootstrap, name)
    same = {
        **props,
        "target.cluster.bootstrap.servers": bootstrap,
        "replication.policy.class": "DefaultReplicationPolicy",
        "topics": f".*{topic}.*,{topic}-configs",
        "heartbeats.replication.enabled": "false",
        "worker.internal.topics": f"{topic}-configs",
    }
    context = ConnectorTestContext(StoredOffsets())
    connector = MirrorSourceConnector(MirrorSourceConnector.config_class.parse(same), context)
    connector.start()
    try:
        (task,) = wait_until("the topic is there", lambda: connector.task_configs(4))
    finally:
        context.stop()
        connector.stop()
    assert task["task.assigned.partitions"] == f"{topic}-0"
    assert "worker.internal.topics" not in task
