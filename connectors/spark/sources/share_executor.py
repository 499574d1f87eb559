"""The executor's work for a share: publishes the rows of a frame in one transaction, all or none.

Python cannot tell whether Spark has passed it all rows of a frame or has stopped early, because the job was cancelled
or reading failed. So the frame gets one more row that marks its end, and nothing is committed until that row is seen.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext

from connect.bulk_source import ReachedOffsets
from connect.data import SourceRecord
from connect.errors import ConnectError, DataError
from connect.internals.chain.tolerance import Failure, Stage
from connect.internals.delivery.transaction import SupersededError
from connectors.spark.publishing.publisher import Publication, Published, Publisher, TopicsMissing, UnreportedError
from connectors.spark.sources.rows import RowPlan, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "OUTCOME_COLUMNS",
    "TASK",
    "ShareOrders",
    "ShareOutcome",
    "outcome_of",
    "publish_rows",
    "publish_share",
    "whole_frame",
]

TASK: Final = "connectors.spark.sources.rows"
"""The stage reported for a row that cannot become a record."""
_END: Final = "is_end"
_COLUMN: Final = "outcome"
OUTCOME_COLUMNS: Final = f"{_COLUMN} binary"
"""The output of a share's job: one row, the outcome."""


@dataclass(frozen=True, slots=True)
class ShareOrders:
    """The driver's orders for one share; plain data, sent to an executor.

    The ``marks`` are committed with the rows. Skipped records among those ``reported`` already may be passed over.
    """

    publication: Publication
    plan: RowPlan
    marks: ReachedOffsets = ()
    reported: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ShareOutcome:
    """The outcome of a share: what was published, and whether that is committed.

    It ``is_unreported`` if nothing counts until the failures have been reported, and ``is_superseded`` if nothing was
    done because another driver may have taken over. ``checked`` is how far the offsets topic was searched for claims.
    """

    published: Published
    is_committed: bool = False
    is_unreported: bool = False
    is_superseded: bool = False
    checked: int = 0


def whole_frame(frame: DataFrame) -> DataFrame:
    """Return the whole frame in one Spark partition, followed by the row that marks its end."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - pyspark takes half a second to import

    session: Any = frame.sparkSession
    nothing = [f.lit(None).cast(each.dataType).alias(each.name) for each in frame.schema.fields]
    end = session.range(0, 1, 1, 1).select(*nothing, f.lit(True).alias(_END))
    whole: DataFrame = frame.coalesce(1).withColumn(_END, f.lit(False)).union(end).coalesce(1)
    return whole


def publish_rows(publisher: Publisher, batch: pa.RecordBatch, plan: RowPlan) -> None:
    """Publish a batch of rows; rows that no record can hold are skipped, or raise."""
    rows = rows_of(batch, plan)
    for each in rows.batches:
        publisher.publish(each)
    for bad in rows.bad:
        record = SourceRecord(plan.topic, bad.row)
        publisher.give_up(Failure(Stage.TASK_POLL, TASK, DataError(bad.reason), record))


def publish_share(orders: ShareOrders, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Publish a share: the function for ``mapInArrow`` over a :func:`whole_frame`."""
    publisher = Publisher(orders.publication)
    try:
        outcome = _published(publisher, orders, batches)
    except SupersededError:
        outcome = ShareOutcome(Published(), is_superseded=True)
    except ConnectError as error:
        publisher.abort()
        outcome = ShareOutcome(publisher.published(error=error))
    yield pa.RecordBatch.from_pydict({_COLUMN: pa.array([pickle.dumps(outcome)], pa.binary())})


def _published(publisher: Publisher, orders: ShareOrders, batches: Iterable[pa.RecordBatch]) -> ShareOutcome:
    missing: Sequence[str] = ()
    is_committed = is_unreported = False
    context: Any = TaskContext.get()
    try:
        for place, batch in enumerate(_until_end(batches)):
            if place == 0:
                # Not earlier: a query may take long to produce its first row.
                publisher.begin(checks_only=context is not None and context.attemptNumber() > 0)
            publish_rows(publisher, batch, orders.plan)
        publisher.commit(orders.reported, orders.marks, at_end=True)
        is_committed = True
    except TopicsMissing as needed:
        missing = needed.topics
    except UnreportedError:
        is_unreported = True
    publisher.abort()
    return ShareOutcome(publisher.published(missing), is_committed, is_unreported, checked=publisher.checked)


def _until_end(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches without the row that marks the end; raises if that row is missing."""
    ended = False
    for batch in batches:
        if not batch.num_rows:
            continue
        if ended:
            break
        ended = batch.column(_END)[batch.num_rows - 1].as_py()
        yield batch.slice(0, batch.num_rows - 1) if ended else batch
    else:
        if ended:
            return
    raise ConnectError("Spark did not deliver all rows of a share, or not in order; nothing of it is committed.")


def outcome_of(rows: Sequence[Any]) -> ShareOutcome:
    """Return the outcome in the row that a share's job returned."""
    (row,) = rows
    outcome: ShareOutcome = pickle.loads(bytes(row[0]))  # noqa: S301 - from our own executor
    return outcome
