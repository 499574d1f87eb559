"""Offsets are found however the members of their partitions are ordered."""

from __future__ import annotations

import pytest

from connect.errors import DataError
from worker.kafka.topics.compacted import TopicRecord
from worker.stores.offset.kafka import OffsetView

AB, BA = b'["c",{"a":1,"b":2}]', b'["c",{"b":2,"a":1}]'


def record(key: bytes | None, value: bytes | None, timestamp: int = 0) -> TopicRecord:
    return TopicRecord(0, 0, key, value, timestamp)


def test_the_members_of_a_partition_may_come_in_any_order() -> None:
    view = OffsetView()
    view.read(record(BA, b"1"))
    assert view.get(AB) == b"1"
    assert view.forms(AB) == [BA]
    assert view.items() == {BA: b"1"}
    assert view.forms(b'["c",{"a":2}]') == [b'["c",{"a":2}]']


def test_the_newest_of_two_forms_counts_and_both_are_written() -> None:
    view = OffsetView()
    view.read(record(BA, b"new", 2))
    view.read(record(AB, b"old", 1))
    assert view.get(AB) == b"new"
    assert sorted(view.forms(AB)) == [AB, BA]
    assert view.items() == {BA: b"new"}


def test_a_tombstone_forgets_a_form() -> None:
    view = OffsetView()
    view.read(record(BA, b"1"))
    view.read(record(BA, None))
    view.read(record(AB, None))
    assert view.get(BA) is None
    assert view.items() == {}


@pytest.mark.parametrize("key", [None, b"x", b"{}", b'["c"]', b"[1,{}]", b'["c",3]', b'["c",{},1]'])
def test_keys_of_something_else_are_refused(key: bytes | None) -> None:
    with pytest.raises(DataError):
        OffsetView().read(record(key, b"1"))
