"""Who may read a topic may read its mirror: ACLs of a broker that has them."""

from __future__ import annotations

from typing import Any

from confluent_kafka.admin import NewTopic

from connectors.mirror.filters import config_property_filter
from connectors.mirror.selection import TopicSelection
from connectors.mirror.topics.attributes import AclBinding
from connectors.mirror.topics.cluster import ClusterTopics
from connectors.mirror.topics.deletion import Deletions
from connectors.mirror.topics.upkeep import TopicUpkeep
from equipment.brokers.secured import SecuredBroker
from equipment.brokers.topics import admin_client
from equipment.waiting import wait_until


def _acl(topic: str, user: str, operation: str, permission: str = "ALLOW") -> AclBinding:
    return AclBinding(topic, f"User:{user}", "*", operation, permission)


def test_acls_of_a_topic_are_those_of_its_mirror(secured: SecuredBroker, topic: str) -> None:
    cluster = ClusterTopics(admin_client(secured.bootstrap), "A", 30)
    assert cluster.create([NewTopic(topic, 2, 1, config={"retention.ms": "-1"})]) == [topic]
    own = {
        _acl(topic, "alice", "READ"),
        _acl(topic, "alice", "WRITE"),
        _acl(topic, "bob", "ALL"),
        _acl(topic, "carl", "WRITE", "DENY"),
    }
    cluster.allow([*own, _acl(f"not-{topic}", "dora", "READ")])
    props: dict[str, Any] = {"topics": topic, "source.cluster.alias": "A", "target.cluster.alias": "B"}
    selection = TopicSelection.configured(props)
    upkeep = TopicUpkeep(cluster, cluster, selection, "A", config_property_filter(props), 1, Deletions(0))

    def known() -> set[AclBinding]:
        return {acl for acl in cluster.acls() or () if acl.topic.endswith(topic)}

    wait_until("the ACLs are known", lambda: len(known()) == 5)
    assert [(each.topic, each.partition) for each in upkeep.look()] == [(topic, 0), (topic, 1)]
    upkeep.sync_acls()
    remote = f"A.{topic}"
    mirrored = {_acl(remote, "alice", "READ"), _acl(remote, "bob", "READ"), _acl(remote, "carl", "WRITE", "DENY")}
    wait_until("the mirror has its own", lambda: known() == {*own, *mirrored, _acl(f"not-{topic}", "dora", "READ")})

    # What is taken back at the source is at the target, and what somebody else has allowed there stays.
    cluster.allow([_acl(remote, "eve", "READ")])
    cluster.disallow([_acl(topic, "alice", "READ")])
    wait_until("the ACL is gone", lambda: _acl(topic, "alice", "READ") not in known())
    upkeep.sync_acls()
    left = mirrored - {_acl(remote, "alice", "READ")} | {_acl(remote, "eve", "READ")}
    wait_until("it is gone at the mirror", lambda: {acl for acl in known() if acl.topic == remote} == left)
