"""Groups are divided, offsets checked and clusters told by the names of topics as by MirrorMaker 2."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from connect.data import Offset
from connect.errors import ConnectError
from connectors.mirror import MirrorCheckpointConnector, MirrorHeartbeatConnector
from connectors.mirror.client import MirrorTopics
from connectors.mirror.policies import replication_policy
from connectors.mirror.shares import assigned_groups, group_shares, written_groups
from equipment.mirror_recordings import mirror_vectors

SPLITS: Final = [case for case in mirror_vectors("task_split") if case["connector"] == "checkpoint" and "order" in case]
OFFSETS: Final = [case for case in mirror_vectors("alter_offsets") if case["connector"] != "source"]
PROPS: Final = {"name": "c", "connector.class": "c", "source.cluster.alias": "A", "target.cluster.alias": "B"}


@pytest.mark.parametrize("case", SPLITS, ids=lambda case: f"{len(case['order'])} among {case['tasks.max']}")
def test_groups_follow_each_other(case: dict[str, Any]) -> None:
    shares = group_shares(case["order"], case["tasks.max"])
    assert [written_groups(share) for share in shares] == case["task.assigned.groups"]


def test_a_new_group_leaves_other_tasks_as_they_are() -> None:
    assert group_shares(["a", "b", "c", "x"], 2, [("b", "a"), ("c",)]) == [("b", "a"), ("c", "x")]
    assert group_shares(["a", "c"], 2, [("b", "a"), ("c",)]) == [("a",), ("c",)]
    assert group_shares(["a", "b"], 2, [("b", "a"), ("c",)]) == [("a",), ("b",)]
    assert group_shares(["a", "b", "c"], 3, [("b", "a"), ("c",)]) == [("a",), ("b",), ("c",)]
    assert group_shares([], 2, [("a",)]) == []


def test_any_name_of_a_group_survives() -> None:
    names = ("a,b", " c ", "50%", "%2C", "ä", "d")
    text = written_groups(names)
    assert text == "a%2Cb,%20c%20,50%25,%252C,ä,d"
    assert assigned_groups(text.split(",")) == names


@pytest.mark.parametrize("case", OFFSETS, ids=json.dumps)
def test_offsets_are_accepted_as_by_java(case: dict[str, Any]) -> None:
    offsets: dict[str, Offset | None] = {json.dumps(case["partition"]): case["offset"]}
    connector = MirrorCheckpointConnector if case["connector"] == "checkpoint" else MirrorHeartbeatConnector

    def alter() -> bool:
        if connector is MirrorCheckpointConnector:
            return connector.alter_offsets(connector.config_class.parse(PROPS), offsets)
        return MirrorHeartbeatConnector.alter_offsets(MirrorHeartbeatConnector.config_class.parse(PROPS), offsets)

    if case["result"] is True:
        assert alter()
    else:
        with pytest.raises(ConnectError, match="give"):
            alter()


@pytest.mark.parametrize(
    "case", mirror_vectors("mirror_client"), ids=lambda case: f"{case['policy']} {case['topics'][0]}"
)
def test_topics_tell_what_they_tell_javas_client(case: dict[str, Any]) -> None:
    policy = replication_policy({"replication.policy.class": case["policy"], "source.cluster.alias": "A"})
    topics = MirrorTopics(policy, case["topics"])
    assert sorted(topics.heartbeat_topics()) == case["heartbeat_topics"]
    assert sorted(topics.checkpoint_topics()) == case["checkpoint_topics"]
    assert sorted(topics.upstream_clusters()) == case["upstream_clusters"]
    assert {alias: topics.replication_hops(alias) for alias in case["hops"]} == {
        alias: None if hops < 0 else hops for alias, hops in case["hops"].items()
    }
    assert sorted(topics.remote_topics()) == case["remote_topics"]
    assert sorted(topics.remote_topics("A")) == case["remote_topics_of_A"]
