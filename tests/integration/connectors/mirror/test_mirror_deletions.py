"""How long a topic has been missing at the source outlasts a restart of the connector."""

from __future__ import annotations

from typing import Any

from connectors.mirror.config.source import MirrorSourceConfig
from connectors.mirror.filters import config_property_filter
from connectors.mirror.selection import TopicSelection
from connectors.mirror.topics.cluster import ClusterTopics
from connectors.mirror.topics.deletion import DeletionNotes, Deletions
from connectors.mirror.topics.upkeep import TopicUpkeep
from equipment.brokers.topics import admin_client, create_topic
from equipment.waiting import wait_until
from worker.embedded.broker.server import BrokerInfo


def test_a_topic_is_deleted_after_its_grace_whatever_is_started_anew(
    bootstrap: str, second_broker: BrokerInfo, topic: str
) -> None:
    alias, servers = f"A{topic[-12:]}", second_broker.bootstrap_servers
    props: dict[str, Any] = {
        "name": "m",
        "source.cluster.alias": alias,
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": servers,
        "topics": f"{topic}.*",
        "replication.factor": "1",
    }
    admin = admin_client(bootstrap)
    source = ClusterTopics(admin, alias, 30)
    target = ClusterTopics(admin_client(servers), "B", 30)
    create_topic(bootstrap, f"{topic}-stays")
    create_topic(bootstrap, topic)

    def notes() -> DeletionNotes:
        return DeletionNotes(MirrorSourceConfig.parse(props), 30, lambda _: True)

    def started() -> TopicUpkeep:
        """What a connector that has just been started looks after topics with."""
        selection, chosen = TopicSelection.configured(props), config_property_filter(props)
        return TopicUpkeep(source, target, selection, alias, chosen, 1, Deletions(60), notes())

    def is_mirrored() -> bool:
        return f"{alias}.{topic}" in target.partitions()

    # The heartbeats of other tests are mirrored, too.
    own = sorted(place.topic for place in started().look() if place.topic.startswith(topic))
    assert own == [topic, f"{topic}-stays"]
    wait_until("the mirror is there", is_mirrored)
    admin.delete_topics([topic])[topic].result(30)
    wait_until("the topic is gone", lambda: topic not in source.partitions())
    for now in (1000.0, 1030.0, 1059.0):
        upkeep = started()
        upkeep.delete(upkeep.orphans(), {topic}, now)
        assert notes().kept() == {topic: 1000.0}
        assert is_mirrored()
    upkeep = started()
    upkeep.delete(upkeep.orphans(), {topic}, 1060.0)
    wait_until("it is deleted", lambda: not is_mirrored())
    upkeep = started()
    upkeep.delete(upkeep.orphans(), {topic}, 1061.0)
    assert notes().kept() == {}
