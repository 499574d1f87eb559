"""Requests to load one topic, and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from connect.bulk import OffsetRange
from connect.data import Schema
from connect.offset_set import OffsetSet
from connectors.spark.decoding.part_files import PartFiles
from connectors.spark.decoding.placement import Placement
from connectors.spark.decoding.report import Reports
from connectors.spark.decoding.row_limits import RowLimits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

    from connectors.spark.sink.sql.windows import OpenWindows, WindowState

__all__ = ["ROWS_OF_RESULT", "LoadRequest", "Loaded", "Output", "Result", "split_numbers", "splits_of", "tasks_for"]

ROWS_OF_RESULT: Final = "rows"
"""What Spark's observation calls the number of rows."""


class Output(Protocol):
    """Receives the rows of a load of one topic, table by table."""

    @property
    def commits(self) -> bool:
        """Whether :meth:`write` makes the rows visible to readers at once.

        If so, Spark's job must fail at the first record that blocks the load; otherwise the load is judged by the
        reports of a finished job.
        """

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:
        """Run the Spark job that writes the rows of a table, whose schema is to be ``schema``.

        ``attempt`` is 2 if rows of the first attempt needed another schema; what the first attempt wrote does not
        count. Called in a thread of the load, concurrently with those of other topics.
        """


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """Ranges of one topic whose records are to be written to ``output``; ``known`` are the existing tables.

    With a ``placement``, the frames to write also have the folder column. ``records`` are the schemas of the rows
    before the query, as stored by the target; if it stores none, a driver's first load determines them from its
    records. With ``windows``, the query runs for complete windows. ``splits`` are the ranges as Spark's tasks read
    them, by partition number; without them each task reads a range. If executors write files themselves, ``files``
    returns the files for the rows of a table in an attempt, and the output is not called; it returns ``None`` for a
    table they do not write. ``check`` raises :class:`~connect.errors.SchemaError` if there can be no table of a name
    and schema, and ``limits`` says what the rows of a table with it may not have.
    """

    ranges: Sequence[OffsetRange]
    known: Mapping[str, Schema]
    output: Output
    placement: Placement | None = None
    records: Mapping[str, Schema] = field(default_factory=dict)
    windows: WindowState | None = None
    splits: Sequence[OffsetRange] = ()
    files: Callable[[str, Schema, int], PartFiles | None] | None = None
    check: Callable[[str, Schema], object] | None = None
    limits: Callable[[str, Schema], RowLimits | None] | None = None

    @property
    def topic(self) -> str:
        """The topic of the ranges."""
        return self.ranges[0].topic


@dataclass(frozen=True, slots=True)
class Result:
    """The result of the query for a load, in the columns of its table."""

    frame: DataFrame
    schema: Schema
    observation: Observation | None

    @property
    def rows(self) -> int:
        """The number of rows, counted by the Spark job that wrote them; available after it."""
        return 0 if self.observation is None else int(self.observation.get[ROWS_OF_RESULT])


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of loading one topic: the schemas of its tables, the executors' reports for each, and the attempt that
    counts.

    With a query, the tables hold ``results``, and ``records`` are the schemas of the rows these were made from. With
    windows, ``held`` is what remains open of a table, which has a result only if some windows are complete. ``late``
    are the offsets of records whose windows were already written, if they belong in the dead letter queue.
    """

    tables: Mapping[str, Schema]
    reports: Mapping[str, Reports]
    attempt: int
    records: Mapping[str, Schema] = field(default_factory=dict)
    results: Mapping[str, Result] = field(default_factory=dict)
    held: Mapping[str, OpenWindows] = field(default_factory=dict)
    late: Mapping[int, OffsetSet] = field(default_factory=dict)


_LEAST_RECORDS: Final = 20_000
"""The number of records that justifies a separate task."""
_TOGETHER: Final = 32
"""The maximum number of splits a task reads, however few records they have."""


def splits_of(ranges: Sequence[OffsetRange], parallelism: int) -> list[OffsetRange]:
    """Return the ranges, with large ones split if there are fewer than Spark could work on in parallel."""
    records = sum(map(len, ranges))
    wanted = min(parallelism, records // _LEAST_RECORDS)
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
    return min(len(splits), max(sum(map(len, splits)) // _LEAST_RECORDS, -(-len(splits) // _TOGETHER)))


def split_numbers(spark: SparkSession, count: int, tasks: int | None = None) -> DataFrame:
    """Return a frame of split numbers, each in the Spark partition of that number, or spread over ``tasks``."""
    numbers: Any = spark.range(0, count, 1, tasks or count)
    frame: DataFrame = numbers
    return frame
