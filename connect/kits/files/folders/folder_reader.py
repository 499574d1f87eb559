"""Reads the files of a folder one after the other, and finishes those whose records are published."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Protocol

from connect.data import SourceBatch, SourceRecord
from connect.errors import DataError, RetriableError
from connect.kits.files.folders.finished_files import FinishedFile
from connect.kits.files.folders.folder import Folder, RowFault
from connect.kits.files.folders.task_files import TaskFiles
from connect.kits.files.readers.row_reader import Rows
from connect.kits.files.readers.visit import FileState, Visit
from connect.kits.files.systems.system import SourceFile
from connect.source import SourceTaskContext

__all__ = ["FilesToRead", "FolderReader"]

_HALTING_SECONDS: Final = 0.2

_log = logging.getLogger(__name__)


class FilesToRead(Protocol):
    """Finds the files with something to read."""

    @property
    def has_more(self) -> bool:
        """Whether the last scan found only some of the files that are there, and the next call goes on with others."""

    def to_read(self) -> list[FileState]:
        """Return files to read now, in order."""

    def complete(self, state: FileState) -> None:
        """Take note that a file was read to its end."""

    def forget(self, file: SourceFile) -> None:
        """Forget a file that was moved or deleted."""

    def is_drained(self) -> bool:
        """Whether at the last scan every file had been read to its end."""

    def remaining(self) -> Mapping[str, int]:
        """Return what is left to read, by unit."""

    def total(self) -> Mapping[str, int]:
        """Return what there is to read in all, by unit; nothing while that is not known."""


class FolderReader:
    """Reads a task's share of the files one after the other, then scans for more.

    Crash points: reading resumes at the last committed offset, so rows published after it come again. A file is moved
    or deleted only when the committed offsets are those of its last rows (I1) and the reports of its malformed rows are
    flushed (I4); a kill between the commit and the move leaves it in the folder, and the next start moves it without
    reading it again. A file that is rejected is moved when the rows before the bad one are committed; after a kill
    before that the next start finds the bad row again.
    """

    def __init__(self, folder: Folder, context: SourceTaskContext, files: FilesToRead | None = None) -> None:
        self._folder = folder
        self._context = context
        self._files: FilesToRead = TaskFiles(folder) if files is None else files
        self._waiting: deque[FileState] = deque()
        self._visit: Visit | None = None
        self._rows: Rows | None = None
        self._member: str | None = None
        self._failure: Exception | None = None
        self._fault: DataError | None = None
        self._finished: dict[str, FinishedFile] = {}
        self._drained = False
        self._looks = 0
        self._settle_seconds = folder.reading.options.settle_ms / 1000
        self._ends_at = time.monotonic() + self._settle_seconds

    def poll(self) -> SourceBatch | list[SourceRecord] | None:
        """Return the next records; ``None`` if there are none for now."""
        self._drained = False
        looked = False
        while True:
            if self._rows is not None:
                batch = self._batch(self._rows)
                if batch is not None:
                    return batch
            elif self._fault is not None:
                self._reject(self._fault)
            elif self._failure is not None:
                if self._has_halted():
                    raise self._failure
                return None
            elif self._visit is not None:
                self._read_on(self._visit)
            elif self._waiting:
                self._begin_visit(self._waiting[0])
            elif not (looked or self._has_ended()):
                # Once per poll: an incomplete file is listed in every scan.
                self._waiting.extend(self._files.to_read())
                self._looks += 1
                looked = not self._files.has_more
            else:
                self._idle()
                return None

    def commit(self) -> None:
        """Move or delete the files whose last offsets are now committed; all reports have been flushed by now."""
        for name, finished in self._finished.items():
            self._finished[name] = replace(finished, has_reports=False)
        for state in self._waiting:
            state.has_reports = False
        try:
            self._finish()
        except RetriableError as error:
            _log.warning("%s It is tried again after the next files.", error)

    @property
    def is_drained(self) -> bool:
        """Whether every file was read to its end; false while a file is incomplete."""
        return self._drained

    def remaining(self) -> Mapping[str, int]:
        """The number of unread bytes, and of unread files, as of the last scan."""
        return self._files.remaining()

    def total(self) -> Mapping[str, int]:
        """The number of bytes, and of files, read or not, as of the last scan."""
        return self._files.total()

    def close(self) -> None:
        """Close the file that is open, and the connection."""
        if self._visit is not None:
            self._visit.close()
            self._visit = None
        self._folder.reading.system.close()

    def _begin_visit(self, state: FileState) -> None:
        self._visit = self._folder.reading.visit(state)

    def _read_on(self, rows: Visit) -> None:
        """Take the next rows of the file, or close it at its end."""
        state = self._waiting[0]
        try:
            self._member, more = next(rows)
        except StopIteration:
            self._leave()
            if state.is_complete:
                self._files.complete(state)
                self._finished[state.file.name] = self._finished_file(state)
        except FileNotFoundError:
            # It was removed since the scan.
            self._leave()
        except RetriableError:
            # The next scan finds it as it is then, and it is read from the last row on.
            self._leave()
            self._waiting.clear()
            raise
        except DataError as error:
            self._refuse(state, error)
        else:
            self._take(more, state)

    def _refuse(self, state: FileState, error: DataError) -> None:
        """Give up a file that cannot be read further."""
        if self._folder.rejecter is not None:
            self._fault = error
            return
        self._leave()
        state.is_refused = True
        self._report(SourceRecord(self._folder.topic, state.file.path), state, None, error)

    def _leave(self) -> None:
        if self._visit is not None:
            self._visit.close()
        self._visit = None
        self._waiting.popleft()

    def _take(self, rows: Rows, state: FileState) -> None:
        """Report the malformed rows. If a report fails the task, publish the rows before it first."""
        stop = len(rows)
        for before, malformed in rows.malformed:
            if self._folder.rejecter is not None:
                self._fault, stop = malformed.error, before
                break
            record = SourceRecord(self._folder.topic, malformed.text, source_offset=malformed.after.to_offset())
            try:
                self._report(record, state, self._member, malformed.error)
            except Exception as error:
                # The next poll raises it.
                self._failure, stop = error, before
                break
        self._rows = rows.slice(0, stop) if stop else None

    def _report(self, record: SourceRecord, state: FileState, member: str | None, error: DataError) -> None:
        state.has_reports = True
        record = record.replace(source_partition=self._folder.reading.partition(state.file, member))
        self._context.errant_record_reporter.report(record, error)

    def _batch(self, rows: Rows) -> SourceBatch | list[SourceRecord] | None:
        state, size = self._waiting[0], self._folder.batch_size
        some = rows.slice(0, size)
        try:
            # An error that passes leaves the rows where they are.
            batch = self._folder.shape(some, state, self._member)
            self._rows = rows.slice(size, len(rows)) if len(rows) > size else None
        except RowFault as fault:
            self._rows, self._fault = None, fault.error
            if not fault.index:
                return None
            some = some.slice(0, fault.index)
            batch = self._folder.shape(some, state, self._member)
        state.places[self._member] = some.offsets.bookmark(-1)
        return batch

    def _reject(self, error: DataError) -> None:
        """Leave a file with a bad row; it is moved away when the rows before it are committed."""
        state = self._waiting[0]
        self._leave()
        self._fault = None
        state.is_refused = True
        self._finished[state.file.name] = replace(self._finished_file(state), fault=error)
        if self._folder.halts:
            self._failure = error
        else:
            _log.error("%s The rest of the file is not read, and the file is moved away.", error)

    def _has_halted(self) -> bool:
        """Whether a task that is to fail may do so: a rejected file is moved away before."""
        if self._folder.rejecter is None or not any(each.fault for each in self._finished.values()):
            return True
        self._finish()
        if any(each.fault for each in self._finished.values()):
            self._context.wait(_HALTING_SECONDS)
            return False
        return True

    def _has_ended(self) -> bool:
        """Whether this is a split at its end: it waits for an incomplete file no longer than a file takes to settle."""
        return self._folder.is_split and self._looks > 0 and time.monotonic() >= self._ends_at

    def _idle(self) -> None:
        """Wait before the next scan, since everything readable has been read."""
        self._finish()
        if self._folder.is_split and (self._has_ended() or self._files.is_drained()):
            self._drained = True
            return
        now = time.time()
        self._drained = self._files.is_drained() and all(
            finished.file.is_settled(now, self._settle_seconds) and not finished.fault
            for finished in self._finished.values()
        )
        self._context.wait(self._folder.scan_seconds)

    def _finish(self) -> None:
        """Finish files whose offsets are committed according to the offset store, whatever was published (I1)."""
        if self._folder.finisher is None:
            self._finished = {name: each for name, each in self._finished.items() if each.fault}
        now = time.time()
        ready = [
            each
            for each in self._finished.values()
            if each.file.is_settled(now, self._settle_seconds) and not each.has_reports
        ]
        partitions = [partition for each in ready for partition, _ in each.places]
        kept = iter(self._context.offset_storage_reader.offsets(partitions) if partitions else ())
        for finished in ready:
            if finished.is_committed([next(kept) for _ in finished.places]):
                self._finish_one(finished)

    def _finish_one(self, finished: FinishedFile) -> None:
        finisher = self._folder.rejecter if finished.fault else self._folder.finisher
        # It is done before it is forgotten: an error lets the next call try again.
        gone = finisher is None or finisher.finish(finished.file)
        del self._finished[finished.file.name]
        if gone and finisher is not None:
            self._files.forget(finished.file)

    def _finished_file(self, state: FileState) -> FinishedFile:
        partition = self._folder.reading.partition
        places = [(partition(state.file, member), place) for member, place in state.places.items()]
        has_reports, state.has_reports = state.has_reports, False
        return FinishedFile(state.file, places, has_reports)
