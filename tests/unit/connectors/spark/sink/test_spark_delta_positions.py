"""The transaction identifiers in which a Delta table keeps the offsets of a connector."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from connect.data import TopicPartition
from connectors.spark.sink.delta.positions import Positions, latest_ids

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)
NAME = "sluice/a%2Fb"


class Log:
    """Transaction identifiers: the last version of each counts."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {"another/t/0/to": 7}

    def set(self, changes: Mapping[str, int]) -> None:
        self.versions |= changes

    @property
    def positions(self) -> Positions:
        return Positions.read("a/b", self.versions)

    def plan(self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], routed: bool) -> None:
        self.set(self.positions.plan(starts, ends, routed=routed, ids={"t": "A"}, windows={}, now=1000))

    def load(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], routed: bool = False
    ) -> None:
        self.plan(starts, ends, routed)
        self.set(self.positions.commit())


def test_offsets_count_once_the_load_is_committed() -> None:
    log = Log()
    assert log.positions.offsets == {}
    log.plan({ZERO: 5}, {ZERO: 10}, routed=False)
    assert log.positions.number == 0
    assert log.positions.offsets == {ZERO: 5}
    log.set(log.positions.commit())
    assert log.positions.offsets == {ZERO: 10}
    log.load({ONE: 0}, {ONE: 3})
    assert log.positions.offsets == {ZERO: 10, ONE: 3}
    assert log.versions == {
        "another/t/0/to": 7,
        NAME: 3,
        f"{NAME}/t/0/from": 10,
        f"{NAME}/t/0/to": 10,
        f"{NAME}/t/1/from": 0,
        f"{NAME}/t/1/to": 3,
        f"{NAME}/t/id/A": 1000,
    }


@pytest.mark.parametrize("again", ["plan", "claim"])
def test_a_load_that_was_given_up_counts_for_nothing_and_its_number_is_never_used(again: str) -> None:
    log = Log()
    log.load({ZERO: 0}, {ZERO: 10})
    log.plan({ZERO: 10, ONE: 0}, {ZERO: 20, ONE: 20}, routed=False)
    given_up = log.positions.number + 1
    if again == "claim":
        log.set(log.positions.claim())
    else:
        log.plan({ZERO: 10}, {ZERO: 15}, routed=False)
    assert log.positions.number > given_up
    assert log.positions.offsets == {ZERO: 10, ONE: 0}
    log.load({ZERO: 10}, {ZERO: 15})
    assert log.positions.offsets == {ZERO: 15, ONE: 0}


def test_what_a_table_has_of_routed_records_is_not_what_all_have() -> None:
    log = Log()
    log.load({ZERO: 0}, {ZERO: 10})
    log.load({ZERO: 10}, {ZERO: 20}, routed=True)
    assert (log.positions.offsets, log.positions.complete) == ({ZERO: 20}, {ZERO: 10})
    log.set(log.positions.finish({ZERO: 20}))
    assert (log.positions.offsets, log.positions.complete) == ({ZERO: 20}, {ZERO: 20})
    log.load({ZERO: 35}, {ZERO: 40})
    assert log.positions.complete == {ZERO: 40}


def test_skipping_forgets_the_id_of_the_topic() -> None:
    log = Log()
    log.load({ZERO: 0}, {ZERO: 10})
    assert latest_ids(log.positions.ids) == {"t": "A"}
    log.set(log.positions.skip({ZERO: 50}, now=10))
    assert latest_ids(log.positions.ids) == {}
    assert log.positions.complete == {ZERO: 50}
    log.set(log.positions.plan({ZERO: 50}, {ZERO: 60}, routed=False, ids={"t": "B"}, windows={}, now=10))
    assert latest_ids(log.positions.ids) == {"t": "B"}


def test_the_state_of_windows_counts_with_the_load_that_leaves_it() -> None:
    log = Log()

    def plan(windows: Mapping[str, int]) -> None:
        start = log.positions.offsets.get(ZERO, 0)
        log.set(log.positions.plan({ZERO: start}, {ZERO: start + 5}, routed=False, ids={}, windows=windows, now=1))

    plan({"t": 7})
    assert log.positions.windows == {"t": 0}
    log.set(log.positions.claim())
    assert log.positions.windows == {"t": 0}, "the load was given up"
    plan({"t": 8})
    log.set(log.positions.commit())
    assert log.positions.windows == {"t": 8}
    plan({"t": 9})
    assert log.positions.windows == {"t": 8}
    log.set(log.positions.claim())
    plan({"u": 3})
    log.set(log.positions.commit())
    log.set(log.positions.finish({ZERO: 20}))
    log.set(log.positions.skip({ZERO: 50}, now=10))
    assert log.positions.windows == {"t": 8, "u": 3}
    plan({"t": 0})
    log.set(log.positions.commit())
    assert log.positions.windows == {"t": 0, "u": 3}
