"""What is asked of a load of one topic, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from connect.bulk import OffsetRange
from connect.data import Schema
from connect.offset_set import OffsetSet
from connectors.spark.decoding.part_files import PartFiles
from connectors.spark.decoding.placement import Placement
from connectors.spark.decoding.report import Reports

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from connectors.spark.sql.query import Result
    from connectors.spark.sql.window_output import WindowState
    from connectors.spark.sql.windows import OpenWindows

__all__ = ["LoadRequest", "Loaded", "Output"]


class Output(Protocol):
    """Takes the rows of a load of one topic, table by table."""

    @property
    def commits(self) -> bool:
        """Whether :meth:`write` shows the rows to readers at once.

        Then Spark's job must fail at the first record that forbids the load; otherwise the load is judged by the
        reports of a job that has ended.
        """

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:
        """Run the Spark job that writes the rows of a table, whose schema is to be ``schema``.

        ``attempt`` is 2 when rows of the first one needed another schema: what that has written does not count. It is
        called in a thread of the load, beside those of the other topics that are loaded at once.
        """


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """Ranges of one topic whose records are to be written to ``output``; ``known`` are the tables there are.

    With a ``placement`` the frames that are written have the column of the folders besides. ``records`` are the schemas
    of the rows before the query, as a target has kept them for a connector that has one; a target that keeps none has
    the first load of a driver look through its records for them. With ``windows`` the query is asked for complete ones.
    ``splits`` are the ranges as Spark's tasks read them, by the numbers of its partitions; without them each task reads
    a range. ``files`` tells what files the executors are to write of the rows of a table in an attempt, where they do
    that themselves and the output is not called; ``None`` if they do not for this one.
    """

    ranges: Sequence[OffsetRange]
    known: Mapping[str, Schema]
    output: Output
    placement: Placement | None = None
    records: Mapping[str, Schema] = field(default_factory=dict)
    windows: WindowState | None = None
    splits: Sequence[OffsetRange] = ()
    files: Callable[[str, Schema, int], PartFiles | None] | None = None

    @property
    def topic(self) -> str:
        """The topic of all the ranges."""
        return self.ranges[0].topic


@dataclass(frozen=True, slots=True)
class Loaded:
    """A load of one topic: the schemas of its tables, what the executors reported of each, and which attempt counts.

    With a query, the tables hold ``results``, and ``records`` are the schemas of the rows that these were made from.
    With windows ``held`` is what is open of a table, which has a result only if some are complete. ``late`` are the
    offsets of records of windows that were written, where these belong in the dead letter queue.
    """

    tables: Mapping[str, Schema]
    reports: Mapping[str, Reports]
    attempt: int
    records: Mapping[str, Schema] = field(default_factory=dict)
    results: Mapping[str, Result] = field(default_factory=dict)
    held: Mapping[str, OpenWindows] = field(default_factory=dict)
    late: Mapping[int, OffsetSet] = field(default_factory=dict)
