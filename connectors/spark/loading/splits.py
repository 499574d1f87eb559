"""What each of Spark's tasks reads of a load: exact offset ranges, which its Python reads from Kafka itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from connect.bulk import OffsetRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["split_numbers", "splits_of", "tasks_for"]

_LEAST: Final = 20_000
"""How many records are worth a task of their own."""
_TOGETHER: Final = 32
"""How many splits a task reads at most, however few records they have."""


def splits_of(ranges: Sequence[OffsetRange], parallelism: int) -> list[OffsetRange]:
    """The ranges, of which large ones are split if there are fewer of them than Spark could work at."""
    records = sum(map(len, ranges))
    wanted = min(parallelism, records // _LEAST)
    if wanted <= len(ranges):
        return list(ranges)
    return [part for item in ranges for part in _parts(item, round(wanted * len(item) / records))]


def _parts(item: OffsetRange, count: int) -> Iterator[OffsetRange]:
    """A range in so many parts, at least one, of about as many offsets each."""
    count = max(1, count)
    bounds = [item.first + len(item) * number // count for number in range(count)]
    for first, end in zip(bounds, [*bounds[1:], item.end], strict=True):
        yield replace(item, first=first, end=end)


def tasks_for(splits: Sequence[OffsetRange]) -> int:
    """How many tasks are to read splits where one may read several: starting one costs more than a few records do."""
    return min(len(splits), max(sum(map(len, splits)) // _LEAST, -(-len(splits) // _TOGETHER)))


def split_numbers(spark: SparkSession, count: int, tasks: int | None = None) -> DataFrame:
    """The numbers of so many splits, each in the partition of Spark that has its number, or divided among tasks."""
    numbers: Any = spark.range(0, count, 1, tasks or count)
    frame: DataFrame = numbers
    return frame
