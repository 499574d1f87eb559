"""Publishes rows: executors turn them into records and send these to Kafka through the connector's own chain.

==========================================  =====================================================================
killed                                      then
==========================================  =====================================================================
an executor, or its Python process          Spark processes its rows again: those already sent are sent twice
the driver while rows are sent              the load starts again from the stored offset: its rows are sent twice
after Kafka's acknowledgement, before the   the same: all rows of the load are sent twice
offset is stored
after the offset is stored                  nothing is sent twice
==========================================  =====================================================================

So nothing is lost (invariants I1 and I3), and at most one load is repeated: as many files, versions, or partitions of a
table as the options of the source allow in a load.

Where the worker supports exactly-once sources, the rows of a load are published in shares. Each share is one
transaction that includes the mark of its pieces (:mod:`connectors.spark.sources.marks`), and is sent by one Spark task.

==========================================  =====================================================================
killed                                      then
==========================================  =====================================================================
an executor, or its Python process, before  nobody can read what it sent. If Spark retries the task, the new attempt
its transaction is committed                ends that transaction, and the load goes on from the marks
after it is committed                       the load goes on from the marks, which include the mark of the share
the driver while rows are sent, or after    the next driver claims the connector, and fences all slots, before it
all shares, before the offset is stored     reads the offset and the marks: the same
while the offset is stored                  the offset is stored and the marks are gone, or neither
==========================================  =====================================================================
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from connect.bulk_source import BulkSourceTaskContext, ReachedOffsets
from connect.data import Offset, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.tolerance import Failure, Stage
from connectors.spark.jobs.jobs import Jobs, Work
from connectors.spark.jobs.progress import LoadProgress
from connectors.spark.publishing.publisher import (
    Publication,
    Published,
    Publisher,
    Slots,
    TopicsMissing,
    failure_digest,
    settle,
)
from connectors.spark.sources.marks import MOST_SLOTS, Mark, marked_partition
from connectors.spark.sources.record_frame import RecordFrame
from connectors.spark.sources.rows import RowPlan
from connectors.spark.sources.share_executor import (
    OUTCOME_COLUMNS,
    TASK,
    ShareOrders,
    ShareOutcome,
    outcome_of,
    publish_rows,
    publish_share,
    whole_frame,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Load", "RowPublisher", "Share"]

T = TypeVar("T")

_COLUMN: Final = "published"
_SOON_SECONDS: Final = 0.1
_MOST_TELLINGS: Final = 5
_NO_MARK: Final = Mark("", ())


@dataclass(frozen=True, slots=True)
class Share:
    """Rows that are published together, and the names of the load's pieces that they belong to."""

    records: RecordFrame
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """A load of one source partition, with a name that distinguishes it: marks of other loads do not count."""

    partition: Offset
    name: str


class RowPublisher:
    """Publishes the rows of frames with a Spark session. Used only by the task's thread."""

    def __init__(self, spark: SparkSession, context: BulkSourceTaskContext) -> None:
        self._spark = spark
        self._context = context
        transactions = context.transactions
        self._slots = None if transactions is None else Slots(transactions)
        self.progress = LoadProgress(spark, context, rows=False)
        self._jobs = Jobs(spark, context, self.progress, 1 if self._slots is None else MOST_SLOTS)
        self._publication = Publication.of(context)
        self._marks: dict[int, Mark] = {}
        """The marks of the load in progress, by slot."""

    # -- exactly once -----------------------------------------------------------------------------------------------

    def claim(self) -> None:
        """With exactly-once support, end the transactions of earlier drivers before offsets are read."""
        if self._slots is not None and not self._slots.are_claimed:
            cores = self._jobs.run(lambda: self._spark.sparkContext.defaultParallelism)
            self._slots.claim(max(1, min(MOST_SLOTS, cores)))

    def release(self) -> None:
        """Make the next load claim the connector again: transactions may still be open."""
        self._marks = {}
        if self._slots is not None:
            self._slots.release()

    @property
    def width(self) -> int:
        """The number of shares into which the rows of a load are divided. At least once: one, which Spark divides
        further.
        """
        return 1 if self._slots is None else self._slots.count

    def sent(self, load: Load) -> frozenset[str]:
        """Return the pieces of a load that have been sent although the stored offset of its source partition precedes
        them.
        """
        partitions = [marked_partition(load.partition, slot) for slot in range(1, MOST_SLOTS + 1)]
        found = self._context.offset_storage_reader.offsets(partitions)
        self._marks = {slot: Mark.of(offset) for slot, offset in enumerate(found, 1) if offset is not None}
        return frozenset(piece for mark in self._marks.values() if mark.load == load.name for piece in mark.pieces)

    def begin(self, partition: Offset, offset: Offset) -> None:
        """Store an offset from which a later driver reconstructs the same load, if it has to continue it."""
        if self._slots is not None:
            self._context.commit([(partition, offset)])

    def end(self, partition: Offset, offset: Offset) -> None:
        """Store the offset after a load, and remove the load's marks."""
        marks: ReachedOffsets = [(marked_partition(partition, slot), None) for slot in sorted(self._marks)]
        self._context.commit([(partition, offset), *marks])
        self._marks = {}

    def computed(self, records: RecordFrame) -> RecordFrame:
        """Return the rows of a frame that is more than a plain scan; with exactly-once support, computed now and only
        once.

        After a shuffle, Spark may rerun a whole stage without the tasks of this job noticing.
        """
        if self._slots is None:
            return records
        return replace(records, frame=self._jobs.run(records.frame.localCheckpoint))

    # -- rows -------------------------------------------------------------------------------------------------------

    def publish(self, shares: Sequence[Share], load: Load, stage: str) -> None:
        """Publish rows: when this returns, Kafka has acknowledged them or they have been reported.

        If a transformation routes records to a topic that does not exist yet, the topic is created and all the rows are
        published again. Raises errors that ``errors.tolerance`` does not allow.
        """
        self._create({share.records.plan.topic for share in shares})
        self.progress.stage(stage)
        if self._slots is not None:
            works = [self._in_transaction(self._slots, share, load, slot) for slot, share in enumerate(shares, 1)]
            self._jobs.run_all(works)
            return
        for share in shares:
            self._publish(share.records, stage)

    def run(self, job: Callable[[], T]) -> T:
        """Run another Spark job, which is cancelled when the task is to stop."""
        return self._jobs.run(job)

    def give_up(self, topic: str, about: str, error: Exception) -> None:
        """Skip something that cannot be read at all, such as a file; raises unless ``errors.tolerance`` allows it."""
        self._context.give_up([Failure(Stage.TASK_POLL, TASK, error, SourceRecord(topic, about))])

    def _create(self, topics: Iterable[str]) -> None:
        new = sorted(set(topics) - self._publication.topics.keys())
        if new:
            self._publication = self._publication.with_topics(self._context.create_topics(new))

    # -- in transactions --------------------------------------------------------------------------------------------

    def _in_transaction(self, slots: Slots, share: Share, load: Load, slot: int) -> Work[None]:
        """Publish a share in one transaction."""
        mark = self._marks.get(slot, _NO_MARK).with_pieces(load.name, share.pieces)
        marks = [(marked_partition(load.partition, slot), mark.offset())]
        reported: frozenset[str] = frozenset()
        tellings = 0
        while True:
            publication = self._publication.within(slots.orders(slot))
            orders = ShareOrders(publication, share.records.plan, marks, reported)
            outcome: ShareOutcome = yield partial(_run_share, share.records, orders)
            if outcome.is_superseded:
                raise RetriableError("Rows may have been published already; looking up which.", _SOON_SECONDS)
            slots.checked(outcome.checked)
            news = [each for each in outcome.published.failures if failure_digest(each) not in reported]
            if outcome.is_unreported:
                tellings += 1
                self._tell(news, tellings)
                reported |= frozenset(map(failure_digest, news))
                continue
            # Skipped records of a share that will be published again are skipped, and reported, again.
            missing = outcome.published.missing
            settle(self._context, replace(outcome.published, failures=() if missing else tuple(news)))
            if outcome.is_committed:
                self._marks[slot] = mark
                self._context.committed(marks)
                self._count(outcome.published)
                return
            self._create(missing)

    def _tell(self, failures: Sequence[Failure], times: int) -> None:
        """Report skipped rows, so that a transaction may leave them out."""
        if times > _MOST_TELLINGS:
            raise ConnectError(
                "Each time the rows are read, different ones are bad, or for different reasons, so they "
                f"cannot be committed: {failures[0].error if failures else 'none of them is new'}."
            )
        self._context.give_up(failures)
        self._context.commit(())

    # -- at least once ----------------------------------------------------------------------------------------------

    def _publish(self, records: RecordFrame, stage: str) -> None:
        while True:
            accounts = self._published(records)
            missing = {topic for account in accounts for topic in account.missing}
            for account in sorted(accounts, key=lambda account: account.error is not None):
                # Skipped records that will be published again are skipped, and reported, again.
                comes_again = missing and account.error is None
                settle(self._context, replace(account, failures=()) if comes_again else account)
            if not missing:
                for account in accounts:
                    self._count(account)
                return
            self._create(missing)
            self.progress.stage(stage)

    def _count(self, published: Published) -> None:
        self.progress.wrote(sum(published.written.values()), published.bytes)

    def _published(self, records: RecordFrame) -> Sequence[Published]:
        function: Any = partial(_publish_partition, self._publication, records.plan)
        frame = records.frame.mapInArrow(function, f"{_COLUMN} binary")
        rows = self._jobs.run(frame.collect)
        return [pickle.loads(row[_COLUMN]) for row in rows]  # noqa: S301 - our own executors have made it


def _run_share(records: RecordFrame, orders: ShareOrders) -> ShareOutcome:
    """Let an executor publish a share; runs in its own thread."""
    function: Any = partial(publish_share, orders)
    return outcome_of(whole_frame(records.frame).mapInArrow(function, OUTCOME_COLUMNS).collect())


def _publish_partition(
    publication: Publication, plan: RowPlan, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Publish the rows of one Spark partition, yielding one row for each account."""
    publisher: Publisher | None = None
    for batch in batches:
        publisher = publisher or Publisher(publication)
        try:
            publish_rows(publisher, batch, plan)
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


def _ended(publisher: Publisher, error: ConnectError | None) -> Published:
    """Return the account of a partition once everything sent is acknowledged, as far as possible."""
    try:
        publisher.acknowledge()
    except ConnectError as refused:
        error = error or refused
    return publisher.published(error=error)


def _row(published: Published) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({_COLUMN: pa.array([pickle.dumps(published)], pa.binary())})
