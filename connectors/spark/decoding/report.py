"""Reports that executors send the driver about a pass over offset ranges, and the marks that show their progress."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, field
from typing import Final, Generic, Protocol, Self, TypeVar

import pyarrow as pa

from connect.data import Schema
from connect.internals.chain.stack_trace import error_text
from connect.internals.chain.tolerance import Failure, Stage
from connect.offset_set import OffsetSet

__all__ = [
    "MARKS",
    "MARK_COLUMN",
    "RECORDS_OF_MARK",
    "TASK",
    "LoadStop",
    "Mergeable",
    "PassReports",
    "ProgressMarks",
    "Rejection",
    "Rejections",
    "Report",
    "Reports",
]

TASK: Final = "connectors.spark.sink.SparkSinkTask"
"""The class blamed for a record that is decoded but does not fit its table."""

_KEPT: Final = 100


class LoadStop(Exception):  # noqa: N818 - it says that the job has to end, not that something is wrong
    """Ends Spark's job because of a record: one that needs another schema, or a bad one.

    Only its text gets back to the driver, somewhere in Spark's message.
    """

    _TEXT: Final = re.compile(r"LoadStop: (\{.*\})")

    def __init__(self, rejection: Rejection | None = None) -> None:
        super().__init__(json.dumps({"rejection": rejection and astuple(rejection)}))
        self.rejection = rejection

    @classmethod
    def found_in(cls, error: BaseException) -> LoadStop | None:
        """Find the stop in a Spark error, if there is one."""
        match = cls._TEXT.search(error_text(error))
        if match is None:
            return None
        rejection = json.loads(match[1])["rejection"]
        return cls(rejection and Rejection(*rejection))


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record that cannot be written: where it is and why."""

    topic: str
    partition: int
    offset: int
    reason: str

    def __str__(self) -> str:
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}: {self.reason}"


@dataclass(slots=True)
class Report:
    """The account of the records of one Spark partition, all of one topic partition."""

    topic: str
    partition: int = -1
    first: int = -1
    last: int = -1
    read: int = 0
    written: int = 0
    """The number of rows that were written, or surveyed if nothing is written."""
    ignored: int = 0
    """The number of records without a value that ``behavior.on.null.values=ignore`` leaves out."""
    rejected: OffsetSet = field(default_factory=OffsetSet)
    """The offsets of the records that cannot be written."""
    rejections: list[Rejection] = field(default_factory=list)
    """The reasons for the first of them."""
    seen: dict[str, Schema] = field(default_factory=dict)
    """The schema of the rows, by table, as far as they were surveyed or do not fit."""
    untyped: set[str] = field(default_factory=set)
    """Fields that hold only empty arrays or objects, and have no column yet."""
    unknown: set[str] = field(default_factory=set)
    """Fields without a column, because the tables are not to change (``schema.compatibility``)."""
    pending: list[int] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """The files that an executor has written, if it writes them itself."""
    grown: bool = False
    """Whether rows were found that need another schema: then none of the rest is written."""

    def take(self, partition: int, first: int, last: int, count: int) -> None:
        """Note that this many records were read, with these offsets."""
        if self.read == 0:
            self.partition, self.first = partition, first
        self.last = last
        self.read += count

    def reject(self, offset: int, error: Exception, stage: Stage = Stage.TASK_PUT, executing: str = TASK) -> None:  # noqa: ARG002
        """Note a record that cannot be written; it is among ``rejected`` after :meth:`settle`."""
        self.pending.append(offset)
        if len(self.rejections) < _KEPT:
            self.rejections.append(Rejection(self.topic, self.partition, offset, str(error)))

    def settle(self) -> None:
        """Account for the records rejected since the last call."""
        if self.pending:
            self.rejected |= OffsetSet.of(self.pending)
            self.pending = []


class Rejections:
    """Adds the records that the chain gives up to a report; a :class:`~connect.internals.chain.tolerance.Reporter`."""

    def __init__(self, reject: Callable[[int, Exception, Stage, str], None]) -> None:
        self._reject = reject

    def report(self, failure: Failure) -> None:
        """Note a record."""
        assert failure.raw is not None
        self._reject(failure.raw.offset, failure.error, failure.stage, failure.executing)

    def flush(self) -> None:
        """Do nothing: the report reaches the driver at the end of the pass."""


@dataclass(slots=True)
class Reports:
    """The reports of a pass by Spark partition. A partition that is computed again replaces its report."""

    by_partition: dict[int, Report] = field(default_factory=dict)

    def merge(self, other: Self) -> Self:
        """Combine these reports and those of ``other``."""
        self.by_partition |= other.by_partition
        return self

    def __iter__(self) -> Iterator[Report]:
        """The reports in the order of their partitions."""
        return iter(report for _, report in sorted(self.by_partition.items()))

    @property
    def rejected(self) -> dict[int, OffsetSet]:
        """The offsets of the rejected records, by topic partition."""
        found: dict[int, OffsetSet] = {}
        for report in self.by_partition.values():
            if len(report.rejected):
                found[report.partition] = found.get(report.partition, OffsetSet()) | report.rejected
        return found

    def rejections(self) -> list[Rejection]:
        """Return the first rejected records, in the order of their offsets within each partition."""
        found = [rejection for report in self.by_partition.values() for rejection in report.rejections]
        return sorted(found, key=lambda item: (item.topic, item.partition, item.offset))


class Mergeable(Protocol):
    """The data that executors send about a pass."""

    def merge(self, other: Self) -> Self:
        """Combine this and ``other``."""


M = TypeVar("M", bound=Mergeable)


@dataclass(slots=True)
class PassReports(Generic[M]):
    """Reports by the number of their pass; several passes may run at once.

    The driver keeps the reports of ``awaited`` passes alone, and the thread in which PySpark receives what executors
    send adds to those; no pass is read before its job has ended, and with it the adding.
    """

    passes: dict[int, M] = field(default_factory=dict)
    awaited: bool = False
    """Whether reports count only if their pass has been begun here, and not ended."""

    def begin(self, number: int, nothing: M) -> None:
        """Await the reports of a pass, none of which has arrived yet."""
        self.passes[number] = nothing

    def end(self, number: int) -> M:
        """Return the reports of a pass whose job has ended; late ones are ignored."""
        return self.passes.pop(number)

    def merge(self, other: PassReports[M]) -> PassReports[M]:
        """Combine these reports and those of ``other`` that count."""
        for number, reports in other.passes.items():
            known = self.passes.get(number)
            if known is not None:
                known.merge(reports)
            elif not self.awaited:
                self.passes[number] = reports
        return self


MARK_COLUMN: Final = "sluice_mark"
MARKS: Final = pa.schema([pa.field(MARK_COLUMN, pa.binary())])
"""The columns of marks."""
RECORDS_OF_MARK: Final = 1000
"""The number of records a mark stands for."""
_MARK: Final = bytes(1024)
"""Padding, because PySpark sends 64 kB at a time: it keeps the number of marks in transit small."""


class ProgressMarks:
    """The marks of one task."""

    def __init__(self) -> None:
        self._given = 0

    def up_to(self, records: int) -> Iterator[pa.RecordBatch]:
        """Yield the marks due once this many records have been read in total."""
        count = records // RECORDS_OF_MARK - self._given
        if count > 0:
            self._given += count
            yield pa.RecordBatch.from_arrays([pa.repeat(_MARK, count)], schema=MARKS)
