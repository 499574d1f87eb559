"""A source connector run by Spark: the driver's part, in the task of the worker.

A load asks the connector for its splits, at most ``tasks.max``, and has each read and published by an executor
(``source_executor.py``) in its own Spark job: so each is committed when it is done, whatever happens to the others.

==========================================  ========================================================================
kill -9 here                                then
==========================================  ========================================================================
a Python worker of an executor, or an       what was published of the split since its last commit is published again: by
executor                                    Spark, which reruns the job on a cluster, or by a repeated load (with
                                            ``local[n]``, and when Spark has run out of retries)
Spark's Java                                Spark is restarted, and the connector is asked for its splits again
the driver, the task of the worker, before  the connector is asked for its splits again, from the stored offsets: what
offsets are stored                          was published after them is published again
after offsets are stored                    reading continues after them
==========================================  ========================================================================

That is at least once. Where the worker supports exactly-once sources, and the source resumes exactly, a split is
published in transactions with its offsets, one each ``engine.commit.interval.ms`` and one at its end, with a slot for
each split (:mod:`connect.internals.delivery.transaction`). Splits of one source partition then take turns, as their
offsets do.

==========================================  ========================================================================
kill -9 here                                then
==========================================  ========================================================================
a Python worker or an executor, before its  nobody can read what it sent. A second attempt by Spark at the same work
transaction is committed                    ends that transaction, and does nothing else: the connector is asked for
                                            its splits again, from the stored offsets
after it is committed, before Spark or the  the same: the stored offsets are after its records
driver knows of it
Spark's Java, or the driver                 the next driver claims the connector, and fences all slots, before it reads
                                            offsets: what is not committed by then never will be
an executor that was frozen or cut off, or  it is fenced, or finds the newer claim, and commits nothing
a second attempt beside a slow first one    the first is fenced, its transaction discarded; as above
==========================================  ========================================================================

Speculation (``spark.speculation``) is off unless the connector asks for it: two attempts at a split would publish it
twice.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from connect.bulk import Progress
from connect.bulk_source import (
    BulkSourceTask,
    BulkSourceTaskContext,
    ReachedOffsets,
    TransactionOrders,
)
from connect.data import Offset
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.tolerance import Failure
from connect.source import SPLIT_OF, ExactlyOnceSupport, OffsetStorageReader, SourceConnector
from connectors.spark.decoding.plugins import chain_properties, executor_connector
from connectors.spark.engine.config import SparkSourceEngineConfig
from connectors.spark.errors import failure_cause
from connectors.spark.publishing.publisher import Publication, Published, Slots, failure_digest, settle
from connectors.spark.retries import LoadRetries
from connectors.spark.stores.access import Access

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.spark.engine.source_executor import KnownOffsets, SplitOutcome
    from connectors.spark.jobs.jobs import Jobs, Work

__all__ = ["SparkSourceEngine", "SplitOrder"]

logger = logging.getLogger(__name__)
_MOST_REFUSED: Final = 10_000
_MOST_TELLINGS: Final = 5
_SOON_SECONDS: Final = 0.1
_PART_OF_TIMEOUT: Final = 3
"""A transaction is ended after a third of Kafka's transaction timeout."""


class SparkSourceEngine(BulkSourceTask[SparkSourceEngineConfig]):
    """Runs the splits of a source connector in the executors of Spark, with ``engine=spark``."""

    def __init__(self, config: SparkSourceEngineConfig, context: BulkSourceTaskContext) -> None:
        super().__init__(config, context)
        props = context.connector_properties
        self._class_name = props["connector.class"]
        self._width = int(props.get("tasks.max", 1))
        self._publication = Publication.of(context)
        self._spark: SparkSession | None = None
        self._connector: SourceConnector[Any] | None = None
        self._retries = LoadRetries(context, self._start_spark)
        self._is_drained = False
        self._refused: dict[str, None] = {}
        self._slots: Slots | None = None
        self._longest: float | None = None

    def start(self) -> None:
        """Start the connector, and Spark."""
        # Importing pyspark takes half a second and must not happen before the task's process is forked.
        from connectors.spark.engine.source_executor import KnownOffsets  # noqa: PLC0415

        self._known: KnownOffsets = KnownOffsets()
        self._connector = self._made()
        self._connector.start()
        self._start_spark()

    def load(self) -> bool:
        """Have executors read the current splits; return whether these had any records.

        Raises :class:`~connect.errors.RetriableError` if repeating the load may help.
        """
        try:
            found = self._load()
        except ConnectError:
            self._release()
            raise
        except Exception as error:
            self._release()
            assert self._spark is not None
            failure = ConnectError(f"Spark failed to read the splits: {failure_cause(error)}")
            raise self._retries.error(self._spark, failure) from error
        self._retries.forget()
        return found

    def drained(self) -> bool:
        """Return whether there were no splits, or all were read to their ends and had no records."""
        return self._is_drained

    def stop(self) -> None:
        """Stop the connector and Spark; uncommitted records are read again."""
        if self._connector is not None:
            self._connector.stop()
        if self._spark is not None:
            self._spark.stop()

    def _release(self) -> None:
        if self._slots is not None:
            self._slots.release()

    def _made(self) -> SourceConnector[Any]:
        connector_class: type[SourceConnector[Any]] = executor_connector(
            chain_properties(self.context.connector_properties), self._class_name
        )
        if connector_class.splits is SourceConnector.splits:
            raise ConnectError(_undivided(self._class_name))
        originals = {key: value for key, value in self.config.originals.items() if value is not None}
        config = connector_class.config_class.parse(originals)
        exact = connector_class.exactly_once_support(config) is ExactlyOnceSupport.SUPPORTED
        self._seconds = self.config.commit_interval_ms / 1000 if exact else None
        transactions = self.context.transactions if exact else None
        self._slots = None if transactions is None else Slots(transactions)
        return connector_class(config, _ConnectorContext(self.context, self._known))

    def _start_spark(self) -> None:
        from connectors.spark.jobs.jobs import Jobs  # noqa: PLC0415 - as above
        from connectors.spark.session import start_session  # noqa: PLC0415

        access = Access(hadoop_conf_dir=self.config.hadoop_conf_dir)
        self._spark = start_session(self.context.connector_properties, self.context.connector_name, access)
        self._progress = _ReadProgress(self.context, self._spark.sparkContext.uiWebUrl)
        self._jobs: Jobs = Jobs(self._spark, self.context, self._progress, self._width)

    def _load(self) -> bool:
        if self._slots is not None:
            self._slots.claim(self._width)
        splits = self._splits()
        self._is_drained = not splits
        if not splits:
            return False
        self._progress.begin(len(splits))
        order = SplitOrder(splits)
        turns = [[number] for number in range(len(splits))] if self._slots is None else order.turns()
        found = any(self._jobs.run_all([self._in_turn(order, numbers) for numbers in turns]))
        self._is_drained = not found
        return found

    def _splits(self) -> Sequence[Mapping[str, str]]:
        """Return the current splits; the offsets that the connector requests meanwhile are sent along with them."""
        assert self._connector is not None
        self._known.forget()
        splits = self._connector.splits(self._width)
        if splits is None:
            raise ConnectError(_undivided(self._class_name))
        return [{key: value for key, value in split.items() if value is not None} for split in splits]

    def _in_turn(self, order: SplitOrder, numbers: Sequence[int]) -> Work[bool]:
        """Read splits one after the other; return whether there was anything new."""
        found = False
        for number in numbers:
            found = (yield from self._work(order, number)) or found
        return found

    def _work(self, order: SplitOrder, number: int) -> Work[bool]:
        """Read one split to its end; return whether it had anything new. Runs in the task's thread except for
        its jobs."""
        found, split, reported, tellings = False, order.splits[number], frozenset(self._refused), 0
        # A piece of a source partition is committed only after the pieces before it, so it cannot resume from offsets;
        # in transactions the pieces take turns.
        is_whole = order.is_shared(number) and self._slots is None
        while True:
            orders = self._publication.within(self._transaction(number)), self._known.copy(), self._seconds_of(is_whole)
            outcome: SplitOutcome = yield partial(self._run, split, *orders, reported)
            if outcome.is_superseded:
                raise RetriableError(
                    "A split may have been published already; looking up where to continue.", _SOON_SECONDS
                )
            if self._slots is not None:
                self._slots.checked(outcome.checked)
            news = replace(outcome.published, failures=self._news(outcome.published.failures, reported))
            if outcome.is_unreported:
                tellings += 1
                reported |= self._tell(news.failures, tellings)
                continue
            reported, tellings = frozenset(self._refused), 0
            commit = partial(self._commit_in_order, order, number) if outcome.at_end or is_whole else self._commit
            # A source without offsets returns the same records each time.
            found = found or bool(news.offsets)
            self._progress.add(news)
            # Work that would be repeated from its beginning counts only once it is complete.
            is_kept = outcome.at_end or not is_whole
            settle(self.context, news if is_kept else replace(news, offsets=()), commit if is_kept else _not_yet)
            if outcome.at_end:
                self._progress.ended()
                return found
            self._publication = self._publication.with_topics(self.context.create_topics(news.missing))
            if unknown := list(outcome.unknown):
                self._known.learn(unknown, self.context.offset_storage_reader.offsets(unknown))

    def _tell(self, failures: Sequence[Failure], times: int) -> frozenset[str]:
        """Report skipped records, so that a transaction may leave them out; return their digests."""
        if times > _MOST_TELLINGS:
            raise ConnectError(
                "Each time a split is read, different records of it are bad, or for different reasons, so it "
                f"cannot be committed: {failures[0].error if failures else 'none of them is new'}."
            )
        self.context.give_up(failures)
        self.context.commit(())
        return frozenset(map(failure_digest, failures))

    def _seconds_of(self, is_whole: bool) -> float | None:
        """Return how long to read a split before it is committed."""
        if is_whole or self._seconds is None:
            return None
        return self._seconds if self._longest is None else min(self._seconds, self._longest)

    def _transaction(self, number: int) -> TransactionOrders | None:
        """Return the transaction of a split, if any; the first split uses the first slot."""
        if self._slots is None:
            return None
        orders = self._slots.orders(number + 1)
        self._longest = orders.timeout / _PART_OF_TIMEOUT
        return orders

    def _run(
        self,
        split: Mapping[str, str],
        publication: Publication,
        known: KnownOffsets,
        seconds: float | None,
        reported: frozenset[str],
    ) -> SplitOutcome:
        """Have an executor read a split; runs in its own thread."""
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - as above

        from connectors.spark.engine.source_executor import OUTCOME, SplitOrders, outcome_of, run_split  # noqa: PLC0415

        assert self._spark is not None
        orders = SplitOrders(self._class_name, split, publication, known, seconds, reported)
        one: Any = self._spark.range(0, 1, 1, 1)
        return outcome_of(one.mapInArrow(partial(run_split, orders), from_arrow_schema(OUTCOME)).collect())

    def _commit_in_order(self, order: SplitOrder, number: int, offsets: ReachedOffsets) -> None:
        self._commit(order.end(number, offsets))

    def _commit(self, offsets: ReachedOffsets) -> None:
        if self._slots is None:
            self.context.commit(offsets)
        else:
            self.context.committed(offsets)
        self._known.reached(offsets)

    def _news(self, failures: Sequence[Failure], reported: frozenset[str]) -> tuple[Failure, ...]:
        """Return the failures not reported before. Some recur because no offset moves past them, such as an unreadable
        file or a record that a transaction could not leave out yet.
        """
        found = []
        for failure in failures:
            offset: Offset = getattr(failure.record, "source_offset", {})
            digest = failure_digest(failure)
            if digest not in reported and (offset or digest not in self._refused):
                found.append(failure)
            if not offset:
                self._refused[digest] = None
        while len(self._refused) > _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]
        return tuple(found)


class SplitOrder:
    """The order in which the offsets of splits may be stored: pieces of one source partition one after the other."""

    def __init__(self, splits: Sequence[Mapping[str, str]]) -> None:
        self.splits = splits
        self._groups: dict[str, deque[int]] = {}
        self._ended: dict[int, ReachedOffsets] = {}
        for number, split in enumerate(splits):
            if name := split.get(SPLIT_OF):
                self._groups.setdefault(name, deque()).append(number)

    def turns(self) -> list[list[int]]:
        """Group the splits: those of one source partition together, each of the others alone."""
        alone = [[number] for number in range(len(self.splits)) if not self.is_shared(number)]
        return [*map(list, self._groups.values()), *alone]

    def is_shared(self, number: int) -> bool:
        """Return whether a split shares its source partition with others."""
        return bool(self.splits[number].get(SPLIT_OF))

    def end(self, number: int, offsets: ReachedOffsets) -> ReachedOffsets:
        """Note that a split was read to its end; return the offsets that may now be stored."""
        name = self.splits[number].get(SPLIT_OF)
        if not name:
            return offsets
        self._ended[number] = offsets
        group = self._groups[name]
        ready: list[tuple[Offset, Offset | None]] = []
        while group and group[0] in self._ended:
            ready += self._ended.pop(group.popleft())
        return ready


class _ConnectorContext:
    """The runtime as the connector sees it; see :class:`connect.source.SourceConnectorContext`."""

    def __init__(self, context: BulkSourceTaskContext, known: KnownOffsets) -> None:
        self._context = context
        self.offset_storage_reader = _RememberedOffsets(context.offset_storage_reader, known)
        self.wait = context.wait

    def request_task_reconfiguration(self) -> None:
        """Do nothing: the connector is asked for splits repeatedly anyway."""

    def raise_error(self, error: Exception) -> None:
        """Note an error, which fails the task."""
        logger.warning("The connector reported an error: %s", error)

    def show_wait(self, reason: str | None) -> None:
        """Do nothing: the connector that the worker itself runs shows what it waits for."""


class _RememberedOffsets:
    """Reads stored offsets for the connector, and remembers them so that they can be sent along with its splits."""

    def __init__(self, reader: OffsetStorageReader, known: KnownOffsets) -> None:
        self._reader = reader
        self._known = known

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        """Return the offset of each source partition, ``None`` where none is stored."""
        found = self._reader.offsets(partitions)
        self._known.learn(partitions, found)
        return found

    def offset(self, partition: Offset) -> Offset | None:
        """Return the offset of one source partition."""
        return self.offsets([partition])[0]


class _ReadProgress:
    """The progress of a load, as its splits report it when they are committed."""

    def __init__(self, context: BulkSourceTaskContext, ui: str | None) -> None:
        self._context = context
        self._ui = ui
        self._splits = self._ended = self._read = self._written = self._bytes = 0

    def begin(self, splits: int) -> None:
        """Start counting for a new load."""
        self._splits = splits
        self._ended = self._read = self._written = self._bytes = 0
        self._tell()

    def add(self, published: Published) -> None:
        """Add what was published."""
        self._read += published.read
        self._written += sum(published.written.values())
        self._bytes += published.bytes
        self._tell()

    def ended(self) -> None:
        """Note that a split was read to its end."""
        self._ended += 1
        self._tell()

    def look(self) -> None:
        """Do nothing: the splits report their progress themselves."""

    def _tell(self) -> None:
        stage = f"reading splits ({self._ended} of {self._splits} done)"
        self._context.progress(Progress(stage, self._read, self._written, self._bytes, ui=self._ui))


def _not_yet(offsets: ReachedOffsets) -> None:
    """Store nothing."""


def _undivided(connector: str) -> str:
    return (
        f"{connector} does not divide its work into splits that come to an end, at least not with this configuration, "
        "so that Spark cannot run it: set engine=worker."
    )
