"""The Spark sink connector and its task."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from connect.bulk import BulkSinkTask, BulkSinkTaskContext, OffsetRange
from connect.crash import crash_point
from connect.data import Schema, TopicPartition
from connect.errors import ConnectError
from connect.sink import SinkConnector
from connectors.spark.config import SparkSinkConfig
from connectors.spark.ledger.filesystem import LocalFileSystem
from connectors.spark.ledger.ledger import Ledger
from connectors.spark.ledger.manifest import Move

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.spark.loader import Loader

__all__ = ["SparkSinkConnector", "SparkSinkTask"]

logger = logging.getLogger(__name__)


class SparkSinkTask(BulkSinkTask[SparkSinkConfig]):
    """Loads offset ranges into Parquet tables with Spark, each record exactly once (invariant I3)."""

    def __init__(self, config: SparkSinkConfig, context: BulkSinkTaskContext) -> None:
        super().__init__(config, context)
        self.context = context
        self._files = LocalFileSystem(config.store)
        self._ledger = Ledger(self._files, context.connector_name)
        self._spark: SparkSession | None = None
        self._loader: Loader | None = None

    def start(self) -> None:
        """Start Spark, then take the ledger over from its former owner."""
        # pyspark takes half a second to import and must not be there before the task's process is forked.
        from connectors.spark.loader import Loader  # noqa: PLC0415
        from connectors.spark.session import start_session  # noqa: PLC0415

        self._spark = start_session(self.context.connector_properties, self.context.connector_name)
        self._loader = Loader(self._spark, self._files, self.config, self.context)
        self._ledger.open()

    def committed(self) -> Mapping[TopicPartition, int]:
        """The next offset of each partition, as the ledger has it."""
        return self._ledger.offsets

    def load(self, ranges: Sequence[OffsetRange]) -> None:
        """Stage the records, commit them in the ledger, and give their files the final names."""
        self._ledger.recover()
        self._check_topics(ranges)
        wanted = [item for item in map(self._not_loaded, sorted(ranges)) if len(item)]
        if not wanted:
            return
        staging = self._ledger.new_staging()
        crash_point("before-staging-write")
        try:
            moves, tables = self._stage(wanted, staging)
        except Exception:
            # Whoever takes over clears the staging of this driver away, which would show as an odd error.
            self._ledger.check_fence()
            raise
        crash_point("after-staging-write")
        ends = {item.topic_partition: item.end for item in wanted}
        topics = {item.topic: item.topic_id for item in wanted if item.topic_id is not None}
        self._ledger.commit(staging, moves, ends, tables, {**self._ledger.topics, **topics})

    def stop(self) -> None:
        """Stop Spark; what is committed is complete, what is not will be loaded again."""
        if self._spark is not None:
            self._spark.stop()

    def _check_topics(self, ranges: Sequence[OffsetRange]) -> None:
        """Refuse a topic that was made again since it was loaded: the offsets in the ledger mean nothing for it."""
        for item in ranges:
            if item.topic_id is not None and self._ledger.topics.get(item.topic, item.topic_id) != item.topic_id:
                raise ConnectError(
                    f"Topic {item.topic} was deleted and made again since it was loaded: its offsets do not mean what "
                    "they did. Give the connector another name and topics.dir to load it from its beginning, or stop "
                    "it and set its offsets to go on from there."
                )

    def _not_loaded(self, item: OffsetRange) -> OffsetRange:
        """The part of a range that the ledger does not have yet."""
        first = max(item.first, min(item.end, self._ledger.offsets.get(item.topic_partition, 0)))
        if first > item.first:
            logger.info("Offsets %d to %d of %s are loaded already.", item.first, first - 1, item.topic_partition)
        return replace(item, first=first)

    def _stage(self, ranges: Sequence[OffsetRange], staging: str) -> tuple[list[Move], dict[str, Schema]]:
        assert self._loader is not None
        moves: list[Move] = []
        tables: dict[str, Schema] = {}
        for _, group in groupby(ranges, key=lambda item: item.topic):
            staged = self._loader.stage(list(group), {**self._ledger.tables, **tables}, staging)
            moves += staged.moves
            tables |= staged.tables
        return moves, tables


class SparkSinkConnector(SinkConnector[SparkSinkConfig]):
    """Writes topics to Parquet tables with Spark, exactly once. It is one task: Spark does the dividing."""

    task_class = SparkSinkTask
    version = "0.1.0"

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:  # noqa: ARG002
        """One task with the connector's own configuration."""
        return [{key: value for key, value in self.config.originals.items() if value is not None}]

    @classmethod
    def alter_offsets(cls, config: SparkSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Skip records: the ledger, whose offsets are the ones that count, goes on from these.

        Going back is refused, for it would load records twice.
        """
        ledger = Ledger(LocalFileSystem(config.store), config.originals.get("name") or "")
        ledger.open()
        for tp, offset in offsets.items():
            loaded = ledger.offsets.get(tp, 0)
            if loaded > (offset or 0):
                raise ConnectError(
                    f"Partition {tp.partition} of topic {tp.topic} is loaded up to offset {loaded}: loading it from "
                    f"{offset or 0} would double records. To load it again, use another connector name and topics.dir."
                )
        ledger.commit(ledger.new_staging(), (), {tp: offset or 0 for tp, offset in offsets.items()}, {})
        return True
