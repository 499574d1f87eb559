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

Where the worker supports exactly-once sources, the rows of a load are published in shares, each in a transaction with
the mark of its pieces (:mod:`connectors.spark.sources.marks`), and each by one task of Spark.

==========================================  =====================================================================
killed                                      then
==========================================  =====================================================================
an executor, or its Python process, before  nobody can read what it sent. An attempt that Spark makes again ends that
its transaction is committed                transaction, and the load goes on from the marks
after it is committed                       the load goes on from the marks, of which that of the share is one
the driver while rows are sent, or after    the next driver claims the connector, and fences all slots, before it
all shares, before the offset is stored      reads the offset and the marks: the same
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
from connect.chain.tolerance import Failure, Stage
from connect.data import Offset, SourceRecord
from connect.errors import ConnectError, RetriableError
from connectors.spark.engine.publisher import (
    Publication,
    Published,
    Publisher,
    TopicsMissing,
    failure_digest,
    settle,
)
from connectors.spark.engine.transaction_slots import Slots
from connectors.spark.loading.jobs import Jobs, Work
from connectors.spark.loading.progress import LoadProgress
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
_SOON: Final = 0.1
_MOST_TELLINGS: Final = 5
_NO_MARK: Final = Mark("", ())


@dataclass(frozen=True, slots=True)
class Share:
    """Rows that are published together, and the names of the pieces of their load that they are."""

    records: RecordFrame
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """A load of one source partition, by a name that tells it from others: marks of others do not count."""

    partition: Offset
    name: str


class RowPublisher:
    """Publishes the rows of frames with a Spark session. Used by the task's thread alone."""

    def __init__(self, spark: SparkSession, context: BulkSourceTaskContext) -> None:
        self._spark = spark
        self._context = context
        transactions = context.transactions
        self._slots = None if transactions is None else Slots(transactions)
        self.progress = LoadProgress(spark, context, rows=False)
        self._jobs = Jobs(spark, context, self.progress, 1 if self._slots is None else MOST_SLOTS)
        self._publication = Publication.of(context)
        self._marks: dict[int, Mark] = {}
        """The marks that there are of the load under way, by slot."""

    # -- exactly once -----------------------------------------------------------------------------------------------

    def claim(self) -> None:
        """End what was under way before offsets are read, if rows are sent exactly once."""
        if self._slots is not None and not self._slots.are_claimed:
            cores = self._jobs.run(lambda: self._spark.sparkContext.defaultParallelism)
            self._slots.claim(max(1, min(MOST_SLOTS, cores)))

    def release(self) -> None:
        """Have that done again before the next load: something may still be under way."""
        self._marks = {}
        if self._slots is not None:
            self._slots.release()

    @property
    def width(self) -> int:
        """Into how many shares the rows of a load are divided: one, which Spark divides further, at least once."""
        return 1 if self._slots is None else self._slots.count

    def sent(self, load: Load) -> frozenset[str]:
        """The pieces of a load that are sent, though the stored offset of its source partition is before them."""
        partitions = [marked_partition(load.partition, slot) for slot in range(1, MOST_SLOTS + 1)]
        found = self._context.offset_storage_reader.offsets(partitions)
        self._marks = {slot: Mark.of(offset) for slot, offset in enumerate(found, 1) if offset is not None}
        return frozenset(piece for mark in self._marks.values() if mark.load == load.name for piece in mark.pieces)

    def begin(self, partition: Offset, offset: Offset) -> None:
        """Store an offset from which a driver that comes later makes the same load, if it has to go on with this."""
        if self._slots is not None:
            self._context.commit([(partition, offset)])

    def end(self, partition: Offset, offset: Offset) -> None:
        """Store the offset after a load, and remove its marks."""
        marks: ReachedOffsets = [(marked_partition(partition, slot), None) for slot in sorted(self._marks)]
        self._context.commit([(partition, offset), *marks])
        self._marks = {}

    def computed(self, records: RecordFrame) -> RecordFrame:
        """The rows of a frame that is more than a scan; exactly once, they are computed now, and never again.

        Where rows are shuffled Spark may make a whole stage again, and its tasks do not know of it.
        """
        if self._slots is None:
            return records
        return replace(records, frame=self._jobs.run(records.frame.localCheckpoint))

    # -- rows -------------------------------------------------------------------------------------------------------

    def publish(self, shares: Sequence[Share], load: Load, stage: str) -> None:
        """Publish rows: when this returns Kafka has acknowledged them, or they are reported.

        Where a transformation sends some to a topic that nobody has created yet, it is created, and the rows are all
        published again. Raises what ``errors.tolerance`` does not allow.
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
        """Run another of Spark's jobs: it is cancelled when the task is to stop."""
        return self._jobs.run(job)

    def give_up(self, topic: str, about: str, error: Exception) -> None:
        """Leave out what cannot be read at all, such as a file; raises unless ``errors.tolerance`` allows it."""
        self._context.give_up([Failure(Stage.TASK_POLL, TASK, error, SourceRecord(topic, about))])

    def _create(self, topics: Iterable[str]) -> None:
        new = sorted(set(topics) - self._publication.topics.keys())
        if new:
            self._publication = self._publication.with_topics(self._context.create_topics(new))

    # -- in transactions --------------------------------------------------------------------------------------------

    def _in_transaction(self, slots: Slots, share: Share, load: Load, slot: int) -> Work[None]:
        """Have a share published in one transaction."""
        mark = self._marks.get(slot, _NO_MARK).with_pieces(load.name, share.pieces)
        marks = [(marked_partition(load.partition, slot), mark.offset())]
        told: frozenset[str] = frozenset()
        tellings = 0
        while True:
            publication = self._publication.within(slots.orders(slot))
            orders = ShareOrders(publication, share.records.plan, marks, told)
            outcome: ShareOutcome = yield partial(_run_share, share.records, orders)
            if outcome.is_superseded:
                raise RetriableError("Rows may have been published already; looking up which.", _SOON)
            slots.checked(outcome.checked)
            news = [each for each in outcome.published.failures if failure_digest(each) not in told]
            if outcome.is_untold:
                tellings += 1
                self._tell(news, tellings)
                told |= frozenset(map(failure_digest, news))
                continue
            # What is to be published again is left out again.
            missing = outcome.published.missing
            settle(self._context, replace(outcome.published, failures=() if missing else tuple(news)))
            if outcome.is_committed:
                self._marks[slot] = mark
                self._context.committed(marks)
                self._count(outcome.published)
                return
            self._create(missing)

    def _tell(self, failures: Sequence[Failure], times: int) -> None:
        """Report left-out rows, so that a transaction may pass them."""
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
                # What is to be published again is left out again.
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
    """Have an executor publish a share; runs in a thread of its own."""
    function: Any = partial(publish_share, orders)
    return outcome_of(whole_frame(records.frame).mapInArrow(function, OUTCOME_COLUMNS).collect())


def _publish_partition(
    publication: Publication, plan: RowPlan, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Publish the rows of one Spark partition; one row for each account of it."""
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
    """The account of a partition when all that was sent is acknowledged, as far as it can be."""
    try:
        publisher.acknowledge()
    except ConnectError as refused:
        error = error or refused
    return publisher.published(error=error)


def _row(published: Published) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({_COLUMN: pa.array([pickle.dumps(published)], pa.binary())})
