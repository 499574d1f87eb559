"""Offsets are found however the members of their partitions are ordered; a connector's own topic comes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from connect.errors import ConnectError, DataError
from worker.kafka.compacted_topic import TopicRecord
from worker.stores.file_offset import FileOffsetStore
from worker.stores.kafka_offset import OffsetView
from worker.stores.layered_offset import LayeredOffsetStore
from worker.stores.offset import OffsetKey

AB, BA = b'["c",{"a":1,"b":2}]', b'["c",{"b":2,"a":1}]'


class RefusingStore(FileOffsetStore):
    """Forgets, and keeps nothing."""

    def put(self, values: Mapping[OffsetKey, bytes | None]) -> None:
        if any(value is not None for value in values.values()):
            raise ConnectError("no brokers")
        super().put(values)


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


def test_the_own_topic_comes_first(tmp_path: Path) -> None:
    own, worker = FileOffsetStore(tmp_path / "own"), FileOffsetStore(tmp_path / "worker")
    worker.put({AB: b"general", b'["c",{"x":1}]': b"x"})
    own.put({BA: b"own"})
    store = LayeredOffsetStore(own, worker)
    assert store.get([BA, b'["c",{"x":1}]', b'["d",{}]']) == [b"own", b"x", None]
    assert store.items() == {BA: b"own", b'["c",{"x":1}]': b"x"}


def test_both_topics_are_written(tmp_path: Path) -> None:
    own, worker = FileOffsetStore(tmp_path / "own"), FileOffsetStore(tmp_path / "worker")
    store = LayeredOffsetStore(own, worker)
    store.put({AB: b"1", b'["c",{}]': b"2"})
    store.put({AB: None})
    assert own.items() == worker.items() == {b'["c",{}]': b"2"}


def test_a_copy_that_fails_does_no_harm(tmp_path: Path) -> None:
    own = FileOffsetStore(tmp_path / "own")
    LayeredOffsetStore(own, RefusingStore(tmp_path / "worker")).put({AB: b"1"})
    assert own.items() == {AB: b"1"}


def test_what_cannot_be_forgotten_everywhere_is_not_forgotten(tmp_path: Path) -> None:
    class Deaf(FileOffsetStore):
        def put(self, values: Mapping[OffsetKey, bytes | None]) -> None:
            raise ConnectError("no brokers")

        def get(self, keys: Sequence[OffsetKey]) -> list[bytes | None]:
            return [None for _ in keys]

    own = FileOffsetStore(tmp_path / "own")
    own.put({AB: b"1"})
    with pytest.raises(ConnectError, match="no brokers"):
        LayeredOffsetStore(own, Deaf(tmp_path / "worker")).put({AB: None})
    assert own.items() == {AB: b"1"}
