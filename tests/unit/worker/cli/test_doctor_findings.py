"""What the doctor makes of an internal topic, and how findings are shown."""

from __future__ import annotations

import pytest

from connect.internals.kafka.auth.rights import on_topic
from worker.cli.doctor.brokers import InternalTopic, missing_topic_finding, topic_findings
from worker.cli.doctor.findings import Finding, Level, findings_text, worst
from worker.kafka.topics.inspection import ClusterSeen, PartitionSeen, TopicSeen

TOPIC = InternalTopic("config.storage.topic", "configs", "the connectors", "All connectors would be gone.", 1)
CLUSTER = ClusterSeen("id", 3, may_create=True)
COMPACT = frozenset({"compact"})


def partition(number: int = 0, replicas: int = 3, in_sync: int = 3, *, has_leader: bool = True) -> PartitionSeen:
    return PartitionSeen(number, has_leader, replicas, in_sync)


def found(seen: TopicSeen, cluster: ClusterSeen = CLUSTER) -> list[tuple[str, str]]:
    """The levels and the beginnings of what is found."""
    findings = topic_findings(TOPIC, seen, cluster, "kafka:9092", lambda: None)
    return [(finding.level.value, finding.told.removeprefix("configs (config.storage.topic)")) for finding in findings]


def test_a_sound_topic_has_no_findings() -> None:
    assert found(TopicSeen("configs", [partition()], policy=COMPACT)) == []
    assert (
        found(TopicSeen("configs", [partition(replicas=1, in_sync=1)], policy=COMPACT), ClusterSeen("id", 1, True))
        == []
    )


@pytest.mark.parametrize(
    ("seen", "level", "told"),
    [
        (
            TopicSeen("configs", [partition(0), partition(1)], policy=COMPACT),
            "error",
            " has 2 partitions, and only one",
        ),
        (
            TopicSeen("configs", [partition(has_leader=False)], policy=COMPACT),
            "error",
            " has no leader for partition 0",
        ),
        (
            TopicSeen("configs", [partition(in_sync=2)], policy=COMPACT),
            "warning",
            ": 2 of the 3 replicas of partition 0",
        ),
        (
            TopicSeen("configs", [partition(0, 2, 2)], policy=COMPACT),
            "warning",
            " has 2 replicas and the cluster 3 brokers.",
        ),
        (
            TopicSeen("configs", [partition()], policy=frozenset({"compact", "delete"})),
            "error",
            " has cleanup.policy=comp",
        ),
        (
            TopicSeen("configs", [partition()], policy=COMPACT, min_in_sync=4),
            "error",
            " has min.insync.replicas=4 and 3 replicas",
        ),
    ],
)
def test_each_damage_is_found(seen: TopicSeen, level: str, told: str) -> None:
    ((found_level, found_told),) = found(seen)
    assert (found_level, found_told[: len(told)]) == (level, told)


def test_rights_that_are_missing_come_with_the_commands_that_grant_them() -> None:
    lacking = [on_topic("configs", "Read"), on_topic("configs", "Write")]
    seen = TopicSeen("configs", [partition()], lacking, COMPACT)
    (finding,) = topic_findings(TOPIC, seen, CLUSTER, "kafka:9092", lambda: None)
    assert finding.told == "The worker's user lacks rights on configs (config.storage.topic): Read, Write."
    assert finding.repair == (
        "kafka-acls.sh --add --allow-principal User:NAME --operation Read --topic configs\n"
        "kafka-acls.sh --add --allow-principal User:NAME --operation Write --topic configs"
    )


def test_a_missing_topic_is_fine_where_it_may_be_created() -> None:
    assert missing_topic_finding(TOPIC, CLUSTER).level is Level.FINE
    assert missing_topic_finding(TOPIC, ClusterSeen("id", 3, may_create=False)).level is Level.WARNING


def test_findings_are_shown_with_their_repairs_and_the_worst_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    findings = [Finding("disk", Level.FINE, "Room."), Finding("clock", Level.WARNING, "Late.", "one\ntwo")]
    assert findings_text(findings) == "fine  disk: Room.\nWARN  clock: Late.\n      -> one\n      -> two"
    mendable = Finding("internal topics", Level.ERROR, "Deletes.", "kafka-configs.sh", mend=lambda: None)
    assert findings_text([mendable]).splitlines()[1:] == [
        "      -> kafka-configs.sh",
        "      -> or this command again, with --repair",
    ]
    assert worst(findings) is Level.WARNING
    assert worst([]) is Level.FINE
