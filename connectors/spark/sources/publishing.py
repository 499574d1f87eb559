"""Publishing rows: the executors make records of them, and send these to Kafka by the connector's own chain.

==========================================  =====================================================================
killed                                      then
==========================================  =====================================================================
an executor, or its Python process          Spark works at its rows again: those that it had sent come twice
the driver while rows are sent              the load begins again from the stored offset: its rows come twice
after Kafka's acknowledgement, before the   the same: all rows of the load come twice
offset is stored
after the offset is stored                  nothing comes twice
==========================================  =====================================================================

So nothing is lost (invariants I1 and I3), and what may come again is one load: so many files or versions, or so many
partitions of a table, as the options of the source say.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from connect.bulk_source import BulkSourceTaskContext
from connect.chain.tolerance import Failure, Stage
from connect.crash import crash_point
from connect.data import SourceRecord
from connect.errors import ConnectError, DataError
from connectors.spark.engine.publishing import Publication, Published, Publisher, TopicsMissing, settle
from connectors.spark.failure import root_cause
from connectors.spark.loading.jobs import Jobs
from connectors.spark.progress import LoadProgress
from connectors.spark.sources.rows import RowPlan, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.spark.sources.frames import RecordFrame

__all__ = ["RowPublisher"]

T = TypeVar("T")

_TASK: Final = "connectors.spark.sources.rows"
_COLUMN: Final = "published"


class RowPublisher:
    """Publishes the rows of frames with a Spark session. Used by the task's thread alone."""

    def __init__(self, spark: SparkSession, context: BulkSourceTaskContext) -> None:
        self._context = context
        self.progress = LoadProgress(spark, context)
        self._jobs = Jobs(spark, context, self.progress, 1)
        self._publication = Publication.of(context)

    def publish(self, records: RecordFrame, stage: str) -> int:
        """Publish rows, and return how many records Kafka has acknowledged.

        Where a transformation sends some to a topic that nobody has created yet, it is created, and the rows are all
        published again. Raises what ``errors.tolerance`` does not allow.
        """
        self._create({records.plan.topic})
        while True:
            self.progress.stage(stage)
            accounts = self._published(records)
            missing = {topic for account in accounts for topic in account.missing}
            for account in sorted(accounts, key=lambda account: account.error is not None):
                settle(self._context, account)
            if not missing:
                count = sum(sum(account.written.values()) for account in accounts)
                self.progress.wrote(count, sum(account.bytes for account in accounts))
                crash_point("after-publish")
                return count
            self._create(missing)

    def run(self, job: Callable[[], T]) -> T:
        """Run another of Spark's jobs: it is cancelled when the task is to stop."""
        return self._jobs.run(job)

    def give_up(self, topic: str, about: str, error: Exception) -> None:
        """Leave out what cannot be read at all, such as a file; raises unless ``errors.tolerance`` allows it."""
        self._context.give_up([Failure(Stage.TASK_POLL, _TASK, error, SourceRecord(topic, about))])

    def _create(self, topics: Iterable[str]) -> None:
        new = sorted(set(topics) - self._publication.topics.keys())
        if new:
            self._publication = self._publication.with_topics(self._context.create_topics(new))

    def _published(self, records: RecordFrame) -> Sequence[Published]:
        function: Any = partial(_publish_partition, self._publication, records.plan)
        frame = records.frame.mapInArrow(function, f"{_COLUMN} binary")
        try:
            rows = self._jobs.run(frame.collect)
        except ConnectError:
            raise
        except Exception as error:
            raise ConnectError(f"Spark failed to publish the rows: {root_cause(error)}") from error
        return [pickle.loads(row[_COLUMN]) for row in rows]  # noqa: S301 - our own executors have made it


def _publish_partition(
    publication: Publication, plan: RowPlan, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Publish the rows of one Spark partition; one row for each account of it."""
    publisher: Publisher | None = None
    for batch in batches:
        publisher = publisher or Publisher(publication)
        try:
            _publish(publisher, batch, plan)
        except TopicsMissing as missing:
            publisher.acknowledge()
            yield _row(publisher.published(missing.topics))
            return
        except ConnectError as error:
            yield _row(_ended(publisher, error))
            return
        if publisher.is_full:
            publisher.acknowledge()
            yield _row(publisher.published())
            publisher = None
    if publisher is not None:
        yield _row(_ended(publisher, None))


def _publish(publisher: Publisher, batch: pa.RecordBatch, plan: RowPlan) -> None:
    rows = rows_of(batch, plan)
    for each in rows.batches:
        publisher.publish(each)
    for bad in rows.bad:
        record = SourceRecord(plan.topic, bad.row)
        publisher.give_up(Failure(Stage.TASK_POLL, _TASK, DataError(bad.reason), record))


def _ended(publisher: Publisher, error: ConnectError | None) -> Published:
    """The account of a partition when all that was sent is acknowledged, as far as it can be."""
    try:
        publisher.acknowledge()
    except ConnectError as refused:
        error = error or refused
    return publisher.published(error=error)


def _row(published: Published) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({_COLUMN: pa.array([pickle.dumps(published)], pa.binary())})
