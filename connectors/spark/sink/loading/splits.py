"""Divides a load among Spark's tasks: exact offset ranges, which their Python reads directly from Kafka."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from connect.bulk import OffsetRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["split_numbers", "splits_of", "tasks_for"]

_LEAST: Final = 20_000
"""The number of records that justifies a separate task."""
_TOGETHER: Final = 32
"""The maximum number of splits a task reads, however few records they have."""


def splits_of(ranges: Sequence[OffsetRange], parallelism: int) -> list[OffsetRange]:
    """Return the ranges, with large ones split if there are fewer than Spark could work on in parallel."""
    records = sum(map(len, ranges))
    wanted = min(parallelism, records // _LEAST)
    if wanted <= len(ranges):
        return list(ranges)
    return [part for item in ranges for part in _parts(item, round(wanted * len(item) / records))]


def _parts(item: OffsetRange, count: int) -> Iterator[OffsetRange]:
    """Split a range into this many parts, at least one, with about equal numbers of offsets."""
    count = max(1, count)
    bounds = [item.first + len(item) * number // count for number in range(count)]
    for first, end in zip(bounds, [*bounds[1:], item.end], strict=True):
        yield replace(item, first=first, end=end)


def tasks_for(splits: Sequence[OffsetRange]) -> int:
    """Return the number of tasks for these splits. A task may read several of them, because starting a task costs more
    than reading a few records.
    """
    return min(len(splits), max(sum(map(len, splits)) // _LEAST, -(-len(splits) // _TOGETHER)))


def split_numbers(spark: SparkSession, count: int, tasks: int | None = None) -> DataFrame:
    """Return a frame of split numbers, each in the Spark partition of that number, or spread over ``tasks``."""
    numbers: Any = spark.range(0, count, 1, tasks or count)
    frame: DataFrame = numbers
    return frame
