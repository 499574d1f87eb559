"""The division of a load's ranges among the sink tasks of executors."""

from __future__ import annotations

from connect.bulk import OffsetRange
from connectors.spark.engine.sink_orders import shares_of


def test_each_task_has_about_as_many_records() -> None:
    sizes = (10, 70, 30, 40)
    ranges = [OffsetRange("t", number, 5, 5 + size) for number, size in enumerate(sizes)]
    shares = shares_of(ranges, 2)
    assert [[item.partition for item in share] for share in shares] == [[1, 0], [3, 2]]


def test_no_task_is_without_a_range() -> None:
    assert shares_of([OffsetRange("t", 0, 0, 9)], 8) == [[OffsetRange("t", 0, 0, 9)]]
    assert shares_of([], 8) == []
