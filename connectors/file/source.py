"""The file source: each line added to a file becomes a record."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from connect.data import Constant, Offset, Schema, SourceBatch, SourceRecord, ValueColumn
from connect.errors import ConnectError, DataError, MissingError
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.file.changes import Changes
from connectors.file.config import FileStreamSourceConfig, FileStreamTaskConfig
from connectors.file.lines import Lines, LongLine
from connectors.file.tail import LineInput, StandardInput, Tail

__all__ = ["FileStreamSourceConnector", "FileStreamSourceTask"]

_VALUE_SCHEMA: Final = Schema.string()
_MISSING_SECONDS: Final = 1.0
_LEAST_IDLE_SECONDS: Final = 0.02
_MOST_IDLE_SECONDS: Final = 0.1
_SELDOM_SECONDS: Final = 5.0
_SELDOMEST_SECONDS: Final = 40.0
"""Seconds after which to look at a file of which the kernel tells nothing, since it does not tell of every change. The
longer nothing comes, the longer they are."""
_GATHER_SECONDS: Final = 0.0625
"""Lines that come one by one are read this long after those before them, some at once; nobody wakes up meanwhile."""

_log = logging.getLogger(__name__)


class FileStreamSourceTask(SourceTask[FileStreamTaskConfig]):
    r"""Reads the lines of a file or of standard input, and waits for more at the end.

    The value of a record is the line without its ending (``\n``, ``\r\n`` or ``\r``), decoded as UTF-8 with malformed
    bytes as U+FFFD, as in Java. Its offset is the byte position after the line. A line is read only once its ending is
    there.

    Crash points: the runtime commits offsets after the records, so lines whose offset was not committed are read again.
    A file that was replaced while the task did not run, or whose rotation was not committed, is recognised only if it
    is shorter than the committed position.
    """

    def start(self) -> None:
        self._input: LineInput | None = None
        self._changes: Changes | None = None
        self._unfinished_is_logged = False
        # A file that grows is checked again soon, an idle one less often.
        self._idle_seconds = _LEAST_IDLE_SECONDS
        self._seldom_seconds = _SELDOM_SECONDS
        self._source_partition: Offset = {"filename": self.config.file} if self.config.file else {}
        self._position = 0

    def poll(self) -> SourceBatch | None:
        if self._has_ended():
            return None
        source = self._input or self._open()
        most = max(1, self.config.batch_size)
        try:
            lines = source.take(most)
            if lines is None and self._changes is not None:
                # What has rung last may have been lines that were read before it rang: only now is the next one new.
                self._changes.forget()
                lines = source.take(most)
        except OSError as error:
            raise ConnectError(
                f"Cannot read {self._name}: {error.strerror}. Repair it and restart the task."
            ) from error
        if lines is None:
            self._await_change()
            return None
        self._idle_seconds = _LEAST_IDLE_SECONDS
        self._seldom_seconds = _SELDOM_SECONDS
        if isinstance(lines, LongLine):
            self._report(lines)
            return None
        if self._changes is not None and self.config.split_end is None and len(lines.values) < most:
            self.context.poll_when_readable([], _GATHER_SECONDS)
        return self._batch(lines)

    def drained(self) -> bool:
        """Return whether the end of the file, or of the split, has been reached; an incomplete last line is logged."""
        if self._has_ended():
            return True
        if self._input is None or not self._input.drained():
            return False
        if self._input.unfinished and not self._unfinished_is_logged:
            self._unfinished_is_logged = True
            unread = self._input.unfinished
            _log.warning(
                "The last %d bytes of %s are not read because the line is incomplete: it has no line ending.",
                unread,
                self._name,
            )
        return True

    def remaining(self) -> Mapping[str, int]:
        """Return the number of bytes after the last record."""
        left = self._input.remaining() if self._input is not None else None
        return {} if left is None else {"bytes": left}

    def total(self) -> Mapping[str, int]:
        """Return the number of bytes in the file."""
        whole = self._input.total() if self._input is not None else None
        return {} if whole is None else {"bytes": whole}

    def stop(self) -> None:
        if self._input is not None:
            self._input.close()
            self._input = None
        if self._changes is not None:
            self._changes.close()
            self._changes = None

    def _await_change(self) -> None:
        """Have the runtime poll again after a change of the file, or soon if the kernel does not report changes."""
        if self._changes is not None:
            self.context.poll_when_readable([], self._seldom_seconds)
            self._seldom_seconds = min(2 * self._seldom_seconds, _SELDOMEST_SECONDS)
            return
        self.context.wait(self._idle_seconds)
        self._idle_seconds = min(2 * self._idle_seconds, _MOST_IDLE_SECONDS)

    def _has_ended(self) -> bool:
        """Return whether this is a split that has been read to its end."""
        end = self.config.split_end
        return end is not None and self._position >= end

    @property
    def _name(self) -> str:
        return f"file {self.config.file}" if self.config.file else "the standard input"

    def _open(self) -> LineInput:
        path, line_max_bytes = self.config.file, self.config.line_max_bytes
        if not path:
            _log.warning(
                "The configuration has no 'file': reading the worker's standard input, whose lines are not read again "
                "after a restart. Set 'file' to read a file."
            )
            self._input = StandardInput(line_max_bytes)
            return self._input
        try:
            # First, so that no change is missed.
            self._changes = self._changes or _changes_of(path, self.context.wake)
            self._input = Tail(path, self._committed_position(), line_max_bytes)
        except FileNotFoundError as error:
            raise MissingError(
                f"File {path} does not exist; the source waits until it does. Create it, or correct the key file.",
                _MISSING_SECONDS,
            ) from error
        except OSError as error:
            raise ConnectError(
                f"Cannot read {self._name}: {error.strerror}. Make it readable for the worker's user."
            ) from error
        return self._input

    def _committed_position(self) -> int:
        offset = self.context.offset_storage_reader.offset(self._source_partition)
        position = offset.get("position") if offset else None
        if position is None:
            return 0
        if not isinstance(position, int) or position < 0:
            raise ConnectError(
                f"Offset position is the incorrect type: {position!r} is kept for {self._name}. "
                "Alter or reset the connector's offsets."
            )
        return position

    def _batch(self, lines: Lines) -> SourceBatch:
        length = len(lines.values)
        self._position = lines.end
        return SourceBatch.of(
            self.config.topic,
            ValueColumn(lines.values, _VALUE_SCHEMA),
            source_partition=self._source_partition,
            source_offsets=lines.source_offsets if self.config.file else Constant({}, length),
            timestamps=Constant(time.time_ns() // 1_000_000, length),
        )

    def _report(self, line: LongLine) -> None:
        """Report an unreadable line (I4); the value of the reported record is the beginning of the line."""
        position = line.start if line.end is None else line.end
        record = SourceRecord(
            self.config.topic,
            line.head,
            _VALUE_SCHEMA,
            source_partition=self._source_partition,
            source_offset={"position": position} if self.config.file else {},
        )
        error = DataError(
            f"The line at byte {line.start} of {self._name} is longer than "
            f"line.max.bytes={self.config.line_max_bytes}. Raise that to read such lines."
        )
        self.context.errant_record_reporter.report(record, error)


class FileStreamSourceConnector(SourceConnector[FileStreamSourceConfig]):
    """Tails a text file, or reads standard input; each line becomes one record."""

    task_class = FileStreamSourceTask
    watches = False

    def splits(self, max_splits: int) -> Sequence[Mapping[str, str | None]] | None:  # noqa: ARG002
        """Return the file up to its current end as one split: a single offset tells how far it is read."""
        if not self.config.file:
            return None
        try:
            end = Path(self.config.file).stat().st_size
        except FileNotFoundError:
            return []
        kept = self.context.offset_storage_reader.offset({"filename": self.config.file}) or {}
        return [] if kept.get("position") == end else [{**self.config.originals, "split.end": str(end)}]

    @classmethod
    def exactly_once_support(cls, config: FileStreamSourceConfig) -> ExactlyOnceSupport:
        """Supported for a file that is only appended to; standard input has no offsets."""
        return ExactlyOnceSupport.SUPPORTED if config.file else ExactlyOnceSupport.UNSUPPORTED

    @classmethod
    def alter_offsets(cls, config: FileStreamSourceConfig, offsets: Mapping[str, Offset | None]) -> bool:
        """Accept any file and any position from 0 on; offsets of any form may be deleted."""
        if not config.file:
            raise ConnectError(
                "Offsets cannot be modified if the 'file' configuration is unspecified. "
                "This is because stdin is used for input and offsets are not tracked."
            )
        for partition, offset in offsets.items():
            if offset is not None:
                _check_offset(json.loads(partition), offset)
        return True


def _changes_of(path: str, wake: Callable[[], None]) -> Changes | None:
    """Return the change notifications of a file, if the kernel provides them."""
    try:
        return Changes(path, wake)
    except FileNotFoundError:
        raise
    except OSError as error:
        _log.info(
            "Checking file %s ten times a second, because the kernel does not report its changes: %s. On a local "
            "disk, raise fs.inotify.max_user_instances or fs.inotify.max_user_watches.",
            path,
            error.strerror,
        )
        return None


def _check_offset(partition: Any, offset: Offset) -> None:
    if "position" not in offset:
        raise ConnectError("Offset objects should either be null or contain the key 'position'")
    position = offset["position"]
    if not isinstance(position, int) or isinstance(position, bool):
        raise ConnectError("The value for the 'position' key in the offset is expected to be a Long value")
    if position < 0:
        raise ConnectError("The value for the 'position' key in the offset should be a non-negative value")
    if partition is None:
        raise ConnectError("Partition objects cannot be null")
    if "filename" not in partition:
        raise ConnectError("Partition objects should contain the key 'filename'")
