"""The executor's work for a source: runs a task of the connector over one split, and publishes to Kafka.

Failures of the connector are not raised here, because Spark would repeat the work. They are reported to the driver,
which decides. Spark repeats only what was lost with a process.
"""

from __future__ import annotations

import json
import logging
import pickle
import select
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext

from connect.bulk_source import ReachedOffsets
from connect.data import Offset, SourceBatch, SourceRecord
from connect.errors import ConnectError
from connect.internals.chain.tolerance import Failure, Stage
from connect.internals.delivery.transaction import SupersededError
from connect.internals.plugins import class_name
from connect.source import SourceTask, TransactionContext
from connectors.spark.decoding.executor import spare_the_collector
from connectors.spark.decoding.plugins import executor_connector
from connectors.spark.errors import TOO_LITTLE_MEMORY
from connectors.spark.publishing.publisher import Publication, Published, Publisher, TopicsMissing, UnreportedError

__all__ = ["OUTCOME", "KnownOffsets", "SplitOrders", "SplitOutcome", "SplitRun", "outcome_of", "run_split"]

logger = logging.getLogger(__name__)
_COLUMN: Final = "outcome"
_IDLE_SECONDS: Final = 0.01

OUTCOME: Final = pa.schema([(_COLUMN, pa.binary())])
"""The output of a split's job: one row, the outcome."""


class OffsetsMissing(Exception):  # noqa: N818 - nothing is wrong: the driver looks them up, and the work goes on
    """A task requested stored offsets that were not sent along."""

    def __init__(self, partitions: Sequence[Offset]) -> None:
        super().__init__("offsets that were not sent along")
        self.partitions = tuple(dict(partition) for partition in partitions)


class KnownOffsets:
    """Stored offsets that are sent along with splits: the ``offset_storage_reader`` of a task in an executor."""

    def __init__(self) -> None:
        self._known: dict[str, Offset | None] = {}

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        """Return the offset of each source partition, ``None`` where none is stored."""
        keys = [_key(partition) for partition in partitions]
        if unknown := [each for each, key in zip(partitions, keys, strict=True) if key not in self._known]:
            raise OffsetsMissing(unknown)
        return [self._known[key] for key in keys]

    def offset(self, partition: Offset) -> Offset | None:
        """Return the offset of one source partition."""
        return self.offsets([partition])[0]

    def learn(self, partitions: Sequence[Offset], offsets: Sequence[Offset | None]) -> None:
        """Add stored offsets."""
        self._known |= {_key(partition): offset for partition, offset in zip(partitions, offsets, strict=True)}

    def reached(self, offsets: ReachedOffsets) -> None:
        """Add newly stored offsets."""
        self._known |= {_key(partition): offset for partition, offset in offsets}

    def copy(self) -> KnownOffsets:
        """Return a copy of what is known now, to send along."""
        copied = KnownOffsets()
        copied._known = dict(self._known)
        return copied

    def forget(self) -> None:
        """Forget everything."""
        self._known.clear()


@dataclass(frozen=True, slots=True)
class SplitOrders:
    """The driver's orders for one split; plain data, sent to an executor.

    ``connector`` is the name of the connector's class and ``task`` the configuration of the split. After ``seconds``,
    the work ends at a point from which reading resumes exactly; ``None`` means at the end of the split. Skipped records
    that were already reported (``reported``) may be left out of a transaction.
    """

    connector: str
    task: Mapping[str, str] = field(repr=False)
    publication: Publication
    offsets: KnownOffsets = field(repr=False)
    seconds: float | None = None
    reported: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SplitOutcome:
    """The outcome of a split: what was published, whether that is all, and which offsets the task needs.

    It ``is_unreported`` if nothing counts until the failures have been reported, and ``is_superseded`` if nothing was
    done because another attempt may have done it: then the connector has to be asked for splits again. ``checked`` is
    how far the offsets topic was searched for claims.
    """

    published: Published
    at_end: bool = False
    unknown: Sequence[Offset] = ()
    is_unreported: bool = False
    is_superseded: bool = False
    checked: int = 0


class _Context:
    """The runtime as a source task in an executor sees it; see :class:`connect.source.SourceTaskContext`."""

    def __init__(self, offsets: KnownOffsets, publisher: Publisher, task_class: str) -> None:
        self.offset_storage_reader = offsets
        self.errant_record_reporter = self
        self.transaction_context: TransactionContext | None = None
        self._publisher = publisher
        self._task_class = task_class
        self._woken = threading.Event()
        self._passed: list[tuple[Offset, Offset]] = []

    def wait(self, seconds: float) -> bool:
        """Sleep; Spark ends the process of a task that is to stop."""
        time.sleep(seconds)
        return True

    def poll_when_readable(self, descriptors: Collection[int], seconds: float) -> None:
        """Wait right away: there is nothing else to do in the meantime."""
        if descriptors:
            select.select(list(descriptors), [], [], seconds)
        else:
            self._woken.wait(seconds)
        self._woken.clear()

    def wake(self) -> None:
        """End the current wait, or the next one."""
        self._woken.set()

    def pass_offset(self, partition: Offset, offset: Offset) -> None:
        """Remember an offset that belongs to no record."""
        self._passed.append((partition, offset))

    def take_passed(self) -> list[tuple[Offset, Offset]]:
        """Return the offsets passed since the last call."""
        passed, self._passed = self._passed, []
        return passed

    def report(self, record: SourceRecord, error: Exception) -> None:
        """Skip a record that cannot be parsed, if the error policy allows it."""
        self._publisher.give_up(Failure(Stage.TASK_POLL, self._task_class, error, record=record))


class SplitRun:
    """Runs a source task over a split. In a transaction, a run that Spark repeats (``is_again``) does not read the
    split.

    What the first attempt has committed is not known here: only the driver can tell where the split continues.
    """

    def __init__(self, orders: SplitOrders, *, is_again: bool = False) -> None:
        self._orders = orders
        self._is_again = is_again
        self._publisher = Publisher(orders.publication)
        self._unreported: list[SourceRecord] = []

    def run(self) -> SplitOutcome:
        """Read and publish to the end, or as far as possible; on return Kafka has acknowledged all of it."""
        publisher = self._publisher
        try:
            publisher.begin(checks_only=self._is_again)
            return self._run()
        except SupersededError:
            return SplitOutcome(Published(), is_superseded=True)
        except ConnectError as error:
            publisher.abort()
            return SplitOutcome(publisher.published(error=error))

    def _run(self) -> SplitOutcome:
        missing: Sequence[str] = ()
        unknown: Sequence[Offset] = ()
        error: Exception | None = None
        at_end = is_unreported = False
        publisher = self._publisher
        try:
            at_end = self._move()
        except TopicsMissing as needed:
            missing = needed.topics
        except OffsetsMissing as needed:
            unknown = needed.partitions
        except UnreportedError:
            is_unreported = True
        except SupersededError:
            raise
        except MemoryError:
            error = ConnectError(TOO_LITTLE_MEMORY)
        except Exception as failure:
            error = failure
        try:
            publisher.commit(self._orders.reported, at_end=at_end)
        except UnreportedError:
            is_unreported = True
        except ConnectError as failure:
            error, at_end = error or failure, False
        publisher.abort()
        reported = publisher.published(missing, error, at_end=at_end, goes_on=bool(unknown))
        return SplitOutcome(reported, at_end and not is_unreported, unknown, is_unreported, checked=publisher.checked)

    def _move(self) -> bool:
        """Move records; return whether all have been moved."""
        orders = self._orders
        task_class: Any = executor_connector(orders.publication.properties, orders.connector).task_class
        context = _Context(orders.offsets, self._publisher, class_name(task_class))
        task: SourceTask[Any] = task_class(task_class.config_class.parse(orders.task), context)
        try:
            task.start()
            return self._read(task, context)
        finally:
            _quietly("stop", task.stop)

    def _read(self, task: SourceTask[Any], context: _Context) -> bool:
        deadline = None if self._orders.seconds is None else time.monotonic() + self._orders.seconds
        tells = type(task).commit_record is not SourceTask.commit_record
        while True:
            polled = time.monotonic()
            found = task.poll()
            batches = [found] if isinstance(found, SourceBatch) else SourceBatch.from_records(found or ())
            for batch in batches:
                self._publisher.publish(batch)
                self._unreported += batch if tells else ()
            for partition, offset in context.take_passed():
                self._publisher.pass_offset(partition, offset)
            if any(map(len, batches)):
                if deadline is not None and (time.monotonic() >= deadline or self._publisher.is_full):
                    self._tell(task, at_end=False)
                    return False
            elif task.drained():
                self._tell(task, at_end=True)
                return True
            else:
                time.sleep(max(0.0, polled + _IDLE_SECONDS - time.monotonic()))

    def _tell(self, task: SourceTask[Any], *, at_end: bool) -> None:
        """Tell the task which records Kafka has acknowledged, if it overrides ``commit_record``."""
        if self._unreported:
            self._publisher.commit(self._orders.reported, at_end=at_end)
            for record in self._unreported:
                _quietly("commit_record", partial(task.commit_record, record))
            self._unreported = []


def run_split(orders: SplitOrders, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run a split: the function for ``mapInArrow`` over a frame of one row."""
    spare_the_collector()
    rows = sum(batch.num_rows for batch in batches)
    if rows:
        context: Any = TaskContext.get()
        is_again = context is not None and context.attemptNumber() > 0
        outcome = SplitRun(orders, is_again=is_again).run()
        yield pa.RecordBatch.from_pydict({_COLUMN: [pickle.dumps(outcome)]}, schema=OUTCOME)


def outcome_of(rows: Sequence[Any]) -> SplitOutcome:
    """Return the outcome in the row that a split's job returned."""
    (row,) = rows
    outcome: SplitOutcome = pickle.loads(bytes(row[0]))  # noqa: S301 - from our own executor
    return outcome


def _quietly(name: str, call: Callable[[], None]) -> None:
    try:
        call()
    except Exception as error:
        logger.warning("The task failed to %s: %s", name, error, exc_info=True)


def _key(partition: Offset) -> str:
    return json.dumps(dict(partition), default=str)
