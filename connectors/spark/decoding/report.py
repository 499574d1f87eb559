"""Reports of the executors to the driver about a pass over offset ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from connect.chain.tolerance import Failure
from connect.data import Schema
from connect.errors import RetriableError

__all__ = ["Rejection", "Rejections", "Report", "Reports"]

_KEPT: Final = 100


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
    """Rows that were written, or looked at where nothing is."""
    ignored: int = 0
    """Records without a value that ``behavior.on.null.values=ignore`` leaves out."""
    rejected: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    """The first of the rejected records."""
    seen: dict[str, Schema] = field(default_factory=dict)
    """The schema of the rows by table, as far as they were looked at or do not fit."""
    untyped: set[str] = field(default_factory=set)
    """Fields with nothing but empty arrays or objects, which have no column yet."""
    grown: bool = False
    """Whether rows were found that need another schema: then none of the rest is written."""

    def take(self, partition: int, first: int, last: int, count: int) -> None:
        """Note that so many records were read, of these offsets."""
        if self.read == 0:
            self.partition, self.first = partition, first
        self.last = last
        self.read += count

    def reject(self, offset: int, error: Exception) -> None:
        """Note a record that cannot be written."""
        self.rejected += 1
        if len(self.rejections) < _KEPT:
            self.rejections.append(Rejection(self.topic, self.partition, offset, str(error)))


class Rejections:
    """Takes the records that the chain gives up to a report; a :class:`~connect.chain.tolerance.Reporter`."""

    def __init__(self, reject: Callable[[int, Exception], None]) -> None:
        self._reject = reject

    def report(self, failure: Failure) -> None:
        """Note a record, unless the failure is none of its own: then the load fails, and is made again."""
        if isinstance(failure.error, RetriableError):
            raise failure.error
        assert failure.raw is not None
        self._reject(failure.raw.offset, failure.error)

    def flush(self) -> None:
        """Hold nothing back: the report reaches the driver with the end of the pass."""


@dataclass(slots=True)
class Reports:
    """The reports of a pass by Spark partition. A partition that is computed again replaces its report."""

    by_partition: dict[int, Report] = field(default_factory=dict)
    number: int = 0
    """Which pass of the session it is: a late report of one before counts for nothing."""

    def merge(self, other: Reports) -> Reports:
        """These reports and those of ``other``, or those of the later pass."""
        if self.number != other.number:
            return max(self, other, key=lambda reports: reports.number)
        self.by_partition |= other.by_partition
        return self

    def __iter__(self) -> Iterator[Report]:
        """The reports in the order of their partitions."""
        return iter(report for _, report in sorted(self.by_partition.items()))

    def rejections(self) -> list[Rejection]:
        """The first rejected records, in the order of their offsets within each partition."""
        found = [rejection for report in self.by_partition.values() for rejection in report.rejections]
        return sorted(found, key=lambda item: (item.topic, item.partition, item.offset))
