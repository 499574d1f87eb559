"""The decisions of the source connector of a mirror are MirrorMaker's."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from connect.data import TopicPartition
from connect.errors import ConnectError
from connectors.mirror.filters import config_property_filter
from connectors.mirror.shares import assigned_partitions, partition_shares, written_partitions
from connectors.mirror.source.journal import SyncSchedule
from connectors.mirror.source_offsets import check_offset, position, source_offset, source_partition
from connectors.mirror.topics.attributes import (
    AclBinding,
    Setting,
    mirrored_acl,
    settings_at_creation,
    settings_to_alter,
)
from equipment.vectors import DATA

VECTORS: Final = json.loads((DATA / "mirror" / "vectors.json").read_text())
OFFSETS: Final = [case for case in VECTORS["alter_offsets"] if case["connector"] == "source"]
SPLITS: Final = [case for case in VECTORS["task_split"] if case["connector"] == "source" and "order" in case]


@pytest.mark.parametrize("case", VECTORS["sync_writer"], ids=lambda case: case["name"])
def test_syncs_are_due_when_javas_are(case: dict[str, Any]) -> None:
    schedule = SyncSchedule(case["offset.lag.max"])
    for step in case["steps"]:
        if "commit" in step:
            delayed = schedule.committed()
            assert ([] if delayed is None else [list(delayed)]) == step["sent"]
        else:
            assert bool(schedule.acknowledged(step["up"], step["down"])) is step["now"]


@pytest.mark.parametrize("lag", [0, 1, 5, 100])
@pytest.mark.parametrize("lengths", [[7], [1, 1, 300], [101, 1, 250, 3]])
def test_records_in_step_are_due_as_one_by_one(lag: int, lengths: list[int]) -> None:
    at_once, one_by_one = SyncSchedule(lag), SyncSchedule(lag)
    upstream = downstream = 3
    for length in lengths:
        due = at_once.acknowledged(upstream, downstream, length)
        single = [pair for at in range(length) for pair in one_by_one.acknowledged(upstream + at, downstream + at)]
        assert due == single
        upstream, downstream = upstream + length + 2, downstream + length
    assert at_once.committed() == one_by_one.committed()


@pytest.mark.parametrize("case", SPLITS, ids=lambda case: f"{len(case['order'])} among {case['tasks.max']}")
def test_partitions_are_dealt_as_javas(case: dict[str, Any]) -> None:
    shares = partition_shares(assigned_partitions(case["order"]), case["tasks.max"])
    assert [written_partitions(share) for share in shares] == case["task.assigned.partitions"]
    assert [str(index) for index in range(len(shares))] == case.get("task.index", [])


def test_new_partitions_leave_other_tasks_as_they_are() -> None:
    a, b, c, d = (TopicPartition("t", number) for number in range(4))
    assert partition_shares([a, b, c, d], 2, [(b, a), (c,)]) == [(b, a), (c, d)]
    assert partition_shares([a, c], 2, [(b, a), (c,)]) == [(a,), (c,)]
    assert partition_shares([a, c], 2, [(b, a), (d,)]) == [(a,), (c,)]


def test_tasks_are_dealt_anew_when_there_are_more_or_one_has_nothing() -> None:
    a, b, c = (TopicPartition("t", number) for number in range(3))
    assert partition_shares([a, b, c], 3, [(a, b), (c,)]) == [(a,), (b,), (c,)]
    assert partition_shares([a, b], 2, [(a, b), (c,)]) == [(a,), (b,)]


@pytest.mark.parametrize("case", VECTORS["acls"], ids=lambda case: f"{case['permission']} {case['operation']}")
def test_acls_are_mirrored_as_javas(case: dict[str, Any]) -> None:
    binding = AclBinding("orders", "User:x", "*", case["operation"], case["permission"])
    java = case["as"]
    expected = java and AclBinding(
        java["topic"], java["principal"], java["host"], java["operation"], java["permission"]
    )
    assert mirrored_acl(binding, "A.orders") == expected


@pytest.mark.parametrize("case", VECTORS["target_topic_config"], ids=lambda case: case["use.defaults.from"])
def test_settings_are_mirrored_as_javas(case: dict[str, Any]) -> None:
    chosen = config_property_filter({"use.defaults.from": case["use.defaults.from"]})
    source = [
        Setting(item["name"], item["value"], item["source"], item["read_only"], item["sensitive"])
        for item in case["source_config"]
    ]
    altered = {
        name: "DELETE" if value is None else f"SET {value}" for name, value in settings_to_alter(source, chosen).items()
    }
    assert settings_at_creation(source, chosen) == case["at_creation"]
    assert altered == case["at_sync_incremental"]


@pytest.mark.parametrize("case", OFFSETS, ids=lambda case: json.dumps([case["partition"], case["offset"]]))
def test_offsets_are_accepted_as_javas(case: dict[str, Any]) -> None:
    if case["result"] is True:
        check_offset(case["partition"], case["offset"])
    else:
        with pytest.raises(ConnectError):
            check_offset(case["partition"], case["offset"])


def test_stored_offsets_have_javas_bytes() -> None:
    partition, offset = source_partition("A", TopicPartition("orders", 0)), source_offset(41)
    assert json.dumps(partition, separators=(",", ":")) == '{"cluster":"A","partition":0,"topic":"orders"}'
    assert json.dumps(offset, separators=(",", ":")) == '{"offset":41}'
    assert (position(offset), position(None)) == (42, None)
