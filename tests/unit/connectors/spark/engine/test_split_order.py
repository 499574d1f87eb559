"""The order in which the offsets of splits are stored."""

from __future__ import annotations

import pytest

from connectors.spark.engine.source import SplitOrder
from connectors.spark.engine.source_executor import KnownOffsets, OffsetsMissing

TABLE = {"table": "orders"}


def reached(number: int) -> list[tuple[dict[str, str], dict[str, int]]]:
    return [(TABLE, {"incrementing": number})]


def test_splits_of_their_own_are_stored_when_they_end() -> None:
    order = SplitOrder([{"a": "1"}, {"a": "2"}])
    assert order.end(1, reached(5)) == reached(5)
    assert order.end(0, reached(1)) == reached(1)
    assert not order.is_shared(0)


def test_ranges_of_one_source_partition_are_stored_one_after_the_other() -> None:
    order = SplitOrder([{"split.of": "orders"}, {"split.of": "orders"}, {}, {"split.of": "orders"}])
    assert order.is_shared(0)
    assert order.end(1, reached(20)) == []
    assert order.end(2, reached(7)) == reached(7)
    assert order.end(0, reached(10)) == [*reached(10), *reached(20)]
    assert order.end(3, reached(30)) == reached(30)


def test_ranges_of_several_source_partitions_do_not_wait_for_each_other() -> None:
    order = SplitOrder([{"split.of": "a"}, {"split.of": "b"}, {"split.of": "b"}])
    assert order.end(1, reached(1)) == reached(1)
    assert order.end(2, reached(2)) == reached(2)


def test_offsets_that_were_not_sent_along_are_asked_for() -> None:
    known = KnownOffsets()
    known.learn([{"file": "a"}, {"file": "b"}], [{"line": 1}, None])
    assert known.offsets([{"file": "b"}, {"file": "a"}]) == [None, {"line": 1}]
    with pytest.raises(OffsetsMissing) as missing:
        known.offsets([{"file": "a"}, {"file": "c"}])
    assert missing.value.partitions == ({"file": "c"},)
    copied = known.copy()
    known.reached([({"file": "c"}, {"line": 3})])
    assert known.offset({"file": "c"}) == {"line": 3}
    with pytest.raises(OffsetsMissing):
        copied.offset({"file": "c"})
