"""Offset syncs, checkpoints and group offsets come out as MirrorMaker 2's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.mirror.checkpoints import Checkpoints, OffsetTranslator, offsets_to_sync, target_topic
from connectors.mirror.policies import replication_policy
from connectors.mirror.records import Checkpoint, OffsetSync
from connectors.mirror.run_records import StoredRuns
from connectors.mirror.sync_store import SyncStore
from equipment.vectors import DATA

VECTORS = json.loads((DATA / "mirror" / "vectors.json").read_text(encoding="utf-8"))
RECORDS = json.loads((DATA / "vectors" / "mirror_records.json").read_text(encoding="utf-8"))


def _syncs(given: Any) -> list[OffsetSync]:
    if isinstance(given, dict):
        (upstream, downstream), step = given["from"], given["step"]
        given = [(upstream + step * number, downstream + step * number) for number in range(given["count"])]
    return [OffsetSync("t", 0, upstream, downstream) for upstream, downstream in given]


@pytest.mark.parametrize("case", [case for case in VECTORS["sync_store"] if "syncs" in case], ids=str)
def test_syncs_are_kept_and_translate_as_javas(case: dict[str, Any]) -> None:
    store = SyncStore(keeps_history=case.get("checkpoints_read_ok", True))
    if case.get("arrived", "after start") == "after start":
        store.start()
    for sync in _syncs(case["syncs"]):
        store.add(sync)
    if "before_start_translate_1000" in case:
        assert store.downstream_of("t", 0, 1000) == case["before_start_translate_1000"]
    store.start()
    assert [[sync.upstream, sync.downstream] for sync in store.kept("t", 0)] == case["kept_newest_first"]
    assert {offset: store.downstream_of("t", 0, int(offset)) for offset in case["translate"]} == case["translate"]
    assert store.downstream_of("t", 1, 5) is None


@pytest.mark.parametrize("case", RECORDS["offset_translation"], ids=str)
def test_translations_are_javas(case: dict[str, Any]) -> None:
    store = SyncStore(keeps_history=not case["initializationMustReadToEnd"])
    if case["synced_after_start"]:
        store.start()
    for sync in _syncs(case["syncs_upstream_downstream"]):
        store.add(sync)
    store.start()
    assert {offset: store.downstream_of("t", 0, int(offset)) for offset in case["translate"]} == case["translate"]


@pytest.mark.parametrize("case", VECTORS["checkpoints"], ids=lambda case: case["name"])
def test_checkpoints_are_emitted_as_by_java(case: dict[str, Any]) -> None:
    syncs, checkpoints = SyncStore(), Checkpoints()
    syncs.start()
    translator = OffsetTranslator(syncs, StoredRuns())
    for step in case["steps"]:
        if "sync" in step:
            syncs.add(OffsetSync("t", 0, *step["sync"]))
            continue
        offset, emitted = step["group_offset"], None
        found = None if offset is None else translator.downstream_of("t", 0, offset)
        if found is not None:
            checkpoint = Checkpoint("g", "A.t", 0, offset, found.offset, "meta")
            if checkpoints.emit(checkpoint):
                emitted = {"topic": "A.t", "partition": 0, "upstream": offset, "downstream": found.offset}
                emitted["metadata"] = checkpoint.metadata
        assert emitted == step["emitted"], step


@pytest.mark.parametrize("case", VECTORS["checkpoint_topic_names"], ids=str)
def test_checkpoints_name_topics_as_javas(case: dict[str, Any]) -> None:
    policy = replication_policy({"replication.policy.class": case["policy"], "source.cluster.alias": case["source"]})
    assert target_topic(policy, case["source"], case["target"], case["group_topic"]) == case["checkpoint_topic"]


@pytest.mark.parametrize("case", VECTORS["group_sync"], ids=lambda case: case["name"])
def test_offsets_of_groups_are_written_as_by_java(case: dict[str, Any]) -> None:
    def named(offsets: dict[str, int] | None) -> dict[tuple[str, int], int] | None:
        return offsets and {(name.rpartition("-")[0], int(name.rpartition("-")[2])): at for name, at in offsets.items()}

    checkpoints = [
        Checkpoint("g", topic, partition, offset, offset)
        for (topic, partition), offset in (named(case["checkpoints"]) or {}).items()
    ]
    written = offsets_to_sync(checkpoints, named(case["target_offsets"]))
    assert {f"{each.topic}-{each.partition}": each.downstream for each in written} == case["written"]
