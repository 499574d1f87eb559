"""Groups move to the other cluster and back: by runs or offset syncs, and never past what they have read."""

from __future__ import annotations

import pytest

from connectors.mirror.checkpoints import FlowTopics, GroupOffset, OffsetTranslator
from connectors.mirror.failover import moves_back, moves_by_checkpoints, moves_over
from connectors.mirror.filters import topic_filter
from connectors.mirror.policies import replication_policy
from connectors.mirror.records import Checkpoint, OffsetSync
from connectors.mirror.run_records import RunWriter, StoredRuns
from connectors.mirror.runs import Runs, Translation
from connectors.mirror.sync_store import SyncStore


def _flow(**props: str) -> FlowTopics:
    given = {"topics": "orders", "source.cluster.alias": "A", **props}
    return FlowTopics(topic_filter(given), replication_policy(given), "A", "B")


def _translator(*syncs: tuple[int, int], runs: tuple[tuple[int, int, int], ...] = ()) -> OffsetTranslator:
    store, stored, written = SyncStore(), StoredRuns(), Runs()
    store.start()
    for upstream, downstream in syncs:
        store.add(OffsetSync("orders", 0, upstream, downstream))
    for run in runs:
        written.add(*run)
    for key, value in RunWriter("orders", 0).records(written):
        stored.read(key, value)
    return OffsetTranslator(store, stored)


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(99, None), (100, Translation(50)), (101, Translation(51)), (140, Translation(51, again=39))],
)
def test_by_syncs_alone_a_group_comes_home_at_most_to_what_it_has_read(
    offset: int, expected: Translation | None
) -> None:
    assert _translator((50, 100)).upstream_of("orders", 0, offset) == expected


def test_the_newest_sync_that_is_not_ahead_leads_home() -> None:
    translator = _translator((0, 0), (10, 10), (90, 80))
    assert translator.upstream_of("orders", 0, 85) == Translation(91, again=4)
    # The sync of 10 is not kept, because it is too near the first for its distance to the last.
    assert translator.upstream_of("orders", 0, 30) == Translation(1, again=29)
    assert translator.upstream_of("orders", 1, 30) is None


def test_runs_come_before_syncs_both_ways() -> None:
    translator = _translator((0, 0), runs=((0, 0, 300), (310, 300, 190)))
    assert translator.downstream_of("orders", 0, 320) == Translation(310)
    assert translator.upstream_of("orders", 0, 490) == Translation(500)


def test_what_moves_and_what_does_not() -> None:
    translator = _translator((100, 100), (200, 200))
    committed = [GroupOffset("orders", 0, 250, "m"), GroupOffset("orders", 1, 5), GroupOffset("other", 0, 1)]
    first, second = moves_over(_flow(), translator, committed, [])
    assert (first.topic, first.found, first.is_due) == ("A.orders", Translation(201, again=49), True)
    assert (first.remark, first.committed()) == ("conservative", GroupOffset("A.orders", 0, 201, "m"))
    assert (second.found, second.is_due, second.read_again) == (None, False, None)
    assert second.remark.startswith("unknown")
    (ahead, _) = moves_over(_flow(), translator, committed, [GroupOffset("A.orders", 0, 230)])
    assert (ahead.is_due, ahead.remark) == (False, "stays at 230, which is further")


def test_only_mirrored_topics_come_home() -> None:
    translator = _translator((100, 100))
    committed = [GroupOffset("A.orders", 0, 101), GroupOffset("orders", 0, 7), GroupOffset("C.orders", 0, 7)]
    (home,) = moves_back(_flow(), translator, committed, [GroupOffset("orders", 0, 101)])
    assert (home.topic, home.found, home.remark) == ("orders", Translation(101), "already there")
    identity = _flow(**{"replication.policy.class": "IdentityReplicationPolicy"})
    (same,) = moves_back(identity, translator, [GroupOffset("orders", 0, 101)], [])
    assert (same.topic, same.is_due) == ("orders", True)


def test_by_checkpoints_nobody_says_how_much_is_read_again() -> None:
    (move,) = moves_by_checkpoints([Checkpoint("g", "A.orders", 0, 320, 310)], [])
    assert (move.is_due, move.read_again, move.remark) == (True, None, "by the last checkpoint")
