"""The file source and its task."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from connect.bulk_source import BulkSourceTask, BulkSourceTaskContext
from connect.data import Offset
from connect.source import ExactlyOnceSupport, SourceConnector
from connectors.spark.sources.files.bookmark import Bookmark, Due, Limits, files_due
from connectors.spark.sources.files.config import PartitionFields, SparkFileSourceConfig
from connectors.spark.sources.files.listing import FileFilter, listed_files
from connectors.spark.sources.files.reader import BadFile, FilePart, FileReader, file_groups
from connectors.spark.sources.marks import unmarked
from connectors.spark.sources.session import SourceSession
from connectors.spark.stores.access import store_access

__all__ = ["SparkFileSourceConnector", "SparkFileSourceTask"]

logger = logging.getLogger(__name__)
_LOAD: Final = "files"
"""The name of every load: the names of the files are enough to tell them apart."""
_INFERENCE: Final = "spark.sql.sources.partitionColumnTypeInference.enabled"


class SparkFileSourceTask(BulkSourceTask[SparkFileSourceConfig]):
    """Publishes the rows of files that appear in a folder, each file once and as a whole."""

    def __init__(self, config: SparkFileSourceConfig, context: BulkSourceTaskContext) -> None:
        super().__init__(config, context)
        inferred = str(config.partition_fields is PartitionFields.INFERRED).lower()
        self._session = SourceSession(context, store_access(config), {_INFERENCE: inferred})
        self._partition: Offset = {"folder": config.folder}
        self._filter = FileFilter(config.pattern, recursive=config.recursive)
        self._limits = Limits(config.load_max_files, config.load_max_bytes, config.file_age_ms)
        self._bookmark = Bookmark()
        self._reported_late = 0
        self._is_drained = True

    def start(self) -> None:
        """Start Spark."""
        self._session.start()

    def load(self) -> bool:
        """Publish the files that are due."""
        return self._session.work(self._load)

    def drained(self) -> bool:
        """Return whether no files were left out for being too young."""
        return self._is_drained

    def stop(self) -> None:
        """Stop Spark."""
        self._session.stop()

    def _load(self) -> bool:
        from connectors.spark.sources.row_publisher import Load  # noqa: PLC0415 - brings pyspark

        load = Load(self._partition, _LOAD)
        self._bookmark = Bookmark.of(self.context.offset_storage_reader.offset(self._partition))
        if pieces := self._session.publisher.sent(load):
            self._bookmark = self._bookmark.with_pieces(pieces)
            self._session.publisher.end(load.partition, self._bookmark.offset())
        due = self._look()
        self._is_drained = due.ripe_in is None
        if not due.files:
            return False
        logger.info("Sending %d files; %d more are waiting.", len(due.files), due.left)
        self._send(due)
        return True

    def _look(self) -> Due:
        found = listed_files(self._session.spark, self.config.folder, self._filter)
        due = files_due(found, self._bookmark, self._limits, time.time_ns() // 1_000_000)
        if due.late > self._reported_late:
            logger.warning(
                "Not sending %d files in %s: their modification times are more than file.late.ms behind that "
                "of files sent already. To send them, touch them, or set file.late.ms higher.",
                due.late,
                self.config.folder,
            )
        self._reported_late = due.late
        return due

    def _send(self, due: Due) -> None:
        """Publish the files, and commit the offset after each part that is read together."""
        from connectors.spark.sources.row_publisher import Load, Share  # noqa: PLC0415 - brings pyspark

        publisher, load = self._session.publisher, Load(self._partition, _LOAD)
        reader = FileReader(self._session.spark, publisher, self.config)
        # All files are read before the first is published, so that an error in one is found before any rows are sent in
        # vain.
        parts = [(group, part) for group in file_groups(due.files, self.config) for part in reader.parts(group)]
        places = {file.digest: file.place for file in due.files}
        self._bookmark = replace(self._bookmark, passed=due.passed)
        for group, part in sorted(parts, key=lambda item: isinstance(item[1], FilePart)):
            if isinstance(part, BadFile):
                publisher.give_up(group.topic, part.file.path, reader.error(part))
            else:
                shares = [
                    Share(each.records, tuple(file.piece for file in each.files))
                    for each in reader.divided(group, part, publisher.width)
                ]
                publisher.publish(shares, load, f"publishing {group.topic}")
            done = part.files if isinstance(part, FilePart) else [part.file]
            for file in done:
                del places[file.digest]
            rest = min([*places.values(), *filter(None, [due.next])], default=None)
            self._bookmark = self._bookmark.after(done, rest, self.config.file_late_ms)
            publisher.end(load.partition, self._bookmark.offset())


class SparkFileSourceConnector(SourceConnector[SparkFileSourceConfig]):
    """Publishes the rows of files in a folder of any Hadoop file system with Spark. Runs as a single task."""

    task_class = SparkFileSourceTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:  # noqa: ARG002
        """Return one task config: the connector's own configuration."""
        return [self.config.originals]

    @classmethod
    def exactly_once_support(cls, config: SparkFileSourceConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Supported: the rows of a file are committed together with the mark that says it was sent."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: SparkFileSourceConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Reject anything that is not a bookmark of a folder."""
        for offset in unmarked(offsets.values()):
            Bookmark.of(offset)
        return True
