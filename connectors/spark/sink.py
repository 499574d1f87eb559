"""The Spark sink connector and its task."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from connect.bulk import BulkSinkTask, BulkSinkTaskContext, OffsetRange, Progress, TablePreview
from connect.data import TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.sink import CompactedTable, SinkConnector
from connectors.spark.compaction import CompactionClock, compact
from connectors.spark.config import SparkSinkConfig
from connectors.spark.ledger.ledger import FencedError
from connectors.spark.options.storage_sinks import as_spark_sink
from connectors.spark.retries import JAVA_ENDED
from connectors.spark.session import forget_session, java_runs
from connectors.spark.stores.access import store_access
from connectors.spark.target import make_target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.spark.loading.loader import Loader

__all__ = ["SparkSinkConnector", "SparkSinkTask"]

logger = logging.getLogger(__name__)
_LOSSES: Final = 2
_RETRY: Final = 1.0


class SparkSinkTask(BulkSinkTask[SparkSinkConfig]):
    """Loads offset ranges into tables with Spark, each record exactly once (invariant I3)."""

    def __init__(self, config: SparkSinkConfig, context: BulkSinkTaskContext) -> None:
        super().__init__(config, context)
        self.context = context
        self._spark: SparkSession | None = None
        self._loader: Loader | None = None
        self._target = make_target(config, context.connector_name, self._session)
        self._losses = 0
        self._compaction = CompactionClock(config.compact_interval_ms)

    def start(self) -> None:
        """Start Spark, then take the target over from its former owner."""
        self._take_over()

    def _take_over(self) -> None:
        # pyspark takes half a second to import and must not be there before the task's process is forked.
        from connectors.spark.loading.loader import Loader  # noqa: PLC0415

        self._loader = Loader(self._session(), self.config, self.context)
        self._target.open()

    def committed(self) -> Mapping[TopicPartition, int]:
        """The next offset of each partition, as the target has it."""
        return self._target.offsets

    def load(self, ranges: Sequence[OffsetRange]) -> None:
        """Write the records that are not loaded yet, and commit them with their offsets.

        If Spark's Java process has ended, it is started again, and the load is to be tried again.
        """
        try:
            self._load(ranges)
        except FencedError:
            raise
        except Exception as error:
            if self._spark is None or java_runs(self._spark):
                raise
            raise self._start_again() from error
        self._losses = 0

    def _load(self, ranges: Sequence[OffsetRange]) -> None:
        assert self._loader is not None
        self._loader.progress.begin()
        self._target.recover()
        self._check_topics(ranges)
        wanted = [item for item in map(self._not_loaded, sorted(ranges)) if len(item)]
        if wanted:
            self._target.load(wanted, self._loader)
        if self._compaction.due():
            for _ in compact(self._target, None, self.context.stopping):
                pass

    def preview(self, ranges: Sequence[OffsetRange], rows: int) -> Iterable[TablePreview]:
        """Decode the records, ask the query, and bring the first rows here."""
        from connectors.spark.loading.loader import Loader  # noqa: PLC0415 - as above
        from connectors.spark.preview import preview_tables  # noqa: PLC0415

        loader = Loader(self._session(), self.config, self.context)
        peeked = self._target.peek()
        wanted = [item for item in (_after(item, peeked.offsets) for item in ranges) if len(item)]
        yield from preview_tables(loader, wanted, peeked, rows)

    def stop(self) -> None:
        """Stop Spark; what is committed is complete, what is not will be loaded again."""
        if self._spark is not None:
            self._spark.stop()

    def _session(self) -> SparkSession:
        from connectors.spark.session import start_session  # noqa: PLC0415 - as above

        if self._spark is None:
            self._spark = start_session(
                _as_spark_sink(self.context.connector_properties),
                self.context.connector_name,
                store_access(self.config),
            )
        return self._spark

    def _start_again(self) -> ConnectError:
        """Start Spark again after its Java process has ended; the error that says so."""
        assert self._spark is not None
        self._losses += 1
        forget_session(self._spark)
        self._spark = None
        if self._losses > _LOSSES:
            return ConnectError(
                f"{JAVA_ENDED} That was so {self._losses} times in a row. Nothing is lost; see in the log and in the "
                "machine's own why it ends, and restart the task."
            )
        logger.warning("%s Starting it again.", JAVA_ENDED)
        self.context.progress(Progress("starting Spark again"))
        # A plugin of users is started once, whatever becomes of Java.
        self._take_over()
        return RetriableError(f"{JAVA_ENDED} It has been started again, and nothing is lost.", retry_after=_RETRY)

    def _check_topics(self, ranges: Sequence[OffsetRange]) -> None:
        """Refuse a topic that was made again since it was loaded: the offsets of the target mean nothing for it."""
        for item in ranges:
            if item.topic_id is not None and self._target.topics.get(item.topic, item.topic_id) != item.topic_id:
                raise ConnectError(
                    f"Topic {item.topic} was deleted and made again since it was loaded: its offsets do not mean what "
                    "they did. Give the connector another name and topics.dir to load it from its beginning, or stop "
                    "it and set its offsets to go on from there."
                )

    def _not_loaded(self, item: OffsetRange) -> OffsetRange:
        """The part of a range that the target does not have yet."""
        left = _after(item, self._target.offsets)
        if left.first > item.first:
            logger.info("Offsets %d to %d of %s are loaded already.", item.first, left.first - 1, item.topic_partition)
        return left


class SparkSinkConnector(SinkConnector[SparkSinkConfig]):
    """Writes topics to tables with Spark, exactly once. It is one task: Spark does the dividing."""

    task_class = SparkSinkTask
    watches = False
    version = "0.1.0"

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:  # noqa: ARG002
        """One task with the connector's own configuration."""
        return [{key: value for key, value in self.config.originals.items() if value is not None}]

    @classmethod
    def alter_offsets(cls, config: SparkSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Skip records: the target, whose offsets are the ones that count, goes on from these.

        Going back is refused, for it would load records twice.
        """
        name = config.originals.get("name") or ""
        with _short_session(config) as spark:
            target = make_target(config, name, spark)
            target.open()
            for tp, offset in offsets.items():
                _check_forward(tp, target.offsets.get(tp, 0), offset or 0)
            target.skip({tp: offset or 0 for tp, offset in offsets.items()})
        return True

    @classmethod
    def compact(cls, config: SparkSinkConfig, tables: Collection[str] | None) -> Iterator[CompactedTable]:
        """Merge the small files of tables, in a Spark session for that alone."""
        name = config.originals.get("name") or ""
        with _short_session(config) as spark:
            target = make_target(config, name, spark)
            target.open()
            yield from compact(target, tables, lambda: False)


def _as_spark_sink(props: Mapping[str, str]) -> dict[str, str]:
    return {key: str(value) for key, value in as_spark_sink(props).items()}


def _after(item: OffsetRange, offsets: Mapping[TopicPartition, int]) -> OffsetRange:
    """The part of a range that begins at the offset of its partition, or later."""
    return replace(item, first=max(item.first, min(item.end, offsets.get(item.topic_partition, 0))))


def _check_forward(tp: TopicPartition, loaded: int, offset: int) -> None:
    if loaded > offset:
        raise ConnectError(
            f"Partition {tp.partition} of topic {tp.topic} is loaded up to offset {loaded}: loading it from "
            f"{offset} would double records. To load it again, use another connector name and topics.dir."
        )


@contextmanager
def _short_session(config: SparkSinkConfig) -> Iterator[Callable[[], SparkSession]]:
    """A session that starts when it is asked for, and ends with the ``with`` block."""
    started: list[SparkSession] = []

    def session() -> SparkSession:
        from connectors.spark.session import start_session  # noqa: PLC0415 - pyspark takes half a second to import

        if not started:
            props = {key: value for key, value in config.originals.items() if value is not None}
            started.append(start_session(props, props.get("name", ""), store_access(config)))
        return started[0]

    try:
        yield session
    finally:
        for spark in started:
            spark.stop()
