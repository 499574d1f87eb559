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
from connectors.spark.retries import JAVA_ENDED
from connectors.spark.session import forget_session, java_runs
from connectors.spark.sink.compaction import CompactionClock, compact
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.options.storage_sinks import as_spark_sink
from connectors.spark.sink.target import FencedError, Target
from connectors.spark.stores.access import store_access

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.spark.sink.loading.loader import Loader

__all__ = ["SparkSinkConnector", "SparkSinkTask", "make_target"]

logger = logging.getLogger(__name__)
_LOSSES: Final = 2
_RETRY_SECONDS: Final = 1.0


class SparkSinkTask(BulkSinkTask[SparkSinkConfig]):
    """Loads offset ranges into tables with Spark, each record exactly once (invariant I3)."""

    def __init__(self, config: SparkSinkConfig, context: BulkSinkTaskContext) -> None:
        super().__init__(config, context)
        self.context = context
        self._spark: SparkSession | None = None
        self._loader: Loader | None = None
        self._target = make_target(config, context.connector_name, self._session)
        self._retries = 0
        self._compaction = CompactionClock(config.compact_interval_ms)

    def start(self) -> None:
        """Start Spark, then take over the target from its previous owner."""
        self._take_over()

    def _take_over(self) -> None:
        # Importing pyspark takes half a second and must not happen before the task's process is forked.
        from connectors.spark.sink.loading.loader import Loader  # noqa: PLC0415

        self._loader = Loader(self._session(), self.config, self.context, self._target.packages)
        self._target.open()

    def committed(self) -> Mapping[TopicPartition, int]:
        """Return the next offset of each partition, as recorded in the target."""
        return self._target.offsets

    def load(self, ranges: Sequence[OffsetRange]) -> None:
        """Write the records that are not loaded yet, and commit them with their offsets.

        If Spark's Java process has ended, it is restarted, and the load has to be retried.
        """
        try:
            self._load(ranges)
        except FencedError:
            raise
        except Exception as error:
            if self._spark is None or java_runs(self._spark):
                raise
            raise self._start_again() from error
        self._retries = 0

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
        """Decode the records, run the query, and return the first rows."""
        from connectors.spark.sink.loading.loader import Loader  # noqa: PLC0415 - as above
        from connectors.spark.sink.preview import preview_tables  # noqa: PLC0415

        loader = Loader(self._session(), self.config, self.context, self._target.packages)
        peeked = self._target.peek()
        wanted = [item for item in (_after(item, peeked.offsets) for item in ranges) if len(item)]
        yield from preview_tables(loader, wanted, peeked, rows)

    def stop(self) -> None:
        """Stop Spark. Committed loads are complete; all others will be loaded again."""
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
        """Restart Spark after its Java process has ended; return the error that says so."""
        assert self._spark is not None
        self._retries += 1
        forget_session(self._spark)
        self._spark = None
        if self._retries > _LOSSES:
            return ConnectError(
                f"{JAVA_ENDED} That was so {self._retries} times in a row. Nothing is lost; see in the log and in the "
                "machine's own why it ends, and restart the task."
            )
        logger.warning("%s Restarting it.", JAVA_ENDED)
        self.context.progress(Progress("starting Spark again"))
        # User plugins are started only once, whatever happens to Java.
        self._take_over()
        return RetriableError(
            f"{JAVA_ENDED} It has been started again, and nothing is lost.", retry_after=_RETRY_SECONDS
        )

    def _check_topics(self, ranges: Sequence[OffsetRange]) -> None:
        """Reject a topic that was recreated since it was loaded: the target's offsets mean nothing for it."""
        for item in ranges:
            if item.topic_id is not None and self._target.topics.get(item.topic, item.topic_id) != item.topic_id:
                raise ConnectError(
                    f"Topic {item.topic} was deleted and created again since it was loaded, so its offsets no "
                    "longer match. To load it from the beginning, give the connector another name and "
                    "topics.dir; to continue with it, stop the connector and set its offsets."
                )

    def _not_loaded(self, item: OffsetRange) -> OffsetRange:
        """Return the part of a range that the target does not have yet."""
        left = _after(item, self._target.offsets)
        if left.first > item.first:
            logger.info(
                "Skipping offsets %d to %d of %s, which are loaded already.",
                item.first,
                left.first - 1,
                item.topic_partition,
            )
        return left


class SparkSinkConnector(SinkConnector[SparkSinkConfig]):
    """Writes topics to tables with Spark, exactly once. Runs as a single task; Spark divides the work."""

    task_class = SparkSinkTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:  # noqa: ARG002
        """Return one task config: the connector's own configuration."""
        return [{key: value for key, value in self.config.originals.items() if value is not None}]

    @classmethod
    def alter_offsets(cls, config: SparkSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Skip records: set the offsets in the target, which are the ones that count.

        Going back is refused, because it would load records twice.
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
        """Merge the small files of tables, in a Spark session of its own."""
        name = config.originals.get("name") or ""
        with _short_session(config) as spark:
            target = make_target(config, name, spark)
            target.open()
            yield from compact(target, tables, lambda: False)


def make_target(config: SparkSinkConfig, connector: str, spark: Callable[[], SparkSession]) -> Target:
    """Return a connector's target. ``spark`` returns its session, for targets that are reached through Spark."""
    if config.table_format == "iceberg":
        from connectors.spark.sink.iceberg.target import IcebergTarget  # noqa: PLC0415 - brings pyarrow

        return IcebergTarget(config, connector, spark)
    if config.table_format == "delta":
        from connectors.spark.sink.delta.target import DeltaTarget  # noqa: PLC0415 - brings pyspark

        return DeltaTarget(config, connector, spark)
    from connectors.spark.sink.ledger.target import FilesTarget  # noqa: PLC0415 - brings pyarrow

    return FilesTarget(config, connector, spark)


def _as_spark_sink(props: Mapping[str, str]) -> dict[str, str]:
    return {key: str(value) for key, value in as_spark_sink(props).items()}


def _after(item: OffsetRange, offsets: Mapping[TopicPartition, int]) -> OffsetRange:
    """Return the part of a range from the partition's offset on."""
    return replace(item, first=max(item.first, min(item.end, offsets.get(item.topic_partition, 0))))


def _check_forward(tp: TopicPartition, loaded: int, offset: int) -> None:
    if loaded > offset:
        raise ConnectError(
            f"Partition {tp.partition} of topic {tp.topic} is loaded up to offset {loaded}; loading it from "
            f"{offset} would duplicate records. To load it again, use another connector name and topics.dir."
        )


@contextmanager
def _short_session(config: SparkSinkConfig) -> Iterator[Callable[[], SparkSession]]:
    """Yield a session that starts on first use and ends with the ``with`` block."""
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
