"""Names, choices and bytes of a mirror are MirrorMaker 2's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.mirror.filters import group_filter
from connectors.mirror.policies import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    hops,
    is_cycle,
    replication_policy,
    upstream_clusters,
)
from connectors.mirror.records import Checkpoint, Heartbeat, OffsetSync
from connectors.mirror.selection import LeftOut, TopicSelection
from equipment.vectors import DATA

RECORDS = json.loads((DATA / "vectors" / "mirror_records.json").read_text(encoding="utf-8"))
VECTORS = json.loads((DATA / "mirror" / "vectors.json").read_text(encoding="utf-8"))
ALIASES = {"source.cluster.alias": "A", "target.cluster.alias": "B"}


def _record(case: dict[str, Any]) -> OffsetSync | Checkpoint | Heartbeat:
    if case["kind"] == "heartbeat":
        return Heartbeat(case["sourceClusterAlias"], case["targetClusterAlias"], case["timestamp"])
    offsets = case["upstreamOffset"], case["downstreamOffset"]
    if case["kind"] == "offset_sync":
        return OffsetSync(case["topic"], case["partition"], *offsets)
    return Checkpoint(case["group"], case["topic"], case["partition"], *offsets, case["metadata"])


@pytest.mark.parametrize("case", RECORDS["cases"], ids=lambda case: case["kind"])
def test_records_are_javas_byte_for_byte(case: dict[str, Any]) -> None:
    record = _record(case)
    key, value = bytes.fromhex(case["key_hex"]), bytes.fromhex(case["value_hex"])
    assert (record.key(), record.value()) == (key, value)
    assert type(record).decode(key, value) == record


@pytest.mark.parametrize(
    "case", RECORDS["replication_policy"], ids=lambda case: f"{case.get('policy')} {case.get('topic')}"
)
def test_policies_name_topics_as_javas(case: dict[str, Any]) -> None:
    separator = case.get("separator", ".")
    identity = case.get("policy", "").startswith("Identity")
    policy: ReplicationPolicy = DefaultReplicationPolicy(separator, separator)
    if identity:
        policy = IdentityReplicationPolicy(source_alias="src")
    if "topic" not in case:
        assert policy.offset_syncs_topic("a") == case["offsetSyncsTopic(a)"]
        assert policy.checkpoints_topic("a") == case["checkpointsTopic(a)"]
        assert policy.heartbeats_topic() == case["heartbeatsTopic"]
        return
    topic = case["topic"]
    found = {
        "formatRemoteTopic(src)": policy.format_remote_topic("src", topic),
        "topicSource": policy.topic_source(topic),
        "upstreamTopic": policy.upstream_topic(topic),
        "originalTopic": policy.original_topic(topic),
        "isInternalTopic": policy.is_internal_topic(topic),
        "isHeartbeatsTopic": policy.is_heartbeats_topic(topic),
        "isCheckpointsTopic": policy.is_checkpoints_topic(topic),
    }
    assert {name: found[name] for name in found if name in case} == {name: case[name] for name in found if name in case}


@pytest.mark.parametrize("case", VECTORS["internal_names"], ids=lambda case: f"{case['config']} {case['location']}")
def test_internal_topics_have_javas_names(case: dict[str, Any]) -> None:
    policy = replication_policy(case["config"])
    assert policy.offset_syncs_topic("B" if case["location"] == "source" else "A") == case["offset_syncs"]
    assert policy.checkpoints_topic("A") == case["checkpoints"]
    assert policy.heartbeats_topic() == case["heartbeats"]
    assert policy.format_remote_topic("A", "orders") == case["remote(orders)"]
    assert policy.format_remote_topic("A", "heartbeats") == case["remote(heartbeats)"]


@pytest.mark.parametrize("case", VECTORS["topic_selection"], ids=lambda case: case["name"])
def test_topics_are_chosen_as_by_java(case: dict[str, Any]) -> None:
    selection = TopicSelection.configured({**ALIASES, **case["config"]})
    policy = selection.policy
    topics = [*case["mirrored_as"], *case["not_mirrored"]]
    # That Connect's own topics are left out is a difference; see docs/connectors/mirror.md.
    wanted = (topic for topic in topics if selection.left_out(topic) in {None, LeftOut.CONNECT})
    taken = {topic: policy.format_remote_topic("A", topic) for topic in wanted}
    assert taken == case["mirrored_as"]
    assert {topic for topic in topics if is_cycle(policy, topic, "B")} == set(case["cycle"])


@pytest.mark.parametrize("case", VECTORS["group_selection"], ids=lambda case: str(case["config"]))
def test_groups_are_chosen_as_by_java(case: dict[str, Any]) -> None:
    groups = {name for each in VECTORS["group_selection"] for name in each["yes"]}
    chosen = group_filter(case["config"])
    assert {name for name in groups if chosen.should_replicate_group(name)} == set(case["yes"])


@pytest.mark.parametrize("case", VECTORS["mirror_client"], ids=lambda case: f"{case['policy']} {case['topics'][0]}")
def test_what_names_say_of_clusters(case: dict[str, Any]) -> None:
    policy = replication_policy({"replication.policy.class": case["policy"], **ALIASES})
    heartbeats = [topic for topic in case["topics"] if policy.is_heartbeats_topic(topic)]
    assert sorted(heartbeats) == case["heartbeat_topics"]
    assert sorted(topic for topic in case["topics"] if policy.is_checkpoints_topic(topic)) == case["checkpoint_topics"]
    clusters: set[str] = set()
    assert (
        sorted(clusters.union(*(upstream_clusters(policy, topic) for topic in heartbeats))) == case["upstream_clusters"]
    )
    for alias, expected in case["hops"].items():
        found = [hop for topic in heartbeats if (hop := hops(policy, topic, alias)) is not None]
        assert min(found, default=-1) == expected


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("orders", None),
        ("B.orders", LeftOut.CYCLE),
        ("__secret", LeftOut.INTERNAL),
        ("mm2-offset-runs.B.internal", LeftOut.INTERNAL),
        ("x.replica", LeftOut.FILTER),
        ("B.checkpoints.internal", LeftOut.INTERNAL),
        ("A.heartbeats", None),
    ],
)
def test_why_a_topic_is_left_out(topic: str, reason: LeftOut | None) -> None:
    assert TopicSelection.configured({**ALIASES, "topics": "orders,B.*,x.*"}).left_out(topic) == reason
