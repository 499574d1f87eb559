"""The table source and its task."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from connect.bulk_source import BulkSourceTask, BulkSourceTaskContext
from connect.data import Offset
from connect.errors import ConnectError
from connect.source import ExactlyOnceSupport, SourceConnector
from connectors.spark.sources.marks import divide_evenly, numbered_pieces, unmarked
from connectors.spark.sources.session import SourceSession
from connectors.spark.sources.tables.config import SparkTableSourceConfig
from connectors.spark.sources.tables.lake_table import CHANGE, LakeTable, files_within
from connectors.spark.sources.tables.steps import FilesStep, RowChanges, Skip, Step, TablePosition, next_step
from connectors.spark.stores.access import store_access

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from connectors.spark.sources.tables.changes import TableRecords

__all__ = ["SparkTableSourceConnector", "SparkTableSourceTask"]

logger = logging.getLogger(__name__)
_CHANGES: Final = "0"
"""The name of the only piece of a load of changes."""


class SparkTableSourceTask(BulkSourceTask[SparkTableSourceConfig]):
    """Publishes the rows of tables, and from then on the changes from version to version."""

    def __init__(self, config: SparkTableSourceConfig, context: BulkSourceTaskContext) -> None:
        super().__init__(config, context)
        self._session = SourceSession(context, store_access(config), {})
        self._tables: Mapping[str, LakeTable] = {}
        self._opened_with: SparkSession | None = None

    def start(self) -> None:
        """Start Spark."""
        self._session.start()

    def load(self) -> bool:
        """Take the next step of each table."""
        return self._session.work(self._load)

    def stop(self) -> None:
        """Stop Spark."""
        self._session.stop()

    def _load(self) -> bool:
        if self._opened_with is not self._session.spark:
            from connectors.spark.sources.tables.factory import open_tables  # noqa: PLC0415 - brings pyspark

            self._tables = open_tables(self._session.spark, self.config)
            self._opened_with = self._session.spark
        return sum(self._advance(name, table) for name, table in self._tables.items()) > 0

    def _advance(self, name: str, table: LakeTable) -> bool:
        """Take the next step of a table, and return whether there was anything to send."""
        partition = _partition(name)
        stored = self.context.offset_storage_reader.offset(partition)
        newest = table.refresh()
        if stored is None and self.config.snapshot_mode == "no_data":
            # Stored even if the table is empty or missing: its first rows come later, and are changes.
            self._session.publisher.end(partition, TablePosition(newest).offset())
            return False
        reached = TablePosition.of(stored)
        step = self._planned(table, reached, newest)
        if step is None:
            return False
        after = self._taken(name, table, step)
        if after != reached:
            self._session.publisher.end(partition, after.offset())
        return isinstance(step, FilesStep | RowChanges)

    def _planned(self, table: LakeTable, reached: TablePosition, newest: int | None) -> Step | None:
        commits = table.commits(reached) if reached.version is not None and reached.upto is None else ()
        return next_step(reached, newest, commits, self.config.versions_at_once)

    def _taken(self, name: str, table: LakeTable, step: Step) -> TablePosition:
        """Carry out the step, and return the position after it."""
        if isinstance(step, Skip):
            return TablePosition(step.upto)
        if isinstance(step, RowChanges):
            self._send_changes(name, table, step)
            return TablePosition(step.commit.version)
        return self._send_files(name, table, step)

    def _send_files(self, name: str, table: LakeTable, step: FilesStep) -> TablePosition:
        """Send as many of a table's files as are read at once, and return the position after them."""
        from connectors.spark.sources.row_publisher import Load, Share  # noqa: PLC0415 - brings pyspark

        publisher, load = self._session.publisher, Load(_partition(name), f"{step.after}-{step.upto}")
        publisher.begin(load.partition, TablePosition(step.after, step.upto, step.done).offset())
        files = table.files(step.after, step.upto)
        end = step.done + len(files_within(files, step.done, self.config.load_max_bytes))
        pieces = numbered_pieces(step.done, end, publisher.sent(load))
        with ExitStack() as frames:
            shares = []
            for numbers in divide_evenly(pieces.due, publisher.width, lambda number: files[number].size):
                frame = frames.enter_context(table.rows(step.upto, [files[number] for number in numbers]))
                records = self._records(name, table, frame, step).rows(frame)
                shares.append(Share(records, tuple(map(str, numbers))))
            if shares:
                publisher.publish(shares, load, f"publishing {name}")
        is_whole = pieces.end >= len(files)
        return TablePosition(step.upto) if is_whole else TablePosition(step.after, step.upto, pieces.end)

    def _send_changes(self, name: str, table: LakeTable, step: RowChanges) -> None:
        from connectors.spark.sources.row_publisher import Load, Share  # noqa: PLC0415 - brings pyspark

        version = step.commit.version
        if not self.config.tells_deletes:
            raise ConnectError(
                f"Version {version} of table {table.name} replaces or deletes rows, which records without a "
                "key cannot express: set key.columns to the columns that identify a row, or "
                "envelope=debezium."
            )
        publisher, load = self._session.publisher, Load(_partition(name), f"{step.after}-{version}")
        if not publisher.sent(load):
            frame = table.changes(step.after, version)
            records = publisher.computed(self._records(name, table, frame, step).changes(frame))
            publisher.publish([Share(records, (_CHANGES,))], load, f"publishing {name}")

    def _records(self, name: str, table: LakeTable, frame: DataFrame, step: FilesStep | RowChanges) -> TableRecords:
        from pyspark.sql.types import StructType  # noqa: PLC0415 - pyspark takes half a second to import

        from connectors.spark.sources.record_frame import RowReading  # noqa: PLC0415 - brings pyspark
        from connectors.spark.sources.tables.changes import Origin, TableRecords  # noqa: PLC0415 - brings pyspark

        is_change = isinstance(step, RowChanges)
        version = step.commit.version if isinstance(step, RowChanges) else step.upto
        origin = Origin(
            self.context.connector_name,
            self.config.table_format,
            table.name,
            version,
            table.time_of(version),
            time.time_ns() // 1_000_000,
            is_snapshot=not is_change and step.after is None,
        )
        columns = StructType([field for field in frame.schema.fields if field.name != CHANGE])
        reading = RowReading(self.config, columns, table.remembered)
        enveloped = self.config.envelope == "debezium"
        return TableRecords(reading, self.config.topic_of(table=name), origin, enveloped=enveloped)


class SparkTableSourceConnector(SourceConnector[SparkTableSourceConfig]):
    """Publishes Iceberg and Delta tables with Spark: first their rows, then their changes. Runs as a single task."""

    task_class = SparkTableSourceTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:  # noqa: ARG002
        """Return one task config: the connector's own configuration."""
        return [self.config.originals]

    @classmethod
    def exactly_once_support(cls, config: SparkTableSourceConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Supported: the rows of files and versions are committed together with the marks that say they were sent."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: SparkTableSourceConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Reject anything that is not the offset of a table."""
        for offset in unmarked(offsets.values()):
            TablePosition.of(offset)
        return True


def _partition(table: str) -> Offset:
    return {"table": table}
