"""The directory source: each row of the files in a folder becomes a record."""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from connect.data import Offset, SourceBatch, SourceRecord
from connect.errors import ConnectError, DataError
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.directory.bookmark import Bookmark, check_offset
from connectors.directory.config import DirectorySourceConfig, DirectoryTaskConfig
from connectors.directory.finished_files import FinishedFile, Finisher
from connectors.directory.reader import Rows
from connectors.directory.splits import FileSplits
from connectors.directory.task_files import FileState, TaskFiles
from connectors.directory.visit import Visit, source_partition, visit

__all__ = ["DirectorySourceConnector", "DirectorySourceTask"]

_log = logging.getLogger(__name__)


class DirectorySourceTask(SourceTask[DirectoryTaskConfig]):
    """Reads its share of the files one after the other, then scans for more.

    Crash points: reading resumes at the last committed offset, so rows published after it come again. A file is moved
    or deleted only when the committed offsets are those of its last rows (I1) and the reports of its malformed rows are
    flushed (I4); a kill between the commit and the move leaves it in the folder, and the next start moves it without
    reading it again.
    """

    def start(self) -> None:
        self._files = TaskFiles(self.config)
        self._finisher = Finisher(self.config)
        self._waiting: deque[FileState] = deque()
        self._visit: Visit | None = None
        self._rows: Rows | None = None
        self._member: str | None = None
        self._failure: Exception | None = None
        self._finished: dict[str, FinishedFile] = {}
        self._drained = False
        self._looks = 0
        self._ends_at = time.monotonic() + self.config.settle_ms / 1000

    def poll(self) -> SourceBatch | None:
        self._drained = False
        looked = False
        while True:
            if self._rows is not None:
                return self._batch(self._rows)
            if self._failure is not None:
                raise self._failure
            if self._visit is not None:
                self._read_on(self._visit)
            elif self._waiting:
                self._begin_visit(self._waiting[0])
            elif not (looked or self._has_ended()):
                # Once per poll: an incomplete file is listed in every scan.
                self._waiting.extend(self._files.to_read())
                self._looks += 1
                looked = True
            else:
                self._idle()
                return None

    def commit(self) -> None:
        """Move or delete the files whose last offsets are now committed; all reports have been flushed by now."""
        for name, finished in self._finished.items():
            self._finished[name] = replace(finished, has_reports=False)
        for state in self._waiting:
            state.has_reports = False
        self._finish()

    def drained(self) -> bool:
        """Return whether every file was read to its end; false while a file is incomplete."""
        return self._drained

    def remaining(self) -> Mapping[str, int]:
        """Return the number of unread bytes in the task's files, as of the last scan."""
        return {"bytes": self._files.remaining_bytes()}

    def stop(self) -> None:
        if self._visit is not None:
            self._visit.close()
            self._visit = None

    def _begin_visit(self, state: FileState) -> None:
        self._visit = visit(self.config, state, self._files.listing.matches, self._kept_place)

    def _kept_place(self, partition: Offset) -> Bookmark | None:
        return Bookmark.from_offset(self.context.offset_storage_reader.offset(partition))

    def _read_on(self, rows: Visit) -> None:
        """Take the next rows of the file, or close it at its end."""
        state = self._waiting[0]
        try:
            self._member, more = next(rows)
        except StopIteration:
            self._leave()
            if state.is_complete:
                self._finished[state.file.name] = _finished(state)
        except FileNotFoundError:
            # It was removed since the scan.
            self._leave()
        except DataError as error:
            self._leave()
            state.is_refused = True
            self._report(SourceRecord(self.config.topic, state.file.path), state, None, error)
        else:
            self._take(more, state)

    def _leave(self) -> None:
        self._visit = None
        self._waiting.popleft()

    def _take(self, rows: Rows, state: FileState) -> None:
        """Report the malformed rows. If a report fails the task, publish the rows before it first."""
        stop = len(rows)
        for before, malformed in rows.malformed:
            record = SourceRecord(self.config.topic, malformed.text, source_offset=malformed.after.to_offset())
            try:
                self._report(record, state, self._member, malformed.error)
            except Exception as error:
                # The next poll raises it.
                self._failure, stop = error, before
                break
        self._rows = rows.slice(0, stop) if stop else None

    def _report(self, record: SourceRecord, state: FileState, member: str | None, error: DataError) -> None:
        state.has_reports = True
        record = record.replace(source_partition=source_partition(state, member))
        self.context.errant_record_reporter.report(record, error)

    def _batch(self, rows: Rows) -> SourceBatch:
        state, size = self._waiting[0], self.config.batch_size
        batch = rows.slice(0, size)
        self._rows = rows.slice(size, len(rows)) if len(rows) > size else None
        state.places[self._member] = batch.offsets.bookmark(-1)
        return SourceBatch.of(
            self.config.topic,
            batch.column,
            source_partition=source_partition(state, self._member),
            source_offsets=batch.offsets,
        )

    def _has_ended(self) -> bool:
        """Return whether this is a split at its end: it waits for an incomplete file no longer than a file takes to
        settle.
        """
        return bool(self.config.split_files) and self._looks > 0 and time.monotonic() >= self._ends_at

    def _idle(self) -> None:
        """Wait before the next scan, since everything readable has been read."""
        self._finish()
        if self.config.split_files and (self._has_ended() or self._files.is_drained()):
            self._drained = True
            return
        now, settle_seconds = time.time(), self.config.settle_ms / 1000
        self._drained = self._files.is_drained() and (
            self._finisher.leaves
            or all(finished.file.is_settled(now, settle_seconds) for finished in self._finished.values())
        )
        self.context.wait(self.config.scan_interval_ms / 1000)

    def _finish(self) -> None:
        """Finish files whose offsets are committed according to the offset store, whatever was published (I1)."""
        if self._finisher.leaves:
            self._finished.clear()
            return
        now, settle_seconds = time.time(), self.config.settle_ms / 1000
        ready = [
            each
            for each in self._finished.values()
            if each.file.is_settled(now, settle_seconds) and not each.has_reports
        ]
        partitions = [partition for each in ready for partition, _ in each.places]
        kept = iter(self.context.offset_storage_reader.offsets(partitions) if partitions else ())
        for finished in ready:
            if finished.is_committed([next(kept) for _ in finished.places]):
                del self._finished[finished.file.name]
                if self._finisher.finish(finished.file):
                    self._files.forget(finished)


def _finished(state: FileState) -> FinishedFile:
    places = [(source_partition(state, member), place) for member, place in state.places.items()]
    has_reports, state.has_reports = state.has_reports, False
    return FinishedFile(state.file, places, has_reports)


class DirectorySourceConnector(SourceConnector[DirectorySourceConfig]):
    """Reads CSV, TSV, JSON lines, text, Avro, Parquet and ORC files in a folder, row by row."""

    task_class = DirectorySourceTask
    watches = False

    def start(self) -> None:
        self._splits: FileSplits | None = None

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return configs of tasks that share the files by their paths, future files included."""
        props = {key: value for key, value in self.config.originals.items() if value is not None}
        return [{**props, "task.index": str(index), "task.count": str(max_tasks)} for index in range(max_tasks)]

    def splits(self, max_splits: int) -> Sequence[Mapping[str, str]]:
        """Return the files that have something to read, each with its present content."""
        props = {key: value for key, value in self.config.originals.items() if value is not None}
        if self._splits is None:
            self._splits = FileSplits(DirectoryTaskConfig.parse(props), self.context.offset_storage_reader)
        return [{**props, "split.files": json.dumps(names)} for names in self._splits.next(max_splits)]

    @classmethod
    def exactly_once_support(cls, config: DirectorySourceConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Supported as long as files are only added or appended to."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: DirectorySourceConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Accept any file and any position from 0 on; the position must be the beginning of a row."""
        for partition, offset in offsets.items():
            if offset is None:
                continue
            check_offset(offset)
            if "filename" not in (json.loads(partition) or ()):
                raise ConnectError(
                    "Partition objects should contain the key 'filename', and 'member' for a file in a zip archive"
                )
        return True
