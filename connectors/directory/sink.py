"""The directory sink: records become lines of files, which appear whole."""

from __future__ import annotations

import io
import logging
from collections.abc import Collection, Mapping
from contextlib import suppress

from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, DataError
from connect.kits.files.systems.address import place_in
from connect.sink import SinkConnector, SinkTask
from connectors.directory.sink_config import Compression, DirectorySinkConfig
from connectors.directory.sink_file import GrowingFile, file_name, folder_name, next_offset, shown_partition
from connectors.directory.sink_lines import header_line, line_of

__all__ = ["DirectorySinkConnector", "DirectorySinkTask"]

_TOPIC_ID = ".topic-id"

_log = logging.getLogger(__name__)


class DirectorySinkTask(SinkTask[DirectorySinkConfig]):
    """Writes the records of each partition to files whose names tell their first and last offsets.

    A file is written under a hidden name, synced and renamed; only then may the offsets of its records be committed.
    What is in files is told by their names, so that records which come again are passed over, each is in one file.

    Crash points: before the rename there is at most a hidden file, which the next task removes; its records come again.
    Between the rename and the commit the records come again, and are passed over, bad ones too: their reports are
    durable before the rename.
    """

    def start(self) -> None:
        self._system = self.config.system_at(self.config.address)
        self._folder = self.config.address.path
        self._line = line_of(self.config)
        self._files: dict[TopicPartition, GrowingFile] = {}
        self._checked: set[str] = set()
        # The last commit of a run that comes to an end is the last chance to write.
        self._writes_at_commits = self.config.originals.get("run.until") == "drained"

    def put(self, records: SinkBatch) -> None:
        # What could not be written at the last call, if it failed.
        self._write_full()
        for record in records:
            self._add(record)
        self._write_due()
        self._ask_for_time()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self._write_due(at_once=self._writes_at_commits)
        return {partition: self._committable(partition, offset) for partition, offset in offsets.items()}

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Drop what is in no file: its offsets are not committed, so it comes again."""
        for partition in partitions:
            if (file := self._files.pop(partition, None)) is not None:
                file.clear()

    def stop(self) -> None:
        if hasattr(self, "_files"):
            self.close(list(self._files))
            self._system.close()

    def _committable(self, partition: TopicPartition, offset: int) -> int:
        file = self._files.get(partition)
        return offset if file is None or file.first is None else min(file.first, offset)

    def _add(self, record: SinkRecord) -> None:
        partition = record.origin
        file = self._files.get(partition)
        if file is None:
            file = self._files[partition] = self._begun(partition)
        if record.original_offset < file.following:
            return
        try:
            columns, line = self._line(record)
        except DataError as error:
            self._report(record, error)
        else:
            if columns != file.columns and not file.is_empty:
                self._write(partition, file)
            file.columns = columns
            file.add(record.original_offset, line)
        file.following = record.original_offset + 1
        if file.is_full(self.config.flush_size, self.config.rotate_bytes):
            self._write(partition, file)

    def _report(self, record: SinkRecord, error: DataError) -> None:
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise error
        reporter.report(record, error)

    def _begun(self, partition: TopicPartition) -> GrowingFile:
        """Find out what files have of a partition, and remove what a killed task has left."""
        self._check_topic(partition.topic)
        folder = place_in(self._folder, folder_name(partition))
        try:
            found = [each.name for each in self._system.walk(folder, recursive=False, enters=lambda _: False)]
            self._system.remove_parts(folder, f"{partition.topic}+{partition.partition}+")
        except FileNotFoundError:
            found = []
        except OSError as error:
            raise ConnectError(
                f"{self._system.shown(folder)} cannot be listed: {error}. Correct the key path."
            ) from error
        following = next_offset(partition, found)
        if following:
            _log.info(
                "Files in %s have the records of %s before %d.",
                self._system.shown(folder),
                shown_partition(partition),
                following,
            )
        return GrowingFile(following)

    def _check_topic(self, topic: str) -> None:
        """Raise an error if the files are those of another topic that had the same name (D10)."""
        known = self.context.topic_ids([topic]).get(topic)
        if topic in self._checked or known is None:
            return
        folder = place_in(self._folder, topic)
        place = place_in(folder, _TOPIC_ID)
        kept = io.BytesIO()
        with suppress(FileNotFoundError):
            self._system.copy(place, kept)
        if not kept.getvalue():
            with self._system.writing(place) as stream:
                stream.write(known.encode())
        elif kept.getvalue().decode(errors="replace") != known:
            raise ConnectError(
                f"The files in {self._system.shown(folder)} are of a topic {topic} that was deleted and created again "
                "since. Move that folder away, or set path to another one, and restart the task."
            )
        self._checked.add(topic)

    def _write_full(self) -> None:
        for partition, file in self._files.items():
            if file.is_full(self.config.flush_size, self.config.rotate_bytes):
                self._write(partition, file)

    def _write_due(self, *, at_once: bool = False) -> None:
        for partition, file in self._files.items():
            if not file.is_empty and (at_once or file.due_in(self.config.rotate_interval_ms / 1000) <= 0):
                self._write(partition, file)

    def _write(self, partition: TopicPartition, file: GrowingFile) -> None:
        """Write a file; if that fails, its records stay."""
        if (reporter := self.context.errant_record_reporter) is not None:
            reporter.flush()
        name = file_name(partition, file.first or 0, file.last, self.config.extension)
        place = place_in(place_in(self._folder, folder_name(partition)), name)
        header = b"" if file.columns is None else header_line(file.columns, self.config.delimiter)
        try:
            with self._system.writing(place) as stream:
                file.copy(stream, header, compress=self.config.compression is Compression.GZIP)
        except OSError as error:
            raise ConnectError(
                f"{self._system.shown(place)} cannot be written: {error}. Free space there, or grant the worker's user "
                "the right to write, and restart the task; its records are not lost."
            ) from error
        file.clear()

    def _ask_for_time(self) -> None:
        """Have the runtime call again when the next file is complete by its age."""
        seconds = self.config.rotate_interval_ms / 1000
        waits = [file.due_in(seconds) for file in self._files.values() if not file.is_empty]
        if waits and seconds:
            self.context.timeout(max(0.0, min(waits)))


class DirectorySinkConnector(SinkConnector[DirectorySinkConfig]):
    """Writes records to files in a folder, on a server or in a bucket, each record to one file."""

    task_class = DirectorySinkTask
    watches = False

    @classmethod
    def alter_offsets(cls, config: DirectorySinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Refuse offsets of records that are in files already: the task would pass over them."""
        system = config.system_at(config.address)
        try:
            for partition, offset in offsets.items():
                folder = place_in(config.address.path, folder_name(partition))
                with suppress(FileNotFoundError):
                    names = [each.name for each in system.walk(folder, recursive=False, enters=lambda _: False)]
                    if (offset or 0) < (following := next_offset(partition, names)):
                        raise ConnectError(
                            f"Files in {system.shown(folder)} have the records of {shown_partition(partition)} before "
                            f"{following}, which would be passed over. Move them away first, then set the offset."
                        )
        finally:
            system.close()
        return True
