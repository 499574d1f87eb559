"""Reports the progress of a load, as counted by Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from connect.bulk import BulkTaskContext, Progress
from connectors.spark.cluster.executors import own_tag
from connectors.spark.decoding.report import MARK_COLUMN, RECORDS_OF_MARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LoadProgress"]

_TICK_SECONDS: Final = 1.0
_LOOKED_AT: Final = 40
_COUNT: Final = "number of output rows"
_CHAIN: Final = "MapInArrow"
_FILTER: Final = "Filter"


class LoadProgress:
    """Adds what Spark's running queries have done so far to the progress of the load, and reports it to the worker.

    Spark gets updates from a running task every ``spark.executor.heartbeatInterval``, and when it ends.
    """

    def __init__(self, spark: SparkSession, context: BulkTaskContext, *, rows: bool = True, marks: int = 0) -> None:
        """``rows`` says whether the executors' output consists of rows of tables or only of progress marks. ``marks``
        is the number of records per mark if marks are mixed with other rows, from which a filter removes them.
        """
        session: Any = spark
        self._queries = session._jsparkSession.sharedState().statusStore()
        self._jobs = session.sparkContext._jsc.sc().statusTracker()
        self._ui = spark.sparkContext.uiWebUrl
        self._context = context
        self._tag = own_tag()
        self._is_of_rows, self._marks = rows, marks
        self._due = 0.0
        self.begin()

    def begin(self) -> None:
        """Start counting for a new load."""
        self._stage = "starting"
        self._rows = self._bytes = self._files = 0
        self._topics = self._done = 0

    def expect(self, topics: int) -> None:
        """Set how many topics are loaded next."""
        self._topics, self._done = topics, 0

    def stage(self, name: str) -> None:
        """Set the current stage; if several topics are loaded at once, it is one of several."""
        self._stage = name
        self._tell()

    def loaded(self, topic: str) -> None:
        """Note that the records of a topic are written."""
        self._done += 1
        if self._done < self._topics:
            self.stage(f"{topic} is written")

    def wrote(self, rows: int = 0, size: int = 0, files: int = 0) -> None:
        """Add to what was written."""
        self._rows += rows
        self._bytes += size
        self._files += files
        self._tell()

    def look(self) -> None:
        """Query Spark, unless that was done a moment ago."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _TICK_SECONDS
        try:
            records, rows = self._counted()
        except Exception:
            # Java has ended, which the job itself reports. A load does not fail because its progress is unknown.
            return
        self._tell(records, rows)

    def _counted(self) -> tuple[int, int]:
        """Return the number of records that running queries have read, and of the rows executors have produced from
        them.

        If the output consists of rows, their number approximates that of the records.
        """
        last = max(0, self._queries.executionsCount() - _LOOKED_AT)
        queries = self._queries.executionsList(last, _LOOKED_AT)
        own = set(self._jobs.getJobIdsForTag(self._tag))
        records = rows = kept = 0
        for query in (queries.apply(number) for number in range(queries.size())):
            if query.completionTime().isEmpty() and own.intersection(_jobs_of(query)):
                values = self._queries.executionMetrics(query.executionId())
                nodes = self._queries.planGraph(query.executionId()).allNodes()
                for node in (nodes.apply(number) for number in range(nodes.size())):
                    if node.name() == _CHAIN and MARK_COLUMN in node.desc():
                        records += _value(node, values) * RECORDS_OF_MARK
                    elif node.name() == _CHAIN:
                        rows += (given := _value(node, values))
                        records += given if self._is_of_rows else 0
                    elif node.name() == _FILTER:
                        kept += _value(node, values)
        if self._marks:
            records = max(0, rows - kept) * self._marks
        return records, rows if self._is_of_rows else 0

    def _tell(self, records: int = 0, rows: int = 0) -> None:
        stage = f"{self._stage} ({self._done} of {self._topics} topics done)" if self._topics > 1 else self._stage
        progress = Progress(stage, records, self._rows + rows, self._bytes, self._files, self._ui)
        self._context.progress(progress)


def _jobs_of(query: Any) -> Iterator[int]:
    """Yield the ids of a query's jobs."""
    jobs = query.jobs().keysIterator()
    while jobs.hasNext():
        yield jobs.next()


def _value(node: Any, values: Any) -> int:
    """Return a node's row count, which Spark gives as text with commas once it is known."""
    metrics = node.metrics()
    for metric in (metrics.apply(number) for number in range(metrics.size())):
        if metric.name() == _COUNT:
            value = values.get(metric.accumulatorId())
            return int(value.get().replace(",", "")) if value.isDefined() else 0
    return 0
