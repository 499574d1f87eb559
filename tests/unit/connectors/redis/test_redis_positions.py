"""Where writing goes on when Redis has other offsets than expected."""

from __future__ import annotations

import pytest

from connect.data import TopicPartition
from connectors.redis.positions import Positions

P0 = TopicPartition("orders", 0)
P1 = TopicPartition("orders", 1)


@pytest.mark.parametrize(("refills", "begins"), [(True, {P0: 7, P1: 0}), (False, {P0: 7})])
def test_a_partition_without_an_offset_begins_at_its_beginning(
    refills: bool, begins: dict[TopicPartition, int]
) -> None:
    assert Positions(refills).opened({P0: 7, P1: None}) == begins


def test_what_redis_has_is_not_written_again() -> None:
    positions = Positions(refills=True)
    positions.opened({P0: 7, P1: None})
    found = positions.reached([P0, P1, P0, P0], [5, 0, 7, 8], {P0: 7, P1: None})
    assert (list(found.places), found.backs) == ([1, 2, 3], {})


@pytest.mark.parametrize(("stored", "back"), [(3, 3), (None, 0)])
def test_what_redis_has_lost_is_written_again(stored: int | None, back: int) -> None:
    positions = Positions(refills=True)
    positions.opened({P0: 7})
    found = positions.reached([P0, P1], [7, 0], {P0: stored, P1: None})
    assert (list(found.places), found.backs) == ([1], {P0: back})
    again = positions.reached([P0], [back], {P0: stored})
    assert (list(again.places), again.backs) == ([0], {})


def test_gaps_of_the_topic_are_no_losses() -> None:
    positions = Positions(refills=True)
    positions.opened({P0: 7})
    assert positions.reached([P0], [12], {P0: 7}).backs == {}


def test_an_emptied_redis_is_not_filled_again_where_that_is_not_wanted() -> None:
    positions = Positions(refills=False)
    positions.opened({P0: 7})
    assert positions.lost({P0: None}) == {}
    assert list(positions.reached([P0], [7], {P0: None}).places) == [0]


def test_offsets_that_were_read_late_set_the_consumer_back() -> None:
    positions = Positions(refills=True)
    assert positions.unread([P0]) == [P0]
    assert positions.reached([P0], [9], {P0: 4}).backs == {P0: 4}
    assert positions.unread([P0]) == []


def test_losses_are_seen_at_a_commit() -> None:
    positions = Positions(refills=True)
    positions.opened({P0: 7, P1: None})
    positions.wrote({P1: 5})
    assert positions.lost({P0: 7, P1: 2}) == {P1: 2}
    assert positions.lost({P0: 7, P1: 2}) == {}
    assert positions.lost({P0: None, P1: 2}) == {P0: 0}
    positions.forget([P0, P1])
    assert positions.lost({P0: 1, P1: 1}) == {}


def test_a_partition_without_an_offset_is_marked_before_its_first_batch() -> None:
    positions = Positions(refills=True)
    positions.opened({P0: 7, P1: None})
    assert positions.unmarked({P0: 7, P1: 3}) == {P1: 3}
    positions.wrote({P1: 3})
    assert positions.unmarked({P1: 3}) == {}
    assert positions.lost({P1: None}) == {P1: 0}
    assert positions.unmarked({P1: 0}) == {P1: 0}


def test_nothing_is_marked_where_an_emptied_redis_is_not_filled_again() -> None:
    positions = Positions(refills=False)
    positions.opened({P0: None})
    assert positions.unmarked({P0: 0}) == {}


def test_offsets_that_are_stored_are_no_news() -> None:
    positions = Positions(refills=True)
    positions.wrote({P0: 7, P1: 3})
    assert positions.news({P0: 7, P1: 4}) == {P1: 4}
