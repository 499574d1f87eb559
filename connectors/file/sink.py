"""The file sink: each record is appended to a file as a line."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from connect.data import SinkBatch, TopicPartition
from connect.errors import ConnectError
from connect.internals.java.value_text import text_renderer
from connect.sink import SinkConnector, SinkTask
from connectors.file.config import FileStreamSinkConfig

__all__ = ["FileStreamSinkConnector", "FileStreamSinkTask"]

_MODE: Final = 0o666


class FileStreamSinkTask(SinkTask[FileStreamSinkConfig]):
    """Appends record values to a file, one per line, formatted as Java does; syncs the file before each commit.

    The lines of one ``put`` are appended in a single write, so that tasks sharing a file do not interleave lines.

    Crash points: lines are written in ``put`` and synced in ``flush``, and offsets are committed after that (I2). A
    task killed between ``put`` and the commit writes the same lines again: at least once (I3). If it is killed during a
    write, or the disk is full, the file ends with a partial line; the next start terminates it, and the complete line
    follows.
    """

    def start(self) -> None:
        self._unsynced = False
        if not self.config.file:
            # sys.stdout of a plugin goes to the worker's log; this is the worker's own standard output.
            self._file = 1 if sys.__stdout__ is None else sys.__stdout__.fileno()
            return
        try:
            self._file = os.open(self.config.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _MODE)
        except OSError as error:
            remedy = (
                "Name a file, not a folder."
                if isinstance(error, IsADirectoryError)
                else "Make its folder, and let the worker's user write there."
            )
            raise ConnectError(
                f"Couldn't find or create file '{self.config.file}' for FileStreamSinkTask: {error}. {remedy}"
            ) from error
        if _ends_within_a_line(self.config.file):
            self._write(b"\n")

    def put(self, records: SinkBatch) -> None:
        if not len(records):
            return
        self._write(_lines(records).encode(errors="replace"))

    def _write(self, lines: bytes) -> None:
        left = memoryview(lines)
        try:
            while left:
                # A regular file takes everything in one write unless the disk is full.
                left = left[os.write(self._file, left) :]
        except OSError as error:
            raise ConnectError(
                f"Cannot write to {self._name}: {error}. Free disk space or repair it, and restart the task; records "
                "that were not committed are written again."
            ) from error
        self._unsynced = True

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:  # noqa: ARG002
        if not self._unsynced:
            return
        try:
            if stat.S_ISREG(os.fstat(self._file).st_mode):
                os.fsync(self._file)
        except OSError as error:
            raise ConnectError(f"Cannot sync {self._name}: {error}. Check the disk, which may be failing.") from error
        self._unsynced = False

    def stop(self) -> None:
        if self.config.file and hasattr(self, "_file"):
            os.close(self._file)
            del self._file

    @property
    def _name(self) -> str:
        return f"file {self.config.file}" if self.config.file else "the standard output"


class FileStreamSinkConnector(SinkConnector[FileStreamSinkConfig]):
    """Appends records to a file, or to standard output, one per line."""

    task_class = FileStreamSinkTask
    watches = False

    @classmethod
    def alter_offsets(
        cls,
        config: FileStreamSinkConfig,  # noqa: ARG003
        offsets: Mapping[TopicPartition, int | None],  # noqa: ARG003
    ) -> bool:
        return True


def _ends_within_a_line(file: str) -> bool:
    path = Path(file)
    try:
        if not (path.is_file() and path.stat().st_size):
            return False
        with path.open("rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read() != b"\n"
    except OSError:
        return False  # it may be writable although it is not readable


def _lines(records: SinkBatch) -> str:
    values = records.value.values()
    try:
        return "\n".join([*values, ""])
    except TypeError:
        # A value is not a string; the schema of the batch tells its type.
        render = text_renderer(records.value_schema, None)
        return "\n".join([*map(render, values), ""])
