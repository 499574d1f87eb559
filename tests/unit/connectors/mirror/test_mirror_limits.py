"""What a mirror leaves out, holds back, marks and deletes, as decisions without a cluster."""

from __future__ import annotations

import json

import pytest

from connect.data import TopicPartition
from connect.errors import ConnectError
from connectors.mirror.source.batches import Provenance
from connectors.mirror.source.gaps import Gap, Gaps, Reason
from connectors.mirror.source.reader import Throttle
from connectors.mirror.topics.deletion import Deletions

PLACE = TopicPartition("orders", 3)
GAP = Gap(PLACE, Reason.EXPIRED, 10, 14, 15)


@pytest.mark.parametrize(
    ("gap", "told"),
    [
        (GAP, "Offsets 10 to 14 of orders-3 were deleted before they could be mirrored."),
        (
            Gap(PLACE, Reason.LOST, 10, None, 0),
            "orders-3 ends before offset 10 at the source, where reading should continue",
        ),
        (Gap(PLACE, Reason.SOURCE_ANEW, 10, None, 0), "Topic orders was recreated at the source, so the stored"),
        (
            Gap(PLACE, Reason.TARGET_ANEW, 0, 9, 10),
            "The topic that orders-3 is mirrored to was recreated at the target",
        ),
    ],
)
def test_a_task_fails_before_a_gap_and_is_told_what_to_do(gap: Gap, told: str) -> None:
    gaps = Gaps("fail", "A", "mm2-gaps.A.internal")
    with pytest.raises(ConnectError) as failure:
        gaps.meet(gap)
    assert str(failure.value).startswith(told)
    assert "with the REST API" in str(failure.value)
    assert gaps.take_mark() is None


def test_a_gap_is_marked_by_a_record_with_the_offset_before_the_next() -> None:
    gaps = Gaps("mark", "A", "mm2-gaps.A.internal")
    gaps.meet(GAP)
    batch = gaps.take_mark()
    assert batch is not None
    (record,) = batch
    assert record.topic == "mm2-gaps.A.internal"
    assert json.loads(record.key) == {"topic": "orders", "partition": 3, "first": 10, "reason": "expired"}
    value = json.loads(record.value)
    assert value.pop("noticed") == record.timestamp
    assert value == {
        "source": "A", "topic": "orders", "partition": 3, "reason": "expired", "first": 10, "last": 14, "next": 15,
    }  # fmt: skip
    assert record.source_partition == {"cluster": "A", "partition": 3, "topic": "orders"}
    assert record.source_offset == {"offset": 14}
    assert gaps.take_mark() is None
    assert gaps.counts == {PLACE: 1}


def test_what_only_continues_is_counted_and_not_marked() -> None:
    gaps = Gaps("continue", "A", "mm2-gaps.A.internal")
    gaps.meet(GAP)
    assert (gaps.take_mark(), gaps.counts) == (None, {PLACE: 1})


def test_a_throttle_makes_up_for_what_was_read_too_much() -> None:
    now = 100.0
    throttle = Throttle(1000, lambda: now)
    assert throttle.wait() == 0
    throttle.take(3500)
    assert throttle.wait() == 2.5
    now += 2.0
    assert throttle.wait() == 0.5
    now += 0.5
    assert throttle.wait() == 0
    # However long nothing was read, no more than a second's bytes are saved.
    now += 1000
    throttle.take(1500)
    assert throttle.wait() == 0.5


def test_records_do_not_go_back_to_a_cluster_that_they_have_been_at() -> None:
    there, back, on = Provenance("via", "A", "B"), Provenance("via", "B", "A"), Provenance("via", "B", "C")
    assert not there.comes_from_target(None)
    copy = there.added([("x", b"A")])
    assert copy == [("x", b"A"), ("via", b"A")]
    assert back.comes_from_target(copy)
    assert not on.comes_from_target(copy)
    assert on.added(copy) == [("x", b"A"), ("via", b"A"), ("via", b"B")]
    assert there.added(None) == [("via", b"A")]


def test_a_topic_is_deleted_when_its_source_is_gone_for_long_enough() -> None:
    deletions = Deletions(60)
    assert deletions.due({"a", "b"}, {"a", "b"}, 0) == []
    assert deletions.due({"b"}, {"a", "b"}, 10) == []
    assert deletions.due({"b"}, {"a", "b"}, 69) == []
    assert deletions.due({"b"}, {"a", "b"}, 70) == ["a"]
    # One that comes back begins anew.
    assert deletions.due({"a", "b"}, {"a", "b"}, 71) == []
    assert deletions.due({"b"}, {"a", "b"}, 72) == []
    assert deletions.due({"b"}, {"a", "b"}, 131) == []


def test_the_time_goes_on_after_a_restart() -> None:
    before, after = Deletions(60), Deletions(60)
    assert before.due({"b"}, {"a"}, 10) == []
    after.recall(before.missing)
    assert after.due({"b"}, {"a"}, 69) == []
    assert after.due({"b"}, {"a"}, 70) == ["a"]
    # Of what came back meanwhile nothing is known any more.
    again = Deletions(60)
    again.recall(before.missing)
    assert again.due({"a", "b"}, {"a"}, 20) == []
    assert again.missing == {}


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_source_that_is_away_or_has_nothing_has_deleted_nothing(*, is_empty: bool) -> None:
    deletions = Deletions(60)
    assert deletions.due({"b"}, {"a"}, 0) == []
    if is_empty:
        assert deletions.due((), {"a"}, 50) == []
    else:
        deletions.source_is_away()
    assert deletions.due({"b"}, {"a"}, 60) == []
    assert deletions.due({"b"}, {"a"}, 119) == []
    assert deletions.due({"b"}, {"a"}, 120) == ["a"]
